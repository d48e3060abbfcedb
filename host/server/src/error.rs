//! Errors that keep a server from starting, or end it. Must not hold: exit codes, or how errors are shown.
use std::error::Error;

use toolcell_mcp::stdio::StdioError;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The manifest, or an option, is at fault: the operator can mend it.
    #[error("{message}")]
    Refused {
        /// What is wrong, in one sentence.
        message: String,
        /// What to do about it, where something is known.
        hint: Option<String>,
    },
    /// The machine is at fault: it has no memory, threads or descriptors left, say.
    #[error("{step}")]
    Machine {
        /// What could not be done.
        step: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Stdin or stdout failed while it served.
    #[error(transparent)]
    Stdio(#[from] StdioError),
}

impl StartError {
    /// The manifest or an option is at fault.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: None }
    }

    /// The same with what to do about it, where something is known.
    pub(crate) fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        match self {
            Self::Refused { message, .. } => Self::Refused { message, hint: hint.map(Into::into) },
            other => other,
        }
    }
}

/// Names the step that failed on this machine.
pub(crate) trait StepExt<T> {
    /// # Errors
    /// [`StartError::Machine`] with this step, where it failed.
    fn step(self, step: &'static str) -> Result<T, StartError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> StepExt<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, StartError> {
        self.map_err(|source| StartError::Machine { step, source: source.into() })
    }
}
