//! Figures of the running process, as the kernel gives them.

use std::fs::{read_dir, read_to_string};

use anyhow::Context as _;

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files, sockets and pipes.
    pub files: u64,
}

impl Held {
    /// Reads the figures of a process.
    ///
    /// # Errors
    /// The process is gone.
    pub fn by(process: u32) -> anyhow::Result<Self> {
        let text = read_to_string(format!("/proc/{process}/status")).context("the host is gone")?;
        let resident = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the host is gone")?;
        let resident_kib: u64 = resident.trim().trim_end_matches(" kB").parse()?;
        let count = |folder: &str| -> anyhow::Result<u64> {
            Ok(u64::try_from(read_dir(format!("/proc/{process}/{folder}"))?.count())?)
        };
        Ok(Self { resident_bytes: resident_kib * 1024, threads: count("task")?, files: count("fd")? })
    }
}
