//! A denial: what was asked, why not, and which line would allow it.

use std::fmt;
use std::sync::Arc;

use super::Subject;
use super::address::AddressClass;
use super::http::AskError;
use crate::diagnostic::visible;
use crate::settings::accessors;
use crate::words::words;

/// The longest description of a request, in bytes: guests choose it, and it goes into results, logs
/// and the audit.
const ASKED_BYTES_MAX: usize = 512;

words! {
    /// Kinds of reach. The name of one stands in audit records and tables, and is the first word of
    /// requests: `env`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Capability {
        /// Files and folders.
        Filesystem "filesystem",
        /// HTTP requests.
        Http "http",
        /// TCP connections.
        Tcp "tcp",
        /// UDP packets.
        Udp "udp",
        /// Looking up the addresses of a name.
        Lookup "lookup",
        /// Environment variables.
        Env "env",
        /// Command-line arguments.
        Args "args",
        /// Standard input.
        Stdin "stdin",
        /// Runtime configuration.
        Config "config",
        /// State between calls.
        KeyValue "keyvalue",
        /// Secrets.
        Secret "secret",
        /// Addresses that are not public.
        Private "private",
        /// Calls of other tools.
        Call "call",
    }
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No line of the manifest grants it.
    NoRule,
    /// The mount is read-only.
    ReadOnly,
    /// The address is of a kind that only `private` allows.
    NotPublic(AddressClass),
    /// The path can be read in two ways, so a rule for some paths of the host cannot tell which.
    AmbiguousPath,
    /// Binding and listening are never granted.
    NeverListens,
    /// The request is not well formed.
    Malformed(AskError),
    /// A rule allows it, but it would carry the token of a login that currently has none.
    NoLogin,
}

accessors! {
    /// The line that would allow what was asked.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Allow {
        /// The header of the table: `components.weather.network`.
        section: String => &str,
        /// The line, as TOML: `http = ["GET https://x.example/"]`. If the key exists, its value is
        /// extended.
        line: String => &str,
    }
}

/// A refusal of something that a guest asked for.
///
/// [`fmt::Display`] is for the model and the client: it contains nothing that the guest did not
/// name itself. [`Denial::hint`] is for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial(Box<DenialParts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct DenialParts {
    capability: Capability,
    asked: String,
    reason: Reason,
    subject: Arc<Subject>,
    allows: Vec<Allow>,
}

impl Denial {
    pub(crate) fn new(capability: Capability, asked: String, reason: Reason, subject: &Arc<Subject>) -> Self {
        let asked = clipped(&visible(&asked));
        Self(Box::new(DenialParts { capability, asked, reason, subject: Arc::clone(subject), allows: Vec::new() }))
    }

    /// A copy with a line that would allow it. If there are several, all of them are needed.
    #[must_use]
    pub(crate) fn allowed_by(mut self, section: &str, line: String) -> Self {
        self.0.allows.push(Allow { section: section.to_owned(), line });
        self
    }

    /// A copy with the line of `private` that is also needed; unchanged if none is.
    #[must_use]
    pub(crate) fn allowed_by_private(self, section: &str, entries: &[String]) -> Self {
        if entries.is_empty() {
            return self;
        }
        let entries: Vec<String> = entries.iter().map(|entry| format!("\"{entry}\"")).collect();
        self.allowed_by(section, format!("private = [{}]", entries.join(", ")))
    }

    /// Takes the lines away that would allow it.
    pub(crate) fn forget_allows(&mut self) {
        self.0.allows.clear();
    }

    /// The kind of reach.
    #[must_use]
    pub fn capability(&self) -> Capability {
        self.0.capability
    }

    /// The request, as the guest named it, without query: `GET https://x.example/`, `write
    /// /data/a.txt`, `tcp 10.0.0.1:80`, `lookup db.example.com`. At most 512 bytes, nothing in it
    /// that a terminal would obey.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.0.asked
    }

    /// Why not.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.0.reason
    }

    /// Who asked.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// The first of the lines that would allow it; `None` if no line can.
    #[must_use]
    pub fn allow(&self) -> Option<&Allow> {
        self.0.allows.first()
    }

    /// All lines that would allow it together: a tool's lines may have to be extended as well as
    /// its component's.
    #[must_use]
    pub fn allows(&self) -> &[Allow] {
        &self.0.allows
    }

    /// For the operator: `add to [components.weather.network]: http = ["GET https://x.example/"]`.
    /// May name addresses that the guest does not know.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let lines = self.0.allows.iter().map(|allow| format!("[{}]: {}", allow.section, allow.line));
        let lines = lines.collect::<Vec<_>>().join("; and to ");
        (!lines.is_empty()).then(|| visible(&format!("add to {lines}")))
    }
}

impl fmt::Display for Denial {
    /// `denied: GET https://x.example/ — no rule of tool "weather" allows it`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DenialParts { asked, reason, subject, .. } = &*self.0;
        write!(formatter, "denied: {asked} — ")?;
        match reason {
            Reason::NoRule => write!(formatter, "no rule of {subject} allows it"),
            Reason::ReadOnly => write!(formatter, "{subject} may read there, not write"),
            Reason::NotPublic(_) => write!(formatter, "its address is not public, and no rule of {subject} names it"),
            Reason::AmbiguousPath => {
                write!(formatter, "its path can be read in two ways, and no rule of {subject} allows both")
            }
            Reason::NeverListens => write!(formatter, "tools never bind or listen"),
            Reason::Malformed(error) => write!(formatter, "{error}"),
            Reason::NoLogin => {
                write!(formatter, "the login or program whose secret it needs gives none now; the host's log says why")
            }
        }
    }
}

impl std::error::Error for Denial {}

/// The start of a text that is too long.
fn clipped(text: &str) -> String {
    if text.len() <= ASKED_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(ASKED_BYTES_MAX - '…'.len_utf8());
    format!("{}…", text.get(..end).unwrap_or_default())
}
