//! A result that was checked against its tool's output schema.

use std::ops::Deref;

use crate::content::CallResult;

/// The checked result of a call: a result that conforms to its tool's output schema, or an error in
/// its place. Only [`McpTool::finish`](super::McpTool::finish) makes one from a tool's result.
#[derive(Clone, Debug)]
pub struct CheckedResult {
    result: CallResult,
    complaint: Option<String>,
    blames_arguments: bool,
}

impl CheckedResult {
    /// A failed call that no tool has answered; `text` tells the model the reason.
    pub fn error(text: impl Into<String>) -> Self {
        Self::conforming(CallResult::error(text))
    }

    pub(crate) fn conforming(result: CallResult) -> Self {
        Self { result, complaint: None, blames_arguments: false }
    }

    /// An error in place of a result.
    pub(super) fn replaced(result: CallResult, complaint: String) -> Self {
        Self { result, complaint: Some(complaint), blames_arguments: false }
    }

    /// The problem of the result that this error replaces.
    #[must_use]
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// Notes that the arguments are the reason of the error. For a prompt that is another error.
    #[must_use]
    pub fn blaming_arguments(self, blames_arguments: bool) -> Self {
        Self { blames_arguments, ..self }
    }

    /// True if the arguments are the reason of the error.
    pub(crate) fn blames_arguments(&self) -> bool {
        self.blames_arguments
    }

    /// The result.
    #[must_use]
    pub fn into_result(self) -> CallResult {
        self.result
    }
}

impl Deref for CheckedResult {
    type Target = CallResult;

    fn deref(&self) -> &CallResult {
        &self.result
    }
}
