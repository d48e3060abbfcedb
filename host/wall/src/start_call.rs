//! What is known about a component's start code at both ends of a wall.

/// The host function that start code calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its start code calls {function}, which reaches nothing before a call is recorded and approved")]
pub struct StartCall {
    function: String,
}

impl StartCall {
    /// Of the function with this name.
    #[must_use]
    pub fn of(function: &str) -> Self {
        Self { function: function.to_owned() }
    }

    /// Start code that called the host, but not when it was tried: it does so only sometimes.
    #[must_use]
    pub fn of_the_host() -> Self {
        Self::of("the host")
    }

    /// The function's name.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }
}
