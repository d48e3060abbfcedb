//! One child of this process: its id, its pipe, waiting for it.

use std::{
    io::{self, PipeReader},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid},
};

use crate::kernel::ABORTED;

/// A child. Only this value's owner reaps it, so until then its id is not reused.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// True if it is the first process of a namespace of process ids.
    is_first: bool,
    stderr: Option<PipeReader>,
    end: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(pid: Pid, is_first: bool, stderr: PipeReader) -> Self {
        Self { pid, is_first, stderr: Some(stderr), end: None }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The reading end of its standard error, once.
    pub(super) fn take_stderr(&mut self) -> Option<PipeReader> {
        self.stderr.take()
    }

    /// Ends it, unless it was reaped.
    pub(crate) fn kill(&self) {
        if self.end.is_none() {
            // An error means that it has already ended.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    /// Reaps it if it has ended, and remembers.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(WaitOptions::NOHANG)
    }

    /// Blocks this thread until it has ended.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(end) = self.reap(WaitOptions::empty())? {
                return Ok(end);
            }
        }
    }

    fn reap(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        if self.end.is_none() {
            self.end = match waitpid(Some(self.pid), options) {
                Ok(waited) => waited.map(|(_, status)| self.exit_status(status)),
                Err(Errno::INTR) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.end)
    }

    /// The first process of a namespace cannot end itself by a signal. Its exit code shows that it
    /// aborted.
    fn exit_status(&self, status: WaitStatus) -> ExitStatus {
        let aborted = self.is_first && status.exit_status() == Some(ABORTED);
        ExitStatus::from_raw(if aborted { Signal::ABORT.as_raw() } else { status.as_raw() })
    }
}
