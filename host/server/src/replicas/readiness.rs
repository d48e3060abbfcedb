//! Whether the shared state responds, checked once for all who want to know.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use toolcell_policy::{RatesWhileAway, StatePolicy};
use toolcell_shared::{AllowanceName, Pace, SharedState};

/// How long an answer is valid. Load balancers ask every few seconds, and anyone may ask.
const ANSWER_HOLDS: Duration = Duration::from_secs(1);

/// Name of the rate that a check uses. A server that accepts no writes cannot serve calls either.
const NAME: &str = "toolcell.ready";

/// One check: true if the state responds.
type Asking = Pin<Box<dyn Future<Output = bool> + Send>>;

/// True while the shared state responds, for a server that refuses calls without it.
pub struct StateReach {
    ask: Box<dyn Fn() -> Asking + Send + Sync>,
    /// Time of the last answer. Locked during a check.
    answered: Mutex<Option<Instant>>,
    is_reached: AtomicBool,
    /// True once there was an answer.
    has_answer: AtomicBool,
}

impl StateReach {
    /// `None` if the server works without it, counting rates locally meanwhile.
    pub fn of(policy: &StatePolicy, state: &Arc<dyn SharedState>) -> Option<Self> {
        let state = Arc::clone(state);
        let ask = move || -> Asking {
            let state = Arc::clone(&state);
            // A server whose copies lag behind counts as reachable: most calls still work.
            Box::pin(async move {
                let rate = AllowanceName { scope: NAME, pace: Pace::new(1_000, ANSWER_HOLDS), callers_max: 1 };
                state.take("", &[rate]).await.is_ok()
            })
        };
        match policy.rates_while_away() {
            RatesWhileAway::Closed => Some(Self::asking(ask)),
            RatesWhileAway::Local => None,
        }
    }

    fn asking(ask: impl Fn() -> Asking + Send + Sync + 'static) -> Self {
        Self {
            ask: Box::new(ask),
            answered: Mutex::default(),
            is_reached: AtomicBool::new(false),
            has_answer: AtomicBool::new(false),
        }
    }

    /// The last answer; true before the first one.
    pub fn was_reached(&self) -> bool {
        !self.has_answer.load(Ordering::Acquire) || self.is_reached.load(Ordering::Relaxed)
    }

    /// The current answer, or a recent one.
    pub async fn is_reached(&self) -> bool {
        // Others get the last answer, so that requests do not pile up.
        if let Ok(mut answered) = self.answered.try_lock()
            && answered.is_none_or(|at| at.elapsed() >= ANSWER_HOLDS)
        {
            self.is_reached.store((self.ask)().await, Ordering::Relaxed);
            self.has_answer.store(true, Ordering::Release);
            *answered = Some(Instant::now());
        }
        self.is_reached.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn of_many_that_look_one_asks_and_nobody_else_waits() {
        let questions = Arc::new(AtomicUsize::new(0));
        let goes_on = Arc::new(Notify::new());
        let ask = {
            let questions = Arc::clone(&questions);
            let goes_on = Arc::clone(&goes_on);
            move || -> Asking {
                let questions = Arc::clone(&questions);
                let goes_on = Arc::clone(&goes_on);
                Box::pin(async move {
                    questions.fetch_add(1, Ordering::Relaxed);
                    goes_on.notified().await;
                    true
                })
            }
        };
        let readiness = Arc::new(StateReach::asking(ask));
        let first = tokio::spawn({
            let readiness = Arc::clone(&readiness);
            async move { readiness.is_reached().await }
        });
        while questions.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            assert!(!readiness.is_reached().await, "nothing has answered yet");
        }
        assert!(readiness.was_reached(), "nothing has failed yet");
        goes_on.notify_one();
        assert!(first.await.unwrap());
        for _ in 0..1_000 {
            assert!(readiness.is_reached().await);
        }
        assert_eq!(questions.load(Ordering::Relaxed), 1);
    }
}
