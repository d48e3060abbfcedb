//! Costly checks of credentials: anyone may send a signature that does not hold. Checking one of
//! ES384 takes about a millisecond.
//!
//! Promise: costly requests leave others theirs.

use std::sync::Arc;

use super::long::do_in_turn;
use super::quota::Owner;
use crate::host::Executor;
use crate::turns::FairTurns;

/// Checks of one request's credential. They run off the threads that drive connections, in turns
/// that addresses share fairly.
pub struct CredentialChecks {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) turns: Arc<FairTurns<Owner>>,
    /// The address that the request came from.
    pub(super) owner: Owner,
}

impl CredentialChecks {
    /// Does this check once its turn has come. `None` if it panicked, or the server ends.
    pub async fn run<T: Send + 'static>(&self, check: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = self.turns.take(&self.owner, 1).await;
        let done = do_in_turn(&self.executor, turn, check).await?;
        Some(done.outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::pin::Pin;
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::host::Work;
    use crate::turns::TurnBounds;

    /// Keeps long work until it is asked to do it.
    #[derive(Default)]
    struct Holding(Mutex<Vec<Work>>);

    impl Holding {
        fn work(&self) {
            let held = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            for mut work in held {
                assert!(work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
            }
        }
    }

    impl Executor for Holding {
        fn run(&self, _: Work) {
            panic!("a costly check is not given to threads for short work");
        }

        fn run_long(&self, work: Work) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
        }
    }

    type Checking<'c> = Pin<Box<dyn Future<Output = Option<u32>> + 'c>>;

    #[test]
    fn checks_of_another_address_come_before_the_rest_of_one_that_has_many() {
        let holding = Arc::new(Holding::default());
        let turns = FairTurns::new(TurnBounds { all: 1, own: 1 });
        let checks_of = |address: [u8; 4]| CredentialChecks {
            executor: Arc::<Holding>::clone(&holding),
            turns: Arc::clone(&turns),
            owner: Owner::of_peer(Some(IpAddr::from(address))),
        };
        let [many, other] = [[203, 0, 113, 7], [198, 51, 100, 1]].map(checks_of);
        let done = Arc::new(Mutex::new(Vec::new()));
        let check = |number: u32| {
            let done = Arc::clone(&done);
            move || {
                done.lock().unwrap().push(number);
                number
            }
        };
        let mut waiting: Vec<Checking<'_>> =
            (0..50).map(|number| -> Checking<'_> { Box::pin(many.run(check(number))) }).collect();
        let now = |waiting: &mut Vec<Checking<'_>>| {
            waiting.retain_mut(|checking| {
                let polled = checking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(!matches!(polled, Poll::Ready(None)));
                polled.is_pending()
            });
        };
        now(&mut waiting);
        assert!(done.lock().unwrap().is_empty(), "none runs on this thread");
        waiting.push(Box::pin(other.run(check(100))));
        while !waiting.is_empty() {
            now(&mut waiting);
            holding.work();
        }
        let place = done.lock().unwrap().iter().position(|number| *number == 100).unwrap();
        assert!(place <= 2, "{place}");
    }

    #[test]
    fn a_check_that_panics_has_no_outcome_and_leaves_the_turn() {
        let holding = Arc::new(Holding::default());
        let turns = FairTurns::new(TurnBounds { all: 1, own: 1 });
        let executor: Arc<dyn Executor> = Arc::<Holding>::clone(&holding);
        let checks = CredentialChecks { executor, turns, owner: Owner::Machine };
        for panics in [true, false] {
            let mut checking = Box::pin(checks.run(move || assert!(!panics, "as the test wants it")));
            let mut now = || checking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(now().is_pending());
            holding.work();
            assert!(matches!(now(), Poll::Ready(outcome) if outcome.is_none() == panics));
        }
    }
}
