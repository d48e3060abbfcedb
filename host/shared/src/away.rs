//! The one error of shared state.

/// The state could not be reached, or did not answer in time. The operation may have taken effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state that replicas share cannot be reached; try again")]
pub struct Away {
    internal: String,
}

impl Away {
    /// With this reason, which only the operator sees: it may name hosts.
    #[must_use]
    pub fn new(internal: impl Into<String>) -> Self {
        Self { internal: internal.into() }
    }

    /// The reason, for the operator's log.
    #[must_use]
    pub fn internal(&self) -> &str {
        &self.internal
    }
}
