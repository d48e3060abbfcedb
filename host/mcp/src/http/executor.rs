//! Distinguishes single requests from concurrent ones. A single call begins on the thread that
//! drives connections: waking another thread, and being woken for the answer, takes longer than
//! most calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::host::{Executor, Work};

/// The connection of the last request.
#[derive(Default)]
pub(super) struct LoneRequests(AtomicUsize);

impl LoneRequests {
    /// True for a single request: the previous one came on the same connection, and no other is
    /// being answered. Otherwise more requests are likely on their way. `connection` is `None` for
    /// a connection that carries several requests at once.
    pub(super) fn is_lone(&self, connection: Option<usize>, answering: usize) -> bool {
        let before = self.0.swap(connection.unwrap_or_default(), Ordering::Relaxed);
        connection == Some(before) && answering <= 1
    }
}

/// Begins calls on this thread or another, depending on the last request.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_alone_behind_one_of_its_own_connection() {
        let lone_requests = LoneRequests::default();
        for (connection, answering, is_alone) in [
            (Some(1), 1, false),
            (Some(1), 1, true),
            (Some(1), 2, false),
            (Some(2), 1, false),
            (Some(1), 1, false),
            (Some(1), 1, true),
            (None, 1, false),
            (None, 1, false),
            (Some(1), 1, false),
        ] {
            assert_eq!(lone_requests.is_lone(connection, answering), is_alone, "{connection:?} of {answering}");
        }
    }
}
