//! Exit codes: the one place that decides them.
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done. 0.
    Done,
    /// What was checked or called is at fault: a manifest, a component, a tool that answered with an error. 1.
    AtFault,
    /// The command line is at fault. 2, as clap uses it.
    Usage,
    /// This host or machine is at fault: no memory for the engine, output that cannot be written. 3.
    HostFailed,
}

impl Exit {
    /// Says what went wrong with the host itself.
    pub fn host_failed(error: &anyhow::Error) -> Self {
        crate::terminal::error(&format!("{error:#}"), None);
        Self::HostFailed
    }
}

/// What whoever runs the command can mend, as an error on the way to where it is said.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AtFault {
    message: String,
    hint: Option<String>,
}

impl AtFault {
    /// With what is wrong, in one sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same with what to do about it, where something is known.
    pub fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }

    /// Says what is at fault, where that is all that went wrong.
    pub fn said(done: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
        match done.map_err(anyhow::Error::downcast::<Self>) {
            Ok(exit) => Ok(exit),
            Err(Ok(Self { message, hint })) => {
                crate::terminal::error(&message, hint.as_deref());
                Ok(Exit::AtFault)
            }
            Err(Err(error)) => Err(error),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::AtFault => 1,
            Exit::Usage => 2,
            Exit::HostFailed => 3,
        })
    }
}
