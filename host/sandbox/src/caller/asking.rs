//! The contract's `asking`: a guest's questions to the person behind its caller, and their budget.
//! Must not hold: how anybody is asked.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toolcell_policy::{Limit, Limits};

pub use crate::bindings::toolcell::mcp::asking::{Answer, Form, Inquiry, Kind, Page, Question, Refusal, Root};

use crate::engine::epoch::{Resting, Running, RunningAt};
use crate::failure::Failure;
use crate::secrets::Redactor;

/// The result of asking.
#[derive(Debug, Serialize, Deserialize)]
pub enum Asked {
    /// The answers in the order of the questions, or the refusal.
    Answered(Result<Vec<Answer>, Refusal>),
    /// The call ends here: its caller has the questions, and calls again with the answers; or is
    /// refused, and this is why.
    Ended(Option<String>),
}

/// Ends a guest that has asked where its call ends.
#[derive(Debug, thiserror::Error)]
#[error("the call ended where the guest asked")]
pub(crate) struct EndedByAsking {
    pub(crate) refused: Option<String>,
}

impl From<&EndedByAsking> for Failure {
    fn from(ended: &EndedByAsking) -> Self {
        Self::Asked { refused: ended.refused.clone() }
    }
}

impl Question {
    /// The kind of question.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Form(_) => Kind::Form,
            Self::Page(_) => Kind::Page,
            Self::Sampling(_) => Kind::Sampling,
            Self::Roots => Kind::Roots,
        }
    }

    fn texts(&self) -> [&str; 2] {
        match self {
            Self::Form(form) => [&form.message, &form.schema_json],
            Self::Page(page) => [&page.message, &page.url],
            Self::Sampling(params) => [params, ""],
            Self::Roots => ["", ""],
        }
    }

    /// The question without the values of secrets: it leaves the host.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.text(&text).into_owned();
        match self {
            Self::Form(form) => Self::Form(Form { message: clean(form.message), schema_json: clean(form.schema_json) }),
            Self::Page(page) => Self::Page(Page { message: clean(page.message), url: clean(page.url) }),
            Self::Sampling(params) => Self::Sampling(clean(params)),
            Self::Roots => Self::Roots,
        }
    }
}

/// The time in which a call waits for a person, as the host sees it: at least one question to its
/// caller is open.
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
    /// A question opens.
    pub(crate) fn open(self: &Arc<Self>) -> OpenQuestion {
        let mut state = self.lock();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        OpenQuestion(Arc::clone(self))
    }

    /// The time until now.
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

/// The remaining budget of questions of one call.
pub(crate) struct AskBudget {
    asks: u64,
    asked: u64,
    ask_bytes: u64,
    /// Time that the call may still wait.
    wait_left: Duration,
    waits: Option<Arc<AskWaits>>,
}

impl AskBudget {
    pub(crate) fn of(limits: &Limits) -> Self {
        let (asks, ask_bytes) = (limits.get(Limit::Asks), limits.get(Limit::AskBytes));
        Self { asks, asked: 0, ask_bytes, wait_left: limits.ask_wait(), waits: None }
    }

    /// The times in which the call waits for a person, for the call's deadline.
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
        self.asks > 0
    }

    /// Waits for the answers, with the call's deadline stopped; `None` where the call has no time
    /// left to wait.
    pub(crate) async fn wait_for<T>(&mut self, answers: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let waiting = self.waits.as_ref().map(AskWaits::wait);
        let asked = tokio::time::timeout(self.wait_left, answers).await;
        drop(waiting);
        self.wait_left = self.wait_left.saturating_sub(began.elapsed());
        asked.ok()
    }

    /// Takes one question of the host's own from the budget. False if none is left.
    pub(crate) fn charge_own(&mut self) -> bool {
        let left = self.asked < self.asks;
        self.asked += u64::from(left);
        left
    }

    /// Takes these questions from the budget.
    pub(crate) fn charge(&mut self, asks: &[Inquiry]) -> Result<(), Refusal> {
        let over = |limit: Limit, value: u64, what: &str| {
            let spec = limit.spec();
            Refusal::OverLimit(format!("{what} {} (limit \"{}\")", spec.show(value), spec.key))
        };
        let asked = self.asked.saturating_add(asks.len() as u64);
        if asked > self.asks {
            return Err(over(Limit::Asks, self.asks, "the call asks more questions than"));
        }
        let bytes = |ask: &Inquiry| ask.key.len() + ask.question.texts().iter().map(|text| text.len()).sum::<usize>();
        if asks.iter().any(|ask| bytes(ask) as u64 > self.ask_bytes) {
            return Err(over(Limit::AskBytes, self.ask_bytes, "a question is larger than"));
        }
        self.asked = asked;
        Ok(())
    }
}

/// The time that a call waits for a person: its deadline stands still during it.
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
    /// The time that the call has run, without the times in which it waited.
    pub(crate) fn ran(&self) -> Duration {
        let waited = self.state.lock().unwrap_or_else(PoisonError::into_inner).waited;
        self.began.elapsed().saturating_sub(waited)
    }

    /// Returns once the call has run for this long, without the times in which it waited.
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

    fn wait(self: &Arc<Self>) -> Waiting {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waits = true;
        Waiting { waits: Arc::clone(self), began: Instant::now(), _resting: self.running.rest() }
    }
}

/// One wait.
struct Waiting {
    waits: Arc<AskWaits>,
    began: Instant,
    _resting: Resting,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        {
            let mut state = self.waits.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waits = false;
            state.waited += self.began.elapsed();
        }
        self.waits.ended.notify_waiters();
    }
}
