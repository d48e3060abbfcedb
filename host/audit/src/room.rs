//! The space of all chains of an audit together: `rotate` and `keep` bound it, however many
//! processes have written it.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::{CHAINS_MAX, Files, first_record, found, open_regular};
use crate::tail;

/// A file that may be removed.
struct OldFile {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

/// A chain that is not being written, as long as this holds its lock.
struct IdleChain {
    /// Its files, oldest first: they are removed in this order, so that no gap is left.
    files: VecDeque<OldFile>,
    _lock: File,
}

/// The records that were removed to make room.
#[derive(Debug, Default)]
pub(crate) struct MadeRoom {
    pub(crate) records: u64,
    /// The time when the last of them was written.
    pub(crate) written: Option<SystemTime>,
}

impl MadeRoom {
    fn remove(&mut self, path: &Path) -> io::Result<()> {
        let written = fs::metadata(path)?.modified().ok();
        // A file is removed even if its records cannot be counted: the audit must go on.
        let records = records_in(path).unwrap_or_default();
        fs::remove_file(path)?;
        self.records = self.records.saturating_add(records);
        self.written = self.written.max(written);
        Ok(())
    }
}

/// The number of a file's records, from its first and its last one.
fn records_in(path: &Path) -> io::Result<u64> {
    let Some(first) = first_record(path)? else { return Ok(0) };
    let file = open_regular(path)?;
    let tail = tail::of_file(&file, file.metadata()?.len())?;
    Ok(tail.map_or(0, |tail| tail.seq.saturating_add(1).saturating_sub(first)))
}

/// Removes the oldest files until all chains together have at most this many bytes, besides the
/// files that are being written: first files of idle chains, then closed files of this chain,
/// except the newest. Other running processes remove their own files. Removals are noted in `made`,
/// also after an error.
pub(crate) fn make_room(own: &Files, bytes_max: u64, made: &mut MadeRoom) -> io::Result<()> {
    let mut bytes = closed_bytes(own)?;
    let mut idle = Vec::new();
    for chain in (1..=CHAINS_MAX).map(|number| own.chain(number)).filter(|chain| chain.current() != own.current()) {
        match locked(&chain)? {
            ChainLock::NoChain => {}
            ChainLock::Others => bytes = bytes.saturating_add(closed_bytes(&chain)?),
            ChainLock::Own(lock) => {
                let files = old_files(&chain)?;
                bytes = files.iter().fold(bytes, |bytes, file| bytes.saturating_add(file.bytes));
                idle.push(IdleChain { files, _lock: lock });
            }
        }
    }
    while bytes > bytes_max {
        let left = idle.iter_mut().filter(|chain| !chain.files.is_empty());
        let oldest = left.min_by_key(|chain| chain.files.front().map(|file| file.written));
        let Some(file) = oldest.and_then(|chain| chain.files.pop_front()) else { break };
        made.remove(&file.path)?;
        bytes = bytes.saturating_sub(file.bytes);
    }
    for number in own.closed()?.into_iter().skip(1).rev() {
        if bytes <= bytes_max {
            break;
        }
        let path = own.number(number);
        let length = fs::metadata(&path)?.len();
        made.remove(&path)?;
        bytes = bytes.saturating_sub(length);
    }
    Ok(())
}

/// All files of a chain, oldest first.
fn old_files(chain: &Files) -> io::Result<VecDeque<OldFile>> {
    let mut files = VecDeque::new();
    for number in std::iter::once(0).chain(chain.closed()?) {
        let path = chain.number(number);
        if let Some(metadata) = found(fs::metadata(&path))? {
            if metadata.len() > 0 && first_record(&path)?.is_none() {
                // Foreign files are neither counted nor removed.
                return Ok(VecDeque::new());
            }
            files.push_front(OldFile { path, bytes: metadata.len(), written: metadata.modified()? });
        }
    }
    Ok(files)
}

/// True if a process is writing this chain.
///
/// # Errors
///
/// The system's error if the file cannot be opened.
pub fn is_written(path: &Path) -> io::Result<bool> {
    let Some(file) = found(open_regular(path))? else { return Ok(false) };
    Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The lock of a chain.
enum ChainLock {
    /// The chain does not exist.
    NoChain,
    /// Another process holds it.
    Others,
    /// This process holds it, as long as this is open.
    Own(File),
}

/// The lock of a chain's file, as [`open`](crate::open) takes it.
fn locked(chain: &Files) -> io::Result<ChainLock> {
    for number in [0, 1] {
        let Some(file) = found(open_regular(&chain.number(number)))? else { continue };
        return match file.try_lock() {
            Ok(()) => Ok(ChainLock::Own(file)),
            Err(TryLockError::WouldBlock) => Ok(ChainLock::Others),
            Err(TryLockError::Error(error)) => Err(error),
        };
    }
    Ok(ChainLock::NoChain)
}

fn closed_bytes(chain: &Files) -> io::Result<u64> {
    let mut bytes = 0_u64;
    for number in chain.closed()? {
        let closed = found(fs::metadata(chain.number(number)))?;
        bytes = bytes.saturating_add(closed.map_or(0, |closed| closed.len()));
    }
    Ok(bytes)
}
