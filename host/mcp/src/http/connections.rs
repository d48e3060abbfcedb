//! The open connections, and the choice of the one that makes room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::watch::ConnectionWatch;

/// The open connections.
pub(super) struct Connections {
    max: usize,
    state: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    open: usize,
    sequence: u64,
    /// Connections without a request, the longest idle one first.
    idle: BTreeMap<u64, Arc<ConnectionWatch>>,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, state: Mutex::default() })
    }

    /// Counts one more. At the limit, the longest idle connection is told to go; false if none is
    /// idle.
    pub(super) fn enter(&self) -> bool {
        let mut state = self.state();
        if state.open >= self.max {
            let Some((_, oldest)) = state.idle.pop_first() else { return false };
            state.open += 1;
            drop(state);
            oldest.leave();
            return true;
        }
        state.open += 1;
        true
    }

    /// The number of open connections.
    pub(super) fn open(&self) -> usize {
        self.state().open
    }

    /// One has gone.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
    }

    /// Marks the connection as idle. Returns its number among the idle ones.
    pub(super) fn mark_idle(&self, watch: &Arc<ConnectionWatch>) -> u64 {
        let mut state = self.state();
        state.sequence += 1;
        let place = state.sequence;
        state.idle.insert(place, Arc::clone(watch));
        place
    }

    /// Marks the connection of this number as busy.
    pub(super) fn mark_busy(&self, place: u64) {
        self.state().idle.remove(&place);
    }

    fn state(&self) -> MutexGuard<'_, ConnectionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
