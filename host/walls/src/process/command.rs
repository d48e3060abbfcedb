//! Arguments and environment of a process to start. Must not hold: what it does.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::OwnedFd,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Stdio},
};

/// A program, its arguments, and the only environment that it gets.
///
/// Its standard input is one end of a link, its standard output leads nowhere, its standard error
/// is read for its last words, its folder is `/`, and the keys of a terminal do not reach it.
#[derive(Debug, Clone)]
pub struct Command {
    program: PathBuf,
    name: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Command {
    /// This same program, under a name for lists of processes.
    ///
    /// On Linux it is the very file that runs now, even if another lies in its place by now.
    pub fn this_program(name: impl Into<OsString>) -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        Ok(Self { name: name.into(), ..Self::program(program) })
    }

    /// Another program, under its own name.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let name = program.clone().into_os_string();
        Self { program, name, arguments: Vec::new(), environment: Vec::new() }
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a variable.
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Hands on a variable of this process, if it is set.
    pub fn inherit_variable(self, name: impl AsRef<OsStr>) -> Self {
        match std::env::var_os(name.as_ref()) {
            Some(value) => self.variable(name, value),
            None => self,
        }
    }

    pub(super) fn spawn(self, stdin: OwnedFd) -> io::Result<Child> {
        std::process::Command::new(self.program)
            .arg0(self.name)
            .args(self.arguments)
            .env_clear()
            .envs(self.environment)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    }
}
