//! The keeper of a component's state: a file of this machine, or a server for all replicas.
use std::fmt;
use std::pin::Pin;

use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::error::StateRefusal;
use super::session::StateSession;
use super::store::{BucketPath, NamespaceBounds};

/// Bytes of keys and values in one answer to a batch: as much as the largest possible value.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A bucket of the granted state.
#[derive(Debug)]
pub(crate) struct BucketPlace {
    pub(super) bounds: NamespaceBounds,
    pub(super) path: BucketPath,
}

impl BucketPlace {
    /// The most bytes of keys and values in one answer. A large value that is read many times in a
    /// batch would fill the host's memory.
    pub(super) fn answer_bytes_max(&self) -> u64 {
        self.bounds.bytes.min(ANSWER_BYTES_MAX)
    }
}

/// A running operation. If it is dropped, it may still be done, as a whole.
pub(super) type Performing<'a> = Pin<Box<dyn Future<Output = Result<StateOutcome, StateRefusal>> + Send + 'a>>;

/// The keeper of a component's state. One suite tests all of them.
pub(crate) trait StateKeeper: fmt::Debug + Send + Sync {
    /// Does one operation: all of it, or nothing if it is refused.
    fn perform<'a>(
        &'a self,
        session: &'a mut StateSession,
        place: BucketPlace,
        operation: StateOperation,
    ) -> Performing<'a>;
}
