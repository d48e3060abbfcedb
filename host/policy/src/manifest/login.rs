//! The sections `[oauth.NAME]`: authorization servers at which a person logs in once, and which
//! then give the host tokens for an API.

use std::sync::Arc;

use url::{Host, Url};

use super::ComponentPolicy;
use super::oauth::check_name;
use crate::diagnostic::Diagnostic;
use crate::grants::SecretSource;
use crate::limits::limits;
use crate::quantity::{HOUR, MINUTE};
use crate::read::{Entry, Problems, Section};
use crate::rights::secret_source;
use crate::settings::accessors;
use crate::table::{Keys, table};

/// Logins of one manifest: as many as a person would want to renew.
pub(crate) const LOGINS_MAX: usize = 64;

/// The most scopes of a login.
const SCOPES_MAX: usize = 64;

/// The longest address, scope, client or audience, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Ways in which the client's secret goes to the token endpoint.
const CLIENT_AUTH: [&str; 2] = ["basic", "post"];

/// The redirect where the manifest names none: any free port of the loopback (RFC 8252).
const REDIRECT: &str = "http://127.0.0.1/callback";

table! {
    /// An authorization server at which a person logs in (`toolcell secret login NAME`). Secrets
    /// with `from = "oauth:NAME"` are its access tokens, which the host refreshes.
    pub(crate) LOGIN "Login" {
        /// The server's name, whose metadata tell its endpoints (RFC 8414, or OpenID Connect
        /// Discovery).
        "issuer": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com"]};
        /// The authorization endpoint, in place of the metadata's. It may have a query, which is
        /// sent along.
        "authorize": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com/authorize"]};
        /// The token endpoint, in place of the metadata's.
        "token": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com/token"]};
        /// The device authorization endpoint, in place of the metadata's, for `--device` (RFC
        /// 8628).
        "device": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com/device"]};
        /// The client's identifier, as it was registered with the server.
        "client_id" required: Text, {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["toolcell-desk"]};
        /// The client's secret, where the server gave one.
        "client_secret": Table(&CLIENT_SECRET), {};
        /// The way of the client's secret: `basic` in a header, `post` in the form; by default as
        /// the metadata say, or `basic`.
        "client_auth": Words(&CLIENT_AUTH), {"examples": ["post"]};
        /// The scopes that are asked for.
        "scopes": List(&Text), {"maxItems": SCOPES_MAX, "examples": [["notes.read", "offline_access"]]};
        /// The API that the tokens are for, as an address (RFC 8707).
        "resource": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://api.example.com/"]};
        /// The API that the tokens are for, as some servers want it in place of `resource`.
        "audience": Text, {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["api://notes"]};
        /// The address of the loopback to which the browser returns; a free port where it has none.
        "redirect": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "default": REDIRECT, "examples": ["http://127.0.0.1:8765/callback"]};
    }
    and Keys::These(&LoginLimit::KEYS);
    other names {
        "url" => "issuer", "iss" => "issuer", "server" => "issuer", "authorization_endpoint" => "authorize",
        "token_endpoint" => "token", "device_authorization_endpoint" => "device", "client" => "client_id",
        "id" => "client_id", "secret" => "client_secret", "scope" => "scopes", "redirect_uri" => "redirect",
    }
}

table! {
    /// The client's secret.
    pub(crate) CLIENT_SECRET "ClientSecret" {
        /// The source of its value: `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`.
        "from" required: Text,
            {"pattern": "^(env:.+|file:.+|keyring:.+/.+)$", "examples": ["env:NOTES_CLIENT_SECRET"]};
    }
}

limits! {
    /// The times of one login.
    LoginLimit, LoginLimits;
    /// The time before an access token's end at which it is refreshed.
    Early early: std::time::Duration = "early" Millis { min: 0, default: MINUTE, max: HOUR }, like ["2m"],
        "Covers the way of a request, and clocks that differ.";
}

accessors! {
    /// A login: an authorization server, and what to request from it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoginPolicy {
        /// Its name in the manifest.
        pub(crate) name: String => &str,
        /// The server's name; `None`: its endpoints are all written by hand.
        pub(crate) issuer: Option<String> => Option<&str>,
        /// The authorization endpoint, where it is written by hand.
        pub(crate) authorize: Option<String> => Option<&str>,
        /// The token endpoint, where it is written by hand.
        pub(crate) token: Option<String> => Option<&str>,
        /// The device authorization endpoint, where it is written by hand.
        pub(crate) device: Option<String> => Option<&str>,
        /// The client's identifier.
        pub(crate) client_id: String => &str,
        /// The source of the client's secret, if it has one.
        pub(crate) client_secret: Option<SecretSource> => Option<&SecretSource>,
        /// The way of the client's secret, where the manifest says it.
        pub(crate) client_auth: Option<ClientAuth> => Option<ClientAuth>,
        /// The scopes that are asked for.
        pub(crate) scopes: Vec<String> => &[String],
        /// The API that the tokens are for (RFC 8707).
        pub(crate) resource: Option<String> => Option<&str>,
        /// The API that the tokens are for, as some servers want it.
        pub(crate) audience: Option<String> => Option<&str>,
        /// The address to which the browser returns.
        pub(crate) redirect: LoopbackRedirect => &LoopbackRedirect,
        /// Its times.
        pub(crate) limits: LoginLimits => &LoginLimits,
    }
}

/// The way in which a client's secret goes to the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the header `Authorization` (`client_secret_basic`).
    Basic,
    /// In the form (`client_secret_post`).
    Post,
}

accessors! {
    /// An address of the loopback, to which the browser returns.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoopbackRedirect {
        /// The host as the manifest writes it: `127.0.0.1`, `[::1]` or `localhost`.
        pub(crate) host: String => &str,
        /// The port; `None`: a free one.
        pub(crate) port: Option<u16> => Option<u16>,
        /// The path; begins with a slash.
        pub(crate) path: String => &str,
    }
}

/// The logins, in the order of the file. Invalid ones are reported and left out.
pub(crate) fn read_all(root: &Section<'_>, problems: &mut Problems) -> Vec<Arc<LoginPolicy>> {
    let Some(entry) = root.get("oauth") else { return Vec::new() };
    let logins = entry.entries(LOGINS_MAX, "oauth::too_many", "logins", problems);
    logins.into_iter().filter_map(|entry| read(&entry, problems).map(Arc::new)).collect()
}

/// Reports each login that no secret uses.
pub(crate) fn check_used(root: &Section<'_>, components: &[ComponentPolicy], problems: &mut Problems) {
    let Some(section) = root.get("oauth").filter(|entry| entry.is_table()).and_then(|entry| entry.section(problems))
    else {
        return;
    };
    let secrets = || components.iter().flat_map(|component| component.grants().secrets());
    let is_used = |name: &str| {
        secrets().any(|secret| matches!(secret.source(), SecretSource::Login(login) if login.name() == name))
    };
    for entry in section.entries().into_iter().take(LOGINS_MAX).filter(|entry| !is_used(entry.key)) {
        let message = format!("no secret uses the login {:?}", entry.key);
        let hint = format!(
            "add NAME = {{ from = \"oauth:{}\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"https://…\" }} \
             to a component's secrets",
            entry.key
        );
        problems.add(Diagnostic::warning("oauth::unused", message).at(entry.key_span).hint(hint));
    }
}

fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<LoginPolicy> {
    check_name(entry, "login", problems);
    let section = entry.table(&LOGIN, problems)?;
    let mut at = |key: &str, kind: LoginAddress| section.get(key).and_then(|entry| address(&entry, kind, problems));
    let issuer = at("issuer", LoginAddress::Plain);
    let authorize = at("authorize", LoginAddress::Query);
    let token = at("token", LoginAddress::Query);
    let device = at("device", LoginAddress::Query);
    let resource = at("resource", LoginAddress::Resource);
    let audience = section.get("audience").and_then(|entry| text(&entry, problems));
    let client_secret = section.get("client_secret").and_then(|entry| client_secret(&entry, problems));
    let client_auth = section.get("client_auth").and_then(|entry| client_auth(&entry, problems));
    let scopes = section.get("scopes").map(|entry| scopes(&entry, problems)).unwrap_or_default();
    let redirect = match section.get("redirect") {
        Some(entry) => redirect(&entry, problems),
        None => LoopbackRedirect::parse(REDIRECT),
    };
    let limits = LoginLimits::default().read(&section, problems);
    let client_id = match section.get("client_id") {
        Some(entry) => text(&entry, problems),
        None => {
            let message = format!("[oauth.{}] has no client_id", entry.key);
            let hint = "write client_id = \"…\": register a public client with the server, which gives one";
            problems.refuse(entry.key_error("oauth::missing", message).hint(hint))
        }
    };
    let named = |key: &str| section.get(key).is_some();
    if !named("issuer") && !(named("token") && (named("authorize") || named("device"))) {
        let message = format!("[oauth.{}] does not name its authorization server", entry.key);
        let hint = "write issuer = \"https://login.example.com\"; or authorize and token, or device and token";
        problems.add(entry.key_error("oauth::missing", message).hint(hint));
    }
    // A problem makes the manifest unusable anyway. The login is kept, so that its secrets cause no
    // further problems.
    Some(LoginPolicy {
        name: entry.key.to_owned(),
        issuer,
        authorize,
        token,
        device,
        client_id: client_id.unwrap_or_default(),
        client_secret,
        client_auth,
        scopes,
        resource,
        audience,
        redirect: redirect.or_else(|| LoopbackRedirect::parse(REDIRECT))?,
        limits,
    })
}

/// The parts that an address may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoginAddress {
    /// An issuer: no query.
    Plain,
    /// An endpoint: a query is kept (RFC 6749, section 3).
    Query,
    /// A resource: any scheme with a host, and nothing is fetched from it.
    Resource,
}

fn address(entry: &Entry<'_>, kind: LoginAddress, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = match Url::parse(text) {
        _ if text.len() > TEXT_BYTES_MAX => Some("is too long"),
        _ if !text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')) => {
            Some("has characters that are not allowed in an address")
        }
        Err(_) => Some("is not an address"),
        Ok(url) if url.fragment().is_some() => Some("has a fragment"),
        Ok(_) if kind == LoginAddress::Resource => None,
        Ok(url) if url.host().is_none() || !url.username().is_empty() || url.password().is_some() => {
            Some("is not a server address")
        }
        Ok(url) if kind == LoginAddress::Plain && url.query().is_some() => Some("has a query"),
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && super::is_loopback(&url)) => None,
        Ok(_) => Some("is not reached over https"),
    };
    let Some(wrong) = wrong else { return Some(text.to_owned()) };
    let problem = entry.error("oauth::address", format!("{} {text:?} {wrong}", entry.key));
    problems.refuse(problem.hint("write \"https://…\", without a fragment; http is for loopback alone"))
}

/// A text of visible ASCII characters.
fn text(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    if !text.is_empty() && text.len() <= TEXT_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.to_owned());
    }
    let problem = entry.error("oauth::text", format!("{} {text:?} cannot be sent", entry.key));
    problems.refuse(problem.hint(format!("write 1 to {TEXT_BYTES_MAX} visible ASCII characters without spaces")))
}

fn scopes(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut read: Vec<String> = Vec::new();
    for (text, span) in entry.strings(SCOPES_MAX, problems).unwrap_or_default() {
        // RFC 6749, section 3.3.
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        if plain && !text.is_empty() && text.len() <= TEXT_BYTES_MAX {
            read.push(text.to_owned());
            continue;
        }
        let problem = Diagnostic::error("oauth::text", format!("{text:?} is not a scope")).at(span);
        problems.add(problem.hint("write visible ASCII characters without quotes and backslashes, each by itself"));
    }
    read
}

fn client_secret(entry: &Entry<'_>, problems: &mut Problems) -> Option<SecretSource> {
    let forms = "write \"env:NAME\", \"file:PATH\" or \"keyring:SERVICE/ACCOUNT\"";
    if entry.as_str().is_some() {
        let problem = Diagnostic::error("oauth::secret", "client_secret must not hold the secret itself");
        let hint = "write client_secret = { from = \"env:NAME\" } and keep the value out of the manifest";
        return problems.refuse(problem.at(entry.key_span.clone()).concealing().hint(hint));
    }
    let section = entry.table(&CLIENT_SECRET, problems)?;
    match section.get("from") {
        Some(from) => secret_source(&from, forms, problems),
        None => problems.refuse(entry.key_error("manifest::missing", "client_secret has no from").hint(forms)),
    }
}

fn client_auth(entry: &Entry<'_>, problems: &mut Problems) -> Option<ClientAuth> {
    match entry.string(problems)? {
        "basic" => Some(ClientAuth::Basic),
        "post" => Some(ClientAuth::Post),
        other => {
            let problem = entry.error("oauth::client_auth", format!("unknown client_auth {other:?}"));
            problems.refuse(problem.hint("write \"basic\" or \"post\""))
        }
    }
}

fn redirect(entry: &Entry<'_>, problems: &mut Problems) -> Option<LoopbackRedirect> {
    let text = entry.string(problems)?;
    LoopbackRedirect::parse(text).or_else(|| {
        let problem = entry.error("oauth::redirect", format!("redirect {text:?} is not a loopback address"));
        problems
            .refuse(problem.hint("write \"http://127.0.0.1/callback\", with a port where the server wants that one"))
    })
}

impl LoopbackRedirect {
    /// `http`, a host of the loopback, a port or none, a path; nothing else.
    fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|_| text.len() <= TEXT_BYTES_MAX)?;
        let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let host = match url.host()? {
            Host::Ipv4(address) if address.is_loopback() => address.to_string(),
            Host::Ipv6(address) if address.is_loopback() => format!("[{address}]"),
            Host::Domain("localhost") => "localhost".to_owned(),
            _ => return None,
        };
        let port = url.port();
        // The server compares the address literally, so it is written as it is sent.
        let shown = match port {
            Some(port) => format!("http://{host}:{port}{}", url.path()),
            None => format!("http://{host}{}", url.path()),
        };
        let is_written_so = shown == text || (url.path() == "/" && shown.strip_suffix('/') == Some(text));
        (url.scheme() == "http" && plain && url.password().is_none() && port != Some(0) && is_written_so)
            .then(|| Self { host, port, path: url.path().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_an_address_of_the_loopback_and_nothing_else() {
        for (text, expected) in [
            ("http://127.0.0.1/callback", Some(("127.0.0.1", None, "/callback"))),
            ("http://127.0.0.1:8765/a/b", Some(("127.0.0.1", Some(8765), "/a/b"))),
            ("http://[::1]:9/", Some(("[::1]", Some(9), "/"))),
            ("http://localhost:8080", Some(("localhost", Some(8080), "/"))),
            ("https://127.0.0.1/callback", None),
            ("http://127.0.0.1:0/callback", None),
            ("http://127.0.0.1/callback?a=b", None),
            ("http://127.0.0.1/callback#a", None),
            ("http://me@127.0.0.1/callback", None),
            ("http://127.0.0.1.example.com/callback", None),
            ("http://10.0.0.1/callback", None),
            ("http://127.0.0.1/a/../b", None),
            ("http://127.1/callback", None),
        ] {
            let read = LoopbackRedirect::parse(text);
            let read = read.as_ref().map(|read| (read.host(), read.port(), read.path()));
            assert_eq!(read, expected, "{text}");
        }
    }
}
