//! A guest's questions, in its own process. The deadline of its call stands still while they wait.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use toolcell_policy::Limits;
use toolcell_wall::asking::{AskBudget, AskRefusal, Inquiry};

use crate::engine::epoch::{Resting, Running, RunningAt};

/// The questions of one call: their budget, and the time it spends waiting for a person.
pub(crate) struct CallQuestions {
    budget: AskBudget,
    waits: Option<Arc<AskWaits>>,
}

impl CallQuestions {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { budget: AskBudget::of(limits), waits: None }
    }

    /// The time the call spends waiting for a person, for the call's deadline.
    pub(crate) fn waits(&mut self, running: &Running) -> Arc<AskWaits> {
        let waits = Arc::new(AskWaits {
            running: running.place(),
            began: Instant::now(),
            state: Mutex::default(),
            ended: Notify::new(),
        });
        self.waits = Some(Arc::clone(&waits));
        waits
    }

    /// True if the call may ask at all.
    pub(crate) fn may_ask(&self) -> bool {
        self.budget.may_ask()
    }

    /// Takes one question that the host asks itself from the budget.
    pub(crate) fn charge_own(&mut self) {
        self.budget.charge_own();
    }

    /// Takes these questions from the budget.
    ///
    /// # Errors
    /// They are more or larger than the call may ask.
    pub(crate) fn charge(&mut self, asks: &[Inquiry]) -> Result<(), AskRefusal> {
        self.budget.charge(asks)
    }

    /// Waits for the answers while the call's deadline stands still; `None` if the call has no time
    /// left to wait.
    pub(crate) async fn wait_for<T>(&mut self, answers: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let waiting = self.waits.as_ref().map(AskWaits::wait);
        let asked = tokio::time::timeout(self.budget.wait_left(), answers).await;
        drop(waiting);
        self.budget.waited(began.elapsed());
        asked.ok()
    }
}

/// The time a call spends waiting for a person. Its deadline stands still meanwhile.
pub(crate) struct AskWaits {
    running: RunningAt,
    began: Instant,
    state: Mutex<WaitState>,
    ended: Notify,
}

#[derive(Default)]
struct WaitState {
    waits: bool,
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
                (state.waits, state.waited)
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waits = true;
        AskWait { waits: Arc::clone(self), began: Instant::now(), _resting: self.running.rest() }
    }
}

/// One wait.
struct AskWait {
    waits: Arc<AskWaits>,
    began: Instant,
    _resting: Resting,
}

impl Drop for AskWait {
    fn drop(&mut self) {
        {
            let mut state = self.waits.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waits = false;
            state.waited += self.began.elapsed();
        }
        self.waits.ended.notify_waiters();
    }
}
