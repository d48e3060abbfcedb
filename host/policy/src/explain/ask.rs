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
//! | `call` and a JSON object: a call with these arguments | `call {"city":"Oslo"}` |
//!
//! ```
//! use toolcell_policy::Ask;
//! for text in ["GET https://api.example.com/v1/now", "write /data/x", "tcp db.example.com:5432", "udp [::1]:53",
//!     "lookup db.example.com", "env UNITS", "config theme", "secret KEY", "keyvalue", "call {}"] {
//!     assert_eq!(Ask::parse(text).map(|ask| ask.to_string()).as_deref(), Ok(text));
//! }
//! assert!(Ask::parse("fetch https://api.example.com").is_err());
//! assert!(Ask::parse("call {\"city\":}").is_err());
//! assert!(Ask::of_person("GETT https://api.example.com").is_err());
//! assert!(Ask::of_person("BREW https://api.example.com").is_ok());
//! ```

use std::fmt;

use crate::edit::right_text;
use crate::grants::{Capability, FileAccess, Host, HttpAsk};
use crate::names::did_you_mean;
use crate::rights::{self, ALL};

/// The longest text, in bytes: the longest request line.
const TEXT_BYTES_MAX: usize = 20 << 10;

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
    /// A TCP connection, or UDP packets.
    Socket(Capability, Host, u16),
    /// An item with a name: a host's addresses, a variable, a setting, a secret. State between
    /// calls has an empty name.
    Named(Capability, String),
    /// A call with these arguments, a JSON object as text.
    Call(String),
}

/// The word before the arguments of a call.
const CALL: &str = "call";

/// Why a text is not a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AskTextError {
    message: String,
    hint: String,
}

impl AskTextError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: rights::listed(|right| right.ask_forms) }
    }

    pub(crate) fn hint_of(message: impl Into<String>, hint: impl Into<String>) -> Self {
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
        if verb == CALL && rest.starts_with('{') {
            return arguments(rest);
        }
        if rest.contains("://") {
            return rights::request(verb, rest);
        }
        match ALL.iter().find(|right| right.verbs.contains(&verb)) {
            Some(right) if right.stands_alone == rest.is_empty() => (right.ask)(right, verb, rest),
            None if rest.is_empty() => Err(bare(verb)),
            _ => Err(unknown(verb)),
        }
    }

    /// Reads a question that a person wrote: a method that is a slip of one that rules name is
    /// refused. A guest may send it, and a rule without methods allows it.
    ///
    /// # Errors
    /// [`AskTextError`] for such a slip, and where [`parse`](Self::parse) has one.
    pub fn of_person(text: &str) -> Result<Self, AskTextError> {
        let ask = Self::parse(text)?;
        match &ask {
            Self::Http(request) if !request.has_named_method() => rights::check_slip(request.method()).map(|()| ask),
            _ => Ok(ask),
        }
    }

    /// The name in a question about this capability.
    pub(crate) fn name(&self, kind: Capability) -> Option<&str> {
        match self {
            Self::Named(capability, name) if *capability == kind => Some(name),
            _ => None,
        }
    }

    /// The host and port that it is about.
    #[must_use]
    pub fn target(&self) -> Option<(&Host, u16)> {
        match self {
            Self::Http(ask) => Some((ask.host(), ask.port())),
            Self::Socket(_, host, port) => Some((host, *port)),
            Self::File { .. } | Self::Named(..) | Self::Call(_) => None,
        }
    }
}

/// A question about a call with these arguments.
fn arguments(text: &str) -> Result<Ask, AskTextError> {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) {
        Ok(_) => Ok(Ask::Call(text.to_owned())),
        Err(error) => {
            let message = format!("the arguments are not a JSON object: {error}");
            Err(AskTextError::hint_of(message, "write \"call {\"city\":\"Oslo\"}\""))
        }
    }
}

fn bare(verb: &str) -> AskTextError {
    if verb.is_empty() {
        AskTextError::new("the question is empty")
    } else if verb.contains("://") {
        AskTextError::hint_of("the request has no method", format!("write \"GET {verb}\""))
    } else if verb.starts_with('/') {
        AskTextError::hint_of(
            "a path needs read or write before it",
            format!("write \"read {verb}\" or \"write {verb}\""),
        )
    } else {
        unknown(verb)
    }
}

fn unknown(verb: &str) -> AskTextError {
    match did_you_mean(verb, ALL.iter().flat_map(|right| right.verbs).copied()) {
        Some(meant) if meant != verb => {
            AskTextError::hint_of(format!("unknown permission {verb:?}"), format!("did you mean \"{meant}\"?"))
        }
        Some(_) => AskTextError::new(format!("{verb:?} of what?")),
        None => AskTextError::new(format!("unknown permission {verb:?}")),
    }
}

impl fmt::Display for Ask {
    /// In its normal form, as [`Ask::parse`] reads it; without a request's query.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(ask) => formatter.write_str(&ask.describe()),
            Self::File { want, path } => write!(formatter, "{want} {path}"),
            Self::Socket(capability, host, port) => write!(formatter, "{} {host}:{port}", capability.name()),
            Self::Named(capability, name) => formatter.write_str(&right_text(capability.name(), name)),
            Self::Call(arguments) => write!(formatter, "{CALL} {arguments}"),
        }
    }
}
