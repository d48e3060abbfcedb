//! The keeper of a component's state: a file of this machine, or a server for all replicas. Must
//! not hold: the right to the state, or either keeper.
use std::fmt;
use std::pin::Pin;

use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::error::Refusal;
use super::session::Session;
use super::store::{Bounds, BucketPath};

/// Bytes of keys and values in one answer to a guest that asks for many: as much as the largest
/// value there can be.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A bucket of the granted state.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) bounds: Bounds,
    pub(super) path: BucketPath,
}

impl Place {
    /// The most bytes of keys and values in one answer. One large value, asked for many times,
    /// would fill the host's memory.
    pub(super) fn answer_bytes_max(&self) -> u64 {
        self.bounds.bytes.min(ANSWER_BYTES_MAX)
    }
}

/// An operation that is under way. Dropped, it may be done all the same, as a whole.
pub(super) type Performing<'a> = Pin<Box<dyn Future<Output = Result<StateOutcome, Refusal>> + Send + 'a>>;

/// The keeper of a component's state. One suite tests all.
pub(crate) trait Keeper: fmt::Debug + Send + Sync {
    /// Does one operation: the whole of it, or nothing where it is refused.
    fn perform<'a>(&'a self, session: &'a mut Session, place: Place, operation: StateOperation) -> Performing<'a>;
}
