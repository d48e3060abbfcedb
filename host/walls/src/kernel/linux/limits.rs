//! Limits of memory, files and dumps.

use std::fs::File;
use std::io::Read;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::refusal::{Refusal, WallStep};
use super::syscalls;
use crate::kernel::ENDS_FIRST;
use crate::kernel::rights::Rights;

/// Bytes of `/proc/self/statm` at most: seven numbers of 20 digits.
const STATM_BYTES_MAX: usize = 160;

/// Bytes of the kernel's version at most, as `uname` returns it.
const RELEASE_BYTES_MAX: usize = 65;

/// The first version in which the limit of threads counts per namespace.
const COUNTS_NAMESPACES: (u32, u32) = (5, 14);

fn limit(resource: Resource, max: u64) -> rustix::io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) })
}

/// No core dump.
pub(super) fn no_core() -> Result<String, Refusal> {
    limit(Resource::Core, 0).step("RLIMIT_CORE")?;
    Ok(String::new())
}

/// Descriptors.
pub(super) fn files(rights: &Rights<'_>) -> Result<String, Refusal> {
    limit(Resource::Nofile, rights.files_max).step("RLIMIT_NOFILE")?;
    limit(Resource::Memlock, 0).step("RLIMIT_MEMLOCK")?;
    limit(Resource::Msgqueue, 0).step("RLIMIT_MSGQUEUE")?;
    Ok(format!("{} open", rights.files_max))
}

/// The length that a file may grow to. Past it a write fails instead of ending the process.
///
/// It also bounds files in memory, which loading code writes to, so it is set with the seal.
pub(super) fn file_lengths(files_max: u64, bytes_max: u64) -> Result<String, Refusal> {
    syscalls::ignore_signal(libc::SIGXFSZ).step("SIGXFSZ")?;
    limit(Resource::Fsize, bytes_max).step("RLIMIT_FSIZE")?;
    Ok(format!("{files_max} open, {bytes_max} bytes each"))
}

/// Threads of the process. The limit counts tasks of a user in a namespace. Since Linux 5.14, tasks
/// in the process's own namespace count separately from the user's others.
pub(super) fn threads(max: u64, has_namespace: bool) -> Result<String, Refusal> {
    if rustix::process::geteuid().is_root() {
        return Err(Refusal::new("the kernel counts no threads of root's"));
    }
    if !has_namespace || version() < Some(COUNTS_NAMESPACES) {
        return Err(Refusal::new("it needs user-namespace and Linux 5.14"));
    }
    limit(Resource::Nproc, max).step("RLIMIT_NPROC")?;
    Ok(format!("{max}"))
}

/// The kernel's version.
fn version() -> Option<(u32, u32)> {
    let mut text = String::with_capacity(RELEASE_BYTES_MAX);
    let file = File::open("/proc/sys/kernel/osrelease").ok()?;
    file.take(RELEASE_BYTES_MAX as u64).read_to_string(&mut text).ok()?;
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// If memory runs out, the kernel ends this process before others.
pub(super) fn end_first() -> Result<(), Refusal> {
    const SCORE: &str = "/proc/self/oom_score_adj";
    std::fs::write(SCORE, ENDS_FIRST).step(SCORE)
}

/// The file with the amount of memory that a process may write to.
pub(super) fn statm() -> Option<File> {
    File::open("/proc/self/statm").ok()
}

/// Lets no more memory become writable than `more` bytes beyond what is now.
///
/// `RLIMIT_DATA` counts private writable mappings, even if they were never written to. Reserved
/// memory without access is free, including wasmtime's terabytes. Shared memory and growing stacks
/// are not counted; the filter refuses them. Native code can still write more, in turns: a page
/// that was written and then made inaccessible stays resident but no longer counts. wasmtime needs
/// that call, so the host must watch the process's resident pages.
pub(super) fn memory(statm: Option<File>, more: u64) -> Result<String, Refusal> {
    let now = writable_bytes(statm)?;
    // The main thread's stack is not counted either, but it has its own limit.
    let stack = rustix::process::getrlimit(Resource::Stack);
    if let Some(current) = stack.current {
        limit(Resource::Stack, current).step("RLIMIT_STACK")?;
    }
    limit(Resource::Data, now.saturating_add(more)).step("RLIMIT_DATA")?;
    Ok(format!("{more} bytes more than the {now} at the seal"))
}

/// Bytes that `statm` reports as data: private writable mappings and stacks.
fn writable_bytes(statm: Option<File>) -> Result<u64, Refusal> {
    const UNKNOWN: &str = "/proc/self/statm cannot be read";
    let mut text = String::with_capacity(STATM_BYTES_MAX);
    let mut file = statm.ok_or_else(|| Refusal::new(UNKNOWN))?.take(STATM_BYTES_MAX as u64);
    file.read_to_string(&mut text).step("/proc/self/statm")?;
    let pages = text.split_ascii_whitespace().nth(5).and_then(|word| word.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| Refusal::new(UNKNOWN))?;
    Ok(pages.saturating_mul(syscalls::page_bytes()))
}
