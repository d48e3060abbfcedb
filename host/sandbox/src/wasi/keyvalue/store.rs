//! The operations on a component's state, within bounds: read, write, delete, count up, list. No
//! WASI, no manifest.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redb::{ReadableTable as _, ReadableTableMetadata as _, Table, WriteTransaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_wall::doors::state::{BATCH_BYTES_MAX, UnfitOperation, check_key, check_keys};

use super::database::{DatabaseVisit, StateFile, WriteMark};
use super::error::{StateFault, StateOpenError, StateRefusal};
use super::file;
use super::tables::{self, ENTRIES, ORDER, USAGE};

/// Callers for which one component keeps state at once, if each has its own. It bounds the file to
/// this many quotas.
pub(crate) const CALLERS_MAX: u64 = 1_000;

/// Keys in one answer to a listing.
pub(crate) const PAGE_KEYS_MAX: usize = 1_000;

/// Bytes of keys in one answer to a listing: little for the memory of even a small guest.
pub(crate) const PAGE_BYTES_MAX: usize = 64 * 1024;

/// Digits of a counter: those of 2^64. So a text of a million zeros is not a number.
const NUMBER_DIGITS_MAX: usize = 20;

/// Keys that are read or written between two checks whether the caller still waits: about a
/// millisecond.
const PIECE_KEYS: usize = 64;

/// The bounds of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceBounds {
    /// Bytes of all keys and values together.
    pub(crate) bytes: u64,
    /// Entries.
    pub(crate) entries: u64,
    /// Bytes of one value.
    pub(crate) value_bytes: u64,
}

/// A bucket of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketPath {
    /// The namespace: empty if all callers share it, otherwise one caller's.
    pub(crate) namespace: String,
    /// The bucket's name.
    pub(crate) bucket: String,
}

/// Stops an operation whose caller stopped waiting.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

/// Stops its operation when it is dropped.
#[derive(Debug)]
pub(crate) struct StopWaiter(StopFlag);

impl StopFlag {
    /// Someone waits while the result lives.
    pub(crate) fn waiter(&self) -> StopWaiter {
        StopWaiter(self.clone())
    }

    /// Checks the flag, at the beginning of each piece and at the end.
    fn check(&self, done: usize) -> Result<(), StateRefusal> {
        let looks = done.is_multiple_of(PIECE_KEYS);
        if looks && self.0.load(Ordering::Relaxed) { Err(StateRefusal::Stopped) } else { Ok(()) }
    }
}

impl Drop for StopWaiter {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// The place of a write, its bounds, and the flag that stops it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateWrite<'a> {
    pub(crate) place: &'a BucketPath,
    pub(crate) bounds: &'a NamespaceBounds,
    pub(crate) stop: &'a StopFlag,
}

/// The right to write, which one call has at a time.
pub(crate) type StateWriteTurn = OwnedSemaphorePermit;

/// One answer to a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyPage {
    /// Keys, in the order in which they were first set.
    pub(crate) keys: Vec<String>,
    /// Where the next page begins, if there is one.
    pub(crate) cursor: Option<u64>,
}

/// The content of a namespace, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeldContent {
    bytes: u64,
    entries: u64,
}

/// A component's state.
#[derive(Debug)]
pub(crate) struct ComponentStore {
    file: Arc<StateFile>,
    /// redb allows one write at a time, and blocks other threads. Here they wait without a thread.
    turns: Arc<Semaphore>,
}

/// A key and its value.
pub(crate) type KeyValue = (String, Vec<u8>);

impl ComponentStore {
    /// Opens and verifies the component's file in `folder`, or makes both. Waits up to `lock_wait`
    /// for another process to close it, now and whenever it is reopened.
    pub(crate) fn open(folder: &Path, component: &str, lock_wait: Duration) -> Result<Self, StateOpenError> {
        let file = StateFile::open(file::path(folder, component), lock_wait)?;
        Ok(Self { file, turns: Arc::new(Semaphore::new(1)) })
    }

    /// Waits until no other call writes.
    pub(crate) async fn turn(&self) -> Option<StateWriteTurn> {
        // It is never closed.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Keeps the file open for one operation, if it is open. Reading then only waits for the disk.
    pub(crate) fn enter_open(&self) -> Option<DatabaseVisit> {
        self.file.enter_open()
    }

    /// Keeps the file open for one operation, which then waits for no other process. This call may
    /// wait for one.
    pub(crate) fn enter(&self) -> Result<DatabaseVisit, StateRefusal> {
        self.file.enter()
    }

    /// The value of `key`.
    pub(crate) fn get(&self, place: &BucketPath, key: &str) -> Result<Option<Vec<u8>>, StateRefusal> {
        check_key(key)?;
        self.file.read(|transaction| {
            let entries = transaction.open_table(ENTRIES)?;
            let found = entries.get((place.namespace.as_str(), place.bucket.as_str(), key))?;
            Ok(found.map(|entry| entry.value().1.to_vec()))
        })
    }

    /// True if there is an entry of this key.
    pub(crate) fn exists(&self, place: &BucketPath, key: &str) -> Result<bool, StateRefusal> {
        check_key(key)?;
        self.file.read(|transaction| {
            let entries = transaction.open_table(ENTRIES)?;
            Ok(entries.get((place.namespace.as_str(), place.bucket.as_str(), key))?.is_some())
        })
    }

    /// The entries of `keys`, in their order, from one point in time; refused if keys and values
    /// together exceed `bytes_max`.
    pub(crate) fn get_all(
        &self,
        place: &BucketPath,
        keys: Vec<String>,
        bytes_max: u64,
        stop: &StopFlag,
    ) -> Result<Vec<Option<KeyValue>>, StateRefusal> {
        check_keys(keys.iter())?;
        self.file.read(|transaction| {
            let entries = transaction.open_table(ENTRIES)?;
            let mut bytes = 0_u64;
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                stop.check(found.len())?;
                let entry = entries.get((place.namespace.as_str(), place.bucket.as_str(), key.as_str()))?;
                let Some(entry) = entry else {
                    found.push(None);
                    continue;
                };
                let value = entry.value().1;
                bytes = bytes.saturating_add(size(&key, value));
                if bytes > bytes_max {
                    return Err(StateRefusal::Answer { max: bytes_max });
                }
                found.push(Some((key, value.to_vec())));
            }
            Ok(found)
        })
    }

    /// Sets every key, or none.
    pub(crate) fn set_all(&self, change: StateWrite<'_>, pairs: &[KeyValue]) -> Result<WriteMark, StateRefusal> {
        check_keys(pairs.iter().map(|(key, _)| key))?;
        let mut bytes = 0_u64;
        for (key, value) in pairs {
            check_value(value, change.bounds)?;
            bytes = bytes.saturating_add(size(key, value));
        }
        if bytes > BATCH_BYTES_MAX {
            return Err(UnfitOperation::Bytes { bytes, max: BATCH_BYTES_MAX }.into());
        }
        let ((), mark) = self.file.write(bytes, |transaction| {
            let mut writer = BucketWriter::begin(transaction, change)?;
            for (done, (key, value)) in pairs.iter().enumerate() {
                change.stop.check(done)?;
                writer.set(key, value)?;
            }
            writer.finish()
        })?;
        Ok(mark)
    }

    /// Deletes every key, or none. Keys without an entry are passed over.
    pub(crate) fn delete_all(&self, change: StateWrite<'_>, keys: &[String]) -> Result<WriteMark, StateRefusal> {
        check_keys(keys.iter())?;
        let bytes = keys.iter().map(|key| key.len() as u64).sum();
        let ((), mark) = self.file.write(bytes, |transaction| {
            let mut writer = BucketWriter::begin(transaction, change)?;
            for (done, key) in keys.iter().enumerate() {
                change.stop.check(done)?;
                writer.delete(key)?;
            }
            writer.finish()
        })?;
        Ok(mark)
    }

    /// Adds `delta` to the decimal number under `key`, or to 0 without an entry, in one step.
    pub(crate) fn add(&self, change: StateWrite<'_>, key: &str, delta: u64) -> Result<(u64, WriteMark), StateRefusal> {
        check_key(key)?;
        self.file.write(key.len() as u64, |transaction| {
            let mut writer = BucketWriter::begin(transaction, change)?;
            let number = writer.number(key)?.checked_add(delta).ok_or(StateRefusal::Overflow)?;
            let text = number.to_string();
            check_value(text.as_bytes(), change.bounds)?;
            writer.set(key, text.as_bytes())?;
            writer.finish()?;
            Ok(number)
        })
    }

    /// The keys that were first set after the one at `cursor`; all of them without a cursor.
    pub(crate) fn keys(&self, place: &BucketPath, cursor: Option<u64>) -> Result<KeyPage, StateRefusal> {
        let namespace = place.namespace.as_str();
        let bucket = place.bucket.as_str();
        let Some(first) = cursor.unwrap_or(0).checked_add(1) else {
            return Ok(KeyPage { keys: Vec::new(), cursor: None });
        };
        self.file.read(|transaction| {
            let order = transaction.open_table(ORDER)?;
            let rows = order.range((namespace, bucket, first)..=(namespace, bucket, u64::MAX))?;
            cut_page(rows.map(|row| {
                let (at, key) = row?;
                Ok((key.value().to_owned(), at.value().2))
            }))
        })
    }

    /// True if everything up to `mark` is known to survive the host and the machine, without
    /// waiting.
    pub(crate) fn is_settled(&self, mark: WriteMark) -> bool {
        self.file.is_settled(mark)
    }

    /// Returns once all that was written up to `mark` survives the host and the machine. Waits for
    /// the disk.
    pub(crate) fn settle(&self, mark: WriteMark) -> Result<(), StateFault> {
        self.file.settle(mark)
    }
}

/// The writes of one transaction to one bucket, with the namespace's account.
struct BucketWriter<'t> {
    transaction: &'t WriteTransaction,
    entries: Table<'t, (&'static str, &'static str, &'static str), (u64, &'static [u8])>,
    usage: Table<'t, &'static str, (u64, u64)>,
    place: &'t BucketPath,
    bounds: &'t NamespaceBounds,
    stop: &'t StopFlag,
    before: HeldContent,
    held: HeldContent,
}

impl<'t> BucketWriter<'t> {
    fn begin(transaction: &'t WriteTransaction, change: StateWrite<'t>) -> Result<Self, StateRefusal> {
        let StateWrite { place, bounds, stop } = change;
        let entries = transaction.open_table(ENTRIES)?;
        let usage = transaction.open_table(USAGE)?;
        let row = usage.get(place.namespace.as_str())?.map(|row| row.value());
        let before = row.map_or(HeldContent::default(), |(bytes, entries)| HeldContent { bytes, entries });
        Ok(Self { transaction, entries, usage, place, bounds, stop, before, held: before })
    }

    fn at<'k>(&'k self, key: &'k str) -> (&'k str, &'k str, &'k str) {
        (&self.place.namespace, &self.place.bucket, key)
    }

    /// The serial of an entry and the bytes it holds.
    fn entry(&self, key: &str) -> Result<Option<(u64, u64)>, StateRefusal> {
        let found = self.entries.get(self.at(key))?;
        Ok(found.map(|entry| {
            let (serial, value) = entry.value();
            (serial, size(key, value))
        }))
    }

    fn number(&self, key: &str) -> Result<u64, StateRefusal> {
        let Some(entry) = self.entries.get(self.at(key))? else { return Ok(0) };
        let text = entry.value().1;
        if text.len() > NUMBER_DIGITS_MAX {
            return Err(StateRefusal::NoNumber);
        }
        let text = std::str::from_utf8(text).map_err(|_| StateRefusal::NoNumber)?;
        // `parse` accepts a plus sign, which is never written here.
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(StateRefusal::NoNumber);
        }
        text.parse().map_err(|_| StateRefusal::NoNumber)
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StateRefusal> {
        let serial = match self.entry(key)? {
            Some((serial, bytes)) => {
                self.held.bytes = self.held.bytes.saturating_sub(bytes);
                serial
            }
            None => {
                let serial = tables::next_serial(self.transaction)?;
                let mut order = self.transaction.open_table(ORDER)?;
                order.insert((self.place.namespace.as_str(), self.place.bucket.as_str(), serial), key)?;
                self.held.entries = self.held.entries.saturating_add(1);
                serial
            }
        };
        self.held.bytes = self.held.bytes.saturating_add(size(key, value));
        // The rest of a batch frees at most the bytes that were there before it.
        self.check_room(self.before)?;
        let at = (self.place.namespace.as_str(), self.place.bucket.as_str(), key);
        self.entries.insert(at, (serial, value))?;
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<(), StateRefusal> {
        let Some((serial, bytes)) = self.entry(key)? else { return Ok(()) };
        let namespace = self.place.namespace.as_str();
        let bucket = self.place.bucket.as_str();
        self.entries.remove((namespace, bucket, key))?;
        self.transaction.open_table(ORDER)?.remove((namespace, bucket, serial))?;
        self.held.bytes = self.held.bytes.saturating_sub(bytes);
        self.held.entries = self.held.entries.saturating_sub(1);
        Ok(())
    }

    /// Checks the current content against the bounds plus `spare`. Content from before a quota was
    /// lowered stays, and may shrink.
    fn check_room(&self, spare: HeldContent) -> Result<(), StateRefusal> {
        let Self { before, held, bounds, .. } = self;
        if held.bytes > bounds.bytes.max(before.bytes).saturating_add(spare.bytes) {
            return Err(StateRefusal::Bytes { held: before.bytes, wanted: held.bytes, max: bounds.bytes });
        }
        if held.entries > bounds.entries.max(before.entries).saturating_add(spare.entries) {
            return Err(StateRefusal::Entries { wanted: held.entries, max: bounds.entries });
        }
        Ok(())
    }

    /// Checks the final content against the bounds, and writes the account; or fails if the caller
    /// stopped waiting.
    fn finish(mut self) -> Result<(), StateRefusal> {
        self.check_room(HeldContent::default())?;
        self.stop.check(0)?;
        let Self { before, held, .. } = self;
        let namespace = self.place.namespace.as_str();
        if held.entries == 0 {
            self.usage.remove(namespace)?;
            return Ok(());
        }
        if before.entries == 0 && self.usage.len()? >= CALLERS_MAX {
            return Err(StateRefusal::Callers { max: CALLERS_MAX });
        }
        self.usage.insert(namespace, (held.bytes, held.entries))?;
        Ok(())
    }
}

/// The first page of keys and their serials.
pub(super) fn cut_page(
    rows: impl Iterator<Item = Result<(String, u64), StateRefusal>>,
) -> Result<KeyPage, StateRefusal> {
    let mut page = KeyPage { keys: Vec::new(), cursor: None };
    let mut bytes = 0;
    let mut last = 0;
    for row in rows {
        let (key, serial) = row?;
        bytes += key.len();
        if page.keys.len() == PAGE_KEYS_MAX || bytes > PAGE_BYTES_MAX {
            page.cursor = Some(last);
            break;
        }
        page.keys.push(key);
        last = serial;
    }
    Ok(page)
}

/// Rows that a page is cut from: one more than a page shows that there is another one.
pub(super) const fn rows_max() -> usize {
    PAGE_KEYS_MAX + 1
}

/// Bytes of an entry that count towards the quota: its key and its value.
fn size(key: &str, value: &[u8]) -> u64 {
    (key.len() as u64).saturating_add(value.len() as u64)
}

pub(super) fn check_value(value: &[u8], bounds: &NamespaceBounds) -> Result<(), StateRefusal> {
    let bytes = value.len() as u64;
    if bytes > bounds.value_bytes { Err(StateRefusal::Value { bytes, max: bounds.value_bytes }) } else { Ok(()) }
}
