//! A guest's questions, in its own process. The deadline of its call stands still while they wait.
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use toolcell_policy::Limits;
use toolcell_wall::asking::{AskBudget, AskRefusal, Inquiry};
use toolcell_wall::load::facts::GuestEngine;

use crate::engine::epoch::{Resting, Running, RunningAt};

/// The questions of one call: their budget, and the time it spends waiting for a person. Tasks of
/// an async guest share it.
#[derive(Clone)]
pub(crate) struct CallQuestions(Arc<Questions>);

struct Questions {
    budget: Mutex<AskBudget>,
    waits: OnceLock<Arc<AskWaits>>,
    /// Held while the host may ask for one of the guest's tasks.
    turn: tokio::sync::Mutex<()>,
}

impl CallQuestions {
    pub(crate) fn of(limits: &Limits) -> Self {
        let budget = Mutex::new(AskBudget::of(limits));
        Self(Arc::new(Questions { budget, waits: OnceLock::new(), turn: tokio::sync::Mutex::default() }))
    }

    fn budget(&self) -> MutexGuard<'_, AskBudget> {
        self.0.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time the call spends waiting for a person, for the call's deadline.
    pub(crate) fn waits(&self, running: &Running, engine: GuestEngine) -> Arc<AskWaits> {
        let running = (engine == GuestEngine::Sync).then(|| running.place());
        let waits = AskWaits { running, began: Instant::now(), state: Mutex::default(), ended: Notify::new() };
        Arc::clone(self.0.waits.get_or_init(|| Arc::new(waits)))
    }

    /// Waits until the host asks for no other task of the guest. A person is asked one question
    /// after the other.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    /// True if the call may ask at all.
    pub(crate) fn may_ask(&self) -> bool {
        self.budget().may_ask()
    }

    /// Takes one question that the host asks itself from the budget.
    pub(crate) fn charge_own(&self) {
        self.budget().charge_own();
    }

    /// Takes these questions from the budget.
    ///
    /// # Errors
    /// They are more or larger than the call may ask.
    pub(crate) fn charge(&self, asks: &[Inquiry]) -> Result<(), AskRefusal> {
        self.budget().charge(asks)
    }

    /// Waits for the answers while the call's deadline stands still; `None` if the call has no time
    /// left to wait.
    pub(crate) async fn wait_for<T>(&self, answers: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let waiting = self.0.waits.get().map(AskWaits::wait);
        let left = self.budget().wait_left();
        let asked = tokio::time::timeout(left, answers).await;
        drop(waiting);
        self.budget().waited(began.elapsed());
        asked.ok()
    }
}

/// The time a call spends waiting for a person. Its deadline stands still meanwhile.
pub(crate) struct AskWaits {
    /// `None` for an async guest, whose other tasks go on: the clock must interrupt them.
    running: Option<RunningAt>,
    began: Instant,
    state: Mutex<WaitState>,
    ended: Notify,
}

#[derive(Default)]
struct WaitState {
    /// How many wait, and since when one of them does.
    waits: usize,
    since: Option<Instant>,
    waited: Duration,
}

impl AskWaits {
    /// How long the call has run, without the time it waited.
    pub(crate) fn ran(&self) -> Duration {
        let waited = self.state.lock().unwrap_or_else(PoisonError::into_inner).waited;
        self.began.elapsed().saturating_sub(waited)
    }

    /// Returns once the call has run for this long, without the time it waited.
    pub(crate) async fn deadline(&self, deadline: Duration) {
        loop {
            // Made before the state is read: a wait that ends in between wakes it.
            let ended = self.ended.notified();
            let (waits, waited) = {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                (state.waits > 0, state.waited)
            };
            if waits {
                ended.await;
                continue;
            }
            let ran = self.began.elapsed().saturating_sub(waited);
            if ran >= deadline {
                return;
            }
            tokio::time::sleep(deadline - ran).await;
        }
    }

    fn wait(self: &Arc<Self>) -> AskWait {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waits += 1;
        state.since.get_or_insert_with(Instant::now);
        AskWait { waits: Arc::clone(self), _resting: self.running.as_ref().map(RunningAt::rest) }
    }
}

/// One wait.
struct AskWait {
    waits: Arc<AskWaits>,
    _resting: Option<Resting>,
}

impl Drop for AskWait {
    fn drop(&mut self) {
        {
            let mut state = self.waits.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waits = state.waits.saturating_sub(1);
            if state.waits == 0 {
                let waited = state.since.take().map_or(Duration::ZERO, |since| since.elapsed());
                state.waited += waited;
            }
        }
        self.waits.ended.notify_waiters();
    }
}
