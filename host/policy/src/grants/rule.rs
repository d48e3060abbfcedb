//! A reference to a rule of the manifest, and why a text is not one.

use std::fmt;
use std::sync::Arc;

use super::host::HostError;
use crate::diagnostic::Span;

/// A rule as the manifest has it, and where. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef(Arc<(String, Span)>);

impl RuleRef {
    pub(crate) fn new(text: &str, span: Span) -> Self {
        Self(Arc::new((text.to_owned(), span)))
    }

    /// The rule's text: `GET https://api.example.com/v1/*`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.0
    }

    /// Its place in the manifest.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.1.clone()
    }
}

impl fmt::Display for RuleRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

/// Why a text is not a rule. The message completes the sentence "the rule …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Longer than any rule needs to be.
    #[error("has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// The number of bytes.
        bytes: usize,
        /// The maximum.
        max: usize,
    },
    /// Nothing before `://`, or no `://` at all.
    #[error("has no scheme")]
    NoScheme,
    /// A scheme other than `http` and `https`.
    #[error("has an unknown scheme {0:?}")]
    Scheme(String),
    /// An unknown method, or one that no guest can send.
    #[error("names {0:?}, which is not a method that a tool can send")]
    Method(String),
    /// `user:password@`
    #[error("must not name a user")]
    User,
    /// `?…`
    #[error("must not have a query: rules never look at it")]
    Query,
    /// `#…`
    #[error("must not have a fragment: it is never sent")]
    Fragment,
    /// The host is malformed.
    #[error("has a host that {0}")]
    Host(#[from] HostError),
    /// A star elsewhere than as the first label.
    #[error("may have a star only as the host's first label")]
    Star,
    /// No port where one is needed.
    #[error("has no port")]
    NoPort,
    /// The port is malformed or 0, or a range ends before it starts.
    #[error("has {0:?} for a port")]
    Port(String),
    /// `**` elsewhere than as the last segment.
    #[error("may have ** only as the last segment of its path")]
    Rest,
    /// `.` or `..` as a segment.
    #[error("has a dot segment in its path, which no request has")]
    DotSegment,
    /// A path that no request for a part of the paths may have.
    #[error("has an encoded slash, an encoded percent sign or the like in its path, which matches nothing")]
    AmbiguousPath,
    /// A scheme or a path in a rule that has none.
    #[error("must not have a scheme or a path")]
    Path,
    /// The address range is malformed.
    #[error("has {0:?} for an address range")]
    Range(String),
    /// An address range whose address has bits outside the range; contains the range that is
    /// probably meant.
    #[error("names an address within a range, not the range")]
    HostBits(String),
    /// A name where only an address can be.
    #[error("names a host, and only addresses can be named here")]
    NotAnAddress,
    /// Spaces or control characters.
    #[error("must not contain spaces or control characters")]
    Character,
    /// No text.
    #[error("must not be empty")]
    Empty,
}
