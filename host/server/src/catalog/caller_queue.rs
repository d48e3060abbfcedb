//! The queue of one caller: its rate and its concurrency, over all tools. Must not hold: the limits
//! of a tool.
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_mcp::Cancellation;
use toolcell_policy::quantity::{Rate, show_count};
use toolcell_policy::{Limit, Limits, Rights};

use super::queue::{QueuePosition, QueueRefusal, in_whole_seconds};
use super::rate::Allowance;

/// Callers with a queue of their own, about 200 bytes each. Beyond these, new ones share one.
const CALLERS_MAX: usize = 10_000;

/// Name under which callers beyond [`CALLERS_MAX`] share; no caller has this name.
const EVERYBODY_ELSE: &str = "";

/// Queues of all callers, over all generations.
#[derive(Default)]
pub struct CallerQueues(Mutex<HashMap<CallerKey, Arc<CallerQueue>>>);

/// A caller with its limits. A caller with two tokens of different limits has two queues, and using
/// one token does not refill the other's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallerKey {
    caller: Box<str>,
    rate: Option<u64>,
    concurrency: Option<usize>,
}

/// Queue of one caller.
struct CallerQueue {
    rate: Option<Rate>,
    concurrency: Option<usize>,
    allowance: Option<Mutex<Allowance>>,
    places: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
}

/// A call slot of the caller, held until dropped.
#[derive(Debug, Default)]
pub struct CallerPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl CallerQueues {
    /// Takes one call from the caller's rate, and waits for one of its call slots. The tool's
    /// `queue` and `queue_wait` bound the wait.
    pub async fn enter(
        &self,
        caller: &str,
        rights: &Rights<'_>,
        limits: &Limits,
        cancellation: &Cancellation,
    ) -> Result<CallerPermit, QueueRefusal> {
        let (rate, concurrency) = (rights.rate(), rights.concurrency());
        if rate.is_none() && concurrency.is_none() {
            return Ok(CallerPermit::default());
        }
        let queue = self.queue(caller, rate, concurrency);
        queue.take_allowance()?;
        queue.wait(limits, cancellation).await
    }

    fn queue(&self, caller: &str, rate: Option<Rate>, concurrency: Option<usize>) -> Arc<CallerQueue> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = CallerKey { caller: caller.into(), rate: rate.map(Rate::number), concurrency };
        if let Some(queue) = queues.get(&key) {
            return Arc::clone(queue);
        }
        if queues.len() >= CALLERS_MAX {
            let now = Instant::now();
            queues.retain(|_, queue| !queue.is_as_new(now));
        }
        if queues.len() >= CALLERS_MAX {
            key.caller = EVERYBODY_ELSE.into();
        }
        Arc::clone(queues.entry(key).or_insert_with(|| Arc::new(CallerQueue::new(rate, concurrency))))
    }
}

impl CallerQueue {
    fn new(rate: Option<Rate>, concurrency: Option<usize>) -> Self {
        let allowance = rate.map(|rate| Mutex::new(Allowance::new(rate)));
        let places = concurrency.map(|count| Arc::new(Semaphore::new(count)));
        Self { rate, concurrency, allowance, places, waiting: AtomicUsize::new(0) }
    }

    /// True if nothing is used of it, so that a new queue would equal it.
    fn is_as_new(self: &Arc<Self>, now: Instant) -> bool {
        let whole = self
            .allowance
            .as_ref()
            .is_none_or(|allowance| allowance.lock().unwrap_or_else(PoisonError::into_inner).is_whole(now));
        let free = self.places.as_ref().map_or(0, |places| places.available_permits());
        whole && free == self.concurrency.unwrap_or(0) && Arc::strong_count(self) == 1
    }

    fn take_allowance(&self) -> Result<(), QueueRefusal> {
        let (Some(rate), Some(allowance)) = (self.rate, &self.allowance) else { return Ok(()) };
        let taken = allowance.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        taken.map_err(|wait| QueueRefusal::CallerTooOften { rate: rate.to_string(), wait: in_whole_seconds(wait) })
    }

    async fn wait(&self, limits: &Limits, cancellation: &Cancellation) -> Result<CallerPermit, QueueRefusal> {
        let Some(places) = &self.places else { return Ok(CallerPermit::default()) };
        let held = |permit| CallerPermit { _permit: Some(permit) };
        if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
            return Ok(held(permit));
        }
        let (before, _waiting) = QueuePosition::enter(&self.waiting);
        if before >= limits.queue() {
            let running = show_count(u64::try_from(self.concurrency.unwrap_or(0)).unwrap_or(u64::MAX));
            return Err(QueueRefusal::CallerBusy { running, queue: limits.show(Limit::Queue) });
        }
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
            permit = tokio::time::timeout(limits.queue_wait(), Arc::clone(places).acquire_owned()) => match permit {
                Ok(Ok(permit)) => Ok(held(permit)),
                _ => Err(QueueRefusal::CallerWaited { wait: limits.show(Limit::QueueWait) }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Callers, Source, parse};

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
        queues.enter(caller, &callers.rights(caller, std::iter::empty()), limits, &Cancellation::new()).await
    }

    #[tokio::test]
    async fn a_caller_calls_as_often_as_it_may_and_others_are_not_held_up() {
        let (queues, callers, limits) = (CallerQueues::default(), callers("rate = '2/h'"), Limits::default());
        for caller in ["one", "two"] {
            for _ in 0..2 {
                assert!(enter(&queues, &callers, caller, &limits).await.is_ok());
            }
            let refusal = enter(&queues, &callers, caller, &limits).await.unwrap_err();
            assert_eq!(
                refusal.to_string(),
                "too many calls: more than 2/h by this caller (\"rate\" in [callers]); try again in 30m"
            );
        }
    }

    #[tokio::test]
    async fn so_many_run_at_once_and_so_many_wait() {
        let limits = Limits::default().with(Limit::Queue, 1).unwrap();
        let (queues, callers) = (CallerQueues::default(), callers("concurrency = 1"));
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
            "busy: 1 calls of this caller run and 1 wait; try again (\"concurrency\" in [callers])"
        );
    }

    #[tokio::test]
    async fn showing_another_token_in_between_gives_nothing_back() {
        let (queues, limits) = (CallerQueues::default(), Limits::default());
        let (less, more) = (callers("rate = '1/h'"), callers("rate = '2/h'"));
        assert!(enter(&queues, &less, "one", &limits).await.is_ok());
        for allowed in [true, true, false] {
            assert_eq!(enter(&queues, &more, "one", &limits).await.is_ok(), allowed);
            assert!(enter(&queues, &less, "one", &limits).await.is_err());
        }
    }

    #[tokio::test]
    async fn callers_that_use_nothing_make_room_for_others() {
        let (queues, callers, limits) = (CallerQueues::default(), callers("rate = '1000000/s'"), Limits::default());
        for number in 0..=CALLERS_MAX {
            assert!(enter(&queues, &callers, &number.to_string(), &limits).await.is_ok());
        }
        assert!(queues.0.lock().unwrap().len() <= CALLERS_MAX + 1);
    }
}
