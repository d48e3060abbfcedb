//! Places of calls that may make calls. Each holds a slot of a sandbox process while it waits for
//! the calls beneath it, so as many slots as there are levels stay free of such calls: one beneath
//! always comes to run.
//!
//! A call with so many levels beneath it takes a place at each level from its own down. There are
//! fewer places the higher the level, so calls of one level never take all of the next.
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_mcp::Cancellation;
use toolcell_policy::{Limit, Limits};

use super::queue::QueueRefusal;

/// Levels that there are places for: the most that the limit `call_depth` can be.
const LEVELS_MAX: usize = 8;

/// Places by level, the lowest first.
pub struct CallingPlaces {
    levels: Vec<Arc<Semaphore>>,
}

/// The places of one call, held until dropped.
#[derive(Default)]
pub struct CallingPermit {
    _held: Vec<OwnedSemaphorePermit>,
}

impl CallingPlaces {
    /// For sandbox processes that run so many calls at once, each.
    pub fn new(calls: usize) -> Self {
        let levels = (1..=LEVELS_MAX).map(|level| calls.saturating_sub(level)).take_while(|places| *places > 0);
        Self { levels: levels.map(|places| Arc::new(Semaphore::new(places))).collect() }
    }

    /// The most levels beneath a call.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Waits for the places of a call with so many levels beneath it. The tool's `queue_wait`
    /// bounds the wait.
    pub async fn enter(
        &self,
        levels: usize,
        limits: &Limits,
        cancellation: &Cancellation,
    ) -> Result<CallingPermit, QueueRefusal> {
        if levels == 0 {
            return Ok(CallingPermit::default());
        }
        let places = self.levels.iter().take(levels).rev();
        let all = async {
            let mut held = Vec::new();
            for places in places {
                held.extend(Arc::clone(places).acquire_owned().await);
            }
            CallingPermit { _held: held }
        };
        tokio::select! {
            biased;
            held = tokio::time::timeout(limits.queue_wait(), all) => held.map_err(|_| {
                QueueRefusal::CallingWaited { wait: limits.show(Limit::QueueWait) }
            }),
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_of_one_level_leave_places_to_the_next() {
        let places = CallingPlaces::new(3);
        assert_eq!(places.levels(), 2, "one more call is beneath them");
        let limits = Limits::default().with(Limit::QueueWait, 5).unwrap();
        let none = Cancellation::new();
        let enter = |levels| places.enter(levels, &limits, &none);
        let first = enter(2).await.unwrap();
        let refusal = enter(2).await.map(drop).unwrap_err();
        assert_eq!(refusal.outcome(), toolcell_audit::Outcome::Busy);
        let beneath = enter(1).await.unwrap();
        assert!(enter(1).await.is_err());
        assert!(enter(0).await.is_ok(), "a call that makes none needs no place");
        drop((first, beneath));
        assert!(enter(2).await.is_ok());
        assert_eq!(CallingPlaces::new(1).levels(), 0);
    }
}
