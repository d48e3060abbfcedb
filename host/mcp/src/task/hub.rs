//! The tasks that this process runs, and those that it waits for.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use toolcell_shared::Tasks;

use super::{TaskHandle, TaskOptions};
use crate::asking::{AskCapabilities, AskNeed};
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
    /// Those whose clients can be asked the task's questions, the newest last.
    askers: Mutex<Vec<TaskAsker>>,
}

/// One who waits for a task, and whose client can be asked.
struct TaskAsker {
    /// Unique among those of one task.
    number: u64,
    capabilities: AskCapabilities,
}

/// A task that somebody waits for.
pub(crate) struct AwaitedTask<'h> {
    hub: &'h TaskHub,
    id: String,
    changes: Arc<TaskChanges>,
    /// Its number among the askers; `None` if it asks nobody.
    asker: Option<u64>,
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
        let running: Vec<Arc<TaskHandle>> = match id {
            Some(id) => lock(&self.running).get(id).map(|(handle, _)| Arc::clone(handle)).into_iter().collect(),
            None => lock(&self.running).values().map(|(handle, _)| Arc::clone(handle)).collect(),
        };
        running.iter().for_each(|handle| handle.wake());
        let awaited: Vec<Arc<TaskChanges>> = {
            let awaited = lock(&self.awaited);
            match id {
                Some(id) => awaited.get(id).and_then(Weak::upgrade).into_iter().collect(),
                None => awaited.values().filter_map(Weak::upgrade).collect(),
            }
        };
        awaited.iter().for_each(|changes| changes.changed.notify_waiters());
    }

    /// Waits for changes of a task. With capabilities, those of a client that hears questions, it
    /// may also ask the task's.
    pub(crate) fn watch(&self, id: &str, capabilities: Option<AskCapabilities>) -> AwaitedTask<'_> {
        let changes = {
            let mut awaited = lock(&self.awaited);
            let changes = awaited.get(id).and_then(Weak::upgrade).unwrap_or_default();
            awaited.insert(id.to_owned(), Arc::downgrade(&changes));
            changes
        };
        let asker = capabilities.map(|capabilities| {
            let mut askers = lock(&changes.askers);
            let number = askers.last().map_or(0, |last| last.number.saturating_add(1));
            askers.push(TaskAsker { number, capabilities });
            number
        });
        // Those who asked so far withdraw what this one asks from now on.
        changes.changed.notify_waiters();
        AwaitedTask { hub: self, id: id.to_owned(), changes, asker }
    }
}

impl AwaitedTask<'_> {
    /// The next change after this is called.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changes.changed.notified()
    }

    /// True for the newest of those whose client can be asked a question with these needs. An
    /// earlier one may have lost its connection without a notice.
    pub(crate) fn may_ask(&self, needs: &[AskNeed]) -> bool {
        let askers = lock(&self.changes.askers);
        let newest = askers.iter().rev().find(|asker| needs.iter().all(|need| asker.capabilities.meets(*need)));
        newest.is_some_and(|newest| self.asker == Some(newest.number))
    }
}

impl Drop for AwaitedTask<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.asker {
            lock(&self.changes.askers).retain(|asker| asker.number != own);
            self.changes.changed.notify_waiters();
        }
        let mut awaited = lock(&self.hub.awaited);
        // This is the last reference.
        if Arc::strong_count(&self.changes) == 1 {
            awaited.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::QuestionKind;

    #[test]
    fn the_newest_whose_client_can_be_asked_asks_until_it_is_gone() {
        let hub = TaskHub::default();
        let form = [AskNeed::Kind(QuestionKind::Form)];
        let roots = [AskNeed::Kind(QuestionKind::Roots)];
        let forms_alone = AskCapabilities::of_bits(1);
        let first = hub.watch("a", Some(AskCapabilities::of_bits(1 | 32)));
        let unheard = hub.watch("a", None);
        let undeclared = hub.watch("a", Some(AskCapabilities::default()));
        assert!(first.may_ask(&form) && !unheard.may_ask(&form) && !undeclared.may_ask(&form));
        let other = hub.watch("b", Some(forms_alone));
        assert!(first.may_ask(&form) && other.may_ask(&form), "each task has its own");
        let newest = hub.watch("a", Some(forms_alone));
        assert!(newest.may_ask(&form) && !first.may_ask(&form));
        assert!(first.may_ask(&roots) && !newest.may_ask(&roots), "the one who can ask this");
        drop(newest);
        assert!(first.may_ask(&form));
        drop(first);
        let next = hub.watch("a", Some(forms_alone));
        assert!(next.may_ask(&form));
        drop((unheard, undeclared, next, other));
        assert!(lock(&hub.awaited).is_empty());
    }

    #[tokio::test]
    async fn one_who_comes_or_goes_wakes_the_others() {
        let hub = TaskHub::default();
        let first = hub.watch("a", Some(AskCapabilities::of_bits(1)));
        let changed = first.changed();
        let second = hub.watch("a", Some(AskCapabilities::of_bits(1)));
        changed.await;
        let changed = first.changed();
        drop(second);
        changed.await;
    }
}
