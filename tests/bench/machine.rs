//! The machine and the binary of the measurements.

use std::fs::read_to_string;
use std::process::Command;

use anyhow::Context as _;

/// The machine and the binary.
pub struct Machine {
    /// CPUs that this program may use.
    pub cpus: usize,
    /// The CPU's name.
    pub cpu: String,
    /// The kernel's version.
    pub kernel: String,
    /// Load before the measurements: tasks that wanted to run, over the last minute. It shows how
    /// busy the machine is otherwise.
    pub load: f64,
    /// The binary's own version text.
    pub version: String,
}

/// Describes this machine and the binary.
///
/// # Errors
/// The binary does not run.
pub fn describe() -> anyhow::Result<Machine> {
    let binary = toolcell_tests::toolcell();
    let said = Command::new(&binary).arg("--version").output().with_context(|| binary.display().to_string())?;
    anyhow::ensure!(said.status.success(), "{} --version failed", binary.display());
    Ok(Machine {
        cpus: std::thread::available_parallelism()?.get(),
        cpu: cpu().unwrap_or_default(),
        kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        load: load().unwrap_or_default(),
        version: String::from_utf8_lossy(&said.stdout).trim().to_owned(),
    })
}

fn cpu() -> Option<String> {
    let text = read_to_string("/proc/cpuinfo").ok()?;
    let (_, name) = text.lines().find(|line| line.starts_with("model name"))?.split_once(':')?;
    Some(name.trim().to_owned())
}

fn load() -> Option<f64> {
    read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}
