//! The sections `[oauth.NAME]`: authorization servers at which a person logs in once, and which
//! then give the host tokens for an API.

use std::sync::Arc;

use url::{Host, Url};

use super::http::HttpPolicy;
use super::oauth::check_name;
use super::{ComponentPolicy, OauthPolicy};
use crate::diagnostic::Diagnostic;
use crate::grants::{HostPattern, HttpRule, SecretSource};
use crate::limits::limits;
use crate::quantity::{HOUR, MINUTE};
use crate::read::{Entry, Problems, Section};
use crate::rights::{FORMS_OF_HOST, source_of_host};
use crate::settings::accessors;
use crate::table::{Keys, table};
use crate::words::{Word as _, words};

/// Logins of one manifest: as many as a person would want to renew.
pub(crate) const LOGINS_MAX: usize = 64;

/// The most scopes of a login.
const SCOPES_MAX: usize = 64;

/// The longest address, scope, client or audience, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Keys that do nothing where a caller's own token is passed on.
const UNUSED_BY_PASSTHROUGH: [&str; 12] = [
    "exchange",
    "authorize",
    "token",
    "device",
    "client_id",
    "client_secret",
    "client_auth",
    "scopes",
    "resource",
    "audience",
    "redirect",
    "early",
];

/// The redirect where the manifest names none: any free port of the loopback (RFC 8252).
const REDIRECT: &str = "http://127.0.0.1/callback";

table! {
    /// An authorization server at which a person logs in (`toolcell secret login NAME`). Secrets
    /// with `from = "oauth:NAME"` are its access tokens; the host refreshes them.
    pub(crate) LOGIN "Login" {
        /// Whose login it is: `server` for one that all callers share, `caller` for one of each
        /// caller, asked for by the first call that needs it.
        "of": Words(LoginOwner::WORDS), {"default": "server", "examples": ["caller"]};
        /// True exchanges the caller's token for one of the API, at the issuer that gave it (RFC
        /// 8693): nobody logs in. For `of = "caller"`, and an issuer of `[http.oauth]`.
        "exchange": Flag, {"default": false, "examples": [true]};
        /// The one origin that gets the caller's own token, without an exchange, though MCP forbids
        /// passing tokens on. For `of = "caller"`, and an issuer of `[http.oauth]`; no other key
        /// goes with it.
        "passthrough": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://api.example.com"]};
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
        /// The device authorization endpoint for `--device` (RFC 8628), in place of the metadata's.
        "device": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com/device"]};
        /// The client's identifier, as it was registered with the server. Required without
        /// `passthrough`.
        "client_id": Text, {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["toolcell-desk"]};
        /// The client's secret, where the server gave one.
        "client_secret": Table(&CLIENT_SECRET), {};
        /// How the client's secret is sent: `basic` in a header, `post` in the form; by default as
        /// the metadata say, or `basic`.
        "client_auth": Words(ClientAuth::WORDS), {"examples": ["post"]};
        /// The scopes that are asked for.
        "scopes": List(&Text), {"maxItems": SCOPES_MAX, "examples": [["notes.read", "offline_access"]]};
        /// The API that the tokens are for, as an address (RFC 8707).
        "resource": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://api.example.com/"]};
        /// The API that the tokens are for, as some servers want it in place of `resource`.
        "audience": Text, {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["api://notes"]};
        /// The loopback address to which the browser returns; by default a free port.
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
        /// Whose login it is.
        pub(crate) owner: LoginOwner => LoginOwner,
        /// True if each caller pastes a key of their own, and nobody logs in anywhere.
        pub(crate) pasted: bool => bool,
        /// True if a caller's own token is exchanged for one of the API (RFC 8693).
        pub(crate) exchange: bool => bool,
        /// The one origin to which a caller's own token goes, if it is passed on: scheme, host and
        /// port, without a slash at the end.
        pub(crate) passthrough: Option<String> => Option<&str>,
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

words! {
    /// Whose a login is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LoginOwner {
        /// All callers share it.
        Server "server",
        /// Each caller has one.
        Caller "caller",
    }
}

words! {
    /// The way in which a client's secret goes to the token endpoint.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ClientAuth {
        /// In the header `Authorization` (`client_secret_basic`).
        Basic "basic",
        /// In the form (`client_secret_post`).
        Post "post",
    }
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

/// Reports each login that works with tokens of an issuer whose callers nobody is. An excerpt for a
/// sandbox process has no `[http]`, and sends no token.
pub(crate) fn check_exchanges(
    root: &Section<'_>,
    http: Option<&HttpPolicy>,
    logins: &[Arc<LoginPolicy>],
    problems: &mut Problems,
) {
    let issuers = http.and_then(HttpPolicy::oauth).map(OauthPolicy::issuers).unwrap_or_default();
    let is_known = |login: &LoginPolicy| issuers.iter().any(|issuer| Some(issuer.issuer()) == login.issuer());
    for login in logins.iter().filter(|login| login.uses_callers_token() && !is_known(login)) {
        let message = match login.passthrough {
            None => format!("[oauth.{}] exchanges tokens at an issuer that gives no caller one", login.name),
            Some(_) => format!("[oauth.{}] passes on tokens of an issuer that gives no caller one", login.name),
        };
        let problem = match http {
            Some(_) => Diagnostic::error("oauth::exchange", message),
            None => Diagnostic::warning("oauth::exchange", message),
        };
        let problem = match root.get("oauth") {
            Some(entry) => problem.at(entry.key_span),
            None => problem,
        };
        let hint = match login.passthrough {
            None => "its issuer must be one of [http.oauth.issuers], so that tokens go back there alone",
            Some(_) => "its issuer must be one of [http.oauth.issuers], whose tokens callers show",
        };
        problems.add(problem.hint(hint));
    }
}

fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<LoginPolicy> {
    check_name(entry, "login", problems);
    let section = entry.table(&LOGIN, problems)?;
    let owner = section.get("of").and_then(|entry| entry.word(problems));
    let exchange = section.get("exchange").and_then(|entry| entry.boolean(problems)).unwrap_or(false);
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
    let passthrough = section.get("passthrough");
    let client_id = match section.get("client_id") {
        Some(entry) => text(&entry, problems),
        None if passthrough.is_some() => None,
        None => {
            let message = format!("[oauth.{}] has no client_id", entry.key);
            let hint = "write client_id = \"…\": register a public client with the server, which gives one";
            problems.refuse(entry.key_error("oauth::missing", message).hint(hint))
        }
    };
    let named = |key: &str| section.get(key).is_some();
    if exchange && owner != Some(LoginOwner::Caller) {
        let message = format!("[oauth.{}] exchanges tokens of callers, and is not of a caller", entry.key);
        problems.add(entry.key_error("oauth::exchange", message).hint("write of = \"caller\""));
    }
    let passthrough = passthrough.and_then(|origin| read_passthrough(entry, &section, &origin, owner, problems));
    if !named("issuer") && !named("passthrough") && !(named("token") && (named("authorize") || named("device"))) {
        let message = format!("[oauth.{}] does not name its authorization server", entry.key);
        let hint = "write issuer = \"https://login.example.com\"; or authorize and token, or device and token";
        problems.add(entry.key_error("oauth::missing", message).hint(hint));
    }
    // A problem makes the manifest unusable anyway. The login is kept, so that its secrets cause no
    // further problems.
    Some(LoginPolicy {
        name: entry.key.to_owned(),
        owner: owner.unwrap_or(LoginOwner::Server),
        pasted: false,
        exchange,
        passthrough,
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

/// The origin to which callers' own tokens go.
fn read_passthrough(
    login: &Entry<'_>,
    section: &Section<'_>,
    entry: &Entry<'_>,
    owner: Option<LoginOwner>,
    problems: &mut Problems,
) -> Option<String> {
    for unused in UNUSED_BY_PASSTHROUGH.iter().filter_map(|key| section.get(key)) {
        let problem =
            unused.key_error("oauth::passthrough", format!("{} with passthrough can never apply", unused.key));
        problems.add(problem.hint("nobody logs in, and nothing is exchanged: remove one of them"));
    }
    if owner != Some(LoginOwner::Caller) {
        let message = format!("[oauth.{}] passes on tokens of callers, and is not of a caller", login.key);
        problems.add(login.key_error("oauth::passthrough", message).hint("write of = \"caller\""));
    }
    if section.get("issuer").is_none() {
        let message = format!("[oauth.{}] does not say whose tokens it passes on", login.key);
        problems
            .add(login.key_error("oauth::passthrough", message).hint("write issuer = \"https://login.example.com\""));
    }
    let text = entry.string(problems)?;
    let url = Url::parse(text).ok().filter(|_| text.len() <= TEXT_BYTES_MAX && text.is_ascii());
    let is_reached_safely = |url: &Url| url.scheme() == "https" || (url.scheme() == "http" && super::is_loopback(url));
    let origin = url.filter(is_reached_safely).map(|url| url.origin().ascii_serialization());
    // Nothing but one origin stands there: no account, path, query or pattern.
    let is_one = |origin: &str| {
        let rule = HttpRule::parse(origin, entry.span.clone());
        rule.is_ok_and(|rule| matches!(rule.host(), HostPattern::Exact(_)))
    };
    let Some(origin) = origin.filter(|origin| origin == text && is_one(origin)) else {
        let problem = entry.error("oauth::passthrough", format!("passthrough {text:?} does not name one origin"));
        return problems.refuse(problem.hint(
            "write \"https://api.example.com\", with a port if it has its own, and no path; http is for loopback alone",
        ));
    };
    let message = format!("[oauth.{}] gives callers' own tokens to {origin}", login.key);
    let hint = "that server can act as the caller wherever the token holds, here as well, and MCP's specification \
                forbids it; exchange = true gives it a token of its own";
    problems.add(Diagnostic::warning("oauth::passthrough", message).at(entry.span.clone()).hint(hint));
    Some(origin)
}

/// The logins and keys of which each caller has one, by name.
pub(crate) fn of_callers(logins: &[Arc<LoginPolicy>], components: &[ComponentPolicy]) -> Vec<Arc<LoginPolicy>> {
    let secrets = components.iter().flat_map(|component| component.grants().secrets());
    let keys = secrets.filter_map(|secret| match secret.source() {
        SecretSource::Login(login) => Some(login),
        _ => None,
    });
    let mut found: Vec<Arc<LoginPolicy>> = Vec::new();
    for login in logins.iter().chain(keys).filter(|login| login.owner == LoginOwner::Caller) {
        if found.iter().all(|known| known.name != login.name) {
            found.push(Arc::clone(login));
        }
    }
    found
}

impl LoginPolicy {
    /// True if it works with the token that a caller shows, so that nobody logs in.
    #[must_use]
    pub const fn uses_callers_token(&self) -> bool {
        self.exchange || self.passthrough.is_some()
    }

    /// A key of this name that each caller pastes.
    pub(crate) fn of_pasted(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            owner: LoginOwner::Caller,
            pasted: true,
            exchange: false,
            passthrough: None,
            issuer: None,
            authorize: None,
            token: None,
            device: None,
            client_id: String::new(),
            client_secret: None,
            client_auth: None,
            scopes: Vec::new(),
            resource: None,
            audience: None,
            redirect: LoopbackRedirect { host: "127.0.0.1".to_owned(), port: None, path: "/callback".to_owned() },
            limits: LoginLimits::default(),
        }
    }
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
    let Some(wrong) = address_fault(text, kind) else { return Some(text.to_owned()) };
    let problem = entry.error("oauth::address", format!("{} {text:?} {wrong}", entry.key));
    problems.refuse(problem.hint("write \"https://…\", without a fragment; http is for loopback alone"))
}

/// True for the address of an endpoint that a login may have.
#[must_use]
pub fn is_login_endpoint(text: &str) -> bool {
    address_fault(text, LoginAddress::Query).is_none()
}

/// True for an issuer that a login may have.
#[must_use]
pub fn is_login_issuer(text: &str) -> bool {
    address_fault(text, LoginAddress::Plain).is_none()
}

/// True for a scope that a login may have (RFC 6749, section 3.3).
#[must_use]
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && text.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// True if an address is written with its host. A parser finds one in `https:///a` and `https:a` as
/// well, and others do not.
pub(super) fn names_host(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| !rest.starts_with(['/', '\\']))
}

fn address_fault(text: &str, kind: LoginAddress) -> Option<&'static str> {
    match Url::parse(text) {
        _ if text.len() > TEXT_BYTES_MAX => Some("is too long"),
        _ if !text.bytes().all(is_plain) => Some("has characters that are not allowed in an address"),
        Err(_) => Some("is not an address"),
        Ok(url) if url.fragment().is_some() => Some("has a fragment"),
        Ok(_) if kind == LoginAddress::Resource => None,
        Ok(url)
            if !names_host(text) || url.host().is_none() || !url.username().is_empty() || url.password().is_some() =>
        {
            Some("is not a server address")
        }
        Ok(url) if kind == LoginAddress::Plain && url.query().is_some() => Some("has a query"),
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && super::is_loopback(&url)) => None,
        Ok(_) => Some("is not reached over https"),
    }
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
        if is_scope(text) {
            read.push(text.to_owned());
            continue;
        }
        let problem = Diagnostic::error("oauth::text", format!("{text:?} is not a scope")).at(span);
        problems.add(problem.hint("write visible ASCII characters without quotes and backslashes, each by itself"));
    }
    read
}

fn client_secret(entry: &Entry<'_>, problems: &mut Problems) -> Option<SecretSource> {
    if entry.as_str().is_some() {
        let problem = Diagnostic::error("oauth::secret", "client_secret must not hold the secret itself");
        let hint = "write client_secret = { from = \"env:NAME\" } and keep the value out of the manifest";
        return problems.refuse(problem.at(entry.key_span.clone()).concealing().hint(hint));
    }
    let section = entry.table(&CLIENT_SECRET, problems)?;
    match section.get("from") {
        Some(from) => source_of_host(&from, problems),
        None => problems.refuse(entry.key_error("manifest::missing", "client_secret has no from").hint(FORMS_OF_HOST)),
    }
}

fn client_auth(entry: &Entry<'_>, problems: &mut Problems) -> Option<ClientAuth> {
    let text = entry.string(problems)?;
    ClientAuth::of(text).or_else(|| {
        let problem = entry.error("oauth::client_auth", format!("unknown client_auth {text:?}"));
        problems.refuse(problem.hint("write \"basic\" or \"post\""))
    })
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
    fn an_address_is_written_with_its_host() {
        for address in
            ["https:///a", "https:a.example", "https:\\\\a.example", "https://\\a.example", "https://u:p@a.example"]
        {
            assert!(!is_login_endpoint(address) && !is_login_issuer(address), "{address}");
        }
        assert!(is_login_endpoint("https://a.example/t?x=1") && !is_login_issuer("https://a.example/t?x=1"));
        assert!(is_login_issuer("http://127.0.0.1:1/a") && !is_login_issuer("http://a.example"));
    }

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
