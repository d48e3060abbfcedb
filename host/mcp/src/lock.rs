//! How this crate takes a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. A panic elsewhere leaves what it guards consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
