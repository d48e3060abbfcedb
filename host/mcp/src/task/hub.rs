//! The tasks that this process runs, and those that it waits for.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use toolcell_shared::Tasks;

use super::{TaskHandle, TaskOptions};
use crate::cancellation::Cancellation;
use crate::lock::lock;

/// The tasks of a server.
#[derive(Default)]
pub(crate) struct TaskHub {
    kept: OnceLock<(Arc<dyn Tasks>, TaskOptions)>,
    running: Mutex<HashMap<String, (Arc<TaskHandle>, Cancellation)>>,
    /// Notified when the last of them has ended.
    idle: Notify,
    awaited: Mutex<HashMap<String, Weak<TaskChanges>>>,
}

#[derive(Default)]
struct TaskChanges {
    changed: Notify,
    /// True if somebody asks the client the task's questions.
    asked: AtomicBool,
}

/// A task that somebody waits for.
pub(crate) struct AwaitedTask<'h> {
    hub: &'h TaskHub,
    id: String,
    changes: Arc<TaskChanges>,
    asks: bool,
}

impl TaskHub {
    /// From now on, tasks are kept there.
    pub(crate) fn keep_in(&self, store: Arc<dyn Tasks>, options: TaskOptions) {
        let _ = self.kept.set((store, options));
    }

    /// The store of tasks, if there is one.
    pub(crate) fn kept(&self) -> Option<&(Arc<dyn Tasks>, TaskOptions)> {
        self.kept.get()
    }

    /// A task starts here.
    pub(crate) fn runs(&self, id: &str, handle: &Arc<TaskHandle>, cancellation: &Cancellation) {
        lock(&self.running).insert(id.to_owned(), (Arc::clone(handle), cancellation.clone()));
    }

    /// True if a task runs here, and the process is not ending.
    pub(crate) fn has(&self, id: &str) -> bool {
        lock(&self.running).contains_key(id)
    }

    /// A task has ended here.
    pub(crate) fn ended(&self, id: &str) {
        let mut running = lock(&self.running);
        running.remove(id);
        if running.is_empty() {
            self.idle.notify_waiters();
        }
    }

    /// Waits until no task runs here, and all results are stored.
    pub(crate) async fn all_ended(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            // From here on no notification is missed.
            idle.as_mut().enable();
            if lock(&self.running).is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Cancels all that run here.
    pub(crate) fn cancel_all(&self) {
        let running = std::mem::take(&mut *lock(&self.running));
        running.into_values().for_each(|(_, cancellation)| cancellation.cancel());
    }

    /// Wakes those who run or await this task, or any task if none is named.
    pub(crate) fn wake(&self, id: Option<&str>) {
        let is_meant = |known: &String| id.is_none_or(|id| id == known);
        let running: Vec<Arc<TaskHandle>> = {
            let running = lock(&self.running);
            running.iter().filter(|(known, _)| is_meant(known)).map(|(_, (handle, _))| Arc::clone(handle)).collect()
        };
        running.iter().for_each(|handle| handle.wake());
        let awaited: Vec<Arc<TaskChanges>> = {
            let awaited = lock(&self.awaited);
            awaited.iter().filter(|(known, _)| is_meant(known)).filter_map(|(_, changes)| changes.upgrade()).collect()
        };
        awaited.iter().for_each(|changes| changes.changed.notify_waiters());
    }

    /// Waits for changes of a task.
    pub(crate) fn watch(&self, id: &str) -> AwaitedTask<'_> {
        let mut awaited = lock(&self.awaited);
        let known = awaited.get(id).and_then(Weak::upgrade);
        let changes = known.unwrap_or_default();
        awaited.insert(id.to_owned(), Arc::downgrade(&changes));
        AwaitedTask { hub: self, id: id.to_owned(), changes, asks: false }
    }
}

impl AwaitedTask<'_> {
    /// The next change after this is called.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changes.changed.notified()
    }

    /// True for the first caller that wants to ask the task's questions, until it is dropped.
    pub(crate) fn may_ask(&mut self) -> bool {
        self.asks = self.asks || !self.changes.asked.swap(true, Ordering::AcqRel);
        self.asks
    }
}

impl Drop for AwaitedTask<'_> {
    fn drop(&mut self) {
        if self.asks {
            self.changes.asked.store(false, Ordering::Release);
            self.changes.changed.notify_waiters();
        }
        let mut awaited = lock(&self.hub.awaited);
        // This is the last reference.
        if Arc::strong_count(&self.changes) == 1 {
            awaited.remove(&self.id);
        }
    }
}
