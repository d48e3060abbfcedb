//! The time a call waits for a person, measured by the host.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time a call waits for a person: at least one question to its caller is open.
#[derive(Debug, Default)]
pub(crate) struct Waited(Mutex<WaitedState>);

#[derive(Debug, Default)]
struct WaitedState {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

/// An open question. Dropping it closes it.
pub(crate) struct OpenQuestion(Arc<Waited>);

impl Waited {
    /// Opens a question.
    pub(crate) fn open(self: &Arc<Self>) -> OpenQuestion {
        let mut state = self.lock();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        OpenQuestion(Arc::clone(self))
    }

    /// The total so far.
    pub(crate) fn total(&self) -> Duration {
        let state = self.lock();
        state.total.saturating_add(state.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WaitedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open = state.open.saturating_sub(1);
        if state.open == 0
            && let Some(since) = state.since.take()
        {
            state.total = state.total.saturating_add(since.elapsed());
        }
    }
}
