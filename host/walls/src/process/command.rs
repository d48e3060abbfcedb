//! Arguments and environment of a process to start.

use std::{
    ffi::{OsStr, OsString},
    io::{self, PipeWriter},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Stdio,
};

use rustix::process::Pid;

use super::Child;
use crate::kernel::{ENDS_FIRST, IDS_REFUSED};

/// The program that runs, as Linux names it.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A program, its arguments, and the only environment that it gets.
///
/// Its standard input is one end of a link, its standard output leads nowhere, its standard error
/// is read for its last words, its folder is `/`, and the keys of a terminal do not reach it.
///
/// If the kernel allows it, it is the first process of a namespace of process ids of its own.
#[derive(Debug, Clone)]
pub struct Command {
    pub(super) program: PathBuf,
    pub(super) name: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    shares_ids: bool,
}

impl Command {
    /// This same program, under a name for lists of processes.
    ///
    /// On Linux it is the very file that runs now, even if it has been replaced since.
    pub fn this_program(name: impl Into<OsString>) -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") { THIS_PROGRAM.into() } else { std::env::current_exe()? };
        Ok(Self { name: name.into(), ..Self::program(program) })
    }

    /// Another program, under its own name.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let name = program.clone().into_os_string();
        Self { program, name, arguments: Vec::new(), environment: Vec::new(), shares_ids: false }
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

    /// Keeps it in this process's namespace of process ids, as on a machine without others.
    pub fn shares_process_ids(self) -> Self {
        Self { shares_ids: true, ..self }
    }

    /// Starts it, with this as its standard input.
    pub(crate) fn spawn(self, stdin: OwnedFd) -> io::Result<Child> {
        let has_no_proc = self.program.as_os_str() == THIS_PROGRAM && !self.program.exists();
        if has_no_proc {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "/proc is not mounted, by which this program starts it",
            ));
        }
        let (words, stderr) = io::pipe()?;
        let first = if self.shares_ids {
            Err(io::Error::other("left away"))
        } else {
            self.spawn_first(stdin.as_fd(), stderr.as_fd())
        };
        let child = match first {
            Ok(pid) => Child::new(pid, true, words),
            Err(refused) => {
                let child = self.variable(IDS_REFUSED, refused.to_string()).spawn_beside(stdin, stderr)?;
                Child::new(Pid::from_child(&child), false, words)
            }
        };
        ends_first(child.pid());
        Ok(child)
    }

    #[cfg(target_os = "linux")]
    fn spawn_first(&self, stdin: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> io::Result<Pid> {
        let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
        let first = super::first::start(self, [stdin, nowhere.as_fd(), stderr]);
        first.map_err(|error| io::Error::other(format!("starting in one: {error}")))
    }

    #[cfg(not(target_os = "linux"))]
    fn spawn_first(&self, _: BorrowedFd<'_>, _: BorrowedFd<'_>) -> io::Result<Pid> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Starts it in this process's own namespace.
    fn spawn_beside(self, stdin: OwnedFd, stderr: PipeWriter) -> io::Result<std::process::Child> {
        std::process::Command::new(self.program)
            .arg0(self.name)
            .args(self.arguments)
            .env_clear()
            .envs(self.environment)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
    }
}

/// If memory runs out, the kernel ends it before this process, even before it has walls.
fn ends_first(child: Pid) {
    // If that fails the child tries it itself, and reports.
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.as_raw_pid()), ENDS_FIRST);
}
