//! Hosts: names and addresses in one normal form, and the patterns that rules name them with.
//!
//! | form of a pattern | matches | does not match |
//! |---|---|---|
//! | `api.example.com` | that name, in any case, with or without a final dot | any other name |
//! | `*.example.com` | one label or more before `.example.com` | `example.com` itself |
//! | `*` | every name and every address | |
//! | `192.0.2.1`, `[2001:db8::1]` | that address, however it is written | a name that leads to it |
//!
//! ```
//! use toolcell_policy::{Host, HostPattern};
//! let matches = |pattern: &str, host: &str| {
//!     Some(HostPattern::parse(pattern).ok()?.matches(&Host::parse(host).ok()?))
//! };
//! assert_eq!(matches("api.example.com", "API.Example.COM."), Some(true));
//! assert_eq!(matches("api.example.com", "api.example.com.evil.example"), Some(false));
//! assert_eq!(matches("*.example.com", "a.b.example.com"), Some(true));
//! assert_eq!(matches("*.example.com", "example.com"), Some(false));
//! assert_eq!(matches("*.example.com", "evilexample.com"), Some(false));
//! assert_eq!(matches("192.0.2.1", "0xC0.0.513"), Some(true));
//! assert_eq!(matches("[2001:db8::1]", "[2001:DB8:0:0::1]"), Some(true));
//! assert_eq!(matches("bücher.example", "xn--bcher-kva.example"), Some(true));
//! assert_eq!(matches("*", "anything.example"), Some(true));
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::rule::RuleError;

/// The longest name, in bytes: RFC 1035.
const NAME_BYTES_MAX: usize = 253;

/// The longest label of a name, in bytes: RFC 1035.
const LABEL_BYTES_MAX: usize = 63;

/// The longest text that is parsed, in bytes: a name with each byte percent-encoded is shorter.
const TEXT_BYTES_MAX: usize = 1_024;

/// A host in its normal form: what the WHATWG URL rules make of a text, without a final dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: lower case, ASCII (`xn--` for other letters).
    Name(String),
    /// An address, in whichever of its forms it was written.
    Addr(IpAddr),
}

/// A host with an optional port, as in a URL or in the header `Host`. All names of servers are
/// compared in this form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    host: Host,
    port: Option<u16>,
}

/// Why a text is not a host. The message completes the sentence "the host …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// No text.
    #[error("is empty")]
    Empty,
    /// A name of more than 253 bytes, or a label of more than 63.
    #[error("is too long")]
    TooLong,
    /// Two dots in a row, or a dot first.
    #[error("has an empty label")]
    EmptyLabel,
    /// A character no host has, or brackets around something other than an IPv6 address; a zone id
    /// among them.
    #[error("is neither a name nor an address")]
    Invalid,
}

/// The hosts of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// One host alone.
    Exact(Host),
    /// Names of one label or more before this suffix, which starts with its dot: `.example.com`.
    Suffix(String),
    /// Every host.
    Any,
}

impl Host {
    /// Reads a host as it stands in a URL: IPv6 addresses in brackets, IPv4 in decimal, octal or
    /// hexadecimal, names in Unicode or not.
    ///
    /// # Errors
    /// [`HostError`] if the text is not a host.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(HostError::TooLong);
        }
        if is_plain_name(text) {
            return name(text.to_owned());
        }
        match url::Host::parse(text).map_err(|_| HostError::Invalid)? {
            url::Host::Ipv4(address) => Ok(Self::Addr(IpAddr::V4(address))),
            url::Host::Ipv6(address) => Ok(Self::Addr(IpAddr::V6(address))),
            url::Host::Domain(domain) => name(domain),
        }
    }

    /// The address, if it is one.
    #[must_use]
    pub const fn addr(&self) -> Option<IpAddr> {
        match self {
            Self::Addr(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Addr(_) => None,
        }
    }
}

impl HostPort {
    /// Reads a host and, after a colon, a port. A user, a path or anything else is refused.
    ///
    /// ```
    /// use toolcell_policy::HostPort;
    /// let normal = |text: &str| HostPort::parse(text).map(|read| read.to_string());
    /// assert_eq!(normal("0x7f000001:9715").as_deref(), Some("127.0.0.1:9715"));
    /// assert_eq!(normal("Tools.Example.COM.").as_deref(), Some("tools.example.com"));
    /// assert_eq!(normal("[::ffff:127.0.0.1]:1").as_deref(), Some("127.0.0.1:1"));
    /// assert_eq!(normal("user@example.com"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let end = match text.starts_with('[') {
            true => text.find(']')? + 1,
            false => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at_checked(end)?;
        let is_port = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':').filter(is_port)?.parse().ok().filter(|port| *port > 0)?),
        };
        let host = match Host::parse(host).ok()? {
            Host::Addr(address) => Host::Addr(address.to_canonical()),
            name @ Host::Name(_) => name,
        };
        Some(Self { host, port })
    }

    /// The host.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port, where one is named.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Removes this port, which is the default of its scheme.
    #[must_use]
    pub fn without_port(self, default: u16) -> Self {
        Self { port: self.port.filter(|port| *port != default), ..self }
    }

    /// True if its name means this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost",
            Host::Addr(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for HostPort {
    /// As it stands in a URL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(formatter, "{}:{port}", self.host),
            None => write!(formatter, "{}", self.host),
        }
    }
}

impl fmt::Display for Host {
    /// As it stands in a URL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Addr(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Addr(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl HostPattern {
    /// Reads a pattern of the table above.
    ///
    /// # Errors
    /// [`RuleError`] where the text has none of the forms.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let Some(suffix) = text.strip_prefix("*.") else {
            if text.contains('*') {
                return Err(RuleError::Star);
            }
            return Ok(Self::Exact(Host::parse(text)?));
        };
        if suffix.contains('*') {
            return Err(RuleError::Star);
        }
        match Host::parse(suffix)? {
            Host::Name(name) => Ok(Self::Suffix(format!(".{name}"))),
            Host::Addr(_) => Err(RuleError::Star),
        }
    }

    /// True if a host is among them.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(exact), host) => exact == host,
            (Self::Suffix(suffix), Host::Name(name)) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
            (Self::Suffix(_), Host::Addr(_)) => false,
        }
    }

    pub(crate) fn lies_within(&self, wider: &Self) -> bool {
        match (self, wider) {
            (_, Self::Any) => true,
            (Self::Any, _) => false,
            (Self::Exact(host), wider) => wider.matches(host),
            (Self::Suffix(suffix), Self::Suffix(wider)) => suffix.ends_with(wider.as_str()),
            (Self::Suffix(_), Self::Exact(_)) => false,
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.lies_within(other) || other.lies_within(self)
    }

    /// True if some host of the pattern is a name, which may lead to any address.
    pub(crate) const fn has_names(&self) -> bool {
        !matches!(self, Self::Exact(Host::Addr(_)))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => write!(formatter, "{host}"),
            Self::Suffix(suffix) => write!(formatter, "*{suffix}"),
            Self::Any => formatter.write_str("*"),
        }
    }
}

/// A name that the URL rules do not change: most are, and the rules take longer than a decision
/// may.
fn is_plain_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    // If the last label starts with a digit, the text may be an address; "--" may mark an encoded
    // label.
    text.bytes().all(plain) && last.starts_with(|c: char| c.is_ascii_lowercase()) && !text.contains("--")
}

fn name(mut name: String) -> Result<Host, HostError> {
    if name.ends_with('.') {
        name.pop();
    }
    if name.split('.').any(str::is_empty) {
        return Err(HostError::EmptyLabel);
    }
    if name.len() > NAME_BYTES_MAX || name.split('.').any(|label| label.len() > LABEL_BYTES_MAX) {
        return Err(HostError::TooLong);
    }
    // The URL rules allow these characters, but no resolver looks them up.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
        return Err(HostError::Invalid);
    }
    // Without its final dot it may be an address.
    match name.parse::<Ipv4Addr>() {
        Ok(address) => Ok(Host::Addr(IpAddr::V4(address))),
        Err(_) => Ok(Host::Name(name)),
    }
}
