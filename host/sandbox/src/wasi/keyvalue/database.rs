//! The open state file: one writer at a time, commits made durable together, closed while nobody
//! uses it, opened again after a failure. Must not hold: the content of transactions.
//!
//! redb locks the file for the process that has it open. People have several clients, and each
//! starts a host of its own with the same manifest. So the file is closed soon after the last call
//! that used it, and a host that finds it locked waits for a moment.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, WriteTransaction};

use super::error::{Fault, OpenError, Refusal};
use super::file::{self, Trust};

/// Bytes that calls may write before one of them makes all of it durable. Writes that are not
/// durable cannot be freed either, so a call that overwrites one value over and over would grow the
/// file without end.
const UNSETTLED_BYTES_MAX: u64 = 8 << 20;

/// Time for which a file that could not be opened again is left alone: verifying it reads all of
/// it.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Time between two attempts at a file that another process has open.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Time for which an unused file stays open for the next call: opening it waits for the disk.
const IDLE: Duration = Duration::from_millis(200);

/// After this time it is closed as soon as no call uses it, for another host's sake.
const HOLD_MAX: Duration = Duration::from_secs(1);

/// Up to where a call has written. Returned by each write, and given back once to have it made
/// durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    life: u64,
    commit: u64,
}

impl Mark {
    /// This call wrote before, and again.
    pub(crate) fn and(self, later: Self) -> Self {
        Self { life: self.life, commit: later.commit }
    }
}

/// A component's state file.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    lock_wait: Duration,
    now: RwLock<Now>,
    born: Instant,
    /// Milliseconds after `born` at which it was last opened. It stands beside `now`, whose lock
    /// may be held for long while the file is opened.
    opened_ms: AtomicU64,
    users: Mutex<Users>,
    commits: AtomicU64,
    durable: AtomicU64,
    unsettled_bytes: AtomicU64,
    settling: Mutex<()>,
}

/// The current state of the file.
#[derive(Debug)]
struct Now {
    database: Option<Database>,
    /// Times that it failed: writes that were not durable are gone with each.
    life: u64,
    /// Since when, and why, it cannot be opened.
    failed: Option<(Instant, String)>,
}

/// The calls that use it.
#[derive(Debug, Default)]
struct Users {
    count: usize,
    /// Number of visits: tells a pause from a later one.
    visits: u64,
}

/// Keeps the file open.
#[derive(Debug)]
pub(crate) struct Visit {
    file: Arc<StateFile>,
    /// Time for which the file stays open for the next visit.
    linger: Duration,
}

impl StateFile {
    /// Opens and verifies it, waiting up to `lock_wait` for another process to close it.
    pub(super) fn open(path: PathBuf, lock_wait: Duration) -> Result<Arc<Self>, OpenError> {
        let database = open_unlocked(&path, lock_wait, Trust::Verify)?;
        let now = Now { database: Some(database), life: 1, failed: None };
        let file = Arc::new(Self {
            path,
            lock_wait,
            now: RwLock::new(now),
            born: Instant::now(),
            opened_ms: AtomicU64::new(0),
            users: Mutex::default(),
            commits: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            unsettled_bytes: AtomicU64::new(0),
            settling: Mutex::new(()),
        });
        // Loading verified it; whether anybody comes is not known, and another host may wait.
        drop(file.visit(Duration::ZERO));
        Ok(file)
    }

    /// Opens it, where it is closed, and keeps it open. May wait for another process, and for the
    /// disk.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Visit, Refusal> {
        let visit = self.visit(IDLE);
        self.ensure_open()?;
        Ok(visit)
    }

    /// True if it is open, so that reading waits for the disk alone.
    pub(super) fn is_open(&self) -> bool {
        self.now.try_read().is_ok_and(|now| now.database.is_some())
    }

    /// Reads one consistent state, even while others write.
    pub(super) fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.with(|database, _| work(&database.begin_read()?))
    }

    /// Does all of `work`, or nothing of it where it is refused. `bytes` is about the size of its
    /// writes. Others see them at once; they survive the host only once they are settled.
    pub(super) fn write<T>(
        &self,
        bytes: u64,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Refusal>,
    ) -> Result<(T, Mark), Refusal> {
        self.with(|database, life| {
            let mut transaction = database.begin_write()?;
            let unsettled = self.unsettled_bytes.load(Ordering::Relaxed).saturating_add(bytes);
            let settles = unsettled > UNSETTLED_BYTES_MAX;
            let durability = if settles { Durability::Immediate } else { Durability::None };
            transaction.set_durability(durability)?;
            let value = work(&transaction)?;
            // Numbered by its only writer, before it ends: the next writer knows it as done.
            let commit = self.commits.fetch_add(1, Ordering::AcqRel).saturating_add(1);
            transaction.commit()?;
            if settles {
                self.settled(commit);
            } else {
                self.unsettled_bytes.store(unsettled, Ordering::Relaxed);
            }
            Ok((value, Mark { life, commit }))
        })
    }

    /// True if everything up to `mark` survives the host by now, where that can be said without
    /// waiting.
    pub(super) fn is_settled(&self, mark: Mark) -> bool {
        self.now.try_read().is_ok_and(|now| now.life == mark.life)
            && self.durable.load(Ordering::Acquire) >= mark.commit
    }

    /// Returns once everything up to `mark` survives the host, and the machine. Calls that end
    /// together share one wait for the disk.
    pub(super) fn settle(&self, mark: Mark) -> Result<(), Fault> {
        let _turn = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        if self.now.read().unwrap_or_else(PoisonError::into_inner).life != mark.life {
            return Err(Fault::Lost);
        }
        if self.durable.load(Ordering::Acquire) >= mark.commit {
            return Ok(());
        }
        let settled = self.with(|database, life| {
            if mark.life != life {
                return Err(Refusal::Fault(Fault::Lost));
            }
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            let commit = self.commits.load(Ordering::Acquire);
            transaction.commit()?;
            self.settled(commit);
            Ok(())
        });
        settled.map_err(|refusal| match refusal {
            Refusal::Fault(fault) => fault,
            other => Fault::Closed(other.to_string()),
        })
    }

    fn settled(&self, commit: u64) {
        self.durable.fetch_max(commit, Ordering::AcqRel);
        self.unsettled_bytes.store(0, Ordering::Relaxed);
    }

    fn visit(self: &Arc<Self>, linger: Duration) -> Visit {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.count += 1;
        users.visits = users.visits.wrapping_add(1);
        Visit { file: Arc::clone(self), linger }
    }

    /// Runs `work` on the open file. Where the file fails, it is opened again for the next call.
    /// redb does nothing more with a file that failed once, and a disk that was full may have room
    /// again.
    fn with<T>(&self, work: impl FnOnce(&Database, u64) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.ensure_open()?;
        let (result, life) = {
            let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
            let Some(database) = &now.database else { return Err(Refusal::Busy) };
            let work = AssertUnwindSafe(|| work(database, now.life));
            let result = catch_unwind(work).unwrap_or_else(|panic| Err(Fault::Panicked(said(&*panic)).into()));
            (result, now.life)
        };
        if let Err(Refusal::Fault(fault)) = &result
            && !matches!(fault, Fault::Lost)
        {
            self.fail(life);
        }
        result
    }

    fn ensure_open(&self) -> Result<(), Refusal> {
        if self.now.read().unwrap_or_else(PoisonError::into_inner).database.is_some() {
            return Ok(());
        }
        let asked = Instant::now();
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.database.is_some() {
            return Ok(());
        }
        // The wait for other visitors counts: many together wait no longer than one.
        let wait = self.lock_wait.saturating_sub(asked.elapsed());
        let trust = match &now.failed {
            Some((since, reason)) if since.elapsed() < RETRY_AFTER => return Err(Fault::Closed(reason.clone()).into()),
            Some(_) => Trust::Verify,
            None => Trust::AsClosed,
        };
        match open_unlocked(&self.path, wait, trust) {
            Ok(database) => {
                (now.database, now.failed) = (Some(database), None);
                let opened = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.opened_ms.store(opened, Ordering::Release);
                Ok(())
            }
            Err(OpenError::Taken { .. }) => Err(Refusal::Busy),
            Err(error) => {
                now.failed = Some((Instant::now(), error.to_string()));
                Err(Fault::Closed(error.to_string()).into())
            }
        }
    }

    /// Closes the file, which failed, unless that was done since `life`. The next call opens it.
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

    /// Closes the file if no call has come since the visit of this number, and makes its writes
    /// durable.
    fn close_unless_visited(&self, visits: u64) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        {
            let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            if users.count > 0 || users.visits != visits {
                return;
            }
        }
        let Some(database) = now.database.take() else { return };
        let closed = catch_unwind(AssertUnwindSafe(|| database.close()));
        if matches!(closed, Ok(Ok(()))) {
            self.settled(self.commits.load(Ordering::Acquire));
        } else {
            now.life = now.life.saturating_add(1);
            now.failed = Instant::now().checked_sub(RETRY_AFTER).map(|since| (since, "it failed".to_owned()));
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let file = &self.file;
        let visits = {
            let mut users = file.users.lock().unwrap_or_else(PoisonError::into_inner);
            users.count = users.count.saturating_sub(1);
            if users.count > 0 {
                return;
            }
            users.visits
        };
        // Without a runtime nothing serves: a command loads, prints its findings and ends.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let opened = Duration::from_millis(file.opened_ms.load(Ordering::Acquire));
        let held = file.born.elapsed().saturating_sub(opened);
        let pause = if held > HOLD_MAX { Duration::ZERO } else { self.linger };
        let file = Arc::clone(file);
        runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            // Only an error where the runtime itself ends, and then the process does.
            let _ = tokio::task::spawn_blocking(move || file.close_unless_visited(visits)).await;
        });
    }
}

/// Opens the file once no other process has it open.
fn open_unlocked(path: &std::path::Path, wait: Duration, trust: Trust) -> Result<Database, OpenError> {
    let started = Instant::now();
    loop {
        match file::open(path, trust) {
            Err(OpenError::Taken { .. }) if started.elapsed() < wait => std::thread::sleep(LOCK_POLL),
            result => return result,
        }
    }
}

/// The message of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "redb stopped".to_owned())
}
