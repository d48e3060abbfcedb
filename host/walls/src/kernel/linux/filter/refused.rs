//! Calls that fail instead of ending the process.

use std::ffi::{c_int, c_long};

use seccompiler::BackendError;

use super::Rules;
use super::arguments::{all, int};

/// Calls that fail with any arguments. The short list allows them, so that this answer applies.
pub(super) const ALWAYS: &[c_long] = &[libc::SYS_clone3, libc::SYS_mremap];

/// Each error, with the calls that return it.
pub(super) fn calls(new_threads: bool) -> Result<Vec<(c_int, Rules)>, BackendError> {
    let mut calls = vec![
        // Its flags are in memory, which filters cannot read. The C library then calls `clone`.
        (libc::ENOSYS, Rules::from([(libc::SYS_clone3, Vec::new())])),
        // It could grow the first stack, which no limit counts. `realloc` then copies.
        (libc::ENOMEM, Rules::from([(libc::SYS_mremap, Vec::new())])),
        // The C library's allocator reads a kernel setting, and works without it.
        (libc::EACCES, Rules::from([(libc::SYS_openat, vec![all([int(0, libc::AT_FDCWD)])?])])),
    ];
    if !new_threads {
        // A thread pool that cannot grow continues with its threads.
        calls.push((libc::EAGAIN, Rules::from([(libc::SYS_clone, Vec::new())])));
    }
    Ok(calls)
}
