//! Where records go: a JSON Lines file, or nowhere. Must not hold: which events there are.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

use crate::chain::{self, Hash, RECORD_BYTES_MAX};
use crate::clock::rfc3339;
use crate::event::Event;
use crate::tail::{self, Tail};

/// What is read of a file that is continued: its last record and a torn one.
const TAIL_BYTES_MAX: u64 = 2 * RECORD_BYTES_MAX as u64;

/// The permissions of a new file: nobody else reads who called what.
const FILE_MODE: u32 = 0o600;

/// Where records go. Shared by every call; one record is written at a time.
#[derive(Debug)]
pub struct Sink {
    file: Option<Mutex<Writer>>,
}

/// What was found where the records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Records that were there before; 0 for a new file.
    pub records: u64,
    /// Bytes of a record that was never written whole, now cut off. The chain says so too: `audit.repaired`.
    pub torn_bytes: u64,
}

/// Why an audit file cannot be used. No variant names the path: the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be opened, read or repaired.
    #[error("cannot open the audit file: {0}")]
    Io(#[from] io::Error),
    /// Another process writes to it.
    #[error("another process writes to the audit file")]
    Locked,
    /// It holds something, and not an audit: nothing is written to it.
    #[error("the file does not end as an audit file does; it is left as it is")]
    NotAnAudit,
    /// The repair could not be recorded.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// Why an event could not be recorded. What it stands for must not happen.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The file took none of the record, or only a part that was cut off again.
    #[error("the audit cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A part of a record stays in the file, since it could not be cut off: nothing more is written after it.
    #[error("the audit has a torn record and cannot be continued")]
    Broken,
    /// The record would exceed [`RECORD_BYTES_MAX`].
    #[error("the audit record has {bytes} bytes, {RECORD_BYTES_MAX} are allowed")]
    TooLarge {
        /// How many it has.
        bytes: usize,
    },
    /// The event has no JSON form.
    #[error("the audit record cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// A regular file can be cut off; a pipe or a device cannot.
    is_regular: bool,
    seq: u64,
    prev: Hash,
    length_bytes: u64,
    is_broken: bool,
    buffer: Vec<u8>,
}

#[derive(Serialize)]
struct Record<'a> {
    seq: u64,
    prev: &'a str,
    time: &'a str,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl Sink {
    /// A sink that records nothing and costs nothing: events are not even made.
    #[must_use]
    pub const fn disabled() -> Self {
        Self { file: None }
    }

    /// Opens a file for appending, or makes it with permissions 0600. An audit that is there is continued; what is
    /// left of a record that was never written whole is cut off, and the cut recorded. A regular file is locked
    /// against other writers as long as the sink lives.
    ///
    /// # Errors
    /// [`OpenError`] where the file cannot be opened, is in use, or holds something else than an audit.
    pub fn open(path: &Path) -> Result<(Self, Opened), OpenError> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(path)?;
        let metadata = file.metadata()?;
        let is_regular = metadata.is_file();
        let mut tail = Tail { seq: 0, prev: chain::GENESIS, torn_bytes: 0 };
        let mut length_bytes = 0;
        if is_regular {
            lock(&file)?;
            // Only now: another writer may have written until the lock was free.
            length_bytes = file.metadata()?.len();
            tail = read_tail(&mut file, length_bytes)?;
            if tail.torn_bytes > 0 {
                length_bytes -= tail.torn_bytes;
                file.set_len(length_bytes)?;
            }
        }
        let Tail { seq, prev, torn_bytes } = tail;
        let buffer = Vec::new();
        let writer = Writer { file, is_regular, seq, prev, length_bytes, is_broken: false, buffer };
        let sink = Self { file: Some(Mutex::new(writer)) };
        if torn_bytes > 0 {
            sink.record(|| Event::AuditRepaired { dropped_bytes: torn_bytes })?;
        }
        Ok((sink, Opened { records: seq, torn_bytes }))
    }

    /// Whether events are recorded at all.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.file.is_some()
    }

    /// Records an event with one write to the file. The event is made only if it is recorded.
    ///
    /// # Errors
    /// [`SinkError`] where the record is not in the file: what the event stands for must not happen.
    pub fn record<'a>(&self, event: impl FnOnce() -> Event<'a>) -> Result<(), SinkError> {
        let Some(file) = &self.file else { return Ok(()) };
        let event = event();
        // A panic under the lock leaves at most a stale buffer, which the next record clears.
        file.lock().unwrap_or_else(PoisonError::into_inner).append(&event)
    }
}

impl Writer {
    fn append(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        if self.is_broken {
            return Err(SinkError::Broken);
        }
        let seq = self.seq + 1;
        let (prev, time) = (chain::hex(&self.prev), rfc3339(SystemTime::now()));
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &Record { seq, prev: &prev, time: &time, event })?;
        let hash = chain::hash(&self.buffer);
        self.buffer.push(b'\n');
        if self.buffer.len() > RECORD_BYTES_MAX {
            return Err(SinkError::TooLarge { bytes: self.buffer.len() });
        }
        self.write()?;
        self.seq = seq;
        self.prev = hash;
        Ok(())
    }

    /// Writes the buffer whole, or leaves the file as it was.
    fn write(&mut self) -> Result<(), SinkError> {
        let written = loop {
            match self.file.write(&self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written == self.buffer.len() {
            self.length_bytes += written as u64;
            return Ok(());
        }
        // The file took a part: the disk is full, or a signal came in between. Take the part back.
        self.is_broken = !self.is_regular || self.file.set_len(self.length_bytes).is_err();
        let error = io::Error::new(io::ErrorKind::WriteZero, "the file took only a part of the record");
        Err(SinkError::Io(error))
    }
}

fn lock(file: &File) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked),
        Err(std::fs::TryLockError::Error(error)) => Err(OpenError::Io(error)),
    }
}

fn read_tail(file: &mut File, length_bytes: u64) -> Result<Tail, OpenError> {
    file.seek(SeekFrom::Start(length_bytes.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut end = Vec::new();
    (&*file).take(TAIL_BYTES_MAX).read_to_end(&mut end)?;
    tail::read(&end, length_bytes <= TAIL_BYTES_MAX).ok_or(OpenError::NotAnAudit)
}
