//! Reads `[http]`. Must not hold: what a server does with it.

use super::{Entry, Problems, Section, keys, limits, oauth, paths};
use crate::diagnostic::Diagnostic;
use crate::manifest::http::{HttpLimit, HttpPolicy, ListenAddress, TlsFiles};

/// Sockets of one server: some addresses and a Unix socket.
const LISTEN_MAX: usize = 16;

/// Names of one server, and origins of the pages that ask it.
const NAMES_MAX: usize = 64;

/// The settings; `None` where there is no such table.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Option<HttpPolicy> {
    let section = root.get("http")?.section(problems)?;
    section.check_keys(&keys::HTTP, problems);
    let listen = section.get("listen").map(|entry| listen(&entry, problems)).unwrap_or_default();
    let mut http = HttpPolicy { listen, ..HttpPolicy::default() };
    if let Some(path) = section.get("path").and_then(|entry| path(&entry, problems)) {
        http.path = path;
    }
    http.hosts = section.get("hosts").map(|entry| named(&entry, &HOSTS, problems)).unwrap_or_default();
    http.origins = section.get("origins").map(|entry| named(&entry, &ORIGINS, problems)).unwrap_or_default();
    http.tls = tls(&section, problems);
    http.tokens = section.get("tokens").and_then(|entry| paths::host_path(&entry, problems));
    http.oauth = oauth::read(&section, problems);
    for (limit, value) in HttpLimit::ALL.into_iter().zip(&mut http.values) {
        let read = section.get(limit.spec().key).and_then(|entry| limits::value(&entry, limit.spec(), problems));
        *value = read.unwrap_or(*value);
    }
    shares(&section, &mut http, problems);
    Some(http)
}

/// What one caller may have of what all have together: a part of it, whether it is written or not.
fn shares(section: &Section<'_>, http: &mut HttpPolicy, problems: &mut Problems) {
    for (share, whole) in HttpLimit::SHARES {
        // Whoever may send the longest body alone may not be kept from that by its share.
        let least = if share == HttpLimit::BodiesPerCaller { http.get(HttpLimit::Body) } else { 1 };
        let all = http.get(whole);
        let Some(entry) = section.get(share.spec().key) else {
            set(http, share, share_of(share, whole, all).max(least).min(all));
            continue;
        };
        let (value, key) = (http.get(share), whole.spec().key);
        let wrong = if value > all {
            format!("{} is more than {key}", entry.key)
        } else if value < least.min(all) && share == HttpLimit::BodiesPerCaller {
            format!("{} is less than body: the longest body could never be sent", entry.key)
        } else {
            continue;
        };
        let shown = (share.spec().show(least.min(all)), share.spec().show(all));
        problems.add(
            Diagnostic::error("http::share", wrong)
                .at(entry.span.clone())
                .hint(format!("a caller's share is a part of {key}: {} to {}", shown.0, shown.1)),
        );
    }
}

/// The default share of so much: as much of it as the default share is of the default whole, and never more than that.
fn share_of(share: HttpLimit, whole: HttpLimit, all: u64) -> u64 {
    let (part, of) = (share.spec().default, whole.spec().default);
    let proportional = u128::from(all) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(proportional).map_or(part, |proportional| proportional.min(part))
}

fn set(http: &mut HttpPolicy, limit: HttpLimit, value: u64) {
    let places = HttpLimit::ALL.into_iter().zip(&mut http.values);
    places.filter(|(known, _)| *known == limit).for_each(|(_, place)| *place = value);
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Vec<ListenAddress> {
    let texts = match entry.as_str() {
        Some(text) => vec![(text, entry.span.clone())],
        None => entry.strings(LISTEN_MAX, problems).unwrap_or_default(),
    };
    let mut addresses = Vec::new();
    for (text, span) in texts {
        match ListenAddress::parse(text) {
            Some(address) => addresses.push(address),
            None => problems.add(
                Diagnostic::error("http::listen", format!("{text:?} is no address to listen on"))
                    .at(span)
                    .hint("write \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:run/toolcell.sock\""),
            ),
        }
    }
    addresses
}

fn path(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let plain =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~'));
    if text.starts_with('/') && plain && !matches!(text, "/healthz" | "/readyz") {
        return Some(text.to_owned());
    }
    problems.add(
        Diagnostic::error("http::path", format!("{text:?} is no path for the endpoint"))
            .at(entry.span.clone())
            .hint("write \"/mcp\": a slash, then letters, digits, slashes, and - _ . ~; not /healthz or /readyz"),
    );
    None
}

/// A list of names of one kind.
pub(super) struct Names {
    code: &'static str,
    what: &'static str,
    hint: &'static str,
    fits: fn(&str) -> bool,
}

pub(super) const HOSTS: Names = Names {
    code: "http::host",
    what: "no host",
    hint: "write \"tools.example.com\", or \"tools.example.com:8443\" where only that port is meant",
    fits: is_host,
};

const ORIGINS: Names = Names {
    code: "http::origin",
    what: "no origin of a web page",
    hint: "write \"https://app.example.com\", with its port where it has one and without a path; there is no \"*\"",
    fits: is_origin,
};

pub(super) fn named(entry: &Entry<'_>, names: &Names, problems: &mut Problems) -> Vec<String> {
    let mut read = Vec::new();
    for (text, span) in entry.strings(NAMES_MAX, problems).unwrap_or_default() {
        if (names.fits)(text) {
            read.push(text.to_owned());
        } else {
            let message = format!("{text:?} is {}", names.what);
            problems.add(Diagnostic::error(names.code, message).at(span).hint(names.hint));
        }
    }
    read
}

pub(super) fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("address", rest.strip_prefix(':').or(rest.is_empty().then_some("1")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("1")),
        },
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !host.is_empty()
        && host.bytes().all(plain)
        && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    !scheme.is_empty() && scheme.bytes().all(plain) && is_host(host)
}

/// Certificate and key: both, or neither.
fn tls(section: &Section<'_>, problems: &mut Problems) -> Option<TlsFiles> {
    let (certificate, key) = (section.get("certificate"), section.get("key"));
    let alone = match (&certificate, &key) {
        (Some(entry), None) => Some((entry, "key")),
        (None, Some(entry)) => Some((entry, "certificate")),
        _ => None,
    };
    if let Some((entry, missing)) = alone {
        let message = format!("{} is of no use without {missing}", entry.key);
        problems.add(Diagnostic::error("http::tls", message).at(entry.key_span.clone()).hint("TLS takes both"));
    }
    let certificate = paths::host_path(&certificate?, problems)?;
    Some(TlsFiles { certificate, key: paths::host_path(&key?, problems)? })
}
