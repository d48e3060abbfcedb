//! Exit codes, decided here alone.
use std::process::ExitCode;

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done. 0.
    Done,
    /// The checked or called thing is at fault: a manifest, a component, a tool that answered with
    /// an error. 1.
    AtFault,
    /// The command line is at fault. 2, as clap uses it.
    Usage,
    /// This host or machine is at fault: no memory for the engine, output that cannot be written.
    /// 3.
    HostFailed,
}

impl Exit {
    /// Prints an error of the host itself.
    pub fn host_failed(error: &anyhow::Error) -> Self {
        crate::terminal::error(&format!("{error:#}"), None);
        Self::HostFailed
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
