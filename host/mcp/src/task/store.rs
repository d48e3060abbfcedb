//! The table of tasks, where every replica of the server finds them. Must not hold: where that is,
//! or the wire format.

use std::sync::Arc;
use std::time::Duration;

use crate::store::Storing;

/// Keeps tasks for all replicas. Questions, answers and bodies are this crate's own words. Whoever
/// changes a task has every replica told, by
/// [`McpServer::task_changed`](crate::McpServer::task_changed).
pub trait TaskStore: Send + Sync + 'static {
    /// Begins a task, which this process runs.
    fn create(&self, task: NewTask) -> Storing<'_, Creation>;

    /// The caller's task of this name.
    fn find<'t>(&'t self, caller: &'t str, id: &'t str) -> Storing<'t, Option<StoredTask>>;

    /// The caller's tasks behind this number in the order of their beginnings, without bodies, at
    /// most so many.
    fn list<'t>(&'t self, caller: &'t str, after: u64, most: usize) -> Storing<'t, Vec<StoredTask>>;

    /// Changes a task that this process runs.
    fn change<'t>(&'t self, id: &'t str, change: TaskChange) -> Storing<'t, Changed>;

    /// Answers questions of the caller's task, by their keys. Answers to others are ignored. False
    /// if there is no such task.
    fn answer<'t>(&'t self, caller: &'t str, id: &'t str, answers: Vec<(String, String)>) -> Storing<'t, bool>;

    /// Takes the answers that were given since the last time. `None` if the task has ended, or is
    /// forgotten.
    fn pull<'t>(&'t self, id: &'t str) -> Storing<'t, Option<Vec<(String, String)>>>;

    /// Cancels the caller's task, unless it has ended. Returns its status before, and the task as
    /// it is now.
    fn cancel<'t>(&'t self, caller: &'t str, id: &'t str) -> Storing<'t, Option<(TaskStatus, StoredTask)>>;

    /// Forgets a task.
    fn forget<'t>(&'t self, id: &'t str) -> Storing<'t, ()>;
}

/// The status of a task (2025-11-25 and the extension, "Task Status").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for answers.
    InputRequired,
    /// Its call has a result.
    Completed,
    /// Its call has an error instead.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A task that begins.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its name: 32 random digits of hexadecimal numbers.
    pub id: String,
    /// Its caller. Nobody else finds it.
    pub caller: String,
    /// Time for which it is kept.
    pub ttl: Duration,
    /// Bytes of its arguments.
    pub bytes: usize,
}

/// Answer to the beginning of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// Everybody who may find it finds it.
    Created,
    /// The caller has no room for it.
    CallerFull,
    /// There is no room for it at all.
    Full,
}

/// A task, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// Its name.
    pub id: String,
    /// Its number: later tasks have greater ones.
    pub number: u64,
    /// Its status.
    pub status: TaskStatus,
    /// A sentence on its status; empty: none.
    pub message: String,
    /// Its beginning, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its last change, in milliseconds since 1970.
    pub changed_ms: u64,
    /// Time for which it is kept from its beginning on, in milliseconds.
    pub ttl_ms: u64,
    /// Its questions that nobody has answered, by their keys.
    pub questions: Vec<(String, String)>,
    /// Its body, once it has ended.
    pub body: Arc<str>,
}

/// A change of a task by the process that runs it.
#[derive(Clone, Debug)]
pub enum TaskChange {
    /// The sentence on it is another.
    Says(String),
    /// These are its questions from now on, by their keys.
    Asks(Vec<(String, String)>),
    /// It has ended.
    Ends {
        /// Completed or failed.
        status: TaskStatus,
        /// Its body.
        body: String,
        /// A sentence on it.
        message: String,
    },
}

/// Answer to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is so.
    Done,
    /// The task has ended before, or is forgotten.
    Over,
    /// There is no room for its body.
    NoRoom,
}

impl TaskStatus {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// True once nothing changes it any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
