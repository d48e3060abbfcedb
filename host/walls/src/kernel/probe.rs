//! Trying the walls of a machine. Must not hold: how one is built.

use std::io::{self, Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::report::{Report, ReportError};
use super::rights::Rights;

/// Time that a probe may take. It takes some milliseconds; a loaded machine may take longer.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a report at most: 17 lines, each of some 100 bytes.
const REPORT_BYTES_MAX: u64 = 16 * 1024;
/// Memory of the probing process: it holds one text.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Descriptors of the probing process.
const FILES_MAX: u64 = 64;

/// A machine cannot be asked for its walls.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The probing process does not start.
    #[error("the process that tries the walls does not start")]
    Start(#[source] io::Error),
    /// Its answer cannot be read.
    #[error("the answer of the process that tries the walls cannot be read")]
    Read(#[source] io::Error),
    /// It did not answer in time.
    #[error("the process that tries the walls gives no answer within {} s", PROBE_TIME_MAX.as_secs())]
    Late,
    /// It ended without an answer.
    #[error("the process that tries the walls gives no answer and ended with {0}")]
    Ended(std::process::ExitStatus),
    /// Its answer is no report.
    #[error("the process that tries the walls answers with something else")]
    Report(#[from] ReportError),
}

/// Tries every wall in a process of its own, and says which of them stand.
///
/// `command` starts this binary again, in a way that makes it call [`answer_probe`] before it
/// starts a thread.
pub fn probe(command: &mut Command) -> Result<Report, ProbeError> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(ProbeError::Start)?;
    let answer = match child.stdout.take() {
        Some(stdout) => read(stdout, Instant::now() + PROBE_TIME_MAX),
        None => Err(ProbeError::Late),
    };
    // A process that closed its output has ended, or hangs and must not live on. What it ended
    // with is settled by then.
    child.kill().map_err(ProbeError::Read)?;
    let status = child.wait().map_err(ProbeError::Read)?;
    let answer = answer?;
    if answer.is_empty() {
        return Err(ProbeError::Ended(status));
    }
    Ok(Report::from_lines(&answer)?)
}

/// Builds every wall around this process and writes the report to standard output, for [`probe`].
pub fn answer_probe() -> io::Result<()> {
    let rights = Rights {
        link: None,
        folders: &[],
        memory_bytes_max: MEMORY_BYTES_MAX,
        threads_max: None,
        files_max: FILES_MAX,
        file_bytes_max: None,
        without: &[],
    };
    let report = super::enter(&rights).seal();
    io::stdout().lock().write_all(report.to_lines().as_bytes())
}

/// The text up to its end, which is when the process closes its output.
fn read(mut stdout: ChildStdout, deadline: Instant) -> Result<String, ProbeError> {
    let mut bytes = Vec::new();
    let mut piece = [0_u8; 4096];
    loop {
        wait(&stdout, deadline)?;
        let count = stdout.read(&mut piece).map_err(ProbeError::Read)?;
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count == 0 || bytes.len() as u64 > REPORT_BYTES_MAX {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

fn wait(stdout: &ChildStdout, deadline: Instant) -> Result<(), ProbeError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| ProbeError::Late)?;
        let mut ready = [PollFd::new(stdout, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&left)) {
            Ok(0) => return Err(ProbeError::Late),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ProbeError::Read(error.into())),
        }
    }
}
