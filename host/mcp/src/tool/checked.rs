//! A result that was checked against its tool's output schema. Must not hold: the check.

use std::ops::Deref;

use crate::content::CallResult;

/// What a call answers: a result that conforms to its tool's output schema, or an error in its place. Only
/// [`Tool::finish`](super::Tool::finish) makes one of what a tool gave back.
#[derive(Clone, Debug)]
pub struct CheckedResult {
    result: CallResult,
    complaint: Option<String>,
}

impl CheckedResult {
    /// A failed call that no tool has answered; `text` tells the model what went wrong.
    pub fn error(text: impl Into<String>) -> Self {
        Self::conforming(CallResult::error(text))
    }

    pub(super) fn conforming(result: CallResult) -> Self {
        Self { result, complaint: None }
    }

    /// An error in place of a result.
    pub(super) fn replaced(result: CallResult, complaint: String) -> Self {
        Self { result, complaint: Some(complaint) }
    }

    /// What was wrong with the result that this error replaces.
    #[must_use]
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// What is answered.
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
