//! The destination of records: a JSON Lines file, or nowhere.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::chain::RECORD_BYTES_MAX;
use crate::event::{AuditRepaired, Event};
use crate::files::{CHAINS_MAX, Files};
use crate::open::{self, FoundAudit};
use crate::settings::Settings;
use crate::writer::{self, Dropped, DroppedCounts, Writer};

/// The interval of reports on missing records where they are not required.
pub const MISSING_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Size of the buffer that a thread keeps for its next record, in bytes. Nearly all are shorter.
const BUFFER_BYTES_KEPT: usize = 8 << 10;

thread_local! {
    /// Threads make records at the same time, and write them one after the other.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The destination of records. Shared by every call; one record is written at a time.
#[derive(Debug)]
pub struct Sink {
    audit: Option<AuditState>,
}

#[derive(Debug)]
struct AuditState {
    path: PathBuf,
    /// The audit's own name, which all chains share.
    shared: PathBuf,
    writer: Mutex<Writer>,
    settings: Settings,
    reports: MissingReports,
    /// Records that are missing.
    missing: AtomicU64,
    /// Records that rotation has removed.
    dropped: Arc<DroppedCounts>,
}

/// Receives reports on missing records, if records are not required.
struct MissingReports {
    to: Box<dyn Fn(&SinkError) + Send + Sync>,
    last: Mutex<Option<Instant>>,
}

/// The state of the audit's files when they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Records that were there before, in older files too; 0 for a new file.
    pub records: u64,
    /// Bytes of a torn record that was cut off. The chain has a record of it: `audit.repaired`.
    pub torn_bytes: u64,
}

/// Why an audit file cannot be used. The messages do not name the path: the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be opened, read or repaired.
    #[error("cannot open the audit file: {0}")]
    Io(#[from] io::Error),
    /// Other processes write all of its chains.
    #[error("{CHAINS_MAX} other processes write to the audit already, the most allowed")]
    Locked,
    /// It holds something other than an audit, so nothing is written to it.
    #[error("the file does not end as an audit file does; it is left as it is")]
    NotAnAudit,
    /// A file is named like a closed file of this audit, but is not one: rotation would move it,
    /// and finally remove it.
    #[error("the file of this name with .{number} after it is not an audit file, and rotation would move it")]
    Foreign {
        /// The number after its name.
        number: u32,
    },
    /// The repair could not be recorded.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// Why an event could not be recorded. The recorded action must not happen. The messages follow
/// what the caller says of it, such as "the audit cannot be written".
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The record was not written, or cut off again; or no new file could be begun.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A part of a record could not be cut off: nothing more is written after it.
    #[error("it has a torn record and cannot be continued")]
    Broken,
    /// The record would exceed [`RECORD_BYTES_MAX`].
    #[error("the audit record has {bytes} bytes, at most {RECORD_BYTES_MAX} are allowed")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// The event cannot be serialized.
    #[error("the audit record cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Sink {
    /// A sink that records nothing and costs nothing: events are not even made.
    #[must_use]
    pub const fn disabled() -> Self {
        Self { audit: None }
    }

    /// [`open_with`](Self::open_with) the default settings.
    ///
    /// # Errors
    /// As there.
    pub fn open(path: &Path) -> Result<(Self, Opened), OpenError> {
        Self::open_with(path, Settings::default())
    }

    /// Opens a file for appending, or creates it with mode 0600. An existing audit is continued,
    /// even if a rotation was interrupted; a torn record is cut off, and that is recorded. A
    /// regular file stays locked against other writers as long as the sink lives; if another
    /// process holds it, the next free [chain](crate::chains) is used.
    ///
    /// # Errors
    /// [`OpenError`] where the file cannot be opened, is in use, or holds something other than an
    /// audit.
    pub fn open_with(path: &Path, settings: Settings) -> Result<(Self, Opened), OpenError> {
        let (files, found) = open_free(&Files::of(path), &settings)?;
        let path = files.current().to_owned();
        let shared = files.audit().to_owned();
        let opened = Opened { records: found.seq, torn_bytes: found.torn_bytes };
        let continues = found.continues;
        let mut writer = Writer::new(files, found, &settings);
        if let Some(previous_bytes) = continues {
            writer.append_rotated(previous_bytes, 0)?;
        }
        let audit = AuditState {
            path,
            dropped: writer.dropped(),
            shared,
            writer: Mutex::new(writer),
            settings,
            reports: MissingReports::nobody(),
            missing: AtomicU64::new(0),
        };
        let sink = Self { audit: Some(audit) };
        if opened.torn_bytes > 0 {
            sink.record(|| Event::AuditRepaired(AuditRepaired { dropped_bytes: opened.torn_bytes }))?;
        }
        Ok((sink, opened))
    }

    /// Sets the receiver of reports on missing records, if records are not
    /// [required](Settings::required): the first is reported at once, then once in
    /// [`MISSING_REPORT_INTERVAL`] as long as it lasts.
    #[must_use]
    pub fn telling(mut self, to: impl Fn(&SinkError) + Send + Sync + 'static) -> Self {
        if let Some(audit) = &mut self.audit {
            audit.reports.to = Box::new(to);
        }
        self
    }

    /// True if events are recorded.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.audit.is_some()
    }

    /// True if calls are recorded with their arguments.
    #[must_use]
    pub fn keeps_arguments(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.settings.arguments)
    }

    /// True if calls are recorded with their uses of grants.
    #[must_use]
    pub fn keeps_uses(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.settings.uses)
    }

    /// The file of this process, if events are recorded.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.audit.as_ref().map(|audit| audit.path.as_path())
    }

    /// The audit's own path, if events are recorded: [`chains`](crate::chains) has the files of all
    /// processes.
    #[must_use]
    pub fn audit(&self) -> Option<&Path> {
        self.audit.as_ref().map(|audit| audit.shared.as_path())
    }

    /// How many records are missing since it was opened.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.audit.as_ref().map_or(0, |audit| audit.missing.load(Ordering::Relaxed))
    }

    /// True if the last record could not be written. If records are required, the next action is
    /// then refused, as far as anybody knows.
    ///
    /// First tries to record how many are missing, so that the answer is current.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        let Some(audit) = &self.audit else { return false };
        match audit.writer.try_lock() {
            Ok(mut writer) => writer.append_missed().is_err(),
            Err(TryLockError::Poisoned(writer)) => writer.into_inner().append_missed().is_err(),
            // A record is being written at this moment. The caller does not wait for the disk.
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// True if an action that cannot be recorded is refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.settings.required)
    }

    /// The records that rotation has removed since it was opened.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.audit.as_ref().map(|audit| audit.dropped.read()).unwrap_or_default()
    }

    /// Records an event with one write to the file. The event is made only if it is recorded.
    ///
    /// # Errors
    /// [`SinkError`] if the record is not in the file: the action must not happen. Never if records
    /// are not required.
    pub fn record<'a>(&self, event: impl FnOnce() -> Event<'a>) -> Result<(), SinkError> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let recorded = audit.record(&event());
        if recorded.is_err() {
            audit.missing.fetch_add(1, Ordering::Relaxed);
        }
        match recorded {
            Err(error) if !audit.settings.required => {
                audit.reports.now(&error);
                Ok(())
            }
            recorded => recorded,
        }
    }
}

/// Opens the first chain that no other process holds.
fn open_free(files: &Files, settings: &Settings) -> Result<(Files, FoundAudit), OpenError> {
    for number in 1..=CHAINS_MAX {
        let chain = files.chain(number);
        match open::open(&chain, settings) {
            Err(OpenError::Locked) => {}
            opened => return Ok((chain, opened?)),
        }
    }
    Err(OpenError::Locked)
}

impl AuditState {
    fn record(&self, event: &Event<'_>) -> Result<(), SinkError> {
        BUFFER.with_borrow_mut(|json| {
            writer::encode(json, event)?;
            // A panic under the lock leaves at most a stale line, which the next record replaces.
            let recorded = self.writer.lock().unwrap_or_else(PoisonError::into_inner).append(json);
            json.clear();
            json.shrink_to(BUFFER_BYTES_KEPT);
            recorded
        })
    }
}

impl MissingReports {
    fn nobody() -> Self {
        Self { to: Box::new(|_| ()), last: Mutex::new(None) }
    }

    fn now(&self, error: &SinkError) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= MISSING_REPORT_INTERVAL) {
            *last = Some(Instant::now());
            drop(last);
            (self.to)(error);
        }
    }
}

impl fmt::Debug for MissingReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MissingReports").field("last", &self.last).finish_non_exhaustive()
    }
}
