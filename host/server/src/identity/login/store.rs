//! The file of a login, and the lock next to it.
//!
//! Both lie in `logins` in the folder of states: a folder that only its owner enters (0700), files
//! that only their owner reads (0600). A file is replaced whole, and never followed as a link.
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::error::LoginError;
use super::record::Record;
use crate::files::file::plain;

/// The folder of logins, in the folder of states.
const FOLDER: &str = "logins";

/// Bytes of a login's file: two tokens of 32 KiB with every byte escaped, and what the manifest
/// says of the server.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Time for another process to finish its refresh, which has bounds of its own.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// Time between two polls of a lock that another process has.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Mode bits that let others than the owner in.
const OTHERS: u32 = 0o077;

/// The folder of logins, opened, and the names of one login in it.
pub(super) struct Store {
    folder: OwnedFd,
    path: PathBuf,
    name: String,
}

/// The store while no other process changes it.
pub(super) struct Locked<'s> {
    store: &'s Store,
    _lock: OwnedFd,
}

/// A new file, before it is in place. It goes if it is dropped before that.
pub(super) struct Draft<'s> {
    store: &'s Store,
    file: File,
    name: String,
    placed: bool,
}

/// The folder of logins, in the folder of states.
#[must_use]
pub fn folder(state: &Path) -> PathBuf {
    state.join(FOLDER)
}

/// Where a login's file is.
pub(super) fn path(state: &Path, login: &str) -> PathBuf {
    folder(state).join(format!("{login}.json"))
}

impl Store {
    /// Opens the folder of logins, and makes it if it is missing.
    pub(super) fn open(state: &Path, login: &str) -> Result<Self, LoginError> {
        let path = folder(state);
        let failed =
            |error: io::Error| LoginError::Store(format!("{} cannot be used: {}", path.display(), plain(&error)));
        match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        Self::of(path.clone(), login).map_err(failed)?.ok_or_else(|| {
            let problem = format!("{} can be entered by others: chmod 700 it, or remove it", path.display());
            LoginError::Store(problem)
        })
    }

    /// The record, where there is one; makes nothing.
    pub(super) fn read_record(state: &Path, login: &str) -> Result<Option<Record>, LoginError> {
        if !folder(state).exists() {
            return Ok(None);
        }
        Self::open(state, login)?.read()
    }

    /// `None`: others than its owner can enter it.
    fn of(path: PathBuf, login: &str) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&path, flags, Mode::empty())?;
        let metadata = rustix::fs::fstat(&folder)?;
        let own = metadata.st_uid == rustix::process::geteuid().as_raw()
            && !Mode::from_raw_mode(metadata.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        Ok(own.then(|| Self { folder, path, name: login.to_owned() }))
    }

    fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    fn failed(&self, error: impl Into<io::Error>) -> LoginError {
        let path = self.path.join(self.file());
        LoginError::Store(format!("{} cannot be used: {}", path.display(), plain(&error.into())))
    }

    /// The record, if any.
    pub(super) fn read(&self) -> Result<Option<Record>, LoginError> {
        let shown = || self.path.join(self.file()).display().to_string();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match openat(&self.folder, self.file(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        let own = metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw();
        if !own || metadata.mode() & OTHERS != 0 {
            return Err(LoginError::Store(format!("{} is not a file that only this user can read", shown())));
        }
        let mut bytes = Zeroizing::new(Vec::new());
        (&file).take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        let whole = bytes.len() as u64 <= RECORD_BYTES_MAX;
        let record = Record::parse(&bytes).filter(|_| whole);
        record.map(Some).ok_or_else(|| LoginError::Store(format!("{} is not a login file: log in again", shown())))
    }

    /// Keeps other processes from changing the login.
    pub(super) fn lock(&self) -> Result<Locked<'_>, LoginError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&self.folder, format!("{}.lock", self.name), flags, Mode::RUSR | Mode::WUSR);
        let lock = lock.map_err(|error| self.failed(error))?;
        let end = Instant::now() + LOCKED_WITHIN;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked { store: self, _lock: lock }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(POLL_EVERY),
                Err(Errno::WOULDBLOCK) => {
                    let problem = format!("another process has kept the login {:?} for a minute", self.name);
                    return Err(LoginError::Store(problem));
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

impl<'s> Locked<'s> {
    /// Writes the record whole.
    pub(super) fn write(&self, record: &Record) -> Result<(), LoginError> {
        self.draft()?.write(record)
    }

    /// Opens a new file next to the present one: a full disk or a folder without rights is noticed
    /// before tokens are asked for.
    pub(super) fn draft(&self) -> Result<Draft<'s>, LoginError> {
        let store = self.store;
        // The lock is held: nobody else has a draft, and one that is there was left behind.
        let name = format!(".{}.new", store.name);
        let _ = unlinkat(&store.folder, &name, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&store.folder, &name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| store.failed(error))?;
        Ok(Draft { store, file: File::from(file), name, placed: false })
    }

    /// Removes the login.
    pub(super) fn remove(&self) -> Result<(), LoginError> {
        let store = self.store;
        match unlinkat(&store.folder, store.file(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(store.failed(error)),
        }
    }
}

impl Draft<'_> {
    /// Fills the file and puts it in place.
    pub(super) fn write(mut self, record: &Record) -> Result<(), LoginError> {
        let store = self.store;
        let failed = |error: io::Error| store.failed(error);
        let bytes = record.bytes().ok_or_else(|| LoginError::Store("the login cannot be written".to_owned()))?;
        self.file.write_all(&bytes).and_then(|()| self.file.sync_all()).map_err(failed)?;
        renameat(&store.folder, &self.name, &store.folder, store.file()).map_err(|error| store.failed(error))?;
        self.placed = true;
        // The rename itself, so that a lost machine has the newer tokens.
        rustix::fs::fsync(store.folder.as_fd()).map_err(|error| store.failed(error))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = unlinkat(&self.store.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::record::tests::record;
    use super::super::token::tests::policy_of;
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_login_is_written_whole_for_its_owner_alone_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let policy = policy_of("issuer = \"https://login.example.com\"");
        assert!(Store::read_record(state.path(), "notes").unwrap().is_none());
        assert!(!folder(state.path()).exists(), "a look makes nothing");
        let store = Store::open(state.path(), "notes").unwrap();
        let lock = store.lock().unwrap();
        lock.write(&record(&policy, Some("one"), 0, 60)).unwrap();
        lock.write(&record(&policy, Some("two"), 0, 60)).unwrap();
        assert_eq!(store.read().unwrap().unwrap().refresh_token(), Some("two"));
        assert_eq!(mode(&folder(state.path())), 0o700);
        assert_eq!(mode(&path(state.path(), "notes")), 0o600);
        drop(lock.draft().unwrap());
        let mut names: Vec<_> = fs::read_dir(folder(state.path())).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["notes.json", "notes.lock"]);
        lock.remove().unwrap();
        assert!(store.read().unwrap().is_none());
    }

    #[test]
    fn what_others_can_read_or_have_put_there_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let policy = policy_of("issuer = \"https://login.example.com\"");
        let store = Store::open(state.path(), "notes").unwrap();
        store.lock().unwrap().write(&record(&policy, None, 0, 60)).unwrap();
        let file = path(state.path(), "notes");
        let problem = || store.read().err().map(|error| error.to_string()).unwrap_or_default();
        set_mode(&file, 0o640);
        assert!(problem().ends_with("is not a file that only this user can read"), "{}", problem());
        let elsewhere = state.path().join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        set_mode(&elsewhere, 0o600);
        symlink(&elsewhere, &file).unwrap();
        assert!(problem().contains("cannot be used"), "a link is not followed: {}", problem());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(problem().ends_with("is not a file that only this user can read"), "{}", problem());
        fs::remove_dir(&file).unwrap();
        let hole = File::create(&file).unwrap();
        hole.set_len(RECORD_BYTES_MAX * 64).unwrap();
        set_mode(&file, 0o600);
        assert!(problem().ends_with("is not a login file: log in again"), "{}", problem());
        set_mode(&folder(state.path()), 0o755);
        let problem = Store::open(state.path(), "notes").err().unwrap().to_string();
        assert!(problem.contains("can be entered by others: chmod 700"), "{problem}");
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let state = tempfile::tempdir().unwrap();
        let one = Store::open(state.path(), "notes").unwrap();
        let other = Store::open(state.path(), "notes").unwrap();
        let lock = one.lock().unwrap();
        let (locked, has) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let _lock = other.lock().unwrap();
            locked.send(()).unwrap();
        });
        assert!(has.try_recv().is_err());
        drop(lock);
        has.recv().unwrap();
        waiting.join().unwrap();
    }
}
