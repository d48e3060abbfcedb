//! What the operating system says of this process. Must not hold: what the process says of itself.
use std::fs;

/// Most descriptors that are counted: far more than the process may have connections.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// Memory of the process that is in RAM, in bytes; `None` where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// Descriptors that the process has open; `None` where the system does not say.
pub fn descriptors() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.take(DESCRIPTORS_MAX).count();
    // One of them is that of the listing.
    u64::try_from(listed.saturating_sub(1)).ok()
}
