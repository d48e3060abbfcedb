//! Tells calls that come alone from calls that come with others behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use crate::host::{Executor, Work};

/// What the reader knows: whether lines that it has read wait behind the one it handles.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind(Arc<AtomicBool>);

impl Behind {
    pub(super) fn set(&self, more: bool) {
        self.0.store(more, Ordering::Relaxed);
    }
}

/// Lets the reader begin a call itself where nothing else waits to be read.
pub(super) struct OnReader<E> {
    pub(super) executor: E,
    pub(super) reader: ThreadId,
    pub(super) behind: Behind,
}

impl<E: Executor> Executor for OnReader<E> {
    fn run(&self, work: Work) {
        let alone = !self.behind.0.load(Ordering::Relaxed) && std::thread::current().id() == self.reader;
        if alone { self.executor.run_here(work) } else { self.executor.run(work) }
    }
}
