//! Messages of a running call ahead of its result: progress and log messages that the caller asked
//! for.

use std::sync::{Arc, Mutex, OnceLock};

use crate::frame::{Object, RequestId, notification_frame};
use crate::host::Outbox;
use crate::lock::lock;
use crate::meta::ClientLogLevel;
use crate::method::Notification;
use crate::revision::Revision;
use crate::task::{RELATED_TASK, TaskHandle};

/// Longest progress or log text, in bytes; longer ones are cut. Keeps an event within one page of a
/// pipe.
const TEXT_BYTES_MAX: usize = 3_072;

/// Sends one call's progress and log messages. Cheap to clone.
///
/// Messages that the caller did not ask for are dropped silently. So is everything after the call
/// has ended or was cancelled, and while the connection is congested.
#[derive(Clone)]
pub struct CallEvents {
    shared: Arc<SharedEvents>,
}

struct SharedEvents {
    revision: Revision,
    token: Option<RequestId>,
    level: Option<ClientLogLevel>,
    /// The task that the call is, or may become.
    task: OnceLock<Arc<TaskHandle>>,
    state: Mutex<EventState>,
}

struct EventState {
    /// `None` once the call has ended, so that remaining clones do not keep the connection alive.
    outbox: Option<Arc<dyn Outbox>>,
    progress: f64,
}

impl CallEvents {
    pub(crate) fn new(
        outbox: Arc<dyn Outbox>,
        revision: Revision,
        token: Option<RequestId>,
        level: Option<ClientLogLevel>,
    ) -> Self {
        let state = Mutex::new(EventState { outbox: Some(outbox), progress: f64::NEG_INFINITY });
        Self { shared: Arc::new(SharedEvents { revision, token, level, task: OnceLock::new(), state }) }
    }

    /// Events that go nowhere, for calls without a client.
    #[must_use]
    pub fn nowhere() -> Self {
        struct Nowhere;
        impl Outbox for Nowhere {
            fn queue(&self, _frame: Vec<u8>) {}
        }
        Self::new(Arc::new(Nowhere), Revision::V2026_07_28, None, None)
    }

    /// Also sends the messages to this task, once it has begun.
    pub(crate) fn of_task(&self, task: &Arc<TaskHandle>) {
        // A call has at most one.
        let _ = self.shared.task.set(Arc::clone(task));
    }

    /// Continues with this outbox, after the call was answered with its task.
    pub(crate) fn go_on(&self, outbox: &Arc<dyn Outbox>) {
        lock(&self.shared.state).outbox = Some(Arc::clone(outbox));
    }

    fn notify_of_task(&self, message: &str) {
        if let Some(task) = self.shared.task.get() {
            task.says(message);
        }
    }

    fn push_related(&self, params: &mut Object<'_>) {
        let begun = self.shared.task.get().and_then(|task| task.begun());
        if let Some(begun) = begun.filter(|begun| begun.legacy) {
            let mut meta = Object::open(params.key("_meta"));
            Object::open(meta.key(RELATED_TASK)).text("taskId", &begun.id);
        }
    }

    /// Reports the progress of the call. A value that is not finite, or does not grow, is dropped.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        message.into_iter().for_each(|message| self.notify_of_task(message));
        let Some(token) = &self.shared.token else { return };
        let mut state = lock(&self.shared.state);
        let grows = progress.is_finite() && progress > state.progress;
        let Some(outbox) = state.outbox.clone().filter(|outbox| grows && !outbox.congested()) else { return };
        state.progress = progress;
        let message = message.filter(|_| self.shared.revision.features().progress_message);
        let frame = notification_frame(Notification::Progress, |params| {
            token.push(params.key("progressToken"));
            params.json("progress", &progress);
            if let Some(total) = total.filter(|total| total.is_finite()) {
                params.json("total", &total);
            }
            params.text_if("message", message.map(cut));
            self.push_related(params);
        });
        // Sent with the state locked, so that no event can follow the result.
        outbox.queue(frame);
        outbox.flush();
    }

    /// True if a log message of this level would be sent.
    #[must_use]
    pub fn log_enabled(&self, level: ClientLogLevel) -> bool {
        self.is_asked_for(level) || (level >= ClientLogLevel::Info && self.shared.task.get().is_some())
    }

    fn is_asked_for(&self, level: ClientLogLevel) -> bool {
        self.shared.level.is_some_and(|least| level >= least)
    }

    /// Sends one log message.
    pub fn log(&self, level: ClientLogLevel, text: &str, logger: Option<&str>) {
        if level >= ClientLogLevel::Info {
            self.notify_of_task(text);
        }
        if !self.is_asked_for(level) {
            return;
        }
        let state = lock(&self.shared.state);
        let Some(outbox) = state.outbox.as_ref().filter(|outbox| !outbox.congested()) else { return };
        let frame = notification_frame(Notification::Message, |params| {
            params.text("level", level.name());
            params.text_if("logger", logger);
            params.text("data", cut(text));
            self.push_related(params);
        });
        outbox.queue(frame);
        outbox.flush();
    }

    /// Nothing is sent after this returns.
    pub(crate) fn end(&self) {
        lock(&self.shared.state).outbox = None;
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default()
}
