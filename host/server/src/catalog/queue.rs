//! Admission of calls: a caller's rate for one tool, and the tool's concurrency, queue and wait.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use toolcell_audit::Outcome;
use toolcell_mcp::Cancellation;
use toolcell_policy::quantity::show_millis;
use toolcell_policy::{Limit, Limits};

use super::Meters;
use super::rate::Allowances;

/// Answer to a call that ended because its tool was narrowed.
pub(crate) const NARROWED: &str = "the call was ended: what this tool may reach has been narrowed meanwhile";

/// Call slots of one tool, and the allowances of its callers.
#[derive(Debug)]
pub struct Admission {
    allowances: Allowances,
    places: Semaphore,
    waiting: AtomicUsize,
    limits: Limits,
    meters: Arc<Meters>,
}

/// Reason why a call got no slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefusal {
    /// The caller's allowance is used up.
    #[error("too many calls: more than {rate} of this tool (limit \"rate\"); try again in {wait}")]
    TooOften { rate: String, wait: String },
    /// The queue is full.
    #[error("busy: {running} calls of this tool run and {queue} wait; try again (limit \"queue\")")]
    QueueFull { running: String, queue: String },
    /// No slot came free in time.
    #[error("busy: no place came free for this call within {wait}; try again (limit \"queue_wait\")")]
    WaitedTooLong { wait: String },
    /// The caller's allowance of all tools together is used up.
    #[error("too many calls: more than {rate} by this caller (\"rate\" in [callers]); try again in {wait}")]
    CallerTooOften { rate: String, wait: String },
    /// The caller's call slots and its queue are full.
    #[error("busy: {running} calls of this caller run and {queue} wait; try again (\"concurrency\" in [callers])")]
    CallerBusy { running: String, queue: String },
    /// None of the caller's calls ended in time.
    #[error("busy: no call of this caller ended within {wait}; try again (\"concurrency\" in [callers])")]
    CallerWaited { wait: String },
    /// The caller gave up while the call waited.
    #[error("the call was cancelled")]
    Cancelled,
    /// The tool was narrowed while the call waited.
    #[error("{NARROWED}")]
    Narrowed,
}

impl QueueRefusal {
    /// Its outcome in the audit.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::TooOften { .. } | Self::CallerTooOften { .. } => Outcome::RateLimited,
            Self::QueueFull { .. }
            | Self::WaitedTooLong { .. }
            | Self::CallerBusy { .. }
            | Self::CallerWaited { .. } => Outcome::Busy,
            Self::Cancelled | Self::Narrowed => Outcome::Cancelled,
        }
    }
}

/// A position in the queue, left when dropped.
pub struct QueuePosition<'a>(&'a AtomicUsize);

impl<'a> QueuePosition<'a> {
    /// Takes a position; returns the number of calls before it.
    pub fn enter(waiting: &'a AtomicUsize) -> (usize, Self) {
        (waiting.fetch_add(1, Ordering::AcqRel), Self(waiting))
    }
}

/// A wait; its time is counted when dropped.
struct QueueTime<'a>(&'a Meters, Instant);

impl Drop for QueueTime<'_> {
    fn drop(&mut self) {
        self.0.waited(self.1.elapsed());
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Admission {
    pub fn new(limits: &Limits) -> Self {
        Self {
            allowances: Allowances::new(limits.rate()),
            places: Semaphore::new(limits.concurrency()),
            waiting: AtomicUsize::new(0),
            limits: *limits,
            meters: Arc::default(),
        }
    }

    /// Counts waits of calls in these meters.
    pub fn counting(self, meters: &Arc<Meters>) -> Self {
        Self { meters: Arc::clone(meters), ..self }
    }

    /// Takes one call from the caller's allowance, and waits for a slot. The call has it until the
    /// permit is dropped.
    pub async fn enter(&self, caller: &str, cancellation: &Cancellation) -> Result<SemaphorePermit<'_>, QueueRefusal> {
        self.allowances.take(caller, Instant::now()).map_err(|wait| self.too_often(wait))?;
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let (before, _waiting) = QueuePosition::enter(&self.waiting);
        if before >= self.limits.queue() {
            let (running, queue) = (self.limits.show(Limit::Concurrency), self.limits.show(Limit::Queue));
            return Err(QueueRefusal::QueueFull { running, queue });
        }
        let wait: Duration = self.limits.queue_wait();
        let _wait = QueueTime(&self.meters, Instant::now());
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
            place = tokio::time::timeout(wait, self.places.acquire()) => match place {
                Ok(Ok(place)) => Ok(place),
                _ => Err(QueueRefusal::WaitedTooLong { wait: self.limits.show(Limit::QueueWait) }),
            },
        }
    }

    /// Number of running calls, and of waiting ones.
    pub fn load(&self) -> (usize, usize) {
        let running = self.limits.concurrency().saturating_sub(self.places.available_permits());
        (running, self.waiting.load(Ordering::Acquire))
    }

    /// True if these limits equal its own for slots, queue and rate.
    pub fn suits(&self, limits: &Limits) -> bool {
        let bounds = [Limit::Concurrency, Limit::Queue, Limit::QueueWait, Limit::Rate];
        bounds.into_iter().all(|limit| self.limits.get(limit) == limits.get(limit))
    }

    fn too_often(&self, wait: Duration) -> QueueRefusal {
        QueueRefusal::TooOften { rate: self.limits.show(Limit::Rate), wait: in_whole_seconds(wait) }
    }
}

/// The wait in whole seconds, rounded up, as a model does not wait for less.
pub fn in_whole_seconds(wait: Duration) -> String {
    let whole_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).div_ceil(1_000).max(1).saturating_mul(1_000);
    show_millis(whole_ms)
}

#[cfg(test)]
mod tests {
    use toolcell_policy::quantity::{Per, Rate};

    use super::*;

    const CALLER: &str = "local";

    fn admission(concurrency: u64, queue: u64, wait_ms: u64) -> Admission {
        let limits = [(Limit::Concurrency, concurrency), (Limit::Queue, queue), (Limit::QueueWait, wait_ms)]
            .into_iter()
            .fold(Limits::default(), |limits, (limit, value)| limits.with(limit, value).unwrap());
        Admission::new(&limits)
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_serves_the_next() {
        let admission = admission(1, 1, 60_000);
        let none = Cancellation::new();
        let first = admission.enter(CALLER, &none).await.unwrap();
        let (second, ()) = tokio::join!(admission.enter(CALLER, &none), async { drop(first) });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn past_the_queue_a_call_is_refused_at_once() {
        let admission = admission(1, 0, 60_000);
        let none = Cancellation::new();
        let _first = admission.enter(CALLER, &none).await.unwrap();
        let refusal = admission.enter(CALLER, &none).await.unwrap_err();
        assert_eq!(refusal.outcome(), Outcome::Busy);
        assert_eq!(refusal.to_string(), "busy: 1 calls of this tool run and 0 wait; try again (limit \"queue\")");
    }

    #[tokio::test]
    async fn a_call_waits_no_longer_than_it_may() {
        let admission = admission(1, 1, 5);
        let none = Cancellation::new();
        let _first = admission.enter(CALLER, &none).await.unwrap();
        let refusal = admission.enter(CALLER, &none).await.unwrap_err();
        assert_eq!(refusal, QueueRefusal::WaitedTooLong { wait: "5ms".to_owned() });
    }

    #[tokio::test]
    async fn a_caller_who_calls_too_often_is_told_when_to_try_again() {
        for (rate, count, expected) in [
            (Rate { count: 2, per: Per::Minute }, 2, "more than 2/min of this tool (limit \"rate\"); try again in 30s"),
            (Rate { count: 5, per: Per::Hour }, 5, "more than 5/h of this tool (limit \"rate\"); try again in 12m"),
            (Rate { count: 1, per: Per::Second }, 1, "more than 1/s of this tool (limit \"rate\"); try again in 1s"),
        ] {
            let admission = Admission::new(&Limits::default().with(Limit::Rate, rate.number()).unwrap());
            let none = Cancellation::new();
            for _ in 0..count {
                assert!(admission.enter(CALLER, &none).await.is_ok());
            }
            let refusal = admission.enter(CALLER, &none).await.unwrap_err();
            assert_eq!(refusal.outcome(), Outcome::RateLimited);
            assert_eq!(refusal.to_string(), format!("too many calls: {expected}"));
            assert!(admission.enter("another", &none).await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_refused_call_takes_no_place() {
        let limits = Limits::default().with(Limit::Rate, Rate { count: 1, per: Per::Hour }.number()).unwrap();
        let admission = Admission::new(&limits);
        let none = Cancellation::new();
        let _first = admission.enter(CALLER, &none).await.unwrap();
        assert!(admission.enter(CALLER, &none).await.is_err());
        assert_eq!(admission.places.available_permits(), limits.concurrency() - 1);
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_cancelled_call_leaves_the_queue() {
        let admission = admission(1, 1, 60_000);
        let given_up = Cancellation::new();
        given_up.cancel();
        let _first = admission.enter(CALLER, &Cancellation::new()).await.unwrap();
        assert_eq!(admission.enter(CALLER, &given_up).await.unwrap_err(), QueueRefusal::Cancelled);
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }
}
