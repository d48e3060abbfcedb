//! The caller of a request: a name and scopes, as the embedding program determined them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The name of the one caller over stdio.
const LOCAL: &str = "local";

/// The name of anonymous callers.
const ANYONE: &str = "anyone";

/// The caller of a request. Cheap to clone. Sessions, rates and kept instances belong to a caller's
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    name: Arc<str>,
    scopes: Arc<[Box<str>]>,
}

impl Caller {
    /// An authenticated caller. The order and repetitions of scopes do not matter.
    pub fn new<'s>(name: &str, scopes: impl IntoIterator<Item = &'s str>) -> Self {
        let scopes: BTreeSet<&str> = scopes.into_iter().collect();
        Self { name: name.into(), scopes: scopes.into_iter().map(Box::from).collect() }
    }

    /// The process that started this one and holds its stdin.
    #[must_use]
    pub fn local() -> Self {
        Self::new(LOCAL, [])
    }

    /// The anonymous caller, where no authentication is needed.
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

    /// True for every caller but the anonymous one.
    #[must_use]
    pub fn is_recognised(&self) -> bool {
        &*self.name != ANYONE
    }

    /// The scopes that authentication gave the caller.
    pub fn scopes(&self) -> impl Iterator<Item = &str> + Clone {
        self.scopes.iter().map(AsRef::as_ref)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
