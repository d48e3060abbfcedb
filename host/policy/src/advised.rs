//! A problem that an operator can fix, without a place in a manifest.
use std::fmt::Display;

/// A problem that an operator can fix, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedFault {
    /// The problem, as a sentence without a full stop.
    pub problem: String,
    hint: String,
}

impl AdvisedFault {
    /// A problem with this advice, if it is not empty.
    #[must_use]
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }

    /// A problem without advice.
    #[must_use]
    pub fn unadvised(problem: impl Into<String>) -> Self {
        Self::new(problem, "")
    }

    /// The same problem, of the item with this name.
    #[must_use]
    pub fn of(self, name: impl Display) -> Self {
        Self { problem: format!("{name}: {}", self.problem), ..self }
    }

    /// Advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        Some(self.hint.as_str()).filter(|hint| !hint.is_empty())
    }
}
