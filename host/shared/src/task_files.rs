//! A file for each task of a process, so that the next process knows it: written and read on a
//! thread of its own. Must not hold: bounds, or who may find a task.
//!
//! Each process has a folder with a lock, `tasks/PROCESS/`, and a file for each task, named by it:
//! a line of its numbers, then its caller, its sentence and its result. Who starts takes over the
//! folders whose locks nobody holds.
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};

use crate::tasks::{LostTask, TaskRecord, TaskStatus};
use crate::tasks_here::now_ms;

/// Files that wait to be written. Who begins or ends a task waits for its own.
const WAITING_MAX: usize = 1_024;

/// Folders of processes that are looked at. Each start clears those of processes that ended.
const FOLDERS_MAX: usize = 4_096;

/// Longest file that is read: the longest result that the manifest allows, and what is beside it.
const FILE_BYTES_MAX: u64 = (64 << 20) + (64 << 10);

/// Digits of a task's name.
const ID_DIGITS: usize = 32;

/// The first word of each file, with the version of its form.
const FORM: &str = "toolcell-task-1";

/// The name of the lock in a process's folder.
const LOCK: &str = "lock";

/// A task as its file has it.
#[derive(Clone, Debug)]
pub struct KeptTask {
    pub caller: String,
    pub record: TaskRecord,
}

/// Takes over a task of an earlier process.
pub type TakeOver = Box<dyn Fn(KeptTask) + Send>;

/// The files of a process's tasks.
pub struct TaskFiles {
    jobs: mpsc::Sender<Job>,
    read: Arc<Read>,
    /// The thread's work, until it begins.
    waits: Mutex<Option<Work>>,
}

impl fmt::Debug for TaskFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TaskFiles").field("read", &self.read).finish_non_exhaustive()
    }
}

/// All that the thread does.
struct Work {
    keeper: Keeper,
    jobs: mpsc::Receiver<Job>,
    most: usize,
    take_over: TakeOver,
}

/// Set once tasks of earlier processes were read.
#[derive(Debug, Default)]
struct Read {
    done: OnceLock<()>,
    waiting: Notify,
}

#[derive(Debug)]
enum Job {
    Write(KeptTask, oneshot::Sender<()>),
    Remove(String),
}

/// The work of the thread.
struct Keeper {
    /// The folder of all processes.
    all: PathBuf,
    /// The folder of this one, and its lock, once there is a task.
    own: Option<(PathBuf, File)>,
    lost: LostTask,
    /// A failure was told of.
    told: bool,
}

impl TaskFiles {
    /// Files below this folder, which is made with the first task. At most `most` tasks are taken
    /// over.
    pub fn new(folder: &Path, lost: LostTask, most: usize, take_over: TakeOver) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let keeper = Keeper { all: folder.to_owned(), own: None, lost, told: false };
        let work = Work { keeper, jobs: waiting, most, take_over };
        let files = Self { jobs, read: Arc::default(), waits: Mutex::new(Some(work)) };
        // Most hosts never have a task.
        if folder.is_dir() {
            files.begin()
        } else {
            files.read.set()
        }
        files
    }

    /// Begins the thread, once.
    fn begin(&self) {
        let work = self.waits.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Work { mut keeper, mut jobs, most, take_over }) = work else { return };
        let read = Arc::clone(&self.read);
        let thread = std::thread::Builder::new().name("toolcell-tasks".to_owned()).spawn(move || {
            keeper.take_over_all(most, &*take_over);
            read.set();
            while let Some(job) = jobs.blocking_recv() {
                keeper.work(job);
            }
        });
        if let Err(error) = thread {
            tracing::warn!("tasks are not known to a later process: {error}");
            self.read.set();
        }
    }

    /// Waits until tasks of earlier processes were read.
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
            // Without a thread nothing is written.
            let _ = written.await;
        }
    }

    /// Removes the file of a task. Without room for that it stays, and is removed at a later start.
    pub fn remove(&self, id: String) {
        let _ = self.jobs.try_send(Job::Remove(id));
    }
}

impl Read {
    fn set(&self) {
        let _ = self.done.set(());
        self.waiting.notify_waiters();
    }
}

impl Keeper {
    fn work(&mut self, job: Job) {
        let (done, written) = match job {
            Job::Write(task, written) => (self.write(&task), Some(written)),
            Job::Remove(id) => (self.remove(&id), None),
        };
        if let Err(error) = done
            && !std::mem::replace(&mut self.told, true)
        {
            let folder = self.all.display();
            tracing::warn!("a later process will not know some tasks: their files below {folder}: {error}");
        }
        // Nobody may wait any more.
        let _ = written.map(|written| written.send(()));
    }

    fn write(&mut self, task: &KeptTask) -> io::Result<()> {
        let folder = self.own_folder()?;
        write_whole(&folder, &task.record.id, &encoded(task))
    }

    fn remove(&self, id: &str) -> io::Result<()> {
        let Some((folder, _)) = &self.own else { return Ok(()) };
        match fs::remove_file(folder.join(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The folder of this process. Nobody sees it before it is locked.
    fn own_folder(&mut self) -> io::Result<PathBuf> {
        if let Some((folder, _)) = &self.own {
            return Ok(folder.clone());
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{:016x}", u64::from_ne_bytes(random));
        DirBuilder::new().recursive(true).mode(0o700).create(&self.all)?;
        let (hidden, folder) = (self.all.join(format!(".{name}")), self.all.join(name));
        DirBuilder::new().mode(0o700).create(&hidden)?;
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(hidden.join(LOCK))?;
        lock.lock()?;
        fs::rename(&hidden, &folder)?;
        self.own = Some((folder.clone(), lock));
        Ok(folder)
    }

    /// Takes over the tasks of processes that have ended.
    fn take_over_all(&mut self, most: usize, take_over: &dyn Fn(KeptTask)) {
        // There is none before the first task.
        let Ok(folders) = fs::read_dir(&self.all) else { return };
        let mut left = most;
        for folder in folders.filter_map(Result::ok).take(FOLDERS_MAX) {
            let path = folder.path();
            let Some(locked) = locked(&path) else { continue };
            // The first one is this process's own from now on: its files stay where they are.
            let (own, lock) = match &self.own {
                None => (self.own.insert((path.clone(), locked)).0.clone(), None),
                Some((own, _)) => (own.clone(), Some(locked)),
            };
            let done = self.take_over(&path, &own, &mut left, take_over);
            // Whatever else lies in another one is nobody's.
            let done = done.and_then(|()| if lock.is_some() { fs::remove_dir_all(&path) } else { Ok(()) });
            if let Err(error) = done {
                tracing::warn!("tasks of an earlier process are not known: {}: {error}", path.display());
            }
        }
    }

    fn take_over(&self, folder: &Path, own: &Path, left: &mut usize, take_over: &dyn Fn(KeptTask)) -> io::Result<()> {
        for file in fs::read_dir(folder)?.filter_map(Result::ok) {
            let (name, path) = (file.file_name(), file.path());
            let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
            let task = Some(id).filter(|_| *left > 0).and_then(|id| decoded(id, &read_bounded(&path)?));
            let Some(mut task) = task.filter(|task| task.record.ends_ms() > now_ms()) else {
                fs::remove_file(&path)?;
                continue;
            };
            if folder != own {
                fs::rename(&path, own.join(id))?;
            }
            if !task.record.status.is_over() {
                let LostTask { body, message } = self.lost;
                (task.record.status, task.record.body) = (TaskStatus::Failed, Arc::from(body));
                (task.record.message, task.record.changed_ms) = (message.to_owned(), now_ms());
                write_whole(own, id, &encoded(&task))?;
            }
            *left -= 1;
            take_over(task);
        }
        Ok(())
    }
}

/// The lock of a process that has ended; `None` while it runs.
fn locked(folder: &Path) -> Option<File> {
    let is_hidden = folder.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
    let lock = (!is_hidden).then(|| OpenOptions::new().write(true).open(folder.join(LOCK)).ok()).flatten()?;
    lock.try_lock().ok().map(|()| lock)
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let is_file = fs::symlink_metadata(path).ok().filter(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
    is_file.and_then(|_| fs::read(path).ok())
}

/// Writes a file that is there as a whole or not at all, also where the process is killed.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!("{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    fs::rename(draft, folder.join(name))
}

fn is_id(name: &str) -> bool {
    name.len() == ID_DIGITS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn encoded(task: &KeptTask) -> Vec<u8> {
    let KeptTask { caller, record } = task;
    let TaskRecord { status, message, created_ms, changed_ms, ttl_ms, body, .. } = record;
    let (letter, lengths) = (status.letter(), [caller.len(), message.len(), body.len()].map(|len| len.to_string()));
    let lengths = lengths.join(" ");
    let mut out = format!("{FORM} {letter} {created_ms} {changed_ms} {ttl_ms} {lengths}\n").into_bytes();
    for part in [caller.as_str(), message, body] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

fn decoded(id: &str, bytes: &[u8]) -> Option<KeptTask> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, rest) = text.split_once('\n')?;
    let mut words = head.split(' ');
    let status = words.next().filter(|form| *form == FORM).and_then(|_| TaskStatus::of_letter(words.next()?))?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (created_ms, changed_ms, ttl_ms) = (number()?, number()?, number()?);
    let mut length = || usize::try_from(number()?).ok();
    let (caller, rest) = rest.split_at_checked(length()?)?;
    let (message, body) = rest.split_at_checked(length()?)?;
    (length()? == body.len()).then_some(())?;
    let record = TaskRecord {
        id: id.to_owned(),
        number: 0,
        status,
        message: message.to_owned(),
        created_ms,
        changed_ms,
        ttl_ms,
        questions: Vec::new(),
        body: Arc::from(body),
    };
    Some(KeptTask { caller: caller.to_owned(), record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_half_a_one_is_none() {
        let record = TaskRecord {
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            number: 0,
            status: TaskStatus::Completed,
            message: "done\nso".to_owned(),
            created_ms: 1,
            changed_ms: 2,
            ttl_ms: 3,
            questions: Vec::new(),
            body: Arc::from("{\"a\": \"é\"}"),
        };
        let task = KeptTask { caller: "ann b".to_owned(), record };
        let bytes = encoded(&task);
        let read = decoded(&task.record.id, &bytes).unwrap();
        assert_eq!((read.caller.as_str(), &read.record), ("ann b", &task.record));
        for end in 0..bytes.len() {
            assert!(decoded(&task.record.id, &bytes[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn only_the_name_of_a_task_is_one() {
        for (name, is) in [
            ("0123456789abcdef0123456789abcdef", true),
            ("0123456789abcdef0123456789abcdeF", false),
            ("0123456789abcdef0123456789abcdef.new", false),
            ("lock", false),
            ("", false),
        ] {
            assert_eq!(is_id(name), is, "{name}");
        }
    }
}
