//! Who may run now: the concurrency of one tool, its queue, and how long a call waits in it.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use toolcell_audit::Outcome;
use toolcell_mcp::Cancellation;
use toolcell_policy::{Limit, Limits};

/// The places of one tool.
#[derive(Debug)]
pub struct Admission {
    places: Semaphore,
    waiting: AtomicUsize,
    limits: Limits,
}

/// Why a call got no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The queue is full.
    #[error("busy: {running} calls of this tool run and {queue} wait; try again (limit \"queue\")")]
    QueueFull { running: String, queue: String },
    /// No place came free in time.
    #[error("busy: no place came free for this call within {wait}; try again (limit \"queue_wait\")")]
    WaitedTooLong { wait: String },
    /// The caller gave up while the call waited.
    #[error("the call was cancelled")]
    Cancelled,
}

impl Refusal {
    /// As the audit names it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::QueueFull { .. } | Self::WaitedTooLong { .. } => Outcome::Busy,
            Self::Cancelled => Outcome::Cancelled,
        }
    }
}

/// A place in the queue, given back when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Admission {
    pub fn new(limits: &Limits) -> Self {
        Self { places: Semaphore::new(limits.concurrency()), waiting: AtomicUsize::new(0), limits: *limits }
    }

    /// Waits for a place. The call has it until the permit is dropped.
    pub async fn enter(&self, cancellation: &Cancellation) -> Result<SemaphorePermit<'_>, Refusal> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Waiting(&self.waiting);
        if before >= self.limits.queue() {
            let (running, queue) = (self.limits.show(Limit::Concurrency), self.limits.show(Limit::Queue));
            return Err(Refusal::QueueFull { running, queue });
        }
        let wait: Duration = self.limits.queue_wait();
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(Refusal::Cancelled),
            place = tokio::time::timeout(wait, self.places.acquire()) => match place {
                Ok(Ok(place)) => Ok(place),
                _ => Err(Refusal::WaitedTooLong { wait: self.limits.show(Limit::QueueWait) }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let first = admission.enter(&none).await.unwrap();
        let (second, ()) = tokio::join!(admission.enter(&none), async { drop(first) });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn past_the_queue_a_call_is_refused_at_once() {
        let admission = admission(1, 0, 60_000);
        let none = Cancellation::new();
        let _first = admission.enter(&none).await.unwrap();
        let refusal = admission.enter(&none).await.unwrap_err();
        assert_eq!(refusal.outcome(), Outcome::Busy);
        assert_eq!(refusal.to_string(), "busy: 1 calls of this tool run and 0 wait; try again (limit \"queue\")");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_no_longer_than_it_may() {
        let admission = admission(1, 1, 2_000);
        let none = Cancellation::new();
        let _first = admission.enter(&none).await.unwrap();
        let refusal = admission.enter(&none).await.unwrap_err();
        assert_eq!(refusal, Refusal::WaitedTooLong { wait: "2s".to_owned() });
    }

    #[tokio::test]
    async fn a_cancelled_call_leaves_the_queue() {
        let admission = admission(1, 1, 60_000);
        let given_up = Cancellation::new();
        given_up.cancel();
        let _first = admission.enter(&Cancellation::new()).await.unwrap();
        assert_eq!(admission.enter(&given_up).await.unwrap_err(), Refusal::Cancelled);
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }
}
