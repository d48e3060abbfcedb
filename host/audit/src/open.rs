//! Opening an audit to append to it: finding, locking and repairing its files.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::chain::{GENESIS, Hash, LINE_START};
use crate::files::{FILES_MAX, Files, Identity, exists, found, not_regular, open_regular};
use crate::settings::Settings;
use crate::sink::OpenError;
use crate::tail::{self, Tail};

/// The permissions of a new file: no other user may read the record of calls.
const FILE_MODE: u32 = 0o600;

/// How often the file may turn out to have moved while it is opened. Another process moves it once
/// in minutes.
const ATTEMPTS_MAX: u32 = 16;

/// An audit to append to.
#[derive(Debug)]
pub(crate) struct FoundAudit {
    pub(crate) file: File,
    /// True for a regular file, which can be locked, truncated and rotated, unlike a device.
    pub(crate) is_regular: bool,
    pub(crate) length_bytes: u64,
    /// The number and the hash of the last record.
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
    /// Bytes of a torn record, which were cut off.
    pub(crate) torn_bytes: u64,
    /// The length of the file before, if this file has no `audit.rotated` yet.
    pub(crate) continues: Option<u64>,
}

/// Finds the audit, or creates its file, and locks it.
pub(crate) fn open(files: &Files, settings: &Settings) -> Result<FoundAudit, OpenError> {
    let file = locked(files)?;
    let is_regular = file.metadata()?.is_file();
    let mut found =
        FoundAudit { file, is_regular, length_bytes: 0, seq: 0, prev: GENESIS, torn_bytes: 0, continues: None };
    if !is_regular {
        return Ok(found);
    }
    if let Some(rotation) = settings.rotation {
        check_closed(files, rotation.keep)?;
    }
    let Tail { seq, prev, torn_bytes } = mended(&found.file)?;
    (found.seq, found.prev, found.torn_bytes) = (seq, prev, torn_bytes);
    if seq == 0 && exists(&files.number(1))? {
        let closed = reading().open(files.number(1))?;
        let Tail { seq, prev, torn_bytes } = mended(&closed)?;
        (found.seq, found.prev) = (seq, prev);
        found.torn_bytes += torn_bytes;
        found.continues = Some(closed.metadata()?.len()).filter(|_| seq > 0);
    }
    found.length_bytes = found.file.metadata()?.len();
    Ok(found)
}

/// Creates and locks a new file.
pub(crate) fn create(path: &Path) -> io::Result<Result<File, OpenError>> {
    let file = reading().create_new(true).mode(FILE_MODE).open(path)?;
    Ok(lock(&file).map(|()| file))
}

/// The file, locked if possible. While a writer rotates, the file does not exist for a moment, and
/// the writer holds the lock of the newest closed file.
fn locked(files: &Files) -> Result<File, OpenError> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(file) = found(reading().open(files.current()))? {
            let kind = file.metadata()?.file_type();
            if kind.is_char_device() {
                return Ok(file);
            }
            if !kind.is_file() {
                // A FIFO that nobody reads would hold up every call once it is full.
                return Err(OpenError::Io(not_regular()));
            }
            lock(&file)?;
            if Identity::at(files.current())? == Some(Identity::of(&file)?) {
                return Ok(file);
            }
            continue;
        }
        let closed = found(reading().open(files.number(1)))?;
        closed.as_ref().map_or(Ok(()), lock)?;
        match create(files.current()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created?,
        }
    }
    Err(OpenError::Locked)
}

/// Cuts off a torn record.
fn mended(file: &File) -> Result<Tail, OpenError> {
    let length_bytes = file.metadata()?.len();
    let tail = tail::of_file(file, length_bytes)?.ok_or(OpenError::NotAnAudit)?;
    if tail.torn_bytes > 0 {
        file.set_len(length_bytes.saturating_sub(tail.torn_bytes))?;
    }
    Ok(tail)
}

/// Checks that the files that rotation would move and remove are closed files of an audit.
fn check_closed(files: &Files, keep: u32) -> Result<(), OpenError> {
    let closed = files.closed()?;
    for number in (1..=keep.clamp(1, FILES_MAX)).chain(closed.into_iter().filter(|number| *number > keep)) {
        let mut start = Vec::new();
        let file = match found(open_regular(&files.number(number))) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(OpenError::Foreign { number }),
            opened => opened?,
        };
        let Some(file) = file else { continue };
        file.take(LINE_START.len() as u64).read_to_end(&mut start)?;
        if start != LINE_START {
            return Err(OpenError::Foreign { number });
        }
    }
    Ok(())
}

/// Reads as well as it appends, so that opening a FIFO does not wait for a reader.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    options
}

fn lock(file: &File) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked),
        Err(TryLockError::Error(error)) => Err(OpenError::Io(error)),
    }
}
