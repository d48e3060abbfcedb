//! Tasks: calls whose results are fetched later, from any replica.
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::Away;

/// Size of a result for which there is always room: that of a failure.
pub const SMALL_RESULT_BYTES: usize = 1_024;

/// The status of a task.
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

/// The bounds of all tasks.
#[derive(Clone, Copy, Debug)]
pub struct TaskBounds {
    /// Tasks of one caller.
    pub caller_max: usize,
    /// Tasks of all callers.
    pub all_max: usize,
    /// Bytes of one caller: arguments of tasks that run, results of those that have ended.
    pub caller_bytes_max: usize,
    /// Bytes of all callers.
    pub all_bytes_max: usize,
}

/// A task that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewTask<'a> {
    /// Its id: 32 random hexadecimal digits.
    pub id: &'a str,
    /// Its caller. No other caller finds it.
    pub caller: &'a str,
    /// Time for which it is kept.
    pub ttl: Duration,
    /// Bytes of its arguments.
    pub bytes: usize,
}

/// The answer to [`Tasks::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It was created, and can be found from now on.
    Created,
    /// The caller has no room for it.
    CallerFull,
    /// All tasks together have reached a bound.
    Full,
}

/// A task, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id.
    pub id: String,
    /// Its number: later tasks have greater ones.
    pub number: u64,
    /// Its status.
    pub status: TaskStatus,
    /// A sentence about its status; may be empty.
    pub message: String,
    /// Its beginning, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its last change, in milliseconds since 1970.
    pub changed_ms: u64,
    /// Time for which it is kept from its beginning on, in milliseconds.
    pub ttl_ms: u64,
    /// Its unanswered questions, by their keys.
    pub questions: Vec<(String, String)>,
    /// Its result, or its error; empty while it runs, and in lists.
    pub body: Arc<str>,
}

/// A change of a task by the process that runs it.
#[derive(Clone, Copy, Debug)]
pub enum TaskChange<'a> {
    /// A new sentence about its status.
    Says(&'a str),
    /// Its questions from now on, by their keys.
    Asks(&'a [(String, String)]),
    /// It has ended.
    Ends {
        /// Completed or failed.
        status: TaskStatus,
        /// Its result, or its error.
        body: &'a str,
        /// A sentence about it.
        message: &'a str,
    },
}

/// The answer to [`Tasks::change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was changed.
    Done,
    /// The task had ended, or does not exist.
    Over,
    /// Its result does not fit.
    NoRoom,
}

/// What becomes of tasks whose process has died.
#[derive(Clone, Copy, Debug)]
pub struct LostTask {
    /// The error of such a task.
    pub body: &'static str,
    /// The sentence about its status.
    pub message: &'static str,
}

/// Tasks of all replicas. An operation on an unknown task changes nothing.
#[async_trait]
pub trait Tasks: fmt::Debug + Send + Sync {
    /// Begins a task, which this process runs.
    ///
    /// # Errors
    /// [`Away`]. It may have begun, and then ends with its time.
    async fn create(&self, task: &NewTask<'_>) -> Result<Creation, Away>;

    /// The caller's task with this id.
    ///
    /// # Errors
    ///
    /// [`Away`].
    async fn find(&self, caller: &str, id: &str) -> Result<Option<TaskRecord>, Away>;

    /// At most `most` of the caller's tasks after this number, in the order of their beginnings,
    /// without results.
    ///
    /// # Errors
    /// [`Away`].
    async fn list(&self, caller: &str, after: u64, most: usize) -> Result<Vec<TaskRecord>, Away>;

    /// Changes a task that this process runs.
    ///
    /// # Errors
    /// [`Away`]. It may be changed.
    async fn change(&self, id: &str, change: TaskChange<'_>) -> Result<Changed, Away>;

    /// Answers questions of the caller's task, by their keys. Other answers are ignored. False if
    /// the task does not exist.
    ///
    /// # Errors
    /// [`Away`]. Some may be answered.
    async fn answer(&self, caller: &str, id: &str, answers: &[(String, String)]) -> Result<bool, Away>;

    /// Takes the answers that were given since the last time, for the process that runs the task.
    /// `None` if it has ended or is forgotten.
    ///
    /// # Errors
    /// [`Away`].
    async fn pull(&self, id: &str) -> Result<Option<Vec<(String, String)>>, Away>;

    /// Cancels the caller's task, unless it has ended. Returns the task after, and its status
    /// before.
    ///
    /// # Errors
    /// [`Away`]. It may be cancelled.
    async fn cancel(&self, caller: &str, id: &str, message: &str) -> Result<Option<(TaskStatus, TaskRecord)>, Away>;

    /// Forgets a task.
    ///
    /// # Errors
    /// [`Away`]. It ends with its time then.
    async fn forget(&self, id: &str) -> Result<(), Away>;

    /// Ends all tasks that this process runs, because it stops.
    ///
    /// # Errors
    /// [`Away`]. They count as ended a moment later.
    async fn leave(&self) -> Result<(), Away>;
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];

    /// Its letter in stored tasks.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Working => "w",
            Self::InputRequired => "i",
            Self::Completed => "d",
            Self::Failed => "f",
            Self::Cancelled => "x",
        }
    }

    pub(crate) fn of_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.letter() == letter)
    }

    /// True if it is final.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
