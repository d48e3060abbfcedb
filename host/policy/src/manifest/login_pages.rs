//! The section `[logins]`: where browsers find the pages at which callers log in.

use std::net::SocketAddr;
use std::sync::Arc;

use url::Url;

use super::http::{ListenAddress, page_address};
use super::login::of_callers;
use super::{ComponentPolicy, LoginPolicy, is_loopback};
use crate::diagnostic::Diagnostic;
use crate::read::{Entry, Problems, Section};
use crate::settings::settings;

/// The longest address of the pages, in bytes: what follows it must fit an address of 2,048.
const ADDRESS_BYTES_MAX: usize = 512;

settings! {
    /// The address at which callers log in with a browser, for `[oauth.NAME]` with
    /// `of = "caller"`.
    LoginsPolicy LOGINS "Logins" {
        /// The address and port; by default a free loopback port. One that other machines reach
        /// needs an `address` with `https`: a proxy in front of it.
        listen: Option<SocketAddr> => Option<SocketAddr> = "listen" (Text, listen, else None),
            {"minLength": 1, "examples": ["127.0.0.1:8770"]};
        /// The address of the pages for browsers; by default `http://` and `listen`. Authorization
        /// servers send browsers back to `ADDRESS/return/NAME`.
        address: Option<String> => Option<&str> = "address" (Text, address, else None),
            {"minLength": 1, "maxLength": ADDRESS_BYTES_MAX, "examples": ["https://tools.example.com/logins"]};
    }
    other names { "url" => "address", "public" => "address", "bind" => "listen", "port" => "listen" }
}

impl LoginsPolicy {
    /// The settings of `[logins]`; `None` without the table.
    pub(crate) fn read_from(
        root: &Section<'_>,
        logins: &[Arc<LoginPolicy>],
        components: &[ComponentPolicy],
        problems: &mut Problems,
    ) -> Option<Self> {
        let entry = root.get("logins")?;
        let section = entry.section(problems)?;
        let pages = Self::read(Some(&section), problems);
        let is_public = pages.listen().is_some_and(|address| ListenAddress::Tcp(address).is_public());
        let is_encrypted = pages.address().is_some_and(|address| address.starts_with("https://"));
        if is_public
            && !is_encrypted
            && let Some(listen) = section.get("listen")
        {
            let problem = listen.error("logins::public", "other machines reach this address, without TLS");
            problems.add(problem.hint("write address = \"https://…\", that of a proxy, or listen on 127.0.0.1"));
        }
        if of_callers(logins, components).is_empty() {
            let problem = Diagnostic::warning("logins::unused", "no login is one of each caller").at(entry.key_span);
            problems.add(problem.hint("write of = \"caller\" into an [oauth.NAME], or remove [logins]"));
        }
        Some(pages)
    }
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    page_address(entry, "logins::listen", 8770, problems)
}

/// An address of a server, with a path or none. A slash at its end does not count.
fn address(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let plain = |url: &Url| {
        let has_more = url.query().is_some() || url.fragment().is_some() || url.password().is_some();
        !has_more && url.username().is_empty() && url.host().is_some()
    };
    let is_fit = |url: &Url| plain(url) && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url)));
    if text.len() <= ADDRESS_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`'))
        && Url::parse(text).is_ok_and(|url| is_fit(&url))
    {
        return Some(text.trim_end_matches('/').to_owned());
    }
    let problem = entry.error("logins::address", format!("{text:?} is not an address that browsers reach over https"));
    problems.refuse(problem.hint("write \"https://tools.example.com/logins\"; http is for loopback alone"))
}
