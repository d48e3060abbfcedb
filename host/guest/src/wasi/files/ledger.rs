//! Quotas: the content of a writable folder, reserved before it is written and released when it is
//! removed. A folder of the host has one ledger, shared by all mounts of it. The ledger itself
//! opens and names nothing.
//!
//! Lock order: `names`, then the `writing` of one file. A writer only takes the latter.
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use toolcell_policy::Quota;
use toolcell_walls::folder::{self, Counts, Facts, Identity};

use super::bindings::types::ErrorCode;
use super::handed::Lent;
use super::handle::Handle;

/// Other programs may add and remove files, too. Their changes are noticed when a guest is refused
/// room, but not more often than this: a guest that retries in a loop must not keep the host
/// counting.
const RECOUNT_EVERY: Duration = Duration::from_secs(10);

/// The ledgers of this process, by the identity of the file with their counts.
static LEDGERS: LazyLock<Mutex<HashMap<Identity, Weak<Ledger>>>> = LazyLock::new(Mutex::default);

/// The content of one folder of the host, and its open files.
#[derive(Debug)]
pub(crate) struct Ledger {
    used: Counts,
    /// The largest number of files that any mount of the folder allows. A count stops there.
    files_max: AtomicU64,
    /// Counts in progress. They hold `names`, for as long as the disk takes.
    counts: AtomicUsize,
    /// True if room was refused since the last count.
    refused: AtomicBool,
    names: Mutex<OpenNames>,
}

#[derive(Debug, Default)]
struct OpenNames {
    open: HashMap<Identity, OpenFile>,
    counted: Option<Instant>,
}

#[derive(Debug, Default)]
struct OpenFile {
    writing: Arc<Mutex<()>>,
    handles: Vec<Weak<Handle>>,
}

/// Whether a ledger is counted again.
#[derive(Clone, Debug)]
pub(crate) enum Counted {
    Folder(Arc<Dir>),
    Lent(Lent),
    /// No other program writes here.
    Never,
}

/// A ledger with the limits of one mount.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    ledger: Arc<Ledger>,
    quota: Quota,
    counted: Counted,
}

impl Account {
    /// The account of something new and empty, for one use.
    pub(crate) fn private(quota: Quota) -> Self {
        Self { ledger: Arc::new(Ledger::new(Counts::default())), quota, counted: Counted::Never }
    }

    /// The account of a folder or file that the host handed over and has counted.
    pub(super) fn handed(ledger: &Arc<Ledger>, quota: Quota, counted: Counted) -> Self {
        Self { ledger: Arc::clone(ledger), quota, counted }
    }

    /// Reserves room, or fails if there is none. Reserving nothing always succeeds.
    pub(crate) fn reserve(&self, bytes: u64, files: u64) -> Result<Reservation, ErrorCode> {
        let ledger = Arc::clone(&self.ledger);
        let mut reservation = Reservation { ledger, bytes: 0, files: 0 };
        if !self.ledger.used.take_bytes(bytes, self.quota.bytes) {
            return Err(ErrorCode::InsufficientSpace);
        }
        reservation.bytes = bytes;
        if !self.ledger.used.take_files(files, self.quota.files) {
            return Err(ErrorCode::InsufficientSpace);
        }
        reservation.files = files;
        Ok(reservation)
    }

    /// Locks the names, so that names change and files open one at a time and the count matches the
    /// folder.
    pub(crate) fn names(&self) -> NamesLock<'_> {
        NamesLock { account: self, names: self.ledger.names() }
    }

    /// Runs something that may need room, and notes a refusal, so that the folder can be recounted.
    pub(crate) fn with_room<T>(&self, attempt: impl FnOnce() -> Result<T, ErrorCode>) -> Result<T, ErrorCode> {
        let done = attempt();
        if matches!(done, Err(ErrorCode::InsufficientSpace)) {
            self.ledger.refused.store(true, Ordering::Release);
        }
        done
    }

    /// True if room was refused since the last check.
    pub(crate) fn was_refused(&self) -> bool {
        self.ledger.refused.swap(false, Ordering::AcqRel)
    }

    /// Recounts, unless that was done shortly before. Takes as long as the disk does.
    pub(crate) fn recount(&self) -> bool {
        self.count(RECOUNT_EVERY).is_ok_and(|counted| counted)
    }

    /// The used amount, if it could be counted.
    #[cfg(test)]
    pub(super) fn used(&self) -> Option<folder::Amount> {
        self.ledger.used.amount()
    }

    /// Makes the next ledger with these counts a new one, as in another process.
    #[cfg(test)]
    pub(super) fn leave_to_another_process(&self) {
        let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.retain(|_, ledger| !Weak::ptr_eq(ledger, &Arc::downgrade(&self.ledger)));
    }

    /// Acts as if the last count were long ago.
    #[cfg(test)]
    pub(super) fn forget_count(&self) {
        self.ledger.names().counted = None;
    }

    /// True while it is being counted. Asking for a name and closing a file wait meanwhile.
    pub(crate) fn is_counted(&self) -> bool {
        self.ledger.counts.load(Ordering::Acquire) > 0
    }

    /// Waits for the count to end.
    pub(crate) fn wait(&self) {
        drop(self.ledger.names());
    }

    /// Releases bytes after a file got shorter.
    pub(crate) fn give_back_bytes(&self, bytes: u64) {
        self.ledger.used.give_back_bytes(bytes);
    }

    /// Recounts if the last count is older than `age`. The caller must not hold a lock of the
    /// ledger.
    pub(super) fn count(&self, age: Duration) -> std::io::Result<bool> {
        let _count = CountMark::begin(&self.ledger);
        // Handles that must not be closed during the count: closing takes the lock, too, so these
        // outlive it.
        let mut kept: Vec<Arc<Handle>> = Vec::new();
        let ledger = &self.ledger;
        let files_max = ledger.files_max.fetch_max(self.quota.files, Ordering::AcqRel).max(self.quota.files);
        let mut names = ledger.names();
        if names.counted.is_some_and(|at| at.elapsed() < age) {
            return Ok(false);
        }
        names.counted = Some(Instant::now());
        let writing: Vec<Arc<Mutex<()>>> = names.open.values().map(|open| Arc::clone(&open.writing)).collect();
        let _still: Vec<MutexGuard<'_, ()>> =
            writing.iter().map(|writing| writing.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let amount = match &self.counted {
            Counted::Folder(root) => folder::folder(root, files_max)?,
            Counted::Lent(lent) => Some(lent.amount()?),
            Counted::Never => return Ok(false),
        };
        kept.extend(names.open.values().filter_map(|open| open.handles.iter().find_map(Weak::upgrade)));
        let nameless: u64 = kept.iter().map(|handle| handle.nameless_bytes()).sum();
        ledger.used.set(amount, nameless);
        drop(names);
        Ok(true)
    }

    /// Checks whether our last handle on a file has closed. If its last name is gone, too, its
    /// bytes are released.
    pub(super) fn closed(&self, identity: Identity, file: &std::fs::File) {
        let mut names = self.ledger.names();
        let Some(open) = names.open.get_mut(&identity) else { return };
        open.handles.retain(|handle| handle.strong_count() > 0);
        if !open.handles.is_empty() {
            return;
        }
        names.open.remove(&identity);
        if let Ok(facts) = Facts::of(file)
            && facts.links == 0
        {
            self.ledger.used.give_back_bytes(facts.charged_bytes());
        }
    }
}

impl Ledger {
    fn new(used: Counts) -> Self {
        Self {
            used,
            files_max: AtomicU64::new(0),
            counts: AtomicUsize::new(0),
            refused: AtomicBool::new(false),
            names: Mutex::default(),
        }
    }

    /// The ledger of a folder that the host handed over: one for all of its mounts in this process.
    pub(super) fn handed(counts: OwnedFd) -> std::io::Result<Arc<Self>> {
        let counts = std::fs::File::from(counts);
        let identity = Facts::of(&counts)?.identity;
        let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        if let Some(ledger) = ledgers.get(&identity).and_then(Weak::upgrade) {
            return Ok(ledger);
        }
        let ledger = Arc::new(Self::new(Counts::handed(counts.into())?));
        ledgers.insert(identity, Arc::downgrade(&ledger));
        Ok(ledger)
    }

    /// A panic under the lock leaves counts that the next count repairs.
    fn names(&self) -> MutexGuard<'_, OpenNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a count in progress while it lives.
struct CountMark<'l>(&'l Ledger);

impl<'l> CountMark<'l> {
    fn begin(ledger: &'l Ledger) -> Self {
        ledger.counts.fetch_add(1, Ordering::AcqRel);
        Self(ledger)
    }
}

impl Drop for CountMark<'_> {
    fn drop(&mut self) {
        self.0.counts.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reserved room. What is not used is released on drop.
#[must_use]
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Arc<Ledger>,
    bytes: u64,
    files: u64,
}

impl Reservation {
    /// Keeps all of it.
    pub(crate) fn keep(self) {
        let bytes = self.bytes;
        self.keep_bytes(bytes);
    }

    /// Keeps this many of the bytes, and all of the files.
    pub(crate) fn keep_bytes(mut self, used: u64) {
        self.bytes = self.bytes.saturating_sub(used);
        self.files = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.used.give_back_bytes(self.bytes);
        self.ledger.used.give_back_files(self.files);
    }
}

/// The exclusive right to change names in a folder. Do not drop a handle while holding it: that
/// takes the same lock.
pub(crate) struct NamesLock<'a> {
    account: &'a Account,
    names: MutexGuard<'a, OpenNames>,
}

impl NamesLock<'_> {
    /// The lock to hold while this file changes its size, if it is open.
    pub(crate) fn writing(&self, identity: Identity) -> Option<Arc<Mutex<()>>> {
        self.names.open.get(&identity).map(|open| Arc::clone(&open.writing))
    }

    /// Tracks an open file.
    pub(crate) fn open(&mut self, identity: Identity, make: impl FnOnce(Arc<Mutex<()>>) -> Handle) -> Arc<Handle> {
        let open = self.names.open.entry(identity).or_default();
        let handle = Arc::new(make(Arc::clone(&open.writing)));
        open.handles.push(Arc::downgrade(&handle));
        handle
    }

    /// Notes that a name was removed. Its bytes are released, unless it was the last name of a file
    /// that is still open.
    pub(crate) fn removed(&self, facts: &Facts) {
        let ledger = &self.account.ledger;
        ledger.used.give_back_files(1);
        let held = facts.is_file() && facts.links <= 1 && self.names.open.contains_key(&facts.identity);
        if !held {
            ledger.used.give_back_bytes(facts.charged_bytes());
        }
    }
}
