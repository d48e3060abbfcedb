//! The queue of one caller: its concurrency over all tools.
//!
//! Promise: costly requests leave others theirs.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_mcp::{CallerTurn, Cancellation, FairTurns, TurnBounds};
use toolcell_policy::quantity::show_count;
use toolcell_policy::{Limit, Limits, Rights};
use toolcell_shared::{Place, SharedState};

use super::queue::{QueuePosition, QueueRefusal};

/// Callers with a queue of their own, about 200 bytes each. Any others share one.
const CALLERS_MAX: usize = 10_000;

/// The name of the shared queue; no caller has this name.
const EVERYBODY_ELSE: &str = "";

/// Arguments of this many bytes are large: checking and reading them takes milliseconds of a core.
pub const LARGE_BYTES: usize = 64 * 1024;

/// Calls with large arguments that one caller runs at once. It is half of what a tool runs by
/// default, so others get their turn.
const LARGE_OWN_MAX: usize = 8;

/// Calls with large arguments that run at once, of all callers.
const LARGE_MAX: usize = 64;

/// Queues of all callers, over all generations.
pub struct CallerQueues {
    own: Mutex<HashMap<CallerKey, Arc<CallerQueue>>>,
    /// Turns of calls with large arguments.
    large: Arc<FairTurns<Box<str>>>,
}

impl Default for CallerQueues {
    fn default() -> Self {
        let large = FairTurns::new(TurnBounds { all: LARGE_MAX, own: LARGE_OWN_MAX });
        Self { own: Mutex::default(), large }
    }
}

/// A caller with its limits. A caller with two tokens of different limits has two queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallerKey {
    caller: Box<str>,
    bounds: CallerBounds,
}

/// The calls of one caller that run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CallerBounds {
    /// In this process.
    here: usize,
    /// Over all replicas; `None`: no bound.
    shared: Option<usize>,
}

/// Queue of one caller.
struct CallerQueue {
    bounds: CallerBounds,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A call slot of the caller, held until dropped: of this process, and over all replicas.
#[derive(Debug, Default)]
pub struct CallerPermit {
    _held: Option<(OwnedSemaphorePermit, Place)>,
}

impl CallerQueues {
    /// Waits for one of the caller's slots. The tool's `queue` and `queue_wait` bound the wait.
    pub async fn enter(
        &self,
        caller: &str,
        rights: &Rights<'_>,
        limits: &Limits,
        state: &dyn SharedState,
        cancellation: &Cancellation,
    ) -> Result<CallerPermit, QueueRefusal> {
        let Some(bounds) = CallerBounds::of(rights) else { return Ok(CallerPermit::default()) };
        let name = bounds.shared.map(|most| format!("caller\n{caller}\n{most}")).unwrap_or_default();
        self.queue(caller, bounds).wait(limits, state, &name, cancellation).await
    }

    /// Waits for a turn, if these are large arguments. The tool's `queue_wait` bounds the wait.
    pub async fn turn(
        &self,
        caller: &str,
        bytes: usize,
        limits: &Limits,
        cancellation: &Cancellation,
    ) -> Result<Option<CallerTurn<Box<str>>>, QueueRefusal> {
        if bytes < LARGE_BYTES {
            return Ok(None);
        }
        let owner = Box::from(caller);
        let turn = self.large.take(&owner, bytes as u64);
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
            turn = tokio::time::timeout(limits.queue_wait(), turn) => match turn {
                Ok(turn) => Ok(Some(turn)),
                Err(_) => Err(QueueRefusal::LargeWaited { wait: limits.show(Limit::QueueWait) }),
            },
        }
    }

    fn queue(&self, caller: &str, bounds: CallerBounds) -> Arc<CallerQueue> {
        let mut queues = self.own.lock();
        let mut key = CallerKey { caller: caller.into(), bounds };
        if let Some(queue) = queues.get(&key) {
            return Arc::clone(queue);
        }
        if queues.len() >= CALLERS_MAX {
            queues.retain(|_, queue| !queue.is_as_new());
        }
        if queues.len() >= CALLERS_MAX {
            key.caller = EVERYBODY_ELSE.into();
        }
        Arc::clone(queues.entry(key).or_insert_with(|| Arc::new(CallerQueue::new(bounds))))
    }
}

impl CallerBounds {
    /// `None` if the caller has no bound of its own.
    fn of(rights: &Rights<'_>) -> Option<Self> {
        let shared = rights.concurrency_shared();
        let here = rights.concurrency().or(shared)?;
        Some(Self { here, shared })
    }

    /// A place over all replicas, if one is free.
    async fn enter(self, state: &dyn SharedState, name: &str) -> Result<Option<Place>, QueueRefusal> {
        match self.shared {
            None => Ok(Some(Place::default())),
            Some(most) => Ok(state.enter(name, most).await?),
        }
    }

    /// A place over all replicas, once one is free.
    async fn wait(self, state: &dyn SharedState, name: &str) -> Result<Place, QueueRefusal> {
        match self.shared {
            None => Ok(Place::default()),
            Some(most) => Ok(state.wait(name, most).await?),
        }
    }
}

impl CallerQueue {
    fn new(bounds: CallerBounds) -> Self {
        Self { bounds, places: Arc::new(Semaphore::new(bounds.here)), waiting: AtomicUsize::new(0) }
    }

    /// True if it equals a new queue, so that it can be dropped.
    fn is_as_new(self: &Arc<Self>) -> bool {
        self.places.available_permits() == self.bounds.here && Arc::strong_count(self) == 1
    }

    async fn wait(
        &self,
        limits: &Limits,
        state: &dyn SharedState,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<CallerPermit, QueueRefusal> {
        if let Ok(here) = Arc::clone(&self.places).try_acquire_owned()
            && let Some(shared) = self.bounds.enter(state, name).await?
        {
            return Ok(CallerPermit { _held: Some((here, shared)) });
        }
        let (before, _waiting) = QueuePosition::enter(&self.waiting);
        if before >= limits.queue() {
            let most = self.bounds.shared.unwrap_or(usize::MAX).min(self.bounds.here);
            let running = show_count(u64::try_from(most).unwrap_or(u64::MAX));
            return Err(QueueRefusal::CallerBusy { running, queue: limits.show(Limit::Queue) });
        }
        let waited = || QueueRefusal::CallerWaited { wait: limits.show(Limit::QueueWait) };
        let both = async {
            let here = Arc::clone(&self.places).acquire_owned().await.map_err(|_| waited())?;
            Ok(CallerPermit { _held: Some((here, self.bounds.wait(state, name).await?)) })
        };
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
            held = tokio::time::timeout(limits.queue_wait(), both) => match held {
                Ok(held) => held,
                Err(_) => Err(waited()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Callers, Source, parse};
    use toolcell_shared::Embedded;

    use super::*;

    fn callers(keys: &str) -> Callers {
        let text =
            format!("version = 1\n[callers.default]\ntools = ['*']\n{keys}\n[components.a]\nsource = 'a.wasm'\n");
        parse(&Source { name: "test", text: &text }).unwrap().manifest.callers().clone()
    }

    async fn enter(
        queues: &CallerQueues,
        callers: &Callers,
        caller: &str,
        limits: &Limits,
    ) -> Result<CallerPermit, QueueRefusal> {
        let rights = callers.rights(caller, std::iter::empty());
        queues.enter(caller, &rights, limits, &Embedded::default(), &Cancellation::new()).await
    }

    #[tokio::test]
    async fn so_many_run_at_once_and_so_many_wait() {
        let limits = Limits::default().with(Limit::Queue, 1).unwrap();
        let queues = CallerQueues::default();
        let callers = callers("concurrency = 1");
        let first = enter(&queues, &callers, "one", &limits).await.unwrap();
        assert!(enter(&queues, &callers, "two", &limits).await.is_ok());
        let third = async {
            let refusal = enter(&queues, &callers, "one", &limits).await.unwrap_err();
            drop(first);
            refusal
        };
        let (second, third) = tokio::join!(enter(&queues, &callers, "one", &limits), third);
        assert!(second.is_ok());
        assert_eq!(
            third.to_string(),
            "busy: 1 calls of this caller run and 1 wait; try again (\"concurrency\" or \"concurrency_shared\" in [callers])"
        );
    }

    #[tokio::test]
    async fn one_caller_runs_so_many_calls_with_large_arguments_and_others_do_not_wait_for_it() {
        let queues = CallerQueues::default();
        let limits = Limits::default().with(Limit::QueueWait, 5).unwrap();
        let none = Cancellation::new();
        let turn = |caller: &'static str, bytes| queues.turn(caller, bytes, &limits, &none);
        let mut held = Vec::new();
        for _ in 0..LARGE_OWN_MAX {
            held.push(turn("one", LARGE_BYTES).await.unwrap().unwrap());
        }
        let refusal = turn("one", LARGE_BYTES).await.unwrap_err();
        assert_eq!(refusal.outcome(), toolcell_audit::Outcome::Busy);
        let expected = "busy: too many calls with large arguments run, and none made room within 5ms; try again";
        assert_eq!(refusal.to_string(), expected);
        assert!(turn("one", LARGE_BYTES - 1).await.unwrap().is_none(), "small ones need none");
        assert!(turn("two", LARGE_BYTES).await.unwrap().is_some());
        drop(held.pop());
        assert!(turn("one", LARGE_BYTES).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn callers_that_use_nothing_make_room_for_others() {
        let queues = CallerQueues::default();
        let callers = callers("concurrency = 1");
        let limits = Limits::default();
        for number in 0..=CALLERS_MAX {
            assert!(enter(&queues, &callers, &number.to_string(), &limits).await.is_ok());
        }
        assert!(queues.own.lock().len() <= CALLERS_MAX + 1);
    }
}
