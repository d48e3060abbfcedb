//! The file of a login, and the lock next to it.
//!
//! Both lie in `logins` in the folder of states: a folder that only its owner enters (0700), files
//! that only their owner reads (0600). A file is replaced whole, and never followed as a link.
//! Those of callers lie in `logins/callers` and are sealed.
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::io::Errno;
use toolcell_mcp::{Purpose, StateKey};
use toolcell_sandbox::ComponentDigest;
use zeroize::Zeroizing;

use super::error::LoginError;
use super::record::{CallerRecord, Record};
use crate::files::file::plain;

/// The folder of logins, in the folder of states.
const FOLDER: &str = "logins";

/// The folder of callers' logins, in that folder.
const CALLERS: &str = "callers";

/// The file of the key that seals callers' logins, in that folder.
const KEY: &str = "key";

/// Bytes of that key: twice what a key must have, in hexadecimal digits.
const KEY_BYTES: usize = 64;

/// Callers' logins that are listed: a hundred logins of as many callers.
const LISTED_MAX: usize = 10_000;

/// Bytes of a login's file: two tokens of 32 KiB with every byte escaped, and what the manifest
/// says of the server.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Time for another process to finish its refresh, which has bounds of its own.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// Time between two polls of a lock that another process has.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Mode bits that let others than the owner in.
const OTHERS: u32 = 0o077;

/// The place of a record: its folder and its name there.
#[derive(Clone)]
pub(super) struct RecordPlace {
    folder: PathBuf,
    name: String,
    /// Whose it is and the key that seals it, where it is a caller's.
    caller: Option<SealedFor>,
}

/// The caller of a record, and what seals it.
#[derive(Clone)]
pub(super) struct SealedFor {
    pub(super) key: StateKey,
    pub(super) login: String,
    pub(super) caller: String,
}

/// A folder of logins, opened, and the place of one login in it.
pub(super) struct Store {
    folder: OwnedFd,
    place: RecordPlace,
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

impl RecordPlace {
    /// That of a login that all callers share.
    pub(super) fn shared(state: &Path, login: &str) -> Self {
        Self { folder: folder(state), name: login.to_owned(), caller: None }
    }

    /// That of a caller's login.
    pub(super) fn of_caller(state: &Path, sealed: SealedFor) -> Self {
        Self { folder: folder(state).join(CALLERS), name: sealed.name(), caller: Some(sealed) }
    }

    /// Where its file is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(self.file())
    }

    fn file(&self) -> String {
        let kind = if self.caller.is_some() { "sealed" } else { "json" };
        format!("{}.{kind}", self.name)
    }
}

impl SealedFor {
    /// A name for files and servers that says neither the caller nor the login.
    pub(super) fn name(&self) -> String {
        let both = format!("{} {}{}", self.login.len(), self.login, self.caller);
        let digest = ComponentDigest::of(both.as_bytes()).to_string();
        digest.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// The record, sealed.
    pub(super) fn seal(&self, record: &Record) -> Option<Zeroizing<Vec<u8>>> {
        let bytes = CallerRecord::bytes(&self.login, &self.caller, record)?;
        self.key.seal(Purpose::Login, bytes.to_vec()).map(Zeroizing::new)
    }

    /// The record of sealed bytes; `None` if they are another's, or were changed.
    pub(super) fn open(&self, bytes: &[u8]) -> Option<Record> {
        let opened = CallerRecord::open(&self.key, bytes)?;
        (opened.login == self.login && opened.caller == self.caller).then_some(opened.record)
    }
}

/// The key that seals callers' logins in this folder of states; makes one if there is none.
pub(super) fn own_key(state: &Path) -> Result<StateKey, LoginError> {
    let folder = folder(state).join(CALLERS);
    let store = Store::open(&RecordPlace { folder, name: KEY.to_owned(), caller: None })?;
    let read = || -> Result<Option<StateKey>, LoginError> {
        let Some(bytes) = store.bytes(KEY)? else { return Ok(None) };
        let is_whole = bytes.len() == KEY_BYTES;
        let key = StateKey::of(&bytes).ok().filter(|_| is_whole);
        let wrong = || LoginError::Store(format!("{} is not a key", store.place.folder.join(KEY).display()));
        key.map(Some).ok_or_else(wrong)
    };
    if let Some(key) = read()? {
        return Ok(key);
    }
    let lock = store.lock()?;
    if let Some(key) = read()? {
        return Ok(key);
    }
    let mut random = Zeroizing::new([0_u8; KEY_BYTES / 2]);
    getrandom::fill(random.as_mut()).map_err(|error| LoginError::Random(error.to_string()))?;
    let digits: Zeroizing<String> = Zeroizing::new(random.iter().map(|byte| format!("{byte:02x}")).collect());
    lock.draft()?.place(digits.as_bytes(), KEY)?;
    StateKey::of(digits.as_bytes()).map_err(|error| LoginError::Store(error.to_string()))
}

/// True if a caller may have a login in this folder of states.
pub(super) fn has_callers(state: &Path) -> bool {
    folder(state).join(CALLERS).exists()
}

/// The logins of callers in this folder of states, as far as this key opens them.
pub(super) fn of_callers(state: &Path, key: &StateKey) -> Result<Vec<CallerRecord>, LoginError> {
    let folder = folder(state).join(CALLERS);
    let failed = |error: io::Error| LoginError::Store(format!("{}: {}", folder.display(), plain(&error)));
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let store = Store::open(&RecordPlace { folder: folder.clone(), name: KEY.to_owned(), caller: None })?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names = names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "sealed"));
    let mut found = Vec::new();
    for name in names.take(LISTED_MAX) {
        let bytes = store.bytes(&name)?;
        found.extend(bytes.and_then(|bytes| CallerRecord::open(key, &bytes)));
    }
    Ok(found)
}

impl Store {
    /// Opens the folder of logins, and makes it if it is missing.
    pub(super) fn open(place: &RecordPlace) -> Result<Self, LoginError> {
        let path = &place.folder;
        let failed =
            |error: io::Error| LoginError::Store(format!("{} cannot be used: {}", path.display(), plain(&error)));
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        Self::of(place).map_err(failed)?.ok_or_else(|| {
            let problem = format!("{} can be entered by others: chmod 700 it, or remove it", path.display());
            LoginError::Store(problem)
        })
    }

    /// The record, where there is one; makes nothing.
    pub(super) fn read_record(place: &RecordPlace) -> Result<Option<Record>, LoginError> {
        if !place.folder.exists() {
            return Ok(None);
        }
        Self::open(place)?.read()
    }

    /// `None`: others than its owner can enter it.
    fn of(place: &RecordPlace) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&place.folder, flags, Mode::empty())?;
        let metadata = rustix::fs::fstat(&folder)?;
        let own = metadata.st_uid == rustix::process::geteuid().as_raw()
            && !Mode::from_raw_mode(metadata.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        Ok(own.then(|| Self { folder, place: place.clone() }))
    }

    fn failed(&self, error: impl Into<io::Error>) -> LoginError {
        LoginError::Store(format!("{} cannot be used: {}", self.place.path().display(), plain(&error.into())))
    }

    /// The record, if any.
    pub(super) fn read(&self) -> Result<Option<Record>, LoginError> {
        let Some(bytes) = self.bytes(&self.place.file())? else { return Ok(None) };
        let record = match &self.place.caller {
            None => Record::parse(&bytes),
            // With another key than before, nobody is logged in.
            Some(sealed) => return Ok(sealed.open(&bytes)),
        };
        let shown = self.place.path();
        let wrong = || LoginError::Store(format!("{} is not a login file: log in again", shown.display()));
        record.map(Some).ok_or_else(wrong)
    }

    /// The bytes of a file of the folder, if there is one.
    fn bytes(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, LoginError> {
        let shown = || self.place.folder.join(name).display().to_string();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
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
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            return Err(LoginError::Store(format!("{} is not a login file: log in again", shown())));
        }
        Ok(Some(bytes))
    }

    /// Keeps other processes from changing the login.
    pub(super) fn lock(&self) -> Result<Locked<'_>, LoginError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&self.folder, format!("{}.lock", self.place.name), flags, Mode::RUSR | Mode::WUSR);
        let lock = lock.map_err(|error| self.failed(error))?;
        let end = Instant::now() + LOCKED_WITHIN;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked { store: self, _lock: lock }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(POLL_EVERY),
                Err(Errno::WOULDBLOCK) => {
                    let problem = format!("another process has kept the login {:?} for a minute", self.place.name);
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
        let name = format!(".{}.new", store.place.name);
        let _ = unlinkat(&store.folder, &name, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&store.folder, &name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| store.failed(error))?;
        Ok(Draft { store, file: File::from(file), name, placed: false })
    }

    /// Removes the login.
    pub(super) fn remove(&self) -> Result<(), LoginError> {
        let store = self.store;
        match unlinkat(&store.folder, store.place.file(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(store.failed(error)),
        }
    }
}

impl Draft<'_> {
    /// Fills the file and puts it in place.
    pub(super) fn write(self, record: &Record) -> Result<(), LoginError> {
        let bytes = match &self.store.place.caller {
            None => record.bytes(),
            Some(sealed) => sealed.seal(record),
        };
        let bytes = bytes.ok_or_else(|| LoginError::Store("the login cannot be written".to_owned()))?;
        let name = self.store.place.file();
        self.place(&bytes, &name)
    }

    fn place(mut self, bytes: &[u8], name: &str) -> Result<(), LoginError> {
        let store = self.store;
        let failed = |error: io::Error| store.failed(error);
        self.file.write_all(bytes).and_then(|()| self.file.sync_all()).map_err(failed)?;
        renameat(&store.folder, &self.name, &store.folder, name).map_err(|error| store.failed(error))?;
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
        assert!(Store::read_record(&RecordPlace::shared(state.path(), "notes")).unwrap().is_none());
        assert!(!folder(state.path()).exists(), "a look makes nothing");
        let store = Store::open(&RecordPlace::shared(state.path(), "notes")).unwrap();
        let lock = store.lock().unwrap();
        lock.write(&record(&policy, Some("one"), 0, 60)).unwrap();
        lock.write(&record(&policy, Some("two"), 0, 60)).unwrap();
        assert_eq!(store.read().unwrap().unwrap().refresh_token.as_deref(), Some("two"));
        assert_eq!(mode(&folder(state.path())), 0o700);
        assert_eq!(mode(&RecordPlace::shared(state.path(), "notes").path()), 0o600);
        drop(lock.draft().unwrap());
        let mut names: Vec<_> = fs::read_dir(folder(state.path())).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["notes.json", "notes.lock"]);
        lock.remove().unwrap();
        assert!(store.read().unwrap().is_none());
    }

    #[test]
    fn a_caller_s_record_is_sealed_for_that_caller_and_that_login() {
        let state = tempfile::tempdir().unwrap();
        let policy = policy_of("issuer = \"https://login.example.com\"\nof = \"caller\"");
        let key = own_key(state.path()).unwrap();
        assert_eq!(key.tag(&["x"]), own_key(state.path()).unwrap().tag(&["x"]), "it is made once");
        assert_eq!(mode(&folder(state.path()).join("callers/key")), 0o600);
        let place = |caller: &str, login: &str, key: &StateKey| {
            let sealed = SealedFor { key: key.clone(), login: login.to_owned(), caller: caller.to_owned() };
            RecordPlace::of_caller(state.path(), sealed)
        };
        let ann = place("ann", "notes", &key);
        let store = Store::open(&ann).unwrap();
        store.lock().unwrap().write(&record(&policy, Some("one"), 0, 60)).unwrap();
        assert_eq!(Store::read_record(&ann).unwrap().unwrap().refresh_token.as_deref(), Some("one"));
        let bytes = fs::read(ann.path()).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!has("first-access") && !has("one") && !has("ann"), "nothing of it can be read");
        for other in [place("bob", "notes", &key), place("ann", "mail", &key)] {
            fs::copy(ann.path(), other.path()).unwrap();
            assert!(Store::read_record(&other).unwrap().is_none(), "another's file says nothing");
            fs::remove_file(other.path()).unwrap();
        }
        let wrong = StateKey::random();
        assert!(Store::read_record(&place("ann", "notes", &wrong)).unwrap().is_none());
        assert_eq!(of_callers(state.path(), &key).unwrap().len(), 1);
        assert!(of_callers(state.path(), &wrong).unwrap().is_empty());
    }

    #[test]
    fn what_others_can_read_or_have_put_there_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let policy = policy_of("issuer = \"https://login.example.com\"");
        let store = Store::open(&RecordPlace::shared(state.path(), "notes")).unwrap();
        store.lock().unwrap().write(&record(&policy, None, 0, 60)).unwrap();
        let file = RecordPlace::shared(state.path(), "notes").path();
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
        let problem = Store::open(&RecordPlace::shared(state.path(), "notes")).err().unwrap().to_string();
        assert!(problem.contains("can be entered by others: chmod 700"), "{problem}");
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let state = tempfile::tempdir().unwrap();
        let one = Store::open(&RecordPlace::shared(state.path(), "notes")).unwrap();
        let other = Store::open(&RecordPlace::shared(state.path(), "notes")).unwrap();
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
