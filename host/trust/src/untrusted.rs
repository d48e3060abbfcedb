//! Reasons: why a piece of evidence does not count, and why a subject is not trusted.

use std::fmt;

use crate::clean::clean;
use crate::statement::Statement;

/// Nothing that a rule requires was signed by those it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// One sentence that says what is missing, and what was found instead.
    pub summary: String,
    /// Each piece of evidence that does not count, in the order of the evidence. At most
    /// [`EVIDENCE_MAX`](crate::limits::EVIDENCE_MAX), and one for all that was not looked at.
    pub refusals: Vec<Refusal>,
}

/// A piece of evidence that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its place in the list of evidence.
    pub evidence: usize,
    /// The reason: one clause without a full stop, on one line.
    pub reason: String,
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)
    }
}

impl std::error::Error for Untrusted {}

/// A reason, and how much it says to a person who asks why nothing counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) weight: Weight,
    pub(crate) statement: Option<Statement>,
    pub(crate) text: String,
}

/// The step at which the evidence failed to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Not looked at, or about something that no rule asks for.
    Ignored,
    /// Not readable, or more than the limits allow.
    Malformed,
    /// About another subject.
    OtherSubject,
    /// About this subject, by somebody who is not allowed.
    OtherSigner,
    /// By an allowed signer, and not valid.
    Invalid,
}

impl Reason {
    pub(crate) fn new(weight: Weight, text: impl AsRef<str>) -> Self {
        Self { weight, statement: None, text: clean(text.as_ref()) }
    }

    pub(crate) fn malformed(text: impl AsRef<str>) -> Self {
        Self::new(Weight::Malformed, text)
    }

    pub(crate) fn invalid(text: impl AsRef<str>) -> Self {
        Self::new(Weight::Invalid, text)
    }

    pub(crate) fn of(self, statement: Statement) -> Self {
        Self { statement: Some(statement), ..self }
    }
}
