//! Tasks of one process, in memory, and in a file each if there is a folder. Other processes with
//! the same folder find them there, and take over those of a process that has ended.
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::Away;
use crate::task_files::{self, TaskElsewhere, TaskFiles, TasksNews};
use crate::task_form::{KeptTask, Letter, LetterContent, next_number};
use crate::tasks::{
    Changed, Creation, LostTask, NewTask, SMALL_RESULT_BYTES, TaskBounds, TaskChange, TaskRecord, TaskStatus, Tasks,
};

/// Time for another process to act on a letter. It checks ten times a second; one that is stopped
/// acts later.
const LETTER_READ_WITHIN: Duration = Duration::from_secs(2);

/// Time between two checks whether it has.
const LETTER_POLL_EVERY: Duration = Duration::from_millis(10);

/// Called with the id of a task that another process has changed.
type OnChange = Box<dyn Fn(&str) + Send + Sync>;

/// Tasks of one process.
#[derive(Debug)]
pub struct LocalTasks {
    bounds: TaskBounds,
    held: Arc<Mutex<HeldTasks>>,
    files: Option<TaskFiles>,
    lost: LostTask,
    news: Arc<TaskNews>,
}

/// News of tasks from the thread of their files.
struct TaskNews {
    bounds: TaskBounds,
    held: Arc<Mutex<HeldTasks>>,
    on_change: OnceLock<OnChange>,
}

#[derive(Debug, Default)]
struct HeldTasks {
    tasks: HashMap<String, HeldTask>,
    callers: HashMap<String, TasksOfCaller>,
    /// Ids by the time at which each ends, in milliseconds since 1970, and its number.
    ends: BTreeMap<(u64, u64), String>,
    bytes: usize,
    /// The last number given.
    number: u64,
    /// Distinguishes the numbers of this process from those of others.
    own: u64,
}

#[derive(Debug, Default)]
struct TasksOfCaller {
    /// Ids by number.
    tasks: BTreeMap<u64, String>,
    bytes: usize,
}

#[derive(Debug)]
struct HeldTask {
    caller: String,
    record: TaskRecord,
    answers: Vec<(String, String)>,
    bytes: usize,
}

impl LocalTasks {
    /// Tasks with these bounds, which apply to each process. With a folder, the tasks of processes
    /// that have ended are taken over in the background; look-ups wait for that.
    #[must_use]
    pub fn new(bounds: TaskBounds, folder: Option<&Path>, lost: LostTask) -> Self {
        let held = Arc::<Mutex<HeldTasks>>::default();
        // Without random numbers, lists may miss one of several tasks that began in the same
        // millisecond.
        held.lock().own = task_files::random().unwrap_or_default();
        let news = Arc::new(TaskNews { bounds, held: Arc::clone(&held), on_change: OnceLock::new() });
        let files = folder.map(|folder| TaskFiles::new(folder, lost, bounds.all_max, Box::new(Arc::clone(&news))));
        Self { bounds, held, files, lost, news }
    }

    /// Calls this with each task that another process has changed: one of this process by a letter,
    /// or one that was looked up here. Set once.
    #[must_use]
    pub fn telling(self, on_change: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let _ = self.news.on_change.set(Box::new(on_change));
        self
    }

    /// The caller's task with this id, if another process runs it.
    async fn find_elsewhere(&self, caller: &str, id: &str) -> Option<TaskRecord> {
        match self.files.as_ref()?.find(caller, id).await {
            TaskElsewhere::Runs(task) => Some(task.record),
            TaskElsewhere::TakenOver => self.held.lock().of_caller(caller, id).map(|task| task.record.clone()),
            TaskElsewhere::Unknown => None,
        }
    }

    /// Sends a letter to the process that runs a task, and waits until it has acted on it. False if
    /// it has not.
    async fn send(&self, id: &str, letter: Letter) -> bool {
        let Some(files) = &self.files else { return false };
        let Some(sent) = files.send(id, letter).await else { return false };
        let end = Instant::now() + LETTER_READ_WITHIN;
        while sent.exists() {
            if Instant::now() > end {
                return false;
            }
            tokio::time::sleep(LETTER_POLL_EVERY).await;
        }
        true
    }

    /// Waits until the tasks of earlier processes are read.
    async fn read(&self) {
        if let Some(files) = &self.files {
            files.were_read().await;
        }
    }

    /// Writes the file of a task that begins or has ended.
    async fn write(&self, id: &str) {
        let Some(files) = &self.files else { return };
        let kept = self.held.lock().tasks.get(id).map(HeldTask::kept);
        if let Some(kept) = kept {
            files.write(kept).await;
        }
    }

    /// Removes expired tasks.
    fn expire(&self) {
        let ended = self.held.lock().expire(now_ms());
        self.remove_files(ended);
    }

    fn remove_files(&self, ids: Vec<String>) {
        if let Some(files) = &self.files {
            ids.into_iter().for_each(|id| files.remove(id));
        }
    }
}

#[async_trait]
impl Tasks for LocalTasks {
    async fn create(&self, task: &NewTask<'_>) -> Result<Creation, Away> {
        self.read().await;
        self.expire();
        let creation = self.held.lock().create(task, &self.bounds);
        if creation == Creation::Created {
            self.write(task.id).await;
        }
        Ok(creation)
    }

    async fn find(&self, caller: &str, id: &str) -> Result<Option<TaskRecord>, Away> {
        self.read().await;
        self.expire();
        let here = self.held.lock().of_caller(caller, id).map(|task| task.record.clone());
        match here {
            Some(task) => Ok(Some(task)),
            None => Ok(self.find_elsewhere(caller, id).await),
        }
    }

    async fn list(&self, caller: &str, after: u64, most: usize) -> Result<Vec<TaskRecord>, Away> {
        self.read().await;
        self.expire();
        // First, since it takes over tasks of processes that have ended.
        let elsewhere = match &self.files {
            Some(files) => files.list(caller).await,
            None => Vec::new(),
        };
        let held = self.held.lock();
        let own = held.callers.get(caller).into_iter().flat_map(|own| own.tasks.range(after.saturating_add(1)..));
        let own = own.filter_map(|(_, id)| held.tasks.get(id)).take(most);
        let mut listed: Vec<TaskRecord> =
            own.map(|task| TaskRecord { body: Arc::from(""), ..task.record.clone() }).collect();
        listed.extend(elsewhere.into_iter().map(|task| task.record).filter(|task| task.number > after));
        listed.sort_by_key(|task| task.number);
        listed.truncate(most);
        Ok(listed)
    }

    async fn change(&self, id: &str, change: TaskChange<'_>) -> Result<Changed, Away> {
        if let TaskChange::Ends { status, body, message } = change {
            let Some(ended) = self.held.lock().ended(id, status, body, message) else { return Ok(Changed::Over) };
            if !self.held.lock().has_room(id, body.len(), &self.bounds) {
                return Ok(Changed::NoRoom);
            }
            // Other processes see the end once a later process would see it too.
            if let Some(files) = &self.files {
                files.write(ended).await;
            }
        }
        let done = self.held.lock().change(id, change);
        if done == Changed::Done && !matches!(change, TaskChange::Ends { .. }) {
            self.write(id).await;
        }
        Ok(done)
    }

    async fn answer(&self, caller: &str, id: &str, answers: &[(String, String)]) -> Result<bool, Away> {
        self.read().await;
        self.expire();
        if self.held.lock().answer(caller, id, answers) {
            self.write(id).await;
            return Ok(true);
        }
        let Some(task) = self.find_elsewhere(caller, id).await else { return Ok(false) };
        if task.status.is_over() {
            return Ok(true);
        }
        let says = LetterContent::Answers(answers.to_vec());
        Ok(self.send(id, Letter { caller: caller.to_owned(), says }).await)
    }

    async fn pull(&self, id: &str) -> Result<Option<Vec<(String, String)>>, Away> {
        let mut held = self.held.lock();
        let task = held.tasks.get_mut(id).filter(|task| !task.record.status.is_over());
        Ok(task.map(|task| std::mem::take(&mut task.answers)))
    }

    async fn cancel(&self, caller: &str, id: &str, message: &str) -> Result<Option<(TaskStatus, TaskRecord)>, Away> {
        self.read().await;
        self.expire();
        let cancelled = self.held.lock().cancel(caller, id, message);
        if let Some((before, task)) = cancelled {
            if !before.is_over() {
                self.write(id).await;
            }
            return Ok(Some((before, task)));
        }
        let Some(task) = self.find_elsewhere(caller, id).await else { return Ok(None) };
        let before = task.status;
        if !before.is_over() {
            let says = LetterContent::Cancels(message.to_owned());
            self.send(id, Letter { caller: caller.to_owned(), says }).await;
        }
        Ok(self.find_elsewhere(caller, id).await.map(|task| (before, task)))
    }

    async fn forget(&self, id: &str) -> Result<(), Away> {
        self.held.lock().remove(id);
        if let Some(files) = &self.files {
            files.forget(id.to_owned()).await;
        }
        Ok(())
    }

    async fn leave(&self) -> Result<(), Away> {
        let running: Vec<String> = {
            let held = self.held.lock();
            let running = held.tasks.iter().filter(|(_, task)| !task.record.status.is_over());
            running.map(|(id, _)| id.clone()).collect()
        };
        for id in running {
            let LostTask { body, message } = self.lost;
            self.change(&id, TaskChange::Ends { status: TaskStatus::Failed, body, message }).await?;
        }
        Ok(())
    }
}

impl TasksNews for Arc<TaskNews> {
    fn taken_over(&self, task: KeptTask) {
        self.held.lock().take_over(task, &self.bounds);
    }

    fn letter(&self, id: &str, letter: Letter) -> Option<KeptTask> {
        let Letter { caller, says } = letter;
        let mut held = self.held.lock();
        let changed = match says {
            LetterContent::Cancels(message) => {
                held.cancel(&caller, id, &message).is_some_and(|(before, _)| !before.is_over())
            }
            LetterContent::Answers(answers) => held.answer(&caller, id, &answers),
        };
        held.tasks.get(id).filter(|_| changed).map(HeldTask::kept)
    }

    fn changed(&self, id: &str) {
        if let Some(on_change) = self.on_change.get() {
            on_change(id);
        }
    }
}

impl std::fmt::Debug for TaskNews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("News").finish_non_exhaustive()
    }
}

impl HeldTasks {
    /// Answers questions of the caller's task. False if there is no such task.
    fn answer(&mut self, caller: &str, id: &str, answers: &[(String, String)]) -> bool {
        let Some(task) = self.of_caller(caller, id) else { return false };
        for (key, answer) in answers {
            let Some(place) = task.record.questions.iter().position(|(asked, _)| asked == key) else { continue };
            task.record.questions.remove(place);
            task.answers.push((key.clone(), answer.clone()));
        }
        if task.record.status == TaskStatus::InputRequired && task.record.questions.is_empty() {
            task.set(TaskStatus::Working, "");
        }
        true
    }

    /// Cancels the caller's task unless it has ended. Returns its status before, and the task
    /// after.
    fn cancel(&mut self, caller: &str, id: &str, message: &str) -> Option<(TaskStatus, TaskRecord)> {
        let before = self.of_caller(caller, id)?.record.status;
        if !before.is_over() {
            self.change(id, TaskChange::Ends { status: TaskStatus::Cancelled, body: "", message });
        }
        self.tasks.get(id).map(|task| (before, task.record.clone()))
    }

    fn create(&mut self, task: &NewTask<'_>, bounds: &TaskBounds) -> Creation {
        let own = self.callers.get(task.caller);
        let (count, bytes) = own.map_or((0, 0), |own| (own.tasks.len(), own.bytes));
        if count >= bounds.caller_max || bytes.saturating_add(task.bytes) > bounds.caller_bytes_max {
            return Creation::CallerFull;
        }
        if self.tasks.len() >= bounds.all_max || self.bytes.saturating_add(task.bytes) > bounds.all_bytes_max {
            return Creation::Full;
        }
        let now = now_ms();
        let record = TaskRecord {
            id: task.id.to_owned(),
            number: 0,
            status: TaskStatus::Working,
            message: String::new(),
            created_ms: now,
            changed_ms: now,
            ttl_ms: u64::try_from(task.ttl.as_millis()).unwrap_or(u64::MAX),
            questions: Vec::new(),
            body: Arc::from(""),
        };
        self.insert(task.caller.to_owned(), record, task.bytes);
        Creation::Created
    }

    fn insert(&mut self, caller: String, mut record: TaskRecord, bytes: usize) {
        if record.number == 0 {
            self.number = next_number(record.created_ms, self.own, self.number);
            record.number = self.number;
        }
        let own = self.callers.entry(caller.clone()).or_default();
        // Tasks of an earlier format or of other processes may have the same number.
        while own.tasks.contains_key(&record.number) || self.ends.contains_key(&(record.ends_ms(), record.number)) {
            record.number += 1;
        }
        own.tasks.insert(record.number, record.id.clone());
        own.bytes += bytes;
        self.bytes += bytes;
        self.ends.insert((record.ends_ms(), record.number), record.id.clone());
        let id = record.id.clone();
        self.tasks.insert(id, HeldTask { caller, record, answers: Vec::new(), bytes });
    }

    /// Takes over a task of an earlier process, if there is room for it.
    fn take_over(&mut self, task: KeptTask, bounds: &TaskBounds) {
        let KeptTask { caller, record } = task;
        let own = self.callers.get(&caller).map_or(0, |own| own.bytes);
        let bytes = record.body.len();
        let has_room = self.tasks.len() < bounds.all_max
            && self.bytes.saturating_add(bytes) <= bounds.all_bytes_max
            && own.saturating_add(bytes) <= bounds.caller_bytes_max;
        if has_room && record.ends_ms() > now_ms() && !self.tasks.contains_key(&record.id) {
            self.insert(caller, record, bytes);
        }
    }

    /// The caller's task with this id.
    fn of_caller(&mut self, caller: &str, id: &str) -> Option<&mut HeldTask> {
        self.tasks.get_mut(id).filter(|task| task.caller == caller)
    }

    /// True if a result of this size fits in place of the arguments.
    fn has_room(&self, id: &str, bytes: usize, bounds: &TaskBounds) -> bool {
        let Some(task) = self.tasks.get(id) else { return false };
        let own = self.callers.get(&task.caller).map_or(0, |own| own.bytes);
        let fits = |used: usize, most| used.saturating_sub(task.bytes).saturating_add(bytes) <= most;
        bytes <= SMALL_RESULT_BYTES || (fits(own, bounds.caller_bytes_max) && fits(self.bytes, bounds.all_bytes_max))
    }

    /// The task with this end, unless it has ended already.
    fn ended(&self, id: &str, status: TaskStatus, body: &str, message: &str) -> Option<KeptTask> {
        let task = self.tasks.get(id).filter(|task| !task.record.status.is_over())?;
        let mut kept = task.kept();
        kept.record.status = status;
        kept.record.body = Arc::from(body);
        kept.record.message = message.to_owned();
        kept.record.changed_ms = now_ms();
        Some(kept)
    }

    fn change(&mut self, id: &str, change: TaskChange<'_>) -> Changed {
        let Some(task) = self.tasks.get_mut(id).filter(|task| !task.record.status.is_over()) else {
            return Changed::Over;
        };
        match change {
            TaskChange::Says(message) => {
                message.clone_into(&mut task.record.message);
                task.record.changed_ms = now_ms();
            }
            TaskChange::Asks(questions) => {
                task.record.questions = questions.to_vec();
                task.answers.clear();
                let asks = if questions.is_empty() { TaskStatus::Working } else { TaskStatus::InputRequired };
                task.set(asks, "");
            }
            TaskChange::Ends { status, body, message } => {
                task.set(status, message);
                task.record.questions = Vec::new();
                task.record.body = Arc::from(body);
                task.answers.clear();
                let before = std::mem::replace(&mut task.bytes, body.len());
                self.bytes = self.bytes.saturating_sub(before).saturating_add(body.len());
                if let Some(own) = self.callers.get_mut(&task.caller) {
                    own.bytes = own.bytes.saturating_sub(before).saturating_add(body.len());
                }
            }
        }
        Changed::Done
    }

    /// Removes expired tasks. Returns their ids.
    fn expire(&mut self, now: u64) -> Vec<String> {
        let mut ended = Vec::new();
        while let Some((&(ends, _), id)) = self.ends.first_key_value() {
            if ends > now {
                break;
            }
            let id = id.clone();
            self.remove(&id);
            ended.push(id);
        }
        ended
    }

    fn remove(&mut self, id: &str) {
        let Some(task) = self.tasks.remove(id) else { return };
        self.ends.remove(&(task.record.ends_ms(), task.record.number));
        self.bytes = self.bytes.saturating_sub(task.bytes);
        if let Some(own) = self.callers.get_mut(&task.caller) {
            own.tasks.remove(&task.record.number);
            own.bytes = own.bytes.saturating_sub(task.bytes);
            if own.tasks.is_empty() {
                self.callers.remove(&task.caller);
            }
        }
    }
}

impl HeldTask {
    fn set(&mut self, status: TaskStatus, message: &str) {
        let now = now_ms();
        (self.record.status, self.record.changed_ms) = (status, now);
        if !message.is_empty() || status.is_over() {
            message.clone_into(&mut self.record.message);
        }
    }

    fn kept(&self) -> KeptTask {
        KeptTask { caller: self.caller.clone(), record: self.record.clone() }
    }
}

impl TaskRecord {
    /// When it expires, in milliseconds since 1970.
    pub(crate) fn ends_ms(&self) -> u64 {
        self.created_ms.saturating_add(self.ttl_ms)
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
