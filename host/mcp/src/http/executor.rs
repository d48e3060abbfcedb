//! Tells calls that come alone from calls that come beside others. A call that comes alone is begun on the thread that drives
//! connections: waking another for it, and being woken for its answer, takes longer than most calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::host::{Executor, Work};

/// What was seen of the requests before.
#[derive(Default)]
pub(super) struct LoneRequests(AtomicUsize);

impl LoneRequests {
    /// Whether a request of this connection, one of so many that are being answered, comes alone: where the one before came from
    /// elsewhere, or from a connection that carries several at once (none here), more of them are likely on their way.
    pub(super) fn is_lone(&self, connection: Option<usize>, answering: usize) -> bool {
        let before = self.0.swap(connection.unwrap_or_default(), Ordering::Relaxed);
        connection == Some(before) && answering <= 1
    }
}

/// Begins calls here or elsewhere, as the last request had it.
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
