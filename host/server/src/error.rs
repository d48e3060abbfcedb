//! Errors that keep a server from starting, or end it.
use std::error::Error;

use toolcell_mcp::stdio::StdioError;
use toolcell_policy::AdvisedFault;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The manifest, or an option, is at fault: the operator can fix it.
    #[error("{message}")]
    Refused {
        /// The problem, in one sentence.
        message: String,
        /// Advice, if there is any.
        hint: Option<String>,
    },
    /// The machine is at fault: for example it has no memory, threads or descriptors left.
    #[error("{step}")]
    Machine {
        /// The step that failed.
        step: &'static str,
        /// Its cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Stdin or stdout failed while it served.
    #[error(transparent)]
    Stdio(#[from] StdioError),
}

impl From<AdvisedFault> for StartError {
    fn from(fault: AdvisedFault) -> Self {
        let hint = fault.hint().map(str::to_owned);
        Self::refused(fault.problem).hint_if(hint)
    }
}

impl StartError {
    /// The manifest or an option is at fault.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: None }
    }

    /// Adds advice, if there is any.
    pub(crate) fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        match self {
            Self::Refused { message, .. } => Self::Refused { message, hint: hint.map(Into::into) },
            other => other,
        }
    }
}

/// Names a failed step of this machine.
pub(crate) trait StepExt<T> {
    /// # Errors
    /// [`StartError::Machine`] with this step.
    fn step(self, step: &'static str) -> Result<T, StartError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> StepExt<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, StartError> {
        self.map_err(|source| StartError::Machine { step, source: source.into() })
    }
}
