//! One run of a build command, in a process group of its own that is killed with it.
use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::catalog::{DEV_FOLDER, DEV_VARIABLE};

/// Bytes kept of a build's output: its end, where compilers report errors. A screenful of errors is
/// 10 KiB.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Bytes of one read: the capacity of a pipe.
const BLOCK_BYTES: usize = 64 << 10;

/// A running build. Dropped before its end, it is killed with every process of its group.
pub struct Build {
    child: Child,
    output: PipeReader,
    text: Vec<u8>,
    cut: bool,
    /// True once all writers of `output` have closed it.
    is_closed: bool,
    began: Instant,
    /// True if the build has ended and was waited for.
    pub is_over: bool,
}

/// Result of a build.
pub struct BuildResult {
    /// True if it succeeded.
    pub is_good: bool,
    /// Exit status of the process.
    pub status: ExitStatus,
    /// Its output on stdout and stderr, cut to its end if long.
    pub output: String,
    /// Duration of the build.
    pub took: Duration,
}

impl Build {
    /// Starts the command in this folder. Where it `hands_over` components, the variable
    /// `TOOLCELL_DEV` names the folder for them. Its stdin is empty, and its output does not go to
    /// that of this process.
    pub fn start(command: &[String], project: &Path, hands_over: bool) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
        let (output, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&output, true)?;
        let mut command = Command::new(program);
        if hands_over {
            command.env(DEV_VARIABLE, DEV_FOLDER);
        } else {
            command.env_remove(DEV_VARIABLE);
        }
        let child = command
            .args(arguments)
            .current_dir(project)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        Ok(Self {
            child,
            output,
            text: Vec::new(),
            cut: false,
            is_closed: false,
            began: Instant::now(),
            is_over: false,
        })
    }

    /// Becomes readable with new output, and at the end of it unless another process of the build
    /// still writes. `None` once closed.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_closed).then(|| self.output.as_fd())
    }

    /// Reads new output; returns the result once the build has ended.
    pub fn step(&mut self) -> Option<BuildResult> {
        self.read();
        let status = self.child.try_wait().ok()??;
        self.is_over = true;
        // The last output may have come between the two.
        self.read();
        let output = String::from_utf8_lossy(&self.text);
        let output = if self.cut { format!("…\n{output}") } else { output.into_owned() };
        Some(BuildResult { is_good: status.success(), status, output, took: self.began.elapsed() })
    }

    fn read(&mut self) {
        let mut block = [0; BLOCK_BYTES];
        while let Ok(bytes) = self.output.read(&mut block) {
            if bytes == 0 {
                self.is_closed = true;
                return;
            }
            self.text.extend_from_slice(block.get(..bytes).unwrap_or_default());
            let over = self.text.len().saturating_sub(OUTPUT_BYTES_MAX);
            self.cut |= over > 0;
            drop(self.text.drain(..over));
        }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The process id stays the group's until the child is waited for.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).into()
    }

    fn run(script: &str) -> BuildResult {
        let mut build = Build::start(&command(script), Path::new("."), false).unwrap();
        loop {
            if let Some(done) = build.step() {
                return done;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_build_writes_to_either_stream_is_there_at_its_end() {
        let done = run("echo one; echo two >&2; exit 3");
        assert_eq!((done.output.as_str(), done.status.code(), done.is_good), ("one\ntwo\n", Some(3), false));
        assert!(run("true").is_good);
    }

    #[test]
    fn of_much_output_the_end_is_kept() {
        let done = run("yes 0123456789 | head -c 300000; echo last");
        assert!(done.output.starts_with('…') && done.output.ends_with("last\n"));
        assert!(done.output.len() <= OUTPUT_BYTES_MAX + 8, "{}", done.output.len());
    }

    #[test]
    fn a_build_that_is_dropped_is_killed_with_what_it_started() {
        let mut build = Build::start(&command("sleep 1000 & echo $!; wait"), Path::new("."), false).unwrap();
        while build.text.last() != Some(&b'\n') {
            assert!(build.step().is_none());
        }
        let sleeper: i32 = String::from_utf8_lossy(&build.text).trim().parse().unwrap();
        drop(build);
        // It is not our child, so its new parent waits for it. It is dead at once.
        let state = || std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z ")) {
            std::thread::yield_now();
        }
    }
}
