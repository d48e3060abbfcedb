//! HTTP: what a request asks for, the rules, and the permit.
//!
//! A rule is `[METHODS] scheme://host[:port][/path]`.
//!
//! | part | forms | if it is missing |
//! |---|---|---|
//! | METHODS | `GET`, `GET,HEAD`: in upper case, with commas, without spaces | every method but CONNECT and TRACE |
//! | scheme | `https`, `http` | not allowed |
//! | host | see [`super::HostPattern`]: exact, `*.suffix`, `*`, an address | not allowed |
//! | port | 1 to 65535 | 443 of `https`, 80 of `http`, and no other |
//! | path | see [`super::PathPattern`]: exact, `*` within a segment, `/*` at the end for the rest | every path |
//!
//! Rules ignore queries: a grant of a path includes every query. A method does not include another:
//! `GET` does not allow HEAD.
//!
//! ```
//! use toolcell_policy::{HttpAsk, HttpRule};
//! let allows = |rule: &str, method: &str, scheme: &str, authority: &str, target: &str| {
//!     let rule = HttpRule::parse(rule, 0..0).ok()?;
//!     Some(rule.matches(&HttpAsk::new(method, scheme, authority, target).ok()?))
//! };
//! let rule = "GET https://api.example.com/v1/*";
//! assert_eq!(allows(rule, "GET", "https", "api.example.com", "/v1/now?city=Berlin"), Some(true));
//! assert_eq!(allows(rule, "GET", "https", "API.EXAMPLE.COM.:443", "/v1/now"), Some(true));
//! assert_eq!(allows(rule, "HEAD", "https", "api.example.com", "/v1/now"), Some(false));
//! assert_eq!(allows(rule, "GET", "http", "api.example.com", "/v1/now"), Some(false));
//! assert_eq!(allows(rule, "GET", "https", "api.example.com:8443", "/v1/now"), Some(false));
//! assert_eq!(allows(rule, "GET", "https", "api.example.com", "/v2/now"), Some(false));
//! let rule = "https://*.example.com";
//! assert_eq!(allows(rule, "DELETE", "https", "a.b.example.com", "/x"), Some(true));
//! assert_eq!(allows(rule, "GET", "https", "example.com", "/"), Some(false));
//! assert_eq!(allows("GET,HEAD http://127.0.0.1:8080/health", "HEAD", "http", "2130706433:8080", "/health"), Some(true));
//! ```

use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::Subject;
use super::denial::{Capability, Denial, Reason};
use super::host::{Host, HostError, HostPattern};
use super::network::{AddressPermit, Network};
use super::path::{self, NormalPath, PathPattern};
use super::ports::port;
use super::private;
use super::rule::{RuleError, RuleRef};
use crate::diagnostic::Span;
use crate::grants::private::PrivateRule;
use crate::settings::accessors;
use crate::words::words;

/// The longest rule, in bytes: a host and a path of the usual lengths.
const RULE_BYTES_MAX: usize = 2_048;

/// The longest target of a request, in bytes: what servers commonly accept in a request line.
const TARGET_BYTES_MAX: usize = 16 << 10;

/// The longest method, in bytes. The longest registered one has 17.
const METHOD_BYTES_MAX: usize = 32;

/// The methods a rule can name: those of HTTP, PATCH, and those of WebDAV and its relatives.
/// CONNECT and TRACE are sent for no guest.
const METHODS: [&str; 21] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "PURGE",
    "LINK",
    "UNLINK",
    "MKCALENDAR",
];

words! {
    /// `http` or `https`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Scheme {
        /// Without TLS.
        Http "http",
        /// With TLS.
        Https "https",
    }
}

/// Methods of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodSet(u32);

accessors! {
    /// One rule of `http`, or the `for` of a secret.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HttpRule {
        /// The methods.
        methods: MethodSet => MethodSet,
        /// The scheme.
        scheme: Scheme => Scheme,
        /// The hosts.
        host: HostPattern => &HostPattern,
        /// The port.
        port: u16 => u16,
        /// The paths.
        path: PathPattern => &PathPattern,
        /// The rule as it was written, and where.
        rule: RuleRef => &RuleRef,
    }
}

/// A request in its normal form. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAsk(Arc<HttpRuleParts>);

#[derive(Debug, PartialEq, Eq)]
struct HttpRuleParts {
    method: String,
    methods: MethodSet,
    scheme: Scheme,
    host: Host,
    port: u16,
    path: NormalPath<'static>,
    query: Option<String>,
}

/// Why a request is malformed. The message completes the sentence "it …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No token, or one longer than any method.
    #[error("its method is invalid")]
    Method,
    /// CONNECT and TRACE.
    #[error("tools may not send its method")]
    MethodRefused,
    /// Neither `http` nor `https`.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// `user@host`
    #[error("its address must not name a user")]
    User,
    /// The host is missing or malformed.
    #[error("its host {0}")]
    Host(#[from] HostError),
    /// The port is malformed, or 0.
    #[error("its port is invalid")]
    Port,
    /// Not a path from the root, or with characters that no request line has.
    #[error("its path is invalid")]
    Target,
    /// Longer than servers accept.
    #[error("its path is too long")]
    TargetTooLong,
}

accessors! {
    /// The permit for one request. Sending it also needs a permit for the address.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HttpPermit {
        /// The request, in its normal form.
        ask: HttpAsk => &HttpAsk,
        /// The rule that allows it.
        rule: RuleRef => &RuleRef,
        private: Arc<[PrivateRule]>,
        subject: Arc<Subject>,
        section: Arc<str>,
    }
}

impl Scheme {
    /// 80 or 443.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(text))
    }
}

impl MethodSet {
    /// Every method but CONNECT and TRACE, including those without a name here.
    pub const ANY: Self = Self(u32::MAX);

    /// Methods without a name here.
    const OTHER: Self = Self(1 << 31);

    fn of(method: &str) -> Self {
        METHODS.iter().position(|name| *name == method).map_or(Self::OTHER, |at| Self(1 << at))
    }

    fn parse(text: &str) -> Result<Self, RuleError> {
        let mut bits = 0;
        for name in text.split(',') {
            let found = Self::of(name);
            if found == Self::OTHER {
                return Err(RuleError::Method(name.to_owned()));
            }
            bits |= found.0;
        }
        Ok(Self(bits))
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The methods a rule can name.
    pub(crate) const fn names() -> &'static [&'static str] {
        &METHODS
    }
}

impl fmt::Display for MethodSet {
    /// `GET,HEAD`; nothing for every method.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return Ok(());
        }
        let named = METHODS.iter().enumerate().filter(|(at, _)| self.0 & (1 << at) != 0);
        for (number, (_, name)) in named.enumerate() {
            write!(formatter, "{}{name}", if number > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl HttpRule {
    /// Reads a rule of the table above; `span` is where the manifest has it.
    ///
    /// # Errors
    /// [`RuleError`] if the text is not a rule, or nothing can match it.
    pub fn parse(text: &str, span: Span) -> Result<Self, RuleError> {
        if text.len() > RULE_BYTES_MAX {
            return Err(RuleError::TooLong { bytes: text.len(), max: RULE_BYTES_MAX });
        }
        let (methods, url) = match text.trim().split_once(' ') {
            Some((methods, url)) => (MethodSet::parse(methods)?, url.trim_start()),
            None if text.trim().is_empty() => return Err(RuleError::Empty),
            None => (MethodSet::ANY, text.trim()),
        };
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(RuleError::Character);
        }
        let (scheme, rest) = url.split_once("://").ok_or(RuleError::NoScheme)?;
        let scheme = Scheme::parse(scheme).ok_or_else(|| RuleError::Scheme(scheme.to_owned()))?;
        if rest.contains('?') {
            return Err(RuleError::Query);
        }
        if rest.contains('#') {
            return Err(RuleError::Fragment);
        }
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(RuleError::User);
        }
        let (host, written_port) = split_port(authority);
        let port = match written_port {
            Some(text) => port(text).ok_or_else(|| RuleError::Port(text.to_owned()))?,
            None => scheme.default_port(),
        };
        let host = HostPattern::parse(host)?;
        let path = PathPattern::parse(path)?;
        Ok(Self { methods, scheme, host, port, path, rule: RuleRef::new(text.trim(), span) })
    }

    /// True if the rule allows a request.
    #[must_use]
    pub fn matches(&self, ask: &HttpAsk) -> bool {
        let ask = &*ask.0;
        self.methods.has(ask.methods) && self.leads_to(ask) && self.path.matches_normal(&ask.path)
    }

    fn leads_to(&self, ask: &HttpRuleParts) -> bool {
        self.port == ask.port && self.scheme == ask.scheme && self.host.matches(&ask.host)
    }

    /// True if this rule allows nothing that the other does not.
    #[must_use]
    pub fn lies_within(&self, wider: &Self) -> bool {
        wider.methods.has(self.methods)
            && self.scheme == wider.scheme
            && self.port == wider.port
            && self.host.lies_within(&wider.host)
            && self.path.lies_within(&wider.path)
    }

    /// True if some request may match both rules. Errs on the side of true.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.methods.overlaps(other.methods)
            && self.scheme == other.scheme
            && self.port == other.port
            && self.host.overlaps(&other.host)
            && self.path.overlaps(&other.path)
    }
}

impl fmt::Display for HttpRule {
    /// In its normal form: equal rules give equal texts.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.methods != MethodSet::ANY {
            write!(formatter, "{} ", self.methods)?;
        }
        write!(formatter, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(formatter, ":{}", self.port)?;
        }
        write!(formatter, "{}", if self.path.is_any() { String::new() } else { self.path.to_string() })
    }
}

impl HttpAsk {
    /// Brings a request into its normal form. `authority` is `host[:port]` as in a URL, `target`
    /// the path and the query; an empty one is `/`.
    ///
    /// # Errors
    /// [`AskError`] where a part is malformed; [`Network::malformed_http`] makes a denial of it.
    pub fn new(method: &str, scheme: &str, authority: &str, target: &str) -> Result<Self, AskError> {
        if method.is_empty() || method.len() > METHOD_BYTES_MAX || !method.bytes().all(is_token) {
            return Err(AskError::Method);
        }
        if ["CONNECT", "TRACE", "TRACK"].iter().any(|refused| refused.eq_ignore_ascii_case(method)) {
            return Err(AskError::MethodRefused);
        }
        let scheme = Scheme::parse(scheme).ok_or(AskError::Scheme)?;
        if authority.contains('@') {
            return Err(AskError::User);
        }
        let (host, written_port) = split_port(authority);
        let host = Host::parse(host)?;
        let port = match written_port {
            Some(text) => port(text).ok_or(AskError::Port)?,
            None => scheme.default_port(),
        };
        if target.len() > TARGET_BYTES_MAX {
            return Err(AskError::TargetTooLong);
        }
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let path = if path.is_empty() { "/" } else { path };
        let sendable = |text: &str| !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '#');
        if !path.starts_with(['/', '\\']) || !sendable(path) || !query.is_none_or(sendable) {
            return Err(AskError::Target);
        }
        let path = path::normal(path);
        let path = NormalPath { text: path.text.into_owned().into(), ambiguous: path.ambiguous };
        let methods = MethodSet::of(method);
        let method = method.to_owned();
        Ok(Self(Arc::new(HttpRuleParts { method, methods, scheme, host, port, path, query: query.map(str::to_owned) })))
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// True if a rule can name its method.
    pub(crate) fn has_named_method(&self) -> bool {
        self.0.methods != MethodSet::OTHER
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The port; the default of the scheme if none was named.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// The path in its normal form: the comparison uses the form that is sent.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path.text
    }

    /// The query as it was given, without its question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.0.query.as_deref()
    }

    /// The path in its normal form, and the query: the target to send.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.0.query {
            Some(query) => format!("{}?{query}", self.0.path.text),
            None => self.0.path.text.to_string(),
        }
    }

    /// The host, with the port unless it is the scheme's default: the value of a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let mut text = self.0.host.to_string();
        if self.0.port != self.0.scheme.default_port() {
            // Writing into a String cannot fail.
            let _ = write!(text, ":{}", self.0.port);
        }
        text
    }

    /// The URL without its query.
    fn url(&self) -> String {
        format!("{}://{}{}", self.0.scheme.name(), self.authority(), self.0.path.text)
    }

    /// `GET https://x.example/`, without query.
    pub(crate) fn describe(&self) -> String {
        format!("{} {}", self.0.method, self.url())
    }

    /// The rule for its path alone, by its method where rules can name that.
    ///
    /// # Errors
    /// No rule can be for it alone: why, as the rest of a sentence.
    pub(crate) fn own_rule(&self) -> Result<String, &'static str> {
        if self.0.path.text.contains('*') {
            return Err("a star in a rule is a pattern");
        }
        if self.0.path.ambiguous {
            return Err("its path can be read in two ways");
        }
        let method = if self.has_named_method() { format!("{} ", self.0.method) } else { String::new() };
        let rule = format!("{method}{}", self.url());
        let is_rule = HttpRule::parse(&rule, 0..0).is_ok_and(|rule| rule.matches(self));
        if is_rule { Ok(rule) } else { Err("no rule can name its path") }
    }

    /// The denial of this request by some rules, with the line that would allow it, if one can be
    /// for its path alone.
    pub(crate) fn denied(&self, rules: &[HttpRule], subject: &Arc<Subject>, sections: &[String]) -> Denial {
        let ask = &*self.0;
        let ambiguous =
            ask.path.ambiguous && rules.iter().any(|rule| rule.methods.has(ask.methods) && rule.leads_to(ask));
        let reason = if ambiguous { Reason::AmbiguousPath } else { Reason::NoRule };
        let denial = Denial::new(Capability::Http, self.describe(), reason, subject);
        let Ok(rule) = self.own_rule() else { return denial };
        sections.iter().fold(denial, |denial, section| denial.allowed_by(section, format!("http = [\"{rule}\"]")))
    }
}

impl HttpPermit {
    pub(crate) fn new(ask: &HttpAsk, rule: &HttpRule, network: &Network) -> Self {
        Self {
            ask: ask.clone(),
            rule: rule.rule.clone(),
            private: Arc::clone(&network.private),
            subject: Arc::clone(&network.subject),
            section: Arc::clone(&network.private_section),
        }
    }

    /// The host to connect to, and the name that TLS must verify.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.ask.host()
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ask.port()
    }

    /// The denial of this request because its login currently has no token.
    #[must_use]
    pub fn without_login(&self) -> Denial {
        Denial::new(Capability::Http, self.ask.describe(), Reason::NoLogin, &self.subject)
    }

    /// Decides on an address of the request's host: the permit names the address with the request's
    /// port.
    ///
    /// # Errors
    /// [`Denial`] where the address is not public and `private` does not name it, or where the host
    /// is another address.
    pub fn check_address(&self, address: IpAddr) -> Result<AddressPermit, Denial> {
        let denied = |reason| Denial::new(Capability::Http, self.ask.describe(), reason, &self.subject);
        if self.host().addr().is_some_and(|named| named != address) {
            return Err(denied(Reason::NoRule));
        }
        let socket = SocketAddr::new(address, self.port());
        match private::check(address, self.port(), &self.private) {
            Ok(()) => Ok(AddressPermit::new(socket, self.rule.clone())),
            Err(class) => {
                Err(denied(Reason::NotPublic(class)).allowed_by(&self.section, format!("private = [\"{socket}\"]")))
            }
        }
    }
}

/// Splits `host[:port]`; brackets belong to the host.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// RFC 9110, section 5.6.2.
pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}
