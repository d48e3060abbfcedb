//! The connections there may be at once, and which of them has to go to make room. Must not hold: what goes on on them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::watch::ConnectionWatch;

/// The connections there are.
pub(super) struct Connections {
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: usize,
    sequence: u64,
    /// Those without a request, the one that is so the longest first.
    idle: BTreeMap<u64, Arc<ConnectionWatch>>,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, state: Mutex::default() })
    }

    /// Counts one more. Where there are as many as there may be, the one that is idle the longest is told to go; false
    /// where none is.
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

    /// How many there are.
    pub(super) fn open(&self) -> usize {
        self.state().open
    }

    /// One has gone.
    pub(super) fn left(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
    }

    /// This one has no request. Gives its place among the idle ones.
    pub(super) fn is_idle(&self, watch: &Arc<ConnectionWatch>) -> u64 {
        let mut state = self.state();
        state.sequence += 1;
        let place = state.sequence;
        state.idle.insert(place, Arc::clone(watch));
        place
    }

    /// The one at this place is idle no longer.
    pub(super) fn is_busy(&self, place: u64) {
        self.state().idle.remove(&place);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
