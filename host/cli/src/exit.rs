//! Exit codes, which are only decided here.
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcell_policy::AdvisedFault;
use toolcell_server::control::Unreachable;
use toolcell_server::lock::LockError;
use toolcell_server::login::LoginError;
use toolcell_server::shell;

use crate::terminal::{self, StdoutClosed};

/// Result of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// Done. 0.
    #[default]
    Done,
    /// The checked or called thing is at fault: a manifest, a component, a tool that answered with
    /// an error. 1.
    AtFault,
    /// The command line is at fault. 2, as clap uses it.
    Usage,
    /// This host or machine is at fault: no memory for the engine, no network, output that cannot
    /// be written. 3.
    HostFailed,
}

impl Exit {
    /// This exit, or the other if this is `Done`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }
}

/// Why a command does nothing, with advice.
#[derive(Clone, Debug)]
pub struct Failure {
    message: String,
    hint: String,
    exit: Exit,
    /// True if people have read the message already; JSON has it all the same.
    is_said: bool,
    /// Further members of its JSON.
    more: Vec<(String, Value)>,
}

impl Failure {
    /// The manifest, a component or a file is at fault.
    pub fn at_fault(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into(), exit: Exit::AtFault, is_said: false, more: Vec::new() }
    }

    /// The command line is at fault.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::at_fault(message, hint) }
    }

    /// This machine is at fault.
    pub fn of_machine(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::HostFailed, ..Self::at_fault(message, hint) }
    }

    /// The reason was already printed.
    pub fn said(exit: Exit) -> Self {
        Self { exit, ..Self::at_fault("", "") }
    }

    /// A manifest, a component or a file is at fault, and this was already printed.
    pub fn said_at_fault(message: impl Into<String>) -> Self {
        Self { is_said: true, ..Self::at_fault(message, "") }
    }

    /// This failure, with one more member of its JSON.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.more.push((name.to_owned(), value));
        self
    }

    /// Prints it, as JSON on stdout if the command's answer would be JSON.
    pub fn report(&self, as_json: bool) -> anyhow::Result<Exit> {
        let hint = Some(self.hint.as_str()).filter(|hint| !hint.is_empty());
        if as_json {
            let problem = Some(shell::named(&self.message)).filter(|message| !message.is_empty());
            let hint = hint.map(shell::named);
            let mut answer = json!({"ok": false, "problem": problem, "hint": hint});
            if let Some(members) = answer.as_object_mut() {
                members.extend(self.more.iter().cloned());
            }
            terminal::print(&format!("{answer:#}\n"))?;
        } else if !self.message.is_empty() && !self.is_said {
            terminal::error(&self.message, hint);
        }
        Ok(self.exit)
    }
}

impl From<AdvisedFault> for Failure {
    fn from(fault: AdvisedFault) -> Self {
        let hint = fault.hint().unwrap_or_default().to_owned();
        Self::at_fault(fault.problem, hint)
    }
}

impl From<Unreachable> for Failure {
    fn from(error: Unreachable) -> Self {
        Self::at_fault(error.to_string(), error.hint().unwrap_or_default())
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::at_fault(error.to_string(), error.hint())
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        Self::at_fault(error.to_string(), error.hint().unwrap_or_default())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Prints the failure that ends a command, as JSON on stdout if its answer would be JSON. Errors of
/// the host itself are passed on.
pub fn reported(outcome: anyhow::Result<Exit>, as_json: bool) -> anyhow::Result<Exit> {
    outcome.or_else(|error| error.downcast::<Failure>()?.report(as_json))
}

impl Exit {
    /// How a command ended. Prints what it has not printed itself: a failure, or an error of the
    /// host.
    pub fn of(outcome: anyhow::Result<Self>) -> Self {
        reported(outcome, false).unwrap_or_else(|error| {
            if is_closed_stdout(&error) {
                return Self::Done;
            }
            terminal::error(&causes(&error), None);
            Self::HostFailed
        })
    }
}

/// An error and its causes, without a cause that the one before already ends with.
fn causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if text.is_empty() {
            return cause;
        }
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        text
    })
}

fn is_closed_stdout(error: &anyhow::Error) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<StdoutClosed>())
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

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn a_cause_that_the_error_ends_with_is_not_said_twice() {
        let full = || anyhow!("no space left");
        let doubled = full().context("the file: no space left").context("the audit cannot be written");
        assert_eq!(causes(&doubled), "the audit cannot be written: the file: no space left");
        let plain: anyhow::Result<()> = Err(full()).context("the file cannot be written");
        assert_eq!(causes(&plain.unwrap_err()), "the file cannot be written: no space left");
    }
}
