//! The open state file: one writer at a time, commits made durable together, closed while nobody
//! uses it, opened again after a failure.
//!
//! redb locks the file for the process that has it open. People have several clients, and each
//! starts a host with the same manifest. So a host closes the file between two operations once
//! another one waits for it, and otherwise soon after the last operation. A host that finds it
//! locked waits for its turn, and only the next in line tries to open it: the queue is a lock on a
//! file next to it.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, WriteTransaction};

use super::error::{StateFault, StateOpenError, StateRefusal};
use super::file::{self, Trust};

/// Bytes that calls may write before one of them makes all of it durable. Writes that are not
/// durable cannot be freed either, so a call that overwrites one value repeatedly would grow the
/// file without end.
const UNSETTLED_BYTES_MAX: u64 = 8 << 20;

/// Time before a file that could not be opened is tried again: verifying it reads all of it.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Time between two attempts to open a file that another process has open, by the next in line.
const LOCK_POLL: Duration = Duration::from_millis(2);

/// Time between two attempts to become the next in line.
const QUEUE_POLL: Duration = Duration::from_millis(10);

/// Time for which an unused file stays open for the next call: opening it waits for the disk.
const IDLE: Duration = Duration::from_millis(200);

/// Time for which a process keeps the file at least, even if others wait. Closing and reopening it
/// take some 10 ms, so ten processes that write all the time spend two thirds of it on writing, and
/// each waits for a third of a second.
const TURN: Duration = Duration::from_millis(20);

/// How often an open file is checked for others that wait, and for the end of its use.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// How far a call has written. Each write returns one, and `settle` makes the writes up to it
/// durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteMark {
    life: u64,
    commit: u64,
}

impl WriteMark {
    /// The mark after two writes of one call.
    pub(crate) fn and(self, later: Self) -> Self {
        Self { life: self.life, commit: later.commit }
    }
}

/// A component's state file.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    lock_wait: Duration,
    now: RwLock<FileState>,
    users: Mutex<Users>,
    /// Notified when the last operation ends, and when the file is closed.
    quiet: Condvar,
    commits: AtomicU64,
    durable: AtomicU64,
    unsettled_bytes: AtomicU64,
    settling: Mutex<()>,
}

/// The current state of the file.
#[derive(Debug)]
struct FileState {
    database: Option<Database>,
    /// Times that it was opened.
    openings: u64,
    /// The number of failures. Each one loses the writes that were not durable.
    life: u64,
    /// Since when, and why, it cannot be opened.
    failed: Option<(Instant, String)>,
}

/// The operations that use it.
#[derive(Debug, Default)]
struct Users {
    count: usize,
    /// True while it is being closed, so that no operation begins.
    closing: bool,
    /// When the last one ended.
    last: Option<Instant>,
}

/// Keeps the file open for one operation. Other operations may run at the same time.
#[derive(Debug)]
pub(crate) struct DatabaseVisit(Arc<StateFile>);

impl StateFile {
    /// Opens and verifies it, waiting up to `lock_wait` for another process to close it.
    pub(super) fn open(path: PathBuf, lock_wait: Duration) -> Result<Arc<Self>, StateOpenError> {
        let database = open_unlocked(&path, lock_wait, Trust::Verify)?;
        let now = FileState { database: Some(database), openings: 1, life: 1, failed: None };
        let file = Arc::new(Self {
            path,
            lock_wait,
            now: RwLock::new(now),
            users: Mutex::default(),
            quiet: Condvar::new(),
            commits: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            unsettled_bytes: AtomicU64::new(0),
            settling: Mutex::new(()),
        });
        // Loading verified it. It may not be needed soon, and another host may wait.
        file.keep(1);
        Ok(file)
    }

    /// Opens the file if it is closed, and keeps it open for one operation. May wait for another
    /// process, and for the disk.
    pub(super) fn enter(self: &Arc<Self>) -> Result<DatabaseVisit, StateRefusal> {
        let visit = self.visit();
        self.ensure_open()?;
        Ok(visit)
    }

    /// Keeps the file open for one operation, if it is open. Reading then only waits for the disk.
    pub(super) fn enter_open(self: &Arc<Self>) -> Option<DatabaseVisit> {
        let mut users = self.users();
        let is_open = self.now.try_read().is_ok_and(|now| now.database.is_some());
        (is_open && !users.closing).then(|| {
            users.count += 1;
            DatabaseVisit(Arc::clone(self))
        })
    }

    /// Reads one consistent state, even while others write.
    pub(super) fn read<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&ReadTransaction) -> Result<T, StateRefusal>,
    ) -> Result<T, StateRefusal> {
        self.with(|database, _| work(&database.begin_read()?))
    }

    /// Does all of `work`, or none of it if it is refused. `bytes` is about the size of its
    /// writes. Others see them at once; they survive the host only once they are settled.
    pub(super) fn write<T>(
        self: &Arc<Self>,
        bytes: u64,
        work: impl FnOnce(&WriteTransaction) -> Result<T, StateRefusal>,
    ) -> Result<(T, WriteMark), StateRefusal> {
        self.with(|database, life| {
            let mut transaction = database.begin_write()?;
            let unsettled = self.unsettled_bytes.load(Ordering::Relaxed).saturating_add(bytes);
            let settles = unsettled > UNSETTLED_BYTES_MAX;
            let durability = if settles { Durability::Immediate } else { Durability::None };
            transaction.set_durability(durability)?;
            let value = work(&transaction)?;
            // Its only writer numbers it before it ends, so the next writer knows that it is done.
            let commit = self.commits.fetch_add(1, Ordering::AcqRel).saturating_add(1);
            transaction.commit()?;
            if settles {
                self.settled(commit);
            } else {
                self.unsettled_bytes.store(unsettled, Ordering::Relaxed);
            }
            Ok((value, WriteMark { life, commit }))
        })
    }

    /// True if everything up to `mark` is known to survive the host, without waiting.
    pub(super) fn is_settled(&self, mark: WriteMark) -> bool {
        self.now.try_read().is_ok_and(|now| now.life == mark.life)
            && self.durable.load(Ordering::Acquire) >= mark.commit
    }

    /// Returns once everything up to `mark` survives the host, and the machine. Calls that end
    /// together share one wait for the disk.
    pub(super) fn settle(self: &Arc<Self>, mark: WriteMark) -> Result<(), StateFault> {
        let _visit = self.visit_beside_others();
        let _turn = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        if self.now.read().unwrap_or_else(PoisonError::into_inner).life != mark.life {
            return Err(StateFault::Lost);
        }
        if self.durable.load(Ordering::Acquire) >= mark.commit {
            return Ok(());
        }
        let settled = self.with(|database, life| {
            if mark.life != life {
                return Err(StateRefusal::Fault(StateFault::Lost));
            }
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            let commit = self.commits.load(Ordering::Acquire);
            transaction.commit()?;
            self.settled(commit);
            Ok(())
        });
        settled.map_err(|refusal| match refusal {
            StateRefusal::Fault(fault) => fault,
            other => StateFault::Closed(other.to_string()),
        })
    }

    fn settled(&self, commit: u64) {
        self.durable.fetch_max(commit, Ordering::AcqRel);
        self.unsettled_bytes.store(0, Ordering::Relaxed);
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visit(self: &Arc<Self>) -> DatabaseVisit {
        let mut users = self.users();
        while users.closing {
            users = self.quiet.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        users.count += 1;
        DatabaseVisit(Arc::clone(self))
    }

    /// [`visit`](Self::visit), for a caller that may already have a visit: while any exists, the
    /// file is not closed, and waiting for that would never end. Only calls that have written get
    /// here, so those visits do end.
    fn visit_beside_others(self: &Arc<Self>) -> DatabaseVisit {
        let mut users = self.users();
        while users.closing && users.count == 0 {
            users = self.quiet.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        users.count += 1;
        DatabaseVisit(Arc::clone(self))
    }

    /// Runs `work` on the open file. If the file fails, the next call opens it again: redb does
    /// nothing more with a file that failed once, and a full disk may have room again.
    fn with<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&Database, u64) -> Result<T, StateRefusal>,
    ) -> Result<T, StateRefusal> {
        self.ensure_open()?;
        let (result, life) = {
            let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
            let Some(database) = &now.database else { return Err(StateRefusal::Busy) };
            let work = AssertUnwindSafe(|| work(database, now.life));
            let result =
                catch_unwind(work).unwrap_or_else(|panic| Err(StateFault::Panicked(panic_text(&*panic)).into()));
            (result, now.life)
        };
        if let Err(StateRefusal::Fault(fault)) = &result
            && !matches!(fault, StateFault::Lost)
        {
            self.fail(life);
        }
        result
    }

    fn ensure_open(self: &Arc<Self>) -> Result<(), StateRefusal> {
        if self.now.read().unwrap_or_else(PoisonError::into_inner).database.is_some() {
            return Ok(());
        }
        let asked = Instant::now();
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.database.is_some() {
            return Ok(());
        }
        // The wait for other visitors counts, so that many together wait no longer than one.
        let wait = self.lock_wait.saturating_sub(asked.elapsed());
        let trust = match &now.failed {
            Some((since, reason)) if since.elapsed() < RETRY_AFTER => {
                return Err(StateFault::Closed(reason.clone()).into());
            }
            Some(_) => Trust::Verify,
            None => Trust::AsClosed,
        };
        match open_unlocked(&self.path, wait, trust) {
            Ok(database) => {
                (now.database, now.failed) = (Some(database), None);
                now.openings = now.openings.wrapping_add(1);
                self.keep(now.openings);
                Ok(())
            }
            Err(StateOpenError::Taken { .. }) => Err(StateRefusal::Busy),
            Err(error) => {
                now.failed = Some((Instant::now(), error.to_string()));
                Err(StateFault::Closed(error.to_string()).into())
            }
        }
    }

    /// Closes the file after a failure, unless that was done since `life`. The next call opens it.
    fn fail(&self, life: u64) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.life != life {
            return;
        }
        // A transaction cannot be open here: it borrows the database that this lock guards.
        let database = now.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
        now.life = now.life.saturating_add(1);
        now.failed = Instant::now().checked_sub(RETRY_AFTER).map(|since| (since, "it failed".to_owned()));
        self.unsettled_bytes.store(0, Ordering::Relaxed);
    }

    /// Closes it when it is due. Without a runtime nothing serves: a command loads, prints its
    /// findings and ends.
    fn keep(self: &Arc<Self>, opening: u64) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let file = Arc::downgrade(self);
        let opened = Instant::now();
        runtime.spawn(async move {
            loop {
                let Some(file) = file.upgrade() else { return };
                if file.is_due(opened) {
                    // This only fails if the runtime ends, and then the process does.
                    let _ = tokio::task::spawn_blocking(move || file.close(opening)).await;
                    return;
                }
                drop(file);
                tokio::time::sleep(POLL_EVERY).await;
            }
        });
    }

    /// True if the file is unused, or if another process has waited for a whole turn.
    fn is_due(&self, opened: Instant) -> bool {
        let is_idle = {
            let users = self.users();
            users.count == 0 && users.last.is_none_or(|last| last.elapsed() >= IDLE)
        };
        is_idle || opened.elapsed() >= TURN && file::is_waited_for(&self.path)
    }

    /// Closes the file between two operations, and makes its writes durable. Does nothing if it was
    /// reopened since.
    fn close(&self, opening: u64) {
        let mut users = self.users();
        users.closing = true;
        while users.count > 0 {
            users = self.quiet.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        drop(users);
        {
            let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
            let database = if now.openings == opening { now.database.take() } else { None };
            if let Some(database) = database {
                let closed = catch_unwind(AssertUnwindSafe(|| database.close()));
                if matches!(closed, Ok(Ok(()))) {
                    self.settled(self.commits.load(Ordering::Acquire));
                } else {
                    now.life = now.life.saturating_add(1);
                    now.failed = Instant::now().checked_sub(RETRY_AFTER).map(|since| (since, "it failed".to_owned()));
                }
            }
        }
        self.users().closing = false;
        self.quiet.notify_all();
    }
}

impl Drop for DatabaseVisit {
    fn drop(&mut self) {
        let mut users = self.0.users();
        users.count = users.count.saturating_sub(1);
        users.last = Some(Instant::now());
        if users.count == 0 && users.closing {
            self.0.quiet.notify_all();
        }
    }
}

/// Opens the file once no other process has it open. Processes that waited longer go first.
fn open_unlocked(path: &std::path::Path, wait: Duration, trust: Trust) -> Result<Database, StateOpenError> {
    let started = Instant::now();
    let mut next = None;
    loop {
        if next.is_none() {
            next = file::next_in_line(path)?;
        }
        if next.is_some() {
            match file::open(path, trust) {
                Err(StateOpenError::Taken { .. }) => {}
                result => return result,
            }
        }
        if started.elapsed() >= wait {
            return Err(StateOpenError::Taken { file: path.display().to_string() });
        }
        std::thread::sleep(if next.is_some() { LOCK_POLL } else { QUEUE_POLL });
    }
}

/// The message of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "redb stopped".to_owned())
}
