//! The section `[http]`: where the server is reached over HTTP, who may ask it, and what clients
//! may take. Must not hold: sockets, or how a limit is enforced.

mod limits;

pub use limits::{HttpLimit, HttpLimits};

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::oauth::{self, OAUTH, OauthPolicy};
use crate::diagnostic::Diagnostic;
use crate::grants::HostPort;
use crate::read::{Entry, Problems, Section, paths};
use crate::settings::settings;
use crate::table::{Definition, ONE_OR_SEVERAL};

/// The start of a Unix socket's address.
const UNIX: &str = "unix:";

/// Sockets of one server: some addresses and a Unix socket.
const LISTEN_MAX: usize = 16;

/// Names of one server, and origins of the pages that ask it.
pub(super) const NAMES_MAX: usize = 64;

settings! {
    /// The server over HTTP: with `serve --http`.
    HttpPolicy HTTP "Http" {
        /// The addresses to listen on, unless `--http` names some: addresses with ports, and Unix
        /// sockets (`unix:PATH`).
        listen: Vec<ListenAddress> => &[ListenAddress] = "listen" (Definition(&LISTEN), listen, else Vec::new()),
            {"examples": ["127.0.0.1:8080", ["[::1]:8080", "unix:run/toolcell.sock"]]};
        /// The endpoint's path.
        path: String => &str = "path" (Text, path, else "/mcp".to_owned()),
            {"minLength": 1, "default": "/mcp", "examples": ["/tools/mcp"]};
        /// The server's names besides its address; with a port where only that one is meant.
        hosts: Vec<String> => &[String] = "hosts" (List(&Text), hosts, else Vec::new()),
            {"maxItems": NAMES_MAX, "examples": [["tools.example.com"]]};
        /// Origins of web pages that may ask it and read its answers. None by default.
        origins: Vec<String> => &[String] = "origins" (List(&Text), origins, else Vec::new()),
            {"maxItems": NAMES_MAX, "examples": [["https://app.example.com"]]};
        /// The TLS certificate with its chain, in PEM, relative to this file. Read again when it
        /// changes.
        certificate: Option<String> => Option<&str> = "certificate" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tls/server.pem"]};
        /// Its private key, in PEM, relative to this file.
        key: Option<String> => Option<&str> = "key" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tls/server.key"]};
        /// The file of callers' tokens (`toolcell token new`), relative to this file.
        tokens: Option<String> => Option<&str> = "tokens" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tokens.jsonl"]};
        /// The server as a resource of OAuth 2.1: issuers whose tokens callers may show, besides
        /// those of `tokens`.
        oauth: Option<OauthPolicy> => Option<&OauthPolicy> = "oauth" (Table(&OAUTH), oauth::read, else None), {};
    }
    and HttpLimit HttpLimits;
    other names {
        "address" => "listen", "bind" => "listen", "port" => "listen", "cert" => "certificate", "cors" => "origins",
        "body_max" => "body", "idle_time" => "idle",
    }
}

static LISTEN: Definition =
    Definition { name: "Listen", about: "One address to listen on, or several.", shape: ONE_OR_SEVERAL };

/// One address where connections come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port; port 0 is any that is free.
    Tcp(SocketAddr),
    /// The path of a Unix socket, relative to the manifest.
    Unix(String),
}

/// The files of TLS, relative to the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFiles<'p> {
    pub(super) certificate: &'p str,
    pub(super) key: &'p str,
}

impl ListenAddress {
    /// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:run/toolcell.sock`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let plain = !path.is_empty() && !path.chars().any(char::is_control);
            return plain.then(|| Self::Unix(path.to_owned()));
        }
        if let Some(port) = text.strip_prefix("localhost:") {
            return Some(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)));
        }
        text.parse().ok().map(Self::Tcp)
    }

    /// True if other machines can reach it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        match self {
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => false,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{path}"),
        }
    }
}

impl<'p> TlsFiles<'p> {
    /// The certificate with its chain, in PEM.
    #[must_use]
    pub const fn certificate(&self) -> &'p str {
        self.certificate
    }

    /// Its private key, in PEM.
    #[must_use]
    pub const fn key(&self) -> &'p str {
        self.key
    }
}

impl HttpPolicy {
    /// The files that the server shows in TLS handshakes; `None`: it is reached without TLS.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFiles<'_>> {
        Some(TlsFiles { certificate: self.certificate()?, key: self.key()? })
    }

    /// The settings of `[http]`; `None` without the table.
    pub(crate) fn read_from(root: &Section<'_>, problems: &mut Problems) -> Option<Self> {
        let section = root.get("http")?.section(problems)?;
        let mut http = Self::read(Some(&section), problems);
        refuse_half_of_tls(&section, problems);
        read_shares(&section, &mut http.limits, problems);
        Some(http)
    }
}

/// Certificate and key: both, or neither.
pub(super) fn refuse_half_of_tls(section: &Section<'_>, problems: &mut Problems) {
    let (entry, missing) = match (section.get("certificate"), section.get("key")) {
        (Some(entry), None) => (entry, "key"),
        (None, Some(entry)) => (entry, "certificate"),
        _ => return,
    };
    let message = format!("{} has no effect without {missing}", entry.key);
    problems.add(entry.key_error("http::tls", message).hint("TLS takes both"));
}

/// Sets the shares of one caller. Each is a part of its whole, also where the manifest does not set
/// it.
fn read_shares(section: &Section<'_>, limits: &mut HttpLimits, problems: &mut Problems) {
    for (share, whole) in HttpLimit::SHARES {
        // //A caller's share must fit the longest body.
        let least = if share == HttpLimit::BodiesPerCaller { limits.get(HttpLimit::Body) } else { 1 };
        let all = limits.get(whole);
        let Some(entry) = section.get(share.spec().key) else {
            limits.set(share, share_of(share, whole, all).max(least).min(all));
            continue;
        };
        let value = limits.get(share);
        let key = whole.spec().key;
        let wrong = if value > all {
            format!("{} is more than {key}", entry.key)
        } else if value < least.min(all) && share == HttpLimit::BodiesPerCaller {
            format!("{} is less than body: the longest body could never be sent", entry.key)
        } else {
            continue;
        };
        let least = share.spec().show(least.min(all));
        let most = share.spec().show(all);
        let hint = format!("a caller's share is a part of {key}: {least} to {most}");
        problems.add(entry.error("http::share", wrong).hint(hint));
    }
}

/// The default share of this total: in proportion to the defaults, and never more than the default
/// share.
fn share_of(share: HttpLimit, whole: HttpLimit, all: u64) -> u64 {
    let part = share.spec().default;
    let of = whole.spec().default;
    let proportional = u128::from(all) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(proportional).map_or(part, |proportional| proportional.min(part))
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<ListenAddress>> {
    let texts = match entry.as_str() {
        Some(text) => vec![(text, entry.span.clone())],
        None => entry.strings(LISTEN_MAX, problems).unwrap_or_default(),
    };
    let mut addresses = Vec::new();
    for (text, span) in texts {
        match ListenAddress::parse(text) {
            Some(address) => addresses.push(address),
            None => problems.add(
                Diagnostic::error("http::listen", format!("{text:?} is not an address to listen on"))
                    .at(span)
                    .hint("write \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:run/toolcell.sock\""),
            ),
        }
    }
    Some(addresses)
}

fn path(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let plain =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~'));
    if text.starts_with('/') && plain && !matches!(text, "/healthz" | "/readyz") {
        return Some(text.to_owned());
    }
    let problem = entry.error("http::path", format!("{text:?} is not a path for the endpoint"));
    let hint = "write \"/mcp\": a slash, then letters, digits, slashes, and - _ . ~; not /healthz or /readyz";
    problems.refuse(problem.hint(hint))
}

/// A list of names of one kind.
struct Names {
    code: &'static str,
    what: &'static str,
    hint: &'static str,
    /// The normal form; `None` if the text is malformed.
    normal: fn(&str) -> Option<String>,
}

const HOSTS: Names = Names {
    code: "http::host",
    what: "not a host",
    hint: "write \"tools.example.com\", or \"tools.example.com:8443\" where only that port is meant",
    normal: normal_host,
};

const ORIGINS: Names = Names {
    code: "http::origin",
    what: "not the origin of a web page",
    hint: "write \"https://app.example.com\", with its port where it has one and without a path; there is no \"*\"",
    normal: normal_origin,
};

/// Names of hosts that requests may be for.
pub(super) fn hosts(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    named(entry, &HOSTS, problems)
}

fn origins(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    named(entry, &ORIGINS, problems)
}

/// The address and port of pages that stand apart from the server's own. `port` is that of the
/// examples.
pub(super) fn page_address(
    entry: &Entry<'_>,
    code: &'static str,
    port: u16,
    problems: &mut Problems,
) -> Option<SocketAddr> {
    let text = entry.string(problems)?;
    match ListenAddress::parse(text) {
        Some(ListenAddress::Tcp(address)) => Some(address),
        _ => {
            let problem = entry.error(code, format!("{text:?} is not an address to listen on"));
            problems.refuse(problem.hint(format!("write \"127.0.0.1:{port}\" or \"[::1]:{port}\"")))
        }
    }
}

fn named(entry: &Entry<'_>, names: &Names, problems: &mut Problems) -> Option<Vec<String>> {
    let mut read = Vec::new();
    for (text, span) in entry.strings(NAMES_MAX, problems)? {
        if let Some(normal) = (names.normal)(text) {
            read.push(normal);
        } else {
            let message = format!("{text:?} is {}", names.what);
            problems.add(Diagnostic::error(names.code, message).at(span).hint(names.hint));
        }
    }
    Some(read)
}

fn normal_host(text: &str) -> Option<String> {
    HostPort::parse(text).map(|host| host.to_string())
}

/// The form that browsers use.
fn normal_origin(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let scheme = Some(scheme.to_ascii_lowercase()).filter(|text| !text.is_empty() && text.bytes().all(plain))?;
    let host = HostPort::parse(host)?;
    let host = match scheme.as_str() {
        "https" => host.without_port(443),
        "http" => host.without_port(80),
        _ => host,
    };
    Some(format!("{scheme}://{host}"))
}
