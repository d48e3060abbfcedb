//! Files of a store: reading them with a check, writing them whole, and locks.
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use toolcell_policy::Digest;

use crate::error::StoreError;
use crate::length;

/// How long to wait for another process that changes the store, which takes milliseconds.
const LOCK_WITHIN: Duration = Duration::from_secs(30);

/// Time between two polls of a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Bytes that are read at once to hash a file.
const PIECE_BYTES: usize = 64 << 10;

/// Prefix of the names of unfinished files.
pub(super) const UNFINISHED: &str = ".new-";

/// Opens a regular file for reading. Never blocks, as opening a pipe without a writer would.
pub(crate) fn open_file(path: &Path) -> std::io::Result<File> {
    open(path, OFlags::RDONLY)
}

/// Opens a regular file of the store itself, without following links.
pub(super) fn open_own(path: &Path) -> std::io::Result<File> {
    open(path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Opens a file of the store for reading and writing, and creates it if it is missing.
pub(super) fn open_to_write(path: &Path) -> std::io::Result<File> {
    open(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)
}

fn open(path: &Path, flags: OFlags) -> std::io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = File::from(rustix::fs::open(path, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, mode)?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Reads a file of at most `bytes_max` bytes.
pub(super) fn read(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_own(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if length(&bytes) > bytes_max {
        return Err(std::io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Hashes a file to its end, and counts its bytes.
pub(super) fn hash(file: &mut File) -> std::io::Result<(Sha256, u64)> {
    let mut hash = Sha256::new();
    let mut bytes = 0_u64;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece)?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else { return Ok((hash, bytes)) };
        hash.update(read);
        bytes = bytes.saturating_add(length(read));
    }
}

/// The digest of a file of the store, and its length.
pub(super) fn digest(path: &Path) -> std::io::Result<(Digest, u64)> {
    let (hash, bytes) = hash(&mut open_own(path)?)?;
    Ok((crate::finished(hash), bytes))
}

/// An unused name for a new file in this folder.
pub(super) fn unfinished(folder: &Path) -> std::path::PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    folder.join(format!("{UNFINISHED}{}-{now}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Writes a file atomically: other processes see it whole or not at all, also after a power
/// failure.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let new = unfinished(folder);
    let written = (|| {
        let mut file = open(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW)?;
        file.write_all(bytes)?;
        sync_file(&file)?;
        publish(&new, path)
    })();
    if written.is_err() {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&new);
    }
    written.map_err(StoreError::files("writing", path))
}

/// Gives a finished file its final name.
pub(super) fn publish(new: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::rename(new, path)?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Makes the content of these files durable. One sync covers many files on Linux: each by itself
/// takes some milliseconds.
#[cfg(target_os = "linux")]
pub(super) fn sync<'p>(folder: &Path, _: impl Iterator<Item = &'p Path>) -> std::io::Result<()> {
    #[cfg(test)]
    syncs::count();
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

/// Makes the content of these files durable.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync<'p>(_: &Path, mut files: impl Iterator<Item = &'p Path>) -> std::io::Result<()> {
    files.try_for_each(|path| sync_file(&File::open(path)?))
}

/// Makes a folder's entries durable.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    sync_file(&File::open(folder)?)
}

/// Makes the content of a file durable.
pub(super) fn sync_file(file: &File) -> std::io::Result<()> {
    #[cfg(test)]
    syncs::count();
    file.sync_all()
}

/// Counts syncs of each thread.
#[cfg(test)]
pub(super) mod syncs {
    use std::cell::Cell;

    thread_local! {
        static SYNCS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        SYNCS.set(SYNCS.get() + 1);
    }

    /// The number of syncs of this thread while it runs this.
    pub(in crate::store) fn of(work: impl FnOnce()) -> usize {
        let before = SYNCS.get();
        work();
        SYNCS.get() - before
    }
}

/// A lock between processes, released when it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKind {
    Shared,
    Exclusive,
}

/// Waits for a lock on this file.
pub(super) fn lock(path: &Path, kind: LockKind, busy: &'static str) -> Result<Lock, StoreError> {
    let until = Instant::now() + LOCK_WITHIN;
    loop {
        if let Some(lock) = try_lock(path, kind)? {
            return Ok(lock);
        }
        if Instant::now() >= until {
            return Err(StoreError::Busy(busy));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// Locks this file, unless another process has it.
pub(super) fn try_lock(path: &Path, kind: LockKind) -> Result<Option<Lock>, StoreError> {
    let file = open_to_write(path).map_err(StoreError::files("opening", path))?;
    let locked = match kind {
        LockKind::Shared => file.try_lock_shared(),
        LockKind::Exclusive => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(StoreError::files("locking", path)(source)),
    }
}
