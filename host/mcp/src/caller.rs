//! Who calls: a name and scopes, as the program around this crate found them. Must not hold: how they are found, or what
//! they allow.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The name of the one caller over stdio.
const LOCAL: &str = "local";

/// The name of callers that need not say who they are.
const ANYONE: &str = "anyone";

/// Who calls. Cheap to clone. Sessions, rates and instances that are kept belong to a caller's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    name: Arc<str>,
    scopes: Arc<[Box<str>]>,
}

impl Caller {
    /// A caller that was recognised. In which order its scopes come, and how often, makes no difference.
    pub fn new<'s>(name: &str, scopes: impl IntoIterator<Item = &'s str>) -> Self {
        let scopes: BTreeSet<&str> = scopes.into_iter().collect();
        Self { name: name.into(), scopes: scopes.into_iter().map(Box::from).collect() }
    }

    /// Whoever started this process and holds its stdin.
    #[must_use]
    pub fn local() -> Self {
        Self::new(LOCAL, [])
    }

    /// Whoever comes, where nobody has to say who they are.
    #[must_use]
    pub fn anyone() -> Self {
        Self::new(ANYONE, [])
    }

    /// The caller's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The caller's name, shared.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Whether the caller is told from others.
    pub(crate) fn is_recognised(&self) -> bool {
        &*self.name != ANYONE
    }

    /// What the caller was given rights to, as whoever recognised it said.
    pub fn scopes(&self) -> impl Iterator<Item = &str> + Clone {
        self.scopes.iter().map(AsRef::as_ref)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
