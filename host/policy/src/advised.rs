//! A fault that somebody can mend, without a place in a manifest.
use std::fmt::Display;

/// Something that an operator can mend, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedFault {
    /// The problem, as a sentence without a full stop.
    pub problem: String,
    hint: String,
}

impl AdvisedFault {
    /// A fault with this advice; an empty one is none.
    #[must_use]
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }

    /// A fault without advice.
    #[must_use]
    pub fn unadvised(problem: impl Into<String>) -> Self {
        Self::new(problem, "")
    }

    /// The same fault, of the thing with this name.
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
