//! Who may be at the console, and whether they decide: a part of each generation.
use toolcell_policy::Manifest;

/// Rights at the console, as the manifest of this generation gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleRights {
    /// True if operators may decide.
    pub decide: bool,
    /// Callers who sign in with their tokens.
    operators: Vec<String>,
}

impl ConsoleRights {
    /// Those of this manifest.
    pub fn of(manifest: &Manifest) -> Self {
        let Some(console) = manifest.console() else { return Self::default() };
        Self { decide: console.decide(), operators: console.operators().to_vec() }
    }

    /// True if callers of this name sign in.
    pub fn names(&self, operator: &str) -> bool {
        self.operators.iter().any(|name| name == operator)
    }

    /// True if nobody signs in with a token.
    pub const fn names_nobody(&self) -> bool {
        self.operators.is_empty()
    }
}
