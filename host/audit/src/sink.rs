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
use crate::settings::{Arguments, Settings};
use crate::writer::{self, Dropped, DroppedCounts, Writer};

/// The interval of reports on missing records where they are not required.
pub const MISSING_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Bytes of buffer that a thread keeps for the next record it makes. Nearly all are shorter.
const BUFFER_BYTES_KEPT: usize = 8 << 10;

thread_local! {
    /// Records are made next to each other, and written one after the other.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The destination of records. Shared by every call; one record is written at a time.
#[derive(Debug)]
pub struct Sink {
    audit: Option<AuditState>,
}

#[derive(Debug)]
struct AuditState {
    /// The file of this process.
    path: PathBuf,
    /// The audit's own name, which all chains share.
    shared: PathBuf,
    writer: Mutex<Writer>,
    settings: Settings,
    reports: MissingReports,
    /// Records that were to be made and are missing.
    missing: AtomicU64,
    /// Records that rotation has removed.
    dropped: Arc<DroppedCounts>,
}

/// The receiver of reports on missing records, where records are not required.
struct MissingReports {
    to: Box<dyn Fn(&SinkError) + Send + Sync>,
    last: Mutex<Option<Instant>>,
}

/// The state of the audit's files when they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Records that were there before, those in older files included; 0 for a new file.
    pub records: u64,
    /// Bytes of a record that was never written whole, now cut off. The chain says so too:
    /// `audit.repaired`.
    pub torn_bytes: u64,
}

/// Why an audit file cannot be used. No variant names the path: the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be opened, read or repaired.
    #[error("cannot open the audit file: {0}")]
    Io(#[from] io::Error),
    /// Other processes write to all of its chains.
    #[error("{CHAINS_MAX} other processes write to the audit already, the most allowed")]
    Locked,
    /// It holds something, and not an audit: nothing is written to it.
    #[error("the file does not end as an audit file does; it is left as it is")]
    NotAnAudit,
    /// A file has the name of a closed file of this audit, but is not one: rotation would move it,
    /// and finally remove it.
    #[error("the file of this name with .{number} after it is not an audit file, and rotation would move it")]
    Foreign {
        /// The number behind its name.
        number: u32,
    },
    /// The repair could not be recorded.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// Why an event could not be recorded. What it stands for must not happen.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The file took none of the record, or only a part that was cut off again; or no new file
    /// could be begun.
    #[error("the audit cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A part of a record stays in the file, since it could not be cut off: nothing more is written
    /// after it.
    #[error("the audit has a torn record and cannot be continued")]
    Broken,
    /// The record would exceed [`RECORD_BYTES_MAX`].
    #[error("the audit record has {bytes} bytes, at most {RECORD_BYTES_MAX} are allowed")]
    TooLarge {
        /// The bytes it has.
        bytes: usize,
    },
    /// The event has no JSON form.
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

    /// Opens a file for appending, or makes it with permissions 0600. An audit that is there is
    /// continued, be it in a closed file whose successor was never begun; a torn record is cut off,
    /// and the cut recorded. A regular file is locked against other writers as long as the sink
    /// lives; where another process has it, the next free [chain](crate::chains) is taken.
    ///
    /// # Errors
    /// [`OpenError`] where the file cannot be opened, is in use, or holds something else than an
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

    /// Sets the receiver of reports on missing records, where records are not
    /// [required](Settings::required): at once, then once in [`MISSING_REPORT_INTERVAL`] while it
    /// lasts. Without one there are no reports.
    #[must_use]
    pub fn telling(mut self, to: impl Fn(&SinkError) + Send + Sync + 'static) -> Self {
        if let Some(audit) = &mut self.audit {
            audit.reports.to = Box::new(to);
        }
        self
    }

    /// True if events are recorded at all.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.audit.is_some()
    }

    /// True if calls are recorded with their arguments.
    #[must_use]
    pub fn keeps_arguments(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.settings.arguments == Arguments::Values)
    }

    /// The file of this process, where events are recorded.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.audit.as_ref().map(|audit| audit.path.as_path())
    }

    /// The audit's own name, where events are recorded: [`chains`](crate::chains) has the files of
    /// all processes.
    #[must_use]
    pub fn audit(&self) -> Option<&Path> {
        self.audit.as_ref().map(|audit| audit.shared.as_path())
    }

    /// The number of records that could not be made since it was opened.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.audit.as_ref().map_or(0, |audit| audit.missing.load(Ordering::Relaxed))
    }

    /// True if the last record could not be made. Where records are required, what the next event
    /// stands for does not happen either, as far as anybody knows.
    ///
    /// Tries again to record how many are missing, so that the answer is that of the moment.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        let Some(audit) = &self.audit else { return false };
        match audit.writer.try_lock() {
            Ok(mut writer) => writer.append_missed().is_err(),
            Err(TryLockError::Poisoned(writer)) => writer.into_inner().append_missed().is_err(),
            // A record is being made at this moment. Who asks does not wait for the disk.
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// True if what cannot be recorded does not happen.
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
    /// [`SinkError`] where the record is not in the file: what the event stands for must not
    /// happen. None where records are not required.
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

/// Opens the first chain that no other process writes.
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
