//! An open regular file: reads and writes in bounded pieces, with each write charged to the quota
//! of its mount.
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use toolcell_walls::folder::{Facts, Identity};

use super::bindings::types::ErrorCode;
use super::ledger::Account;
use super::permits::Permit;
use super::refused::code;

/// Bytes that one host call moves: the size that WASI hosts commonly permit. A guest moves more
/// with more calls, and between them its deadline and its caller are checked.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The longest file that the operating system can address.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Where a write goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    At(u64),
    End,
}

/// An open regular file, closed when the last descriptor and stream on it is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    file: std::fs::File,
    held: Option<WritableFile>,
    _permit: Permit,
}

/// What a file in a writable mount has in addition.
#[derive(Debug)]
struct WritableFile {
    account: Account,
    identity: Identity,
    writing: Arc<Mutex<()>>,
}

impl Handle {
    /// A file of a mount that is not written to.
    pub(crate) fn reading(file: std::fs::File, permit: Permit) -> Arc<Self> {
        Arc::new(Self { file, held: None, _permit: permit })
    }

    /// A file of a writable mount, which its ledger tracks from now on.
    pub(crate) fn held(file: std::fs::File, facts: &Facts, account: &Account, permit: Permit) -> HandleSeed {
        HandleSeed { file, identity: facts.identity, account: account.clone(), permit }
    }

    /// The account that its writes are charged to.
    pub(super) fn account(&self) -> Option<&Account> {
        self.held.as_ref().map(|held| &held.account)
    }

    pub(crate) fn file(&self) -> &std::fs::File {
        &self.file
    }

    pub(crate) fn facts(&self) -> Result<Facts, ErrorCode> {
        Facts::of(&self.file).map_err(|error| code(&error))
    }

    /// Bytes that remain although no name leads to them any more.
    pub(super) fn nameless_bytes(&self) -> u64 {
        Facts::of(&self.file).map_or(0, |facts| if facts.links == 0 { facts.size } else { 0 })
    }

    /// Up to `bytes_max` bytes; fewer if the file ends or that exceeds a piece; empty at the end.
    pub(crate) fn read(&self, bytes_max: u64, offset: u64) -> Result<Vec<u8>, ErrorCode> {
        let length = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(PIECE_BYTES_MAX);
        let mut bytes = vec![0; length];
        let count = retried(|| self.file.read_at(&mut bytes, offset)).map_err(|error| code(&error))?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Writes all of `bytes`, or nothing if the quota does not allow all of it.
    pub(crate) fn write(&self, bytes: &[u8], position: Position) -> Result<(), ErrorCode> {
        let held = self.held.as_ref().ok_or(ErrorCode::ReadOnly)?;
        held.account.with_room(|| self.write_once(held, bytes, position))
    }

    fn write_once(&self, held: &WritableFile, bytes: &[u8], position: Position) -> Result<(), ErrorCode> {
        let _alone = held.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.facts()?;
        single(&before)?;
        let start = match position {
            Position::At(offset) => offset,
            Position::End => before.size,
        };
        let end = start.checked_add(bytes.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(ErrorCode::FileTooLarge)?;
        let growth = if bytes.is_empty() { 0 } else { end.saturating_sub(before.size) };
        let room = held.account.reserve(growth, 0)?;
        let written = self.write_all(bytes, start, position);
        if growth == 0 {
            return written;
        }
        // The actual size counts, not the intended one: the disk may be full before the quota is.
        let after = self.facts()?;
        room.keep_bytes(after.size.saturating_sub(before.size));
        written
    }

    fn write_all(&self, bytes: &[u8], start: u64, position: Position) -> Result<(), ErrorCode> {
        let mut rest = bytes;
        let mut at = start;
        while !rest.is_empty() {
            let count = retried(|| match position {
                Position::At(_) => self.file.write_at(rest, at),
                Position::End => append(&self.file, rest, at),
            });
            let count = count.map_err(|error| code(&error))?;
            if count == 0 {
                return Err(ErrorCode::Io);
            }
            rest = rest.get(count..).unwrap_or_default();
            at = at.saturating_add(count as u64);
        }
        Ok(())
    }

    /// Sets the length. All of it counts, however little is on the disk.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), ErrorCode> {
        let held = self.held.as_ref().ok_or(ErrorCode::ReadOnly)?;
        if size > FILE_BYTES_MAX {
            return Err(ErrorCode::FileTooLarge);
        }
        held.account.with_room(|| {
            let _alone = held.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let before = self.facts()?;
            single(&before)?;
            let room = held.account.reserve(size.saturating_sub(before.size), 0)?;
            self.file.set_len(size).map_err(|error| code(&error))?;
            room.keep();
            held.account.give_back_bytes(before.size.saturating_sub(size));
            Ok(())
        })
    }

    /// Sets times, which only a writable mount allows.
    pub(crate) fn set_times(&self, times: std::fs::FileTimes) -> Result<(), ErrorCode> {
        single(&self.facts()?)?;
        self.file.set_times(times).map_err(|error| code(&error))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.account.closed(held.identity, &self.file);
        }
    }
}

/// An open file, before the ledger tracks it.
pub(crate) struct HandleSeed {
    file: std::fs::File,
    identity: Identity,
    account: Account,
    permit: Permit,
}

impl HandleSeed {
    /// Makes the ledger track it. The caller holds the lock of the same account.
    pub(crate) fn enter(self, turn: &mut super::ledger::NamesLock<'_>) -> Arc<Handle> {
        let Self { file, identity, account, permit } = self;
        turn.open(identity, |writing| Handle {
            file,
            held: Some(WritableFile { account, identity, writing }),
            _permit: permit,
        })
    }
}

/// Refuses a file with several names: another name may be outside of the mount.
pub(crate) fn single(facts: &Facts) -> Result<(), ErrorCode> {
    if facts.is_file() && facts.links > 1 { Err(ErrorCode::NotPermitted) } else { Ok(()) }
}

/// Appends wherever the file ends by now, if the system can do so: other programs may append, too.
fn append(file: &std::fs::File, bytes: &[u8], end: u64) -> std::io::Result<usize> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, pwritev2};
        match pwritev2(file, &[std::io::IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND) {
            Err(Errno::NOSYS | Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
    }
    file.write_at(bytes, end)
}

fn retried(mut attempt: impl FnMut() -> std::io::Result<usize>) -> std::io::Result<usize> {
    loop {
        match attempt() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
