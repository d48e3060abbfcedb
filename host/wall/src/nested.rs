//! The contract's `calling`: calls of other tools that a guest makes in the middle of its own.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::contract::GuestContent;

/// Tools that one search gives at most. More is a list to read, and a guest can read the next one
/// with other words.
pub const FOUND_MAX: u32 = 50;

/// Bytes of the words of a search, or of a name, that the host is sent. No tool has a longer name.
pub const WORDS_BYTES_MAX: usize = 1 << 10;

/// A call that a guest wants made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCall {
    /// The tool, by the name that clients see.
    pub tool: String,
    /// A JSON object, as far as the guest says so.
    pub arguments_json: String,
    /// Where it stands in the guest's program, as far as the guest says so.
    pub place: Option<ProgramPlace>,
}

/// A place in the program that a guest runs. It is numbers, so that nothing can be said with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramPlace {
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl fmt::Display for ProgramPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}", self.line, self.column)
    }
}

/// What a called tool gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalledResult {
    /// Its pieces.
    pub content: Vec<GuestContent>,
    /// One JSON value.
    pub structured_json: Option<String>,
}

/// Why the host did not run a call, or ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotCalledReason {
    /// The calling tool's `calls` does not name it.
    Denied,
    /// There is no such tool, or the caller may not see it.
    Unknown,
    /// The arguments do not fit the tool's input schema.
    InvalidArguments,
    /// A limit of the called tool, or of the calling one, is reached.
    OverLimit,
    /// No place came free in time, or the caller calls too often.
    Busy,
    /// A person must approve it, and did not, or cannot be asked.
    NotApproved,
    /// Somebody ended it.
    Cancelled,
    /// It ended without a result that can be used.
    Failed,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedRefusal {
    /// Why.
    pub reason: NotCalledReason,
    /// One sentence.
    pub text: String,
}

impl NestedRefusal {
    /// For this reason.
    pub fn new(reason: NotCalledReason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

/// Why there is nothing to go on with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NotCalled {
    /// The tool ran, and says that it failed.
    Failed(CalledResult),
    /// The host refused the call, or ended it.
    Refused(NestedRefusal),
}

impl NotCalled {
    /// Refused for this reason.
    pub fn refused(reason: NotCalledReason, text: impl Into<String>) -> Self {
        Self::Refused(NestedRefusal::new(reason, text))
    }
}

/// The end of a nested call.
pub type NestedEnd = Result<CalledResult, NotCalled>;

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTool {
    /// The name that clients see.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its use.
    pub description: String,
}
