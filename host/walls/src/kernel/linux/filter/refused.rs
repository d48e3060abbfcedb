//! Calls that fail, where any other would end the process.

use std::ffi::{c_int, c_long};

use seccompiler::BackendError;

use super::Rules;
use super::arguments::{all, int};

/// Calls that fail whatever their arguments. The short list has them, so that this answer holds.
pub(super) const ALWAYS: &[c_long] = &[libc::SYS_clone3, libc::SYS_mremap];

/// Each error with the calls that it answers.
pub(super) fn calls(new_threads: bool) -> Result<Vec<(c_int, Rules)>, BackendError> {
    let mut calls = vec![
        // Its flags lie in memory, where no filter sees them. The C library then calls `clone`.
        (libc::ENOSYS, Rules::from([(libc::SYS_clone3, Vec::new())])),
        // It could make the first stack larger, which no limit counts. `realloc` then copies.
        (libc::ENOMEM, Rules::from([(libc::SYS_mremap, Vec::new())])),
        // The C library's allocator reads a setting of the kernel, and does without it.
        (libc::EACCES, Rules::from([(libc::SYS_openat, vec![all([int(0, libc::AT_FDCWD)])?])])),
    ];
    if !new_threads {
        // A pool of threads that may not grow goes on with the ones it has.
        calls.push((libc::EAGAIN, Rules::from([(libc::SYS_clone, Vec::new())])));
    }
    Ok(calls)
}
