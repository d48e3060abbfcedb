//! The state that a call shares with its task.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Notify;
use toolcell_shared::{Changed, TaskChange, Tasks};

use crate::asking::{ClientAskError, ReplyText};
use crate::lock::lock;
use crate::sanitize;

/// Longest status message of a task, in bytes; longer ones are cut. Each poll repeats it.
const MESSAGE_BYTES_MAX: usize = 512;

/// A task that has begun.
pub(crate) struct BegunTask {
    pub(crate) id: String,
    pub(crate) store: Arc<dyn Tasks>,
    /// True if its client is one of 2025-11-25, whose questions name their task.
    pub(crate) legacy: bool,
}

/// A call that may become a task.
#[derive(Default)]
pub(crate) struct TaskHandle {
    begun: OnceLock<BegunTask>,
    /// Wakes whoever runs the task.
    woken: Notify,
    /// True if the task was changed from outside.
    changed: AtomicBool,
    /// True if nobody waits for its questions any more.
    withdrawn: AtomicBool,
    /// The last status message.
    says: Mutex<Option<String>>,
    answers: Mutex<HashMap<String, ReplyText>>,
    answered: Notify,
}

impl TaskHandle {
    /// The task, once it has begun.
    pub(crate) fn begun(&self) -> Option<&BegunTask> {
        self.begun.get()
    }

    /// The call is a task from now on.
    pub(crate) fn begin(&self, begun: BegunTask) {
        let _ = self.begun.set(begun);
    }

    /// Sets the status message.
    pub(crate) fn says(&self, message: &str) {
        if self.begun().is_none() {
            return;
        }
        let message = sanitize::line(message);
        let cut = message.get(..message.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or_default();
        *lock(&self.says) = Some(cut.to_owned());
        self.woken.notify_one();
    }

    /// The task was changed from outside.
    pub(crate) fn wake(&self) {
        self.changed.store(true, Ordering::Release);
        self.woken.notify_one();
    }

    /// Waits until there is something to do for whoever runs the task.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }

    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn take_withdrawn(&self) -> bool {
        self.withdrawn.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn take_message(&self) -> Option<String> {
        lock(&self.says).take()
    }

    pub(crate) fn has_message(&self) -> bool {
        lock(&self.says).is_some()
    }

    /// Passes answers to the call that waits for them.
    pub(crate) fn answer(&self, answers: Vec<(String, String)>) {
        lock(&self.answers).extend(answers.into_iter().map(|(key, answer)| (key, ReplyText::of_stored(&answer))));
        self.answered.notify_waiters();
    }

    /// Asks these questions, by their keys, and waits for all answers. Withdraws them if dropped.
    pub(crate) async fn ask(&self, questions: Vec<(String, String)>) -> Result<Vec<ReplyText>, ClientAskError> {
        let failed = |text: &str| ClientAskError::Failed(text.to_owned());
        let begun = self.begun().ok_or_else(|| failed("there is no task"))?;
        let keys: Vec<String> = questions.iter().map(|(key, _)| key.clone()).collect();
        let mut open = OpenQuestions { handle: self, answered: false };
        match begun.store.change(&begun.id, TaskChange::Asks(&questions)).await {
            Ok(Changed::Done) => {}
            Ok(Changed::Over | Changed::NoRoom) => return Err(failed("the task has ended")),
            Err(_) => return Err(failed("the state that replicas share cannot be reached")),
        }
        loop {
            let answered = self.answered.notified();
            {
                let mut answers = lock(&self.answers);
                if keys.iter().all(|key| answers.contains_key(key)) {
                    open.answered = true;
                    return Ok(keys.iter().filter_map(|key| answers.remove(key)).collect());
                }
            }
            answered.await;
        }
    }
}

/// Questions that wait for answers. Withdrawn if dropped.
struct OpenQuestions<'h> {
    handle: &'h TaskHandle,
    answered: bool,
}

impl Drop for OpenQuestions<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.handle.withdrawn.store(true, Ordering::Release);
            self.handle.woken.notify_one();
        }
    }
}
