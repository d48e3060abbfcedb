//! Limits of memory, files and dumps.

use std::fs::File;
use std::io::Read;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::refusal::{Refusal, Step};
use super::syscalls;
use crate::kernel::ENDS_FIRST;
use crate::kernel::rights::Rights;

/// Bytes of `/proc/self/statm` at most: seven numbers of 20 digits.
const STATM_BYTES_MAX: usize = 160;

/// Bytes of the kernel's version at most, as `uname` has them.
const RELEASE_BYTES_MAX: usize = 65;

/// The version since which the limit of threads is a namespace's.
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
/// It bounds memory that is a file as well, and so what loading code writes to: it comes with the
/// seal.
pub(super) fn file_lengths(files_max: u64, bytes_max: u64) -> Result<String, Refusal> {
    syscalls::ignore_signal(libc::SIGXFSZ).step("SIGXFSZ")?;
    limit(Resource::Fsize, bytes_max).step("RLIMIT_FSIZE")?;
    Ok(format!("{files_max} open, {bytes_max} bytes each"))
}

/// Threads of the process. The limit counts tasks of a user in a namespace, and since Linux 5.14
/// those of the process's own namespace apart from the user's others.
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

/// Where memory runs out, the kernel ends this process before those that did not ask for it.
pub(super) fn end_first() -> Result<(), Refusal> {
    const SCORE: &str = "/proc/self/oom_score_adj";
    std::fs::write(SCORE, ENDS_FIRST).step(SCORE)
}

/// The file that tells how much memory a process may write to.
pub(super) fn statm() -> Option<File> {
    File::open("/proc/self/statm").ok()
}

/// Lets no more memory become writable than `more` bytes beyond what is now.
///
/// `RLIMIT_DATA` counts private writable mappings, whether they were ever written to. Reserved
/// memory without access is free, and so wasmtime's terabytes are. Shared memory and growing
/// stacks are not counted: the filter refuses them. Native code can still write more, by turns: a
/// page that was written to and made inaccessible stays resident and is counted no more. wasmtime
/// needs the call for that, so whoever watches the process has to see its resident pages.
pub(super) fn memory(statm: Option<File>, more: u64) -> Result<String, Refusal> {
    let now = writable_bytes(statm)?;
    // The main thread's stack is not counted either, but bounded by its own limit.
    let stack = rustix::process::getrlimit(Resource::Stack);
    if let Some(current) = stack.current {
        limit(Resource::Stack, current).step("RLIMIT_STACK")?;
    }
    limit(Resource::Data, now.saturating_add(more)).step("RLIMIT_DATA")?;
    Ok(format!("{more} bytes more than the {now} at the seal"))
}

/// Bytes that `statm` gives as data: private writable mappings and stacks.
fn writable_bytes(statm: Option<File>) -> Result<u64, Refusal> {
    const UNKNOWN: &str = "/proc/self/statm cannot be read";
    let mut text = String::with_capacity(STATM_BYTES_MAX);
    let mut file = statm.ok_or_else(|| Refusal::new(UNKNOWN))?.take(STATM_BYTES_MAX as u64);
    file.read_to_string(&mut text).step("/proc/self/statm")?;
    let pages = text.split_ascii_whitespace().nth(5).and_then(|word| word.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| Refusal::new(UNKNOWN))?;
    Ok(pages.saturating_mul(syscalls::page_bytes()))
}
