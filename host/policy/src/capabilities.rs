//! The grants of a component or a tool in words.

use crate::diagnostic::Span;
use crate::grants::{Capability, Grants};
use crate::rights::ALL;
use crate::settings::accessors;

accessors! {
    /// One line of a table: a kind of reach and how far it goes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReachRow {
        /// The kind of reach.
        capability: Capability => Capability,
        /// Its extent: `read /data from "data"`, `GET https://api.example.com/v1/*`. Holds no value
        /// of a secret.
        text: String => &str,
        /// Its place in the manifest.
        span: Option<Span> => Option<Span>,
    }
}

impl ReachRow {
    pub(crate) const fn new(capability: Capability, text: String, span: Option<Span>) -> Self {
        Self { capability, text, span }
    }
}

impl Grants {
    /// Everything that can be reached, one row for each rule, mount, variable and secret; empty
    /// without grants.
    #[must_use]
    pub fn reach(&self) -> Vec<ReachRow> {
        ALL.iter().flat_map(|right| (right.reach)(right, self)).collect()
    }

    /// The lines of a lock's difference, sorted: one for each right, so that an added line is an
    /// added right.
    #[must_use]
    pub fn lock_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = ALL.iter().flat_map(|right| (right.lock_lines)(right, self)).collect();
        lines.sort();
        lines
    }
}
