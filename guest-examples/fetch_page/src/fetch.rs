//! Asking for a page, redirects included. Holds nothing of what a page says.

use toolkit::Failure;
use toolkit::http::{self, Target};

use crate::page::Page;
use crate::url;

/// The most of a page that is read, in bytes: past it there is nothing that a person would read.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// How many redirects are followed: what browsers' makers found enough for honest pages is 20, and 5 is enough for nearly all.
const REDIRECTS_MAX: usize = 5;

/// The request; the host adds `Host` and speaks TLS.
const FIELDS: [(&str, &str); 2] =
    [("accept", "text/html, text/plain, application/json;q=0.9, */*;q=0.1"), ("user-agent", "toolcell-fetch-page/0.1")];

/// Fetches a page. Where it leads elsewhere, that is asked for like any other URL: the host decides anew.
pub fn page(address: &str) -> Result<Page, Failure> {
    let mut address = address.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        let (scheme, authority, rest) = url::parts(&address)
            .filter(|(scheme, ..)| ["http", "https"].contains(scheme))
            .ok_or_else(|| Failure::invalid(format!("{address:?} is not an http or https URL")))?;
        let rest = rest.split('#').next().unwrap_or("");
        let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        let answer = http::get(Target { scheme, authority, path: &path }, &FIELDS)?;
        let location = answer.field("location").unwrap_or_default();
        if matches!(answer.status, 301 | 302 | 303 | 307 | 308) && !location.is_empty() {
            address = url::joined(&address, location);
            continue;
        }
        let status = answer.status;
        let kind = answer.field("content-type").unwrap_or_default().to_owned();
        return Ok(Page { url: address, status, kind, body: answer.read(PAGE_BYTES_MAX)? });
    }
    Err(Failure::Failed(format!("the page leads on and on: {REDIRECTS_MAX} redirects were followed")))
}
