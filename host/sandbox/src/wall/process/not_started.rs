//! Why a process does not start.
use std::io;

use toolcell_walls::link::SendError;
use toolcell_walls::process::End;

use toolcell_wall::encoding::EncodingError;

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// It ended before its walls stood. Another one may succeed.
    #[error("{0}")]
    Ended(String),
    /// Another one would fail in the same way.
    #[error("{0}")]
    Refused(String),
}

impl NotStarted {
    /// Adds where it happened.
    pub(crate) fn within(self, place: &str) -> Self {
        match self {
            Self::Ended(reason) => Self::Ended(format!("{place}: {reason}")),
            Self::Refused(reason) => Self::Refused(format!("{place}: {reason}")),
        }
    }
}

impl From<SendError> for NotStarted {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Ended(reason) => Self::Ended(reason.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<io::Error> for NotStarted {
    /// The link's error when it cannot send has the system's error kind.
    fn from(error: io::Error) -> Self {
        error.downcast::<SendError>().map_or_else(|error| Self::Refused(error.to_string()), Self::from)
    }
}

impl From<EncodingError> for NotStarted {
    fn from(error: EncodingError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// The end of a process that was starting. No component has run in it, so its output is this
/// program's.
pub(in crate::wall) fn end_at_start(link: &dyn std::fmt::Display, end: &End) -> String {
    let words = end.last_words.trim();
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    format!("{link}; {end}{words}")
}
