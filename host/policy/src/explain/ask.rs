//! Questions that a person asks, from text.
//!
//! | form | example |
//! |---|---|
//! | `METHOD URL` | `GET https://api.example.com/v1/now` |
//! | `read`, `write`, `create` or `remove` and a path of the guest | `write /data/x` |
//! | `tcp host:port`, `udp host:port` | `tcp db.example.com:5432` |
//! | `lookup name` | `lookup db.example.com` |
//! | `env NAME`, `config KEY`, `secret NAME` | `env UNITS` |
//! | `keyvalue` | `keyvalue` |
//!
//! ```
//! use toolcell_policy::Ask;
//! for text in ["GET https://api.example.com/v1/now", "write /data/x", "tcp db.example.com:5432", "udp [::1]:53",
//!     "lookup db.example.com", "env UNITS", "config theme", "secret KEY", "keyvalue"] {
//!     assert_eq!(Ask::parse(text).map(|ask| ask.to_string()).as_deref(), Ok(text));
//! }
//! assert!(Ask::parse("fetch https://api.example.com").is_err());
//! ```

use std::fmt;

use crate::grants::{AskError, FileAccess, Host, HttpAsk, MethodSet};
use crate::names::did_you_mean;

/// The longest text, in bytes: the longest request line.
const TEXT_BYTES_MAX: usize = 20 << 10;

/// The forms, for hints.
pub const ASK_FORMS: &str = "write \"GET https://…\", \"read /data/x\", \"write /data/x\", \"tcp host:port\", \"udp host:port\", \
                             \"lookup name\", \"env NAME\", \"config KEY\", \"keyvalue\" or \"secret NAME\"";

/// Something that a tool may be allowed to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A request.
    Http(HttpAsk),
    /// A file of the guest's tree: an absolute path in its normal form.
    File {
        /// The use of it.
        want: FileAccess,
        /// The file.
        path: String,
    },
    /// A TCP connection.
    Tcp(Host, u16),
    /// UDP packets.
    Udp(Host, u16),
    /// A name's addresses.
    Lookup(String),
    /// An environment variable.
    Env(String),
    /// A setting.
    Config(String),
    /// State between calls.
    KeyValue,
    /// A secret.
    Secret(String),
}

/// Why a text asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AskTextError {
    message: String,
    hint: String,
}

impl AskTextError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: ASK_FORMS.to_owned() }
    }

    fn hint_of(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl Ask {
    /// Reads a text of the forms above.
    ///
    /// # Errors
    /// [`AskTextError`] where it has none of them.
    pub fn parse(text: &str) -> Result<Self, AskTextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(AskTextError::new("the question is too long"));
        }
        let text = text.trim();
        let (verb, rest) = text.split_once(' ').map_or((text, ""), |(verb, rest)| (verb, rest.trim()));
        if verb == "keyvalue" && rest.is_empty() {
            return Ok(Self::KeyValue);
        }
        if rest.is_empty() {
            return Err(bare(verb));
        }
        if rest.contains("://") {
            return request(verb, rest);
        }
        let files = [FileAccess::Read, FileAccess::Write, FileAccess::Create, FileAccess::Remove];
        if let Some(want) = files.into_iter().find(|want| want.name() == verb) {
            return file(want, rest);
        }
        match verb {
            "tcp" => socket(rest).map(|(host, port)| Self::Tcp(host, port)),
            "udp" => socket(rest).map(|(host, port)| Self::Udp(host, port)),
            "lookup" => match rest.parse().map(Host::Addr).or_else(|_| Host::parse(rest)) {
                Ok(_) => Ok(Self::Lookup(rest.to_owned())),
                Err(error) => {
                    Err(AskTextError::hint_of(format!("the host {error}"), "write \"lookup db.example.com\""))
                }
            },
            "env" => Ok(Self::Env(rest.to_owned())),
            "config" => Ok(Self::Config(rest.to_owned())),
            "secret" => Ok(Self::Secret(rest.to_owned())),
            verb => Err(unknown(verb)),
        }
    }
}

fn bare(verb: &str) -> AskTextError {
    if verb.is_empty() {
        AskTextError::new("nothing is asked")
    } else if verb.contains("://") {
        AskTextError::hint_of("the request has no method", format!("write \"GET {verb}\""))
    } else if verb.starts_with('/') {
        AskTextError::hint_of("the path stands alone", format!("write \"read {verb}\" or \"write {verb}\""))
    } else {
        unknown(verb)
    }
}

fn unknown(verb: &str) -> AskTextError {
    let verbs = ["read", "write", "create", "remove", "tcp", "udp", "lookup", "env", "config", "keyvalue", "secret"];
    match did_you_mean(verb, verbs) {
        Some(meant) if meant != verb => {
            AskTextError::hint_of(format!("{verb:?} is nothing to ask"), format!("did you mean \"{meant}\"?"))
        }
        Some(_) => AskTextError::new(format!("{verb:?} of what?")),
        None => AskTextError::new(format!("{verb:?} is nothing to ask")),
    }
}

fn request(method: &str, url: &str) -> Result<Ask, AskTextError> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let upper = method.to_ascii_uppercase();
        let meant = did_you_mean(&upper, MethodSet::names().iter().copied()).unwrap_or("GET");
        return Err(AskTextError::hint_of(
            format!("{method:?} is no method"),
            format!("did you mean \"{meant} {url}\"?"),
        ));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let rest = rest.split('#').next().unwrap_or_default();
    let at = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(at).unwrap_or((rest, ""));
    HttpAsk::new(method, scheme, authority, target).map(Ask::Http).map_err(|error| {
        let hint = match error {
            AskError::Scheme => "schemes are http and https; write \"tcp host:port\" for others",
            AskError::User => "leave the user out: secrets are added by the host",
            _ => "write \"GET https://api.example.com/v1/now\"",
        };
        AskTextError::hint_of(format!("the request is not well formed: {error}"), hint)
    })
}

/// An absolute path with `.` and `..` resolved, as the guest would.
fn file(want: FileAccess, path: &str) -> Result<Ask, AskTextError> {
    if !path.starts_with('/') {
        return Err(AskTextError::hint_of("the path is not absolute", format!("write \"{want} /{path}\"")));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Ok(Ask::File { want, path: format!("/{}", parts.join("/")) })
}

fn socket(text: &str) -> Result<(Host, u16), AskTextError> {
    let (host, port) = crate::grants::split_port(text);
    let port = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
    let Some(port) = port else {
        return Err(AskTextError::hint_of("the port is missing, or none", "write \"tcp db.example.com:5432\""));
    };
    match Host::parse(host) {
        Ok(host) => Ok((host, port)),
        Err(error) => Err(AskTextError::hint_of(format!("the host {error}"), "write \"tcp db.example.com:5432\"")),
    }
}

impl fmt::Display for Ask {
    /// In its normal form, as [`Ask::parse`] reads it; without a request's query.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(ask) => formatter.write_str(&ask.describe()),
            Self::File { want, path } => write!(formatter, "{want} {path}"),
            Self::Tcp(host, port) => write!(formatter, "tcp {host}:{port}"),
            Self::Udp(host, port) => write!(formatter, "udp {host}:{port}"),
            Self::Lookup(name) => write!(formatter, "lookup {name}"),
            Self::Env(name) => write!(formatter, "env {name}"),
            Self::Config(key) => write!(formatter, "config {key}"),
            Self::KeyValue => formatter.write_str("keyvalue"),
            Self::Secret(name) => write!(formatter, "secret {name}"),
        }
    }
}
