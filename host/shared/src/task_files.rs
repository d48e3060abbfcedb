//! A file for each task of a process, so that other processes find it, also after this one has
//! ended. The files are written and read on a thread of their own.
//!
//! Each process has a folder with a lock, `tasks/PROCESS/`, and in it a file for each task, named
//! by its id. A process that finds a folder without a lock holder takes over its tasks. Messages to
//! the process that runs a task are letters in its folder, `ID.letter-NUMBER`. That process removes
//! a letter once it has acted on it.
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::local_tasks::now_ms;
use crate::task_form::{self, KeptTask, Letter};
use crate::tasks::{LostTask, TaskStatus};

/// Files that wait to be written. Whoever begins or ends a task waits for its file.
const WAITING_MAX: usize = 1_024;

/// Most folders of processes that are read. Each start removes those of processes that have ended.
const FOLDERS_MAX: usize = 4_096;

/// Most files of other processes that a list reads. Each is opened, which takes some ten
/// microseconds.
const LISTED_MAX: usize = 4_096;

/// Bytes that a list reads of a file: numbers, names, sentence and questions, without the result.
const HEAD_BYTES_MAX: u64 = 256 << 10;

/// Bytes that are read first: without questions, a head is rarely longer.
const SHORT_HEAD_BYTES: u64 = 2 << 10;

/// Longest file that is read: the longest result that the manifest allows, and the rest of the
/// file.
const FILE_BYTES_MAX: u64 = (64 << 20) + (1 << 20);

/// Most tasks of other processes that are watched for changes: as many clients may wait for one
/// here.
const WATCHED_MAX: usize = 1_024;

/// Interval of checks for letters and changes, while a task runs here or one of another process is
/// watched.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Digits of a task's id.
const ID_DIGITS: usize = 32;

/// The name of the lock in a process's folder.
const LOCK: &str = "lock";

/// Separates a task's id from the number of a letter.
const LETTER: &str = ".letter-";

/// Receives events from the thread.
pub trait TasksNews: Send {
    /// A task of an earlier process now belongs to this one.
    fn taken_over(&self, task: KeptTask);

    /// Acts on a letter. Returns the task if that changed it.
    fn letter(&self, id: &str, letter: Letter) -> Option<KeptTask>;

    /// A watched task has changed.
    fn changed(&self, id: &str);
}

/// The files of a process's tasks.
pub struct TaskFiles {
    all: PathBuf,
    jobs: mpsc::Sender<Job>,
    read: Arc<FirstRead>,
    /// The thread's work, until the thread starts.
    waits: Mutex<Option<FilesWork>>,
}

impl fmt::Debug for TaskFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TaskFiles").field("read", &self.read).finish_non_exhaustive()
    }
}

/// All that the thread does.
struct FilesWork {
    keeper: FilesKeeper,
    jobs: mpsc::Receiver<Job>,
}

/// Set once the tasks of earlier processes are read.
#[derive(Debug, Default)]
struct FirstRead {
    done: OnceLock<()>,
    waiting: Notify,
}

/// A caller's task that another process began.
#[derive(Debug)]
pub enum TaskElsewhere {
    /// It runs; this is its file.
    Runs(Box<KeptTask>),
    /// Its process has ended: it now belongs to this process, if there was room for it.
    TakenOver,
    /// It does not exist.
    Unknown,
}

#[derive(Debug)]
enum Job {
    Write(KeptTask, oneshot::Sender<()>),
    Remove(String, Option<oneshot::Sender<()>>),
    Find { id: String, caller: String, found: oneshot::Sender<TaskElsewhere> },
    List { caller: String, found: oneshot::Sender<Vec<KeptTask>> },
    Send { id: String, letter: Letter, sent: oneshot::Sender<Option<PathBuf>> },
}

/// The work of the thread.
struct FilesKeeper {
    /// The folder of all processes.
    all: PathBuf,
    /// The folder of this process and its lock, once there is a task.
    own: Option<(PathBuf, File)>,
    /// Tasks that run here.
    running: HashSet<String>,
    /// Tasks that have ended here and are not removed yet.
    over: HashSet<String>,
    /// Watched tasks of other processes, with the last stamp of each file.
    watched: HashMap<String, WatchedFile>,
    lost: LostTask,
    most: usize,
    news: Box<dyn TasksNews>,
    /// True once a failure was reported.
    reported: bool,
}

/// Inode number and times of a file.
type TaskFileStamp = (u64, i64, i64);

struct WatchedFile {
    path: PathBuf,
    stamp: Option<TaskFileStamp>,
}

impl TaskFiles {
    /// Files below this folder, which is created with the first task. At most `most` tasks of a
    /// folder are taken over.
    pub fn new(folder: &Path, lost: LostTask, most: usize, news: Box<dyn TasksNews>) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let keeper = FilesKeeper {
            all: folder.to_owned(),
            own: None,
            running: HashSet::new(),
            over: HashSet::new(),
            watched: HashMap::new(),
            lost,
            most,
            news,
            reported: false,
        };
        let waits = Mutex::new(Some(FilesWork { keeper, jobs: waiting }));
        let files = Self { all: folder.to_owned(), jobs, read: Arc::default(), waits };
        // Most hosts never have a task.
        if folder.is_dir() {
            files.begin()
        } else {
            files.read.set()
        }
        files
    }

    /// Starts the thread, once.
    fn begin(&self) {
        let work = self.waits.lock().take();
        let Some(FilesWork { keeper, jobs }) = work else { return };
        let read = Arc::clone(&self.read);
        let thread = std::thread::Builder::new().name("toolcell-tasks".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            match runtime {
                Ok(runtime) => runtime.block_on(keeper.run(jobs, &read)),
                Err(error) => tracing::warn!("tasks are not known to other processes: {error}"),
            }
            read.set();
        });
        if let Err(error) = thread {
            tracing::warn!("tasks are not known to other processes: {error}");
            self.read.set();
        }
    }

    /// Waits until the tasks of earlier processes are read.
    pub async fn were_read(&self) {
        loop {
            let waiting = self.read.waiting.notified();
            if self.read.done.get().is_some() {
                return;
            }
            waiting.await;
        }
    }

    /// Writes the file of a task, and waits for it.
    pub async fn write(&self, task: KeptTask) {
        self.begin();
        let (done, written) = oneshot::channel();
        if self.jobs.send(Job::Write(task, done)).await.is_ok() {
            // Without the thread nothing is written.
            let _ = written.await;
        }
    }

    /// Removes the file of an expired task. If the queue is full it stays, and a later start
    /// removes it.
    pub fn remove(&self, id: String) {
        let _ = self.jobs.try_send(Job::Remove(id, None));
    }

    /// Removes the file of a task, and waits for it: then no process finds the task any more.
    pub async fn forget(&self, id: String) {
        if self.waits.lock().is_some() {
            // It has never had a task.
            return;
        }
        let (done, removed) = oneshot::channel();
        if self.jobs.send(Job::Remove(id, Some(done))).await.is_ok() {
            // Without the thread there is no file.
            let _ = removed.await;
        }
    }

    /// The caller's task of another process. If it runs, its changes are reported from now on.
    pub async fn find(&self, caller: &str, id: &str) -> TaskElsewhere {
        if !is_id(id) || !self.are_there() {
            return TaskElsewhere::Unknown;
        }
        let (found, answer) = oneshot::channel();
        let job = Job::Find { id: id.to_owned(), caller: caller.to_owned(), found };
        let _ = self.jobs.send(job).await;
        answer.await.unwrap_or(TaskElsewhere::Unknown)
    }

    /// The caller's tasks of processes that run, without results and in no order.
    pub async fn list(&self, caller: &str) -> Vec<KeptTask> {
        if !self.are_there() {
            return Vec::new();
        }
        let (found, answer) = oneshot::channel();
        let _ = self.jobs.send(Job::List { caller: caller.to_owned(), found }).await;
        answer.await.unwrap_or_default()
    }

    /// Sends a letter about a task that another process runs. The returned file disappears once
    /// that process has acted on it.
    pub async fn send(&self, id: &str, letter: Letter) -> Option<PathBuf> {
        let (sent, answer) = oneshot::channel();
        let _ = self.jobs.send(Job::Send { id: id.to_owned(), letter, sent }).await;
        answer.await.ok().flatten()
    }

    /// True if any process has had a task.
    fn are_there(&self) -> bool {
        let is_there = self.all.is_dir();
        if is_there {
            self.begin();
        }
        is_there
    }
}

impl FirstRead {
    fn set(&self) {
        let _ = self.done.set(());
        self.waiting.notify_waiters();
    }
}

impl FilesKeeper {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>, read: &FirstRead) {
        self.take_over_all();
        read.set();
        let mut look_at = tokio::time::Instant::now();
        loop {
            let looks = !self.running.is_empty() || !self.watched.is_empty();
            // By the clock, not after a pause: jobs may come without one.
            if looks && tokio::time::Instant::now() >= look_at {
                self.check_watched();
                look_at = tokio::time::Instant::now() + POLL_EVERY;
            }
            let job = if looks { tokio::time::timeout_at(look_at, jobs.recv()).await } else { Ok(jobs.recv().await) };
            match job {
                Ok(Some(job)) => self.work(job),
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    fn work(&mut self, job: Job) {
        let done = match job {
            Job::Write(task, written) => {
                let done = self.write(&task);
                // The caller may have stopped waiting.
                let _ = written.send(());
                done
            }
            Job::Remove(id, removed) => {
                let done = self.remove(&id);
                let _ = removed.map(|removed| removed.send(()));
                done
            }
            Job::Find { id, caller, found } => {
                let _ = found.send(self.find(&id, &caller));
                Ok(())
            }
            Job::List { caller, found } => {
                let _ = found.send(self.list(&caller));
                Ok(())
            }
            Job::Send { id, letter, sent } => {
                let done = self.send(&id, &letter);
                let _ = sent.send(done.as_ref().ok().cloned().flatten());
                done.map(drop)
            }
        };
        if let Err(error) = done
            && !std::mem::replace(&mut self.reported, true)
        {
            let folder = self.all.display();
            tracing::warn!("other processes will not know some tasks: their files below {folder}: {error}");
        }
    }

    fn write(&mut self, task: &KeptTask) -> io::Result<()> {
        let id = &task.record.id;
        if task.record.status.is_over() {
            self.running.remove(id);
            self.over.insert(id.clone());
        } else if self.over.contains(id) {
            // This was noted before the task ended, and arrives after its end.
            return Ok(());
        } else {
            self.running.insert(id.clone());
        }
        let folder = self.own_folder()?;
        write_whole(&folder, &task.record.id, &task.encoded())
    }

    fn remove(&mut self, id: &str) -> io::Result<()> {
        self.running.remove(id);
        self.over.remove(id);
        let Some((folder, _)) = &self.own else { return Ok(()) };
        match fs::remove_file(folder.join(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The folder of this process. It is locked before others can see it.
    fn own_folder(&mut self) -> io::Result<PathBuf> {
        if let Some((folder, _)) = &self.own {
            return Ok(folder.clone());
        }
        let name = format!("{:016x}", random()?);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.all)?;
        let hidden = self.all.join(format!(".{name}"));
        let folder = self.all.join(name);
        DirBuilder::new().mode(0o700).create(&hidden)?;
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(hidden.join(LOCK))?;
        lock.lock()?;
        fs::rename(&hidden, &folder)?;
        self.own = Some((folder.clone(), lock));
        Ok(folder)
    }

    /// The folders of other processes.
    fn others(&self) -> Vec<PathBuf> {
        let Ok(folders) = fs::read_dir(&self.all) else { return Vec::new() };
        let paths = folders.filter_map(Result::ok).take(FOLDERS_MAX).map(|folder| folder.path());
        paths.filter(|path| !is_hidden(path) && self.own.as_ref().is_none_or(|(own, _)| own != path)).collect()
    }

    /// Takes over the tasks of processes that have ended.
    fn take_over_all(&mut self) {
        for path in self.others() {
            if let Some(lock) = locked(&path) {
                self.take_over_folder(&path, lock);
            }
        }
    }

    /// Takes over the tasks in the folder of a process that has ended, by its lock.
    fn take_over_folder(&mut self, path: &Path, lock: File) {
        // The first one becomes this process's own: its files stay where they are.
        let (own, lock) = match &self.own {
            None => (self.own.insert((path.to_owned(), lock)).0.clone(), None),
            Some((own, _)) => (own.clone(), Some(lock)),
        };
        let done = self.take_over(path, &own);
        // Other files in a foreign folder do not matter.
        let done = done.and_then(|()| if lock.is_some() { fs::remove_dir_all(path) } else { Ok(()) });
        if let Err(error) = done {
            tracing::warn!("tasks of an earlier process are not known: {}: {error}", path.display());
        }
    }

    /// Takes over the tasks in a folder, as many as this process may keep. A file that fails keeps
    /// no other from being taken over.
    fn take_over(&self, folder: &Path, own: &Path) -> io::Result<()> {
        let mut left = self.most;
        let mut done = Ok(());
        for file in fs::read_dir(folder)?.filter_map(Result::ok) {
            // No task is a folder, and a folder cannot be removed as a file.
            if file.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            done = done.and(self.take_over_file(&file.path(), own, &mut left));
        }
        done
    }

    /// Takes over the task in this file, and counts it, or removes the file.
    fn take_over_file(&self, path: &Path, own: &Path, left: &mut usize) -> io::Result<()> {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
        if name.contains(LETTER) {
            return fs::remove_file(path);
        }
        let Some(id) = Some(name).filter(|name| is_id(name)) else { return Ok(()) };
        let keep = || if path.parent() == Some(own) { Ok(()) } else { fs::rename(path, own.join(id)) };
        let read = Some(id).filter(|_| *left > 0).and_then(|_| read_bounded(path));
        let later = read.as_deref().and_then(task_form::end_of_later_form);
        if later.is_some_and(|ends_ms| ends_ms > now_ms()) {
            // A newer version, which can read it, may start again.
            keep()?;
            *left -= 1;
            return Ok(());
        }
        let task = read.and_then(|read| KeptTask::decoded(id, &read));
        let Some(mut task) = task.filter(|task| task.record.ends_ms() > now_ms()) else {
            return fs::remove_file(path);
        };
        keep()?;
        if !task.record.status.is_over() {
            let LostTask { body, message } = self.lost;
            (task.record.status, task.record.body) = (TaskStatus::Failed, Arc::from(body));
            (task.record.message, task.record.changed_ms) = (message.to_owned(), now_ms());
            task.record.questions.clear();
            write_whole(own, id, &task.encoded())?;
        }
        *left -= 1;
        self.news.taken_over(task);
        Ok(())
    }

    /// Finds a task of another process.
    fn find(&mut self, id: &str, caller: &str) -> TaskElsewhere {
        for folder in self.others() {
            let path = folder.join(id);
            if !path.exists() {
                continue;
            }
            if let Some(lock) = locked(&folder) {
                self.take_over_folder(&folder, lock);
                return TaskElsewhere::TakenOver;
            }
            let stamp = stamp(&path);
            let task = read_bounded(&path).and_then(|bytes| KeptTask::decoded(id, &bytes));
            let task = task.filter(|task| task.caller == caller && task.record.ends_ms() > now_ms());
            let Some(task) = task else { continue };
            if !task.record.status.is_over() && self.watched.len() < WATCHED_MAX {
                self.watched.insert(id.to_owned(), WatchedFile { path, stamp });
            }
            return TaskElsewhere::Runs(Box::new(task));
        }
        TaskElsewhere::Unknown
    }

    /// The caller's tasks of processes that run. Those of processes that have ended are taken over.
    fn list(&mut self, caller: &str) -> Vec<KeptTask> {
        let mut found = Vec::new();
        let mut left = LISTED_MAX;
        for folder in self.others() {
            if let Some(lock) = locked(&folder) {
                self.take_over_folder(&folder, lock);
                continue;
            }
            let Ok(files) = fs::read_dir(&folder) else { continue };
            for file in files.filter_map(Result::ok) {
                let name = file.file_name();
                let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
                if left == 0 {
                    return found;
                }
                left -= 1;
                let task = read_head(id, &file.path());
                found.extend(task.filter(|task| task.caller == caller && task.record.ends_ms() > now_ms()));
            }
        }
        found
    }

    /// Puts a letter next to the file of its task. `None` if that is gone.
    fn send(&self, id: &str, letter: &Letter) -> io::Result<Option<PathBuf>> {
        let Some(folder) = self.others().into_iter().find(|folder| folder.join(id).exists()) else { return Ok(None) };
        let name = format!("{id}{LETTER}{:016x}", random()?);
        write_whole(&folder, &name, &letter.encoded())?;
        Ok(Some(folder.join(name)))
    }

    /// Checks for letters about tasks that run here, and for changes of watched tasks.
    fn check_watched(&mut self) {
        if !self.running.is_empty()
            && let Some((own, _)) = &self.own
        {
            let own = own.clone();
            let letters = fs::read_dir(&own).into_iter().flatten().filter_map(Result::ok);
            let names: Vec<String> = letters.filter_map(|file| file.file_name().into_string().ok()).collect();
            for name in names {
                if let Some((id, _)) = name.split_once(LETTER).filter(|(id, rest)| is_id(id) && !rest.contains('.')) {
                    self.open_letter(id, &own.join(&name));
                }
            }
        }
        let mut changed = Vec::new();
        for (id, watched) in &mut self.watched {
            let now = stamp(&watched.path);
            if now != watched.stamp {
                watched.stamp = now;
                changed.push(id.clone());
            }
        }
        for id in changed {
            let path = self.watched.get(&id).map(|watched| watched.path.clone()).unwrap_or_default();
            let task = read_head(&id, &path);
            if task.is_none_or(|task| task.record.status.is_over()) {
                self.watched.remove(&id);
            }
            self.news.changed(&id);
        }
        // The process of a watched task may have died.
        let left = self.watched.iter().filter(|(_, watched)| watched.is_left());
        let left: Vec<String> = left.map(|(id, _)| id.clone()).collect();
        for id in left {
            self.watched.remove(&id);
            self.news.changed(&id);
        }
    }

    /// Acts on a letter, and removes it.
    fn open_letter(&mut self, id: &str, path: &Path) {
        let letter = read_bounded(path).and_then(|bytes| Letter::decoded(&bytes));
        if let Some(task) = letter.and_then(|letter| self.news.letter(id, letter)) {
            // The sender reads the file next.
            let _ = self.write(&task);
            self.news.changed(id);
        }
        let _ = fs::remove_file(path);
    }
}

impl WatchedFile {
    /// True if the process of the task has ended.
    fn is_left(&self) -> bool {
        self.path.parent().and_then(locked).is_some()
    }
}

/// The lock of a process that has ended; `None` while it runs.
fn locked(folder: &Path) -> Option<File> {
    // Opened for reading too, so that a FIFO is not waited for.
    let lock = OpenOptions::new().read(true).write(true).open(folder.join(LOCK)).ok()?;
    lock.try_lock().ok().map(|()| lock)
}

fn is_hidden(folder: &Path) -> bool {
    folder.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'))
}

/// Tells whether a file has changed: each version is a new file, whose inode number may be reused.
fn stamp(path: &Path) -> Option<TaskFileStamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.ctime(), found.ctime_nsec()))
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let is_file = fs::symlink_metadata(path).ok().filter(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
    is_file.and_then(|_| fs::read(path).ok())
}

/// The task of a file, without its result.
fn read_head(id: &str, path: &Path) -> Option<KeptTask> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    for more in [SHORT_HEAD_BYTES, HEAD_BYTES_MAX - SHORT_HEAD_BYTES] {
        io::Read::by_ref(&mut file).take(more).read_to_end(&mut bytes).ok()?;
        if let Some(task) = KeptTask::decoded_head(id, &bytes) {
            return Some(task);
        }
    }
    None
}

/// Writes a file atomically, also if the process is killed.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!("{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    fs::rename(draft, folder.join(name))
}

pub fn random() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}

fn is_id(name: &str) -> bool {
    name.len() == ID_DIGITS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_task_is_one() {
        for (name, is) in [
            ("0123456789abcdef0123456789abcdef", true),
            ("0123456789abcdef0123456789abcdeF", false),
            ("0123456789abcdef0123456789abcdef.new", false),
            ("0123456789abcdef0123456789abcdef.letter-01", false),
            ("../3456789abcdef0123456789abcdef", false),
            ("lock", false),
            ("", false),
        ] {
            assert_eq!(is_id(name), is, "{name}");
        }
    }
}
