//! Appending records to the file, and rotating files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::chain::{self, Hash, LINE_START, RECORD_BYTES_MAX};
use crate::clock::{push_number, push_timestamp};
use crate::event::{AuditMissed, AuditRotated, Event};
use crate::files::{Files, Identity, Removal};
use crate::open::{self, FoundAudit};
use crate::room::{MadeRoom, make_room};
use crate::settings::{Rotation, Settings};
use crate::sink::SinkError;

/// The longest part of a line before its event: the longest number, the link, the time.
const HEAD_BYTES_MAX: usize = 160;

/// A file this long or shorter holds at most `audit.rotated`.
const ROTATED_BYTES_MAX: u64 = 256;

/// Writes one audit.
#[derive(Debug)]
pub(crate) struct Writer {
    files: Files,
    file: File,
    is_regular: bool,
    rotation: Option<Rotation>,
    synced: bool,
    seq: u64,
    prev: Hash,
    length_bytes: u64,
    /// True if a part of a record could not be cut off.
    is_broken: bool,
    /// Records that could not be written since the last one that was.
    missed: u64,
    /// Records that were removed to make room since the last `audit.rotated`.
    unrecorded: u64,
    line: Vec<u8>,
    dropped: Arc<DroppedCounts>,
}

/// How many records rotation has removed.
#[derive(Debug, Default)]
pub(crate) struct DroppedCounts {
    records: AtomicU64,
    /// One more than the age in milliseconds of the youngest of the records removed last; 0 before
    /// the first removal.
    age_ms: AtomicU64,
}

/// Records that rotation has removed since the audit was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Their number.
    pub records: u64,
    /// How old the youngest of the records removed last was at that time. `None` before the first
    /// removal.
    pub age: Option<Duration>,
}

impl DroppedCounts {
    fn note(&self, records: u64, written: Option<SystemTime>) {
        self.records.fetch_add(records, Ordering::Relaxed);
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok()).unwrap_or_default();
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        self.age_ms.store(age_ms, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Dropped {
        let age_ms = self.age_ms.load(Ordering::Relaxed).checked_sub(1);
        Dropped { records: self.records.load(Ordering::Relaxed), age: age_ms.map(Duration::from_millis) }
    }
}

impl Writer {
    pub(crate) fn new(files: Files, found: FoundAudit, settings: &Settings) -> Self {
        let FoundAudit { file, is_regular, length_bytes, seq, prev, .. } = found;
        let rotation = settings.rotation.filter(|_| is_regular);
        Self {
            files,
            file,
            is_regular,
            rotation,
            synced: settings.synced,
            seq,
            prev,
            length_bytes,
            is_broken: false,
            missed: 0,
            unrecorded: 0,
            line: Vec::new(),
            dropped: Arc::default(),
        }
    }

    /// Counts records that rotation removes.
    pub(crate) fn dropped(&self) -> Arc<DroppedCounts> {
        Arc::clone(&self.dropped)
    }

    /// Appends a record of an event that [`encode`] has made. A record of missing ones is appended
    /// first.
    pub(crate) fn append(&mut self, event: &[u8]) -> Result<(), SinkError> {
        let appended = self.append_missed().and_then(|()| self.append_in_place(event));
        if appended.is_err() {
            self.missed += 1;
        }
        appended
    }

    /// Appends a record of how many records are missing, if any are.
    pub(crate) fn append_missed(&mut self) -> Result<(), SinkError> {
        if self.missed == 0 {
            return Ok(());
        }
        let mut event = Vec::new();
        encode(&mut event, &Event::AuditMissed(AuditMissed { records: self.missed }))?;
        self.append_in_place(&event)?;
        self.missed = 0;
        Ok(())
    }

    /// Appends a record to the current file, after rotating if necessary.
    fn append_in_place(&mut self, event: &[u8]) -> Result<(), SinkError> {
        self.mend()?;
        if let Some(rotation) = self.rotation {
            let length_bytes = self.length_bytes + (event.len() + HEAD_BYTES_MAX) as u64;
            if length_bytes > rotation.file_bytes_max && self.length_bytes > ROTATED_BYTES_MAX {
                self.rotate(rotation.keep)?;
                let mut made = MadeRoom::default();
                // If that fails, more is kept, and the next rotation tries again.
                let _ = make_room(&self.files, rotation.bytes_max(), &mut made);
                if made.records > 0 {
                    self.dropped.note(made.records, made.written);
                    self.unrecorded = self.unrecorded.saturating_add(made.records);
                }
            }
        }
        self.append_line(event)
    }

    fn append_line(&mut self, event: &[u8]) -> Result<(), SinkError> {
        let seq = self.seq + 1;
        let hash = self.make_line(seq, event)?;
        self.write()?;
        (self.seq, self.prev) = (seq, hash);
        Ok(())
    }

    /// Makes the line of a record, and returns its hash.
    fn make_line(&mut self, seq: u64, event: &[u8]) -> Result<Hash, SinkError> {
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(LINE_START);
        push_number(line, seq, 1);
        line.extend_from_slice(b",\"prev\":\"");
        chain::push_hex(line, &self.prev);
        line.extend_from_slice(b"\",\"time\":\"");
        push_timestamp(line, SystemTime::now());
        line.extend_from_slice(b"\",");
        line.extend_from_slice(event.strip_prefix(b"{").unwrap_or_default());
        let hash = chain::hash(line);
        line.push(b'\n');
        if line.len() > RECORD_BYTES_MAX {
            return Err(SinkError::TooLarge { bytes: line.len() });
        }
        Ok(hash)
    }

    /// Writes the line whole, or leaves the file as it was.
    fn write(&mut self) -> Result<(), SinkError> {
        let error = match self.write_once() {
            Ok(written) if written == self.line.len() => match self.sync() {
                Ok(()) => {
                    self.length_bytes += written as u64;
                    return Ok(());
                }
                Err(error) => error,
            },
            // The disk is full, or a signal interrupted the write.
            Ok(_) => io::Error::new(io::ErrorKind::WriteZero, "the file took only a part of the record"),
            // Nothing was written.
            Err(error) => return Err(error.into()),
        };
        self.is_broken = true;
        // Undoes a partial write; if that fails, the next record tries again.
        let _ = self.mend();
        Err(error.into())
    }

    fn write_once(&mut self) -> io::Result<usize> {
        loop {
            match self.file.write(&self.line) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.synced && self.is_regular { self.file.sync_data() } else { Ok(()) }
    }

    /// Cuts off a part of a record.
    fn mend(&mut self) -> Result<(), SinkError> {
        if self.is_broken {
            if !self.is_regular || self.file.set_len(self.length_bytes).is_err() {
                return Err(SinkError::Broken);
            }
            self.is_broken = false;
        }
        Ok(())
    }

    /// Closes the file and begins a new one, or leaves everything as it was. The lock of the old
    /// file is held until the new one is locked.
    fn rotate(&mut self, keep: u32) -> Result<(), SinkError> {
        let current = self.files.current().to_owned();
        let newest = self.files.number(1);
        let is_in_place = Identity::at(&current)? == Some(Identity::of(&self.file)?);
        let mut removed = Removal::default();
        if is_in_place {
            // Files are removed even if their records cannot be counted: the audit must go on.
            removed = self.files.removal(keep).unwrap_or_default();
            self.files.make_place(keep)?;
            fs::rename(&current, &newest)?;
        }
        let records = removed.first.map_or(0, |first| removed.next.unwrap_or(self.seq + 1).saturating_sub(first));
        let begun = self.begin_file(records.saturating_add(self.unrecorded));
        // With `keep = 0` nothing is removed before the new file has begun.
        if records > 0 && (begun.is_ok() || keep > 0) {
            self.dropped.note(records, removed.written);
        }
        if begun.is_ok() {
            self.unrecorded = 0;
        }
        if begun.is_err() && is_in_place {
            // If even this fails, no file has the audit's name; the next opening continues from the
            // closed one.
            let _ = fs::rename(&newest, &current);
        }
        if begun.is_ok() && keep == 0 {
            // If that fails, the next rotation removes it.
            let _ = fs::remove_file(&newest);
        }
        begun
    }

    /// Creates a file with `audit.rotated` as its first record.
    fn begin_file(&mut self, dropped_records: u64) -> Result<(), SinkError> {
        let previous_bytes = self.length_bytes;
        let file = open::create(self.files.current())?.map_err(io::Error::other)?;
        let old = std::mem::replace(&mut self.file, file);
        self.length_bytes = 0;
        let begun = self.sync_folder().and_then(|()| self.append_rotated(previous_bytes, dropped_records));
        if begun.is_err() {
            (self.file, self.length_bytes, self.is_broken) = (old, previous_bytes, false);
            let _ = fs::remove_file(self.files.current());
        }
        begun
    }

    fn sync_folder(&self) -> Result<(), SinkError> {
        if self.synced { Ok(self.files.sync_folder()?) } else { Ok(()) }
    }

    /// Appends `audit.rotated`: the file before had `previous_bytes`, and `dropped_records` records
    /// were removed with the oldest files.
    pub(crate) fn append_rotated(&mut self, previous_bytes: u64, dropped_records: u64) -> Result<(), SinkError> {
        let mut event = Vec::new();
        encode(&mut event, &Event::AuditRotated(AuditRotated { previous_bytes, dropped_records }))?;
        self.append_line(&event)
    }
}

/// The JSON of an event, which is made without a lock on the writer.
pub(crate) fn encode(json: &mut Vec<u8>, event: &impl Serialize) -> Result<(), SinkError> {
    json.clear();
    Ok(serde_json::to_writer(json, event)?)
}
