//! Permits for open files and folders. Descriptors belong to the whole process, so one call must
//! not exhaust them.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::process::{Resource, getrlimit};

use super::bindings::types::ErrorCode;

/// Files, folders and listings that one call may have open: several times what programs that walk
/// trees need.
const OPEN_PER_CALL_MAX: u64 = 128;

/// The limit that is assumed if the process has none.
const OPEN_DEFAULT: u64 = 1 << 20;

/// The number open in the whole process, by all calls.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Half of the descriptors that the process may have open. Each listing counts for the two that it
/// takes. The rest is for connections, the audit and the host itself.
static OPEN_MAX: LazyLock<u64> =
    LazyLock::new(|| getrlimit(Resource::Nofile).current.unwrap_or(OPEN_DEFAULT).min(OPEN_DEFAULT) / 2);

/// The open files and folders of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permits(Arc<AtomicU64>);

/// The right to have one thing open; returned on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    call: Permits,
    count: u64,
}

impl Permits {
    /// For something that takes `count` descriptors.
    pub(crate) fn take(&self, count: u64) -> Result<Permit, ErrorCode> {
        let below = |max: u64| move |open: u64| open.checked_add(count).filter(|sum| *sum <= max);
        let full = |_| ErrorCode::InsufficientMemory;
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, below(OPEN_PER_CALL_MAX)).map_err(full)?;
        if OPEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, below(*OPEN_MAX)).is_err() {
            self.0.fetch_sub(count, Ordering::AcqRel);
            return Err(ErrorCode::InsufficientMemory);
        }
        Ok(Permit { call: self.clone(), count })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.call.0.fetch_sub(self.count, Ordering::AcqRel);
        OPEN.fetch_sub(self.count, Ordering::AcqRel);
    }
}
