//! Tasks of one process, in memory, with a file for each where there is a folder: those of a
//! process that ends are known to the next one. Must not hold: the form of a file.
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::Away;
use crate::task_files::{KeptTask, TaskFiles};
use crate::tasks::{
    Changed, Creation, LostTask, NewTask, SMALL_RESULT_BYTES, TaskBounds, TaskChange, TaskRecord, TaskStatus, Tasks,
};

/// Tasks of one process.
#[derive(Debug)]
pub struct TasksHere {
    bounds: TaskBounds,
    held: Arc<Mutex<Held>>,
    files: Option<TaskFiles>,
    lost: LostTask,
}

#[derive(Debug, Default)]
struct Held {
    tasks: HashMap<String, HeldTask>,
    callers: HashMap<String, OfCaller>,
    /// Names by the time at which each ends, in milliseconds since 1970, and its number.
    ends: BTreeMap<(u64, u64), String>,
    bytes: usize,
    /// The number of the last one.
    number: u64,
}

#[derive(Debug, Default)]
struct OfCaller {
    /// Names by number.
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

impl TasksHere {
    /// Tasks with these bounds. With a folder, those of processes that have ended are taken over
    /// from there in the background; who asks meanwhile waits for it.
    #[must_use]
    pub fn new(bounds: TaskBounds, folder: Option<&Path>, lost: LostTask) -> Self {
        let held = Arc::<Mutex<Held>>::default();
        let files = folder.map(|folder| {
            let held = Arc::clone(&held);
            let take = move |task: KeptTask| lock(&held).take_over(task, &bounds);
            TaskFiles::new(folder, lost, bounds.all_max, Box::new(take))
        });
        Self { bounds, held, files, lost }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }

    /// Waits until tasks of earlier processes are known.
    async fn read(&self) {
        if let Some(files) = &self.files {
            files.were_read().await;
        }
    }

    /// Writes the file of a task that begins or has ended.
    async fn write(&self, id: &str) {
        let Some(files) = &self.files else { return };
        let kept = self.held().tasks.get(id).map(HeldTask::kept);
        if let Some(kept) = kept {
            files.write(kept).await;
        }
    }

    /// Forgets tasks whose time is over.
    fn expire(&self) {
        let ended = self.held().expire(now_ms());
        self.remove_files(ended);
    }

    fn remove_files(&self, ids: Vec<String>) {
        if let Some(files) = &self.files {
            ids.into_iter().for_each(|id| files.remove(id));
        }
    }
}

#[async_trait]
impl Tasks for TasksHere {
    async fn create(&self, task: &NewTask<'_>) -> Result<Creation, Away> {
        self.read().await;
        self.expire();
        let creation = self.held().create(task, &self.bounds);
        if creation == Creation::Created {
            self.write(task.id).await;
        }
        Ok(creation)
    }

    async fn find(&self, caller: &str, id: &str) -> Result<Option<TaskRecord>, Away> {
        self.read().await;
        self.expire();
        Ok(self.held().of_caller(caller, id).map(|task| task.record.clone()))
    }

    async fn list(&self, caller: &str, after: u64, most: usize) -> Result<Vec<TaskRecord>, Away> {
        self.read().await;
        self.expire();
        let held = self.held();
        let own = held.callers.get(caller).into_iter().flat_map(|own| own.tasks.range(after.saturating_add(1)..));
        let own = own.filter_map(|(_, id)| held.tasks.get(id)).take(most);
        Ok(own.map(|task| TaskRecord { body: Arc::from(""), ..task.record.clone() }).collect())
    }

    async fn change(&self, id: &str, change: TaskChange<'_>) -> Result<Changed, Away> {
        if let TaskChange::Ends { status, body, message } = change {
            let Some(ended) = self.held().ended(id, (status, body, message)) else { return Ok(Changed::Over) };
            if !self.held().has_room(id, body.len(), &self.bounds) {
                return Ok(Changed::NoRoom);
            }
            // It has ended for others once a later process would know as well.
            if let Some(files) = &self.files {
                files.write(ended).await;
            }
        }
        Ok(self.held().change(id, change))
    }

    async fn answer(&self, caller: &str, id: &str, answers: &[(String, String)]) -> Result<bool, Away> {
        self.read().await;
        self.expire();
        let mut held = self.held();
        let Some(task) = held.of_caller(caller, id) else { return Ok(false) };
        for (key, answer) in answers {
            let Some(place) = task.record.questions.iter().position(|(asked, _)| asked == key) else { continue };
            task.record.questions.remove(place);
            task.answers.push((key.clone(), answer.clone()));
        }
        if task.record.status == TaskStatus::InputRequired && task.record.questions.is_empty() {
            task.set(TaskStatus::Working, "");
        }
        Ok(true)
    }

    async fn pull(&self, id: &str) -> Result<Option<Vec<(String, String)>>, Away> {
        let mut held = self.held();
        let task = held.tasks.get_mut(id).filter(|task| !task.record.status.is_over());
        Ok(task.map(|task| std::mem::take(&mut task.answers)))
    }

    async fn cancel(&self, caller: &str, id: &str, message: &str) -> Result<Option<(TaskStatus, TaskRecord)>, Away> {
        self.read().await;
        self.expire();
        let cancelled = {
            let mut held = self.held();
            let Some(before) = held.of_caller(caller, id).map(|task| task.record.status) else { return Ok(None) };
            if !before.is_over() {
                held.change(id, TaskChange::Ends { status: TaskStatus::Cancelled, body: "", message });
            }
            held.tasks.get(id).map(|task| (before, task.record.clone()))
        };
        if cancelled.as_ref().is_some_and(|(before, _)| !before.is_over()) {
            self.write(id).await;
        }
        Ok(cancelled)
    }

    async fn forget(&self, id: &str) -> Result<(), Away> {
        self.held().remove(id);
        self.remove_files(vec![id.to_owned()]);
        Ok(())
    }

    async fn leave(&self) -> Result<(), Away> {
        let running: Vec<String> = {
            let held = self.held();
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

impl Held {
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
        self.number += 1;
        record.number = self.number;
        let own = self.callers.entry(caller.clone()).or_default();
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

    /// The caller's task of this name.
    fn of_caller(&mut self, caller: &str, id: &str) -> Option<&mut HeldTask> {
        self.tasks.get_mut(id).filter(|task| task.caller == caller)
    }

    /// True if there is room for a result of so many bytes in place of the arguments.
    fn has_room(&self, id: &str, bytes: usize, bounds: &TaskBounds) -> bool {
        let Some(task) = self.tasks.get(id) else { return false };
        let own = self.callers.get(&task.caller).map_or(0, |own| own.bytes);
        let fits = |used: usize, most| used.saturating_sub(task.bytes).saturating_add(bytes) <= most;
        bytes <= SMALL_RESULT_BYTES || (fits(own, bounds.caller_bytes_max) && fits(self.bytes, bounds.all_bytes_max))
    }

    /// A task as it is with this end, unless it has ended.
    fn ended(&self, id: &str, (status, body, message): (TaskStatus, &str, &str)) -> Option<KeptTask> {
        let task = self.tasks.get(id).filter(|task| !task.record.status.is_over())?;
        let mut kept = task.kept();
        (kept.record.status, kept.record.body) = (status, Arc::from(body));
        (kept.record.message, kept.record.changed_ms) = (message.to_owned(), now_ms());
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
                (task.record.questions, task.record.body) = (Vec::new(), Arc::from(body));
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

    /// Forgets those whose time is over. Returns their names.
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
    /// The end of its time, in milliseconds since 1970.
    pub(crate) fn ends_ms(&self) -> u64 {
        self.created_ms.saturating_add(self.ttl_ms)
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A panic elsewhere leaves whole tasks behind.
fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
