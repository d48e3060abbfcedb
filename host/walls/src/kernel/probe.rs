//! Trying which walls a machine provides.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::report::{Report, ReportError};
use super::rights::Rights;
use crate::link;
use crate::process::Command;

/// Time that a probe may take. It takes some milliseconds; a loaded machine may take longer.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a report at most: 17 lines, each of some 100 bytes.
const REPORT_BYTES_MAX: u64 = 16 * 1024;
/// Memory of the probing process: it holds one text.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Descriptors of the probing process.
const FILES_MAX: u64 = 64;

/// Why a machine cannot be probed for its walls.
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
    /// Its answer is not a report.
    #[error("the process that tries the walls answers with something else")]
    Report(#[from] ReportError),
}

/// Tries every wall in a process of its own, and reports which of them stand.
///
/// `command` starts this binary again, in a way that makes it call [`answer_probe`] before it
/// starts a thread.
pub fn probe(command: Command) -> Result<Report, ProbeError> {
    let (ours, theirs) = link::pair().map_err(ProbeError::Start)?;
    let mut child = command.spawn(theirs).map_err(ProbeError::Start)?;
    let answer = read(ours.into(), Instant::now() + PROBE_TIME_MAX);
    // A process that closed its end has either ended, or hangs and must be killed. Its exit status
    // is settled by then.
    child.kill();
    let status = child.wait().map_err(ProbeError::Read)?;
    let answer = answer?;
    if answer.is_empty() {
        return Err(ProbeError::Ended(status));
    }
    Ok(Report::from_lines(&answer)?)
}

/// Builds every wall around this process and writes the report to standard input, which is a link
/// to the process that called [`probe`].
pub fn answer_probe() -> io::Result<()> {
    let link = io::stdin().as_fd().try_clone_to_owned()?;
    let rights = Rights {
        link: Some(link.as_fd()),
        folders: &[],
        memory_bytes_max: MEMORY_BYTES_MAX,
        threads_max: None,
        files_max: FILES_MAX,
        file_bytes_max: None,
        without: &[],
    };
    let report = super::enter(&rights).seal();
    File::from(link).write_all(report.to_lines().as_bytes())
}

/// The text up to its end, when the process closes the link.
fn read(mut link: File, deadline: Instant) -> Result<String, ProbeError> {
    let mut bytes = Vec::new();
    let mut piece = [0_u8; 4096];
    loop {
        wait(&link, deadline)?;
        let count = link.read(&mut piece).map_err(ProbeError::Read)?;
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count == 0 || bytes.len() as u64 > REPORT_BYTES_MAX {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

fn wait(link: &File, deadline: Instant) -> Result<(), ProbeError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| ProbeError::Late)?;
        let mut ready = [PollFd::new(link, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&left)) {
            Ok(0) => return Err(ProbeError::Late),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ProbeError::Read(error.into())),
        }
    }
}
