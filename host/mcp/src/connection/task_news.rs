//! Notifications of tasks for those who watch them: legacy sessions that began them, and
//! `subscriptions/listen` with `taskIds`.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolcell_shared::TaskRecord;

use super::subscriptions::OpenListen;
use super::tasks::TASK_ID_BYTES_MAX;
use super::{ConnectionParts, UnansweredRequest};
use crate::frame::{RequestId, notification_frame};
use crate::host::{Host, Outbox};
use crate::method::Notification;
use crate::task::{TaskOptions, push_detailed, push_legacy};

/// Watched tasks.
#[derive(Debug, Default)]
pub(super) struct TaskWatch(BTreeSet<Box<str>>);

impl TaskWatch {
    /// Watches one more task, if there is room. A name that is longer than those of tasks is left
    /// out. Clients must not rely on notifications.
    pub(super) fn add(&mut self, id: &str, most: usize) -> bool {
        if id.len() > TASK_ID_BYTES_MAX {
            return true;
        }
        (self.0.len() < most || self.0.contains(id)) && {
            self.0.insert(id.into());
            true
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl<H: Host> ConnectionParts<H> {
    /// True if the client watches this task.
    pub(super) fn watches(&self, id: &str) -> bool {
        let state = self.state();
        let listens =
            |open: &UnansweredRequest| matches!(open, UnansweredRequest::Subscription(it) if it.tasks.has(id));
        state.tasks.has(id) || state.open.values().any(listens)
    }

    /// Notifies the client of a changed task. A client that does not read is not notified: it
    /// polls.
    pub(super) fn notify_of_task(&self, task: &TaskRecord, options: &TaskOptions) {
        let mut told: Vec<Arc<dyn Outbox>> = Vec::new();
        {
            let mut state = self.state();
            if state.tasks.has(&task.id) {
                if task.status.is_over() {
                    state.tasks.0.remove(task.id.as_str());
                }
                if !self.outbox.congested() {
                    let frame =
                        notification_frame(Notification::TaskStatus, |params| push_legacy(params, task, options.poll));
                    self.outbox.queue(frame);
                    told.push(Arc::clone(&self.outbox));
                }
            }
            for (id, open) in &state.open {
                let UnansweredRequest::Subscription(subscription) = open else { continue };
                if subscription.tasks.has(&task.id) && subscription.notify_of_task(id, task, options) {
                    told.push(Arc::clone(&subscription.outbox));
                }
            }
        }
        told.iter().for_each(|outbox| outbox.flush());
    }

    /// Notifies a new subscription of the current state of its tasks: they may have ended before it
    /// began.
    pub(super) fn notify_of_first_tasks(self: &Arc<Self>, id: &RequestId, tasks: Vec<String>) {
        let shared = Arc::clone(self);
        let id = id.clone();
        self.executor.run(Box::pin(async move {
            let Some((store, options)) = shared.server.tasks.kept() else { return };
            for task in tasks {
                let Ok(Some(task)) = store.find(shared.caller.name(), &task).await else { continue };
                let state = shared.state();
                let Some(UnansweredRequest::Subscription(subscription)) = state.open.get(&id) else { return };
                if subscription.notify_of_task(&id, &task, options) {
                    let outbox = Arc::clone(&subscription.outbox);
                    drop(state);
                    outbox.flush();
                }
            }
        }));
    }
}

impl OpenListen {
    /// Queues a notification of a task. False if the client does not read.
    fn notify_of_task(&self, id: &RequestId, task: &TaskRecord, options: &TaskOptions) -> bool {
        if self.outbox.congested() {
            return false;
        }
        self.outbox.queue(notification_frame(Notification::Task, |params| {
            super::subscriptions::tag(params, id);
            push_detailed(params, task, options.poll);
        }));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_task_has_is_not_kept() {
        let mut tasks = TaskWatch::default();
        let longest = "t".repeat(TASK_ID_BYTES_MAX);
        assert!(tasks.add(&longest, 1) && tasks.add(&format!("{longest}t"), 1));
        assert_eq!(tasks.ids().collect::<Vec<_>>(), [&longest]);
        assert!(!tasks.add("another", 1));
    }
}
