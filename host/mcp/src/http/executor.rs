//! Distinguishes single requests from concurrent ones. Calls begin on the thread that drives
//! connections: waking another thread, and being woken for the answer, takes longer than what the
//! host does for a call. For a single one that thread also polls for the answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::host::{Executor, Work};
use crate::lock::lock;

/// A connection has requests for this long, while no other has any, before they count as single
/// ones. While the thread polls for the answer to one, it reads no others, so more of the same
/// connection say little. tokio ends the turn of a connection's task after 128 operations: some
/// 70 µs each are less than 10 ms.
const ALONE_AFTER: Duration = Duration::from_millis(20);

/// The connection of the last request, and since when no other has had one.
#[derive(Default)]
pub(super) struct LoneRequests(Mutex<Option<LoneConnection>>);

struct LoneConnection {
    number: usize,
    since: Instant,
}

impl LoneRequests {
    /// True for a single request: those before came on the same connection for some time, and no
    /// other is being answered. Otherwise more requests are likely on their way. `connection` is
    /// `None` for a connection that carries several requests at once.
    pub(super) fn is_lone(&self, connection: Option<usize>, answering: usize, now: Instant) -> bool {
        let mut last = lock(&self.0);
        match &*last {
            Some(before) if answering <= 1 && connection == Some(before.number) => now >= before.since + ALONE_AFTER,
            _ => {
                *last = connection.map(|number| LoneConnection { number, since: now });
                false
            }
        }
    }
}

/// Begins calls on the thread that drives connections, and other work there if it is single.
pub(super) struct DrivingExecutor {
    executor: Arc<dyn Executor>,
    is_alone: AtomicBool,
}

impl DrivingExecutor {
    pub(super) fn new(executor: &Arc<dyn Executor>, is_alone: bool) -> Arc<Self> {
        Arc::new(Self { executor: Arc::clone(executor), is_alone: is_alone.into() })
    }

    pub(super) fn set(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Relaxed);
    }
}

impl Executor for DrivingExecutor {
    fn run(&self, work: Work) {
        if self.is_alone.load(Ordering::Relaxed) { self.executor.run_driving(work) } else { self.executor.run(work) }
    }

    fn run_waiting(&self, work: Work) {
        match self.is_alone.load(Ordering::Relaxed) {
            true => self.executor.run_waiting_alone(work),
            false => self.executor.run_waiting(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_single_once_only_its_connection_has_had_some_for_a_while() {
        let lone_requests = LoneRequests::default();
        let began = Instant::now();
        for (at, connection, answering, is_alone) in [
            (0, Some(1), 1, false),
            (1, Some(1), 1, false),
            (20, Some(1), 1, true),
            (21, Some(1), 2, false),
            (22, Some(1), 1, false),
            (41, Some(1), 1, true),
            (42, Some(2), 1, false),
            (43, Some(1), 1, false),
            (64, Some(1), 1, true),
            (65, None, 1, false),
            (90, None, 1, false),
            (91, Some(1), 1, false),
        ] {
            let now = began + Duration::from_millis(at);
            assert_eq!(lone_requests.is_lone(connection, answering, now), is_alone, "{connection:?} at {at}");
        }
    }
}
