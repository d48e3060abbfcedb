//! Figures of this process from the operating system.
use std::fs;

/// Most descriptors counted: far more than connections are allowed.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// Resident memory of the process in bytes; `None` if unknown.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// Open descriptors of the process; `None` if unknown.
pub fn descriptors() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.take(DESCRIPTORS_MAX).count();
    // The listing itself has one of them.
    u64::try_from(listed.saturating_sub(1)).ok()
}
