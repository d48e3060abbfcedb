//! Long work for a message, done within its owner's turn.

use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::host::Executor;
use crate::turns::CallerTurn;

/// The result of the work, and the turn in which it was done.
pub(super) struct DoneInTurn<T, K: Eq + Hash + Clone> {
    pub(super) outcome: T,
    pub(super) turn: CallerTurn<K>,
}

/// Does this on a thread for long work, which takes the turn: if the client disconnects, the work
/// and its turn continue. `None` if the work panicked or was dropped.
pub(super) async fn do_in_turn<T, K>(
    executor: &Arc<dyn Executor>,
    turn: CallerTurn<K>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<DoneInTurn<T, K>>
where
    T: Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
{
    let (done, waiting) = oneshot::channel();
    executor.run_long(Box::pin(async move {
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(work)) {
            // The client may have disconnected.
            let _ = done.send(DoneInTurn { outcome, turn });
        }
    }));
    waiting.await.ok()
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::host::Work;
    use crate::turns::{FairTurns, TurnBounds};

    /// Keeps long work until it is asked to do it.
    #[derive(Default)]
    struct Holding(Mutex<Vec<Work>>);

    impl Holding {
        fn held(&self) -> Vec<Work> {
            std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    impl Executor for Holding {
        fn run(&self, _: Work) {
            panic!("work that takes long is not given to threads for short work");
        }

        fn run_long(&self, work: Work) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
        }
    }

    fn now<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_client_that_leaves_does_not_end_the_turn_of_its_work() {
        let holding = Arc::new(Holding::default());
        let executor: Arc<dyn Executor> = Arc::<Holding>::clone(&holding);
        let turns = FairTurns::new(TurnBounds { all: 1, own: 1 });
        let turn = now(pin!(turns.take(&"leaves", 1))).unwrap();
        let mut next = Box::pin(turns.take(&"next", 1));
        {
            let mut leaves = pin!(do_in_turn(&executor, turn, || ()));
            assert!(now(leaves.as_mut()).is_none());
        }
        assert!(now(next.as_mut()).is_none(), "its work has not begun");
        let mut works = holding.held();
        assert_eq!(works.len(), 1);
        for work in &mut works {
            assert!(now(work.as_mut()).is_some());
        }
        assert!(now(next.as_mut()).is_some());
    }

    #[test]
    fn whoever_stays_gets_the_turn_with_the_outcome() {
        let holding = Arc::new(Holding::default());
        let executor: Arc<dyn Executor> = Arc::<Holding>::clone(&holding);
        let turns = FairTurns::new(TurnBounds { all: 1, own: 1 });
        for panics in [false, true] {
            let turn = now(pin!(turns.take(&"stays", 1))).unwrap();
            let mut stays = pin!(do_in_turn(&executor, turn, move || assert!(!panics, "as the test wants it")));
            assert!(now(stays.as_mut()).is_none());
            for mut work in holding.held() {
                assert!(now(work.as_mut()).is_some());
            }
            let mut next = Box::pin(turns.take(&"next", 1));
            // A panic of the work ends its turn.
            assert_eq!(now(next.as_mut()).is_some(), panics);
            let done = now(stays.as_mut()).unwrap();
            assert_eq!(done.is_none(), panics);
            drop(done);
        }
    }
}
