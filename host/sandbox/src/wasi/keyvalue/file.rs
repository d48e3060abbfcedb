//! A component's state file on disk: its folder, its rights, its lock and its checksums.
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageError};

use super::error::StateOpenError;
use super::tables;
use crate::owned::{adopt, make_folders};

/// Mode of a folder that is made: only its owner.
const FOLDER_MODE: u32 = 0o700;

/// Mode of a state file: only its owner.
const FILE_MODE: u32 = 0o600;

/// Write permission for everyone.
const OTHERS_WRITE: u32 = 0o002;

/// Bytes of a state file that redb keeps in memory: four times the default quota, so that an
/// ordinary component's state is read from the disk once.
const CACHE_BYTES: usize = 4 << 20;

/// Files up to this size are fully verified while loading (about 10 ms). Larger ones are verified
/// only after a crash: reading a gigabyte at each start would delay a host by seconds.
const VERIFIED_BYTES_MAX: u64 = 64 << 20;

/// The choice to verify a file's checksums, or to trust them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Verify: nothing is known about the file's last use.
    Verify,
    /// Verify only after a crash: this process verified the file before, and closed it properly.
    AsClosed,
}

/// The file that holds a component's state.
pub(super) fn path(folder: &Path, component: &str) -> PathBuf {
    folder.join(format!("{component}.redb"))
}

/// Opens the file, or makes it with its folder. Until it is dropped, only this process has it open.
pub(super) fn open(path: &Path, trust: Trust) -> Result<Database, StateOpenError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    ready_folder(folder)?;
    let shown = || path.display().to_string();
    let file = open_file(path).map_err(|source| StateOpenError::File { file: shown(), source })?;
    let small = file.metadata().is_ok_and(|about| about.len() <= VERIFIED_BYTES_MAX);
    let verify = small && trust == Trust::Verify;
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let backend = FileBackend::new(file)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(verify).create_with_backend(backend)
    }));
    let damaged = |reason: String| StateOpenError::Damaged { file: shown(), reason };
    let database = match opened {
        Ok(Ok(database)) => database,
        Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => return Err(StateOpenError::Taken { file: shown() }),
        Ok(Err(DatabaseError::Storage(StorageError::Io(source)))) if source.kind() != io::ErrorKind::InvalidData => {
            return Err(StateOpenError::File { file: shown(), source });
        }
        Ok(Err(error)) => return Err(damaged(error.to_string())),
        Err(_) => return Err(damaged("its pages contradict each other".to_owned())),
    };
    match catch_unwind(AssertUnwindSafe(|| tables::ready(&database))) {
        Ok(ready) => ready?,
        Err(_) => return Err(damaged("its tables contradict each other".to_owned())),
    }
    Ok(database)
}

/// The right to open the file next, held until dropped; `None` while another process or thread has
/// it.
pub(super) fn next_in_line(path: &Path) -> Result<Option<File>, StateOpenError> {
    ready_folder(path.parent().unwrap_or(Path::new(".")))?;
    let line = line_of(path);
    let failed = |source| StateOpenError::File { file: line.display().to_string(), source };
    let file = open_file(&line).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// True if somebody waits to open the file.
pub(super) fn is_waited_for(path: &Path) -> bool {
    // The first process that waits makes it.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let line = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(line_of(path));
    line.is_ok_and(|line| matches!(line.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The file whose lock is the right to be next.
fn line_of(path: &Path) -> PathBuf {
    path.with_extension("redb.next")
}

fn ready_folder(folder: &Path) -> Result<(), StateOpenError> {
    let shown = || folder.display().to_string();
    let failed = |source: io::Error| StateOpenError::Folder { folder: shown(), source };
    make_folders(folder, FOLDER_MODE).map_err(failed)?;
    let about = folder.metadata().map_err(failed)?;
    if about.mode() & OTHERS_WRITE != 0 {
        return Err(StateOpenError::Open { folder: shown() });
    }
    Ok(())
}

/// Opens a regular file, never a link. If it is missing, makes it, readable only by its owner.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::LOOP) => io::Error::new(io::ErrorKind::InvalidInput, "it is a link"),
            _ => error,
        })?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if let Some(folder) = path.parent() {
        adopt(&file, File::open(folder)?)?;
    }
    if about.permissions().mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}
