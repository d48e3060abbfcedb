//! Who may use the console, and who may decide there: a part of each generation.
use toolcell_policy::Manifest;

/// Rights at the console, as the manifest of this generation gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleRights {
    /// True if operators may decide.
    pub decide: bool,
    /// Callers who may sign in with their tokens.
    operators: Vec<String>,
}

impl ConsoleRights {
    /// The rights that this manifest grants.
    pub fn of(manifest: &Manifest) -> Self {
        let Some(console) = manifest.console() else { return Self::default() };
        Self { decide: console.decide(), operators: console.operators().to_vec() }
    }

    /// True if callers of this name may sign in.
    pub fn names(&self, operator: &str) -> bool {
        self.operators.iter().any(|name| name == operator)
    }

    /// True if nobody may sign in with a token.
    pub const fn names_nobody(&self) -> bool {
        self.operators.is_empty()
    }
}
