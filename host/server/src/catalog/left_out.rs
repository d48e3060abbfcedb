//! Components that a generation leaves out because they are broken.
use std::collections::BTreeSet;

use toolcell_policy::{Diagnostic, Severity};

use super::TEXTS;

/// The components that may be broken without keeping the others from being served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tolerance {
    /// None: each error fails the whole generation.
    #[default]
    None,
    /// All, as long as one is left.
    All,
    /// These, which the current generation already leaves out.
    Those(BTreeSet<String>),
}

/// A component that a generation leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutComponent {
    /// Its name in the manifest.
    pub name: String,
    /// Its first problem, in one sentence.
    pub problem: String,
}

impl Tolerance {
    pub(super) fn takes(&self, component: &str) -> bool {
        match self {
            Self::None => false,
            // A problem of no component concerns the whole generation.
            Self::All => !component.is_empty() && component != TEXTS,
            Self::Those(names) => names.contains(component),
        }
    }

    /// True if no component may be broken.
    pub(super) fn is_none(&self) -> bool {
        match self {
            Self::None => true,
            Self::All => false,
            Self::Those(names) => names.is_empty(),
        }
    }
}

impl LeftOutComponent {
    /// The component with these problems, if one of them is an error.
    pub(super) fn of(name: &str, problems: &[Diagnostic]) -> Option<Self> {
        let first = problems.iter().find(|problem| problem.severity() == Severity::Error)?;
        Some(Self { name: name.to_owned(), problem: first.message().to_owned() })
    }
}
