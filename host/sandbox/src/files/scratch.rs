//! Where scratch space is: one folder per user among the host's temporary files, `toolcell-UID`,
//! which only this user may enter and which no mount shows. Each host has a home in it, which it
//! keeps locked. A host that makes its home removes those of hosts that are gone.
//!
//! The host passes each sandbox process a folder in its home, where the process makes the folders
//! of its calls. The host removes it after the process has ended, however it did.
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use toolcell_walls::folder::remove;

/// The file whose lock marks a folder as in use.
const LOCK: &str = ".lock";

/// Homes of ended processes that one start removes at most. The next start continues.
const STALE_HOMES_MAX: usize = 64;

/// The folder of all scratch space of this user.
#[must_use]
pub fn place() -> PathBuf {
    let folder = std::env::temp_dir();
    let folder = folder.canonicalize().unwrap_or(folder);
    folder.join(format!("toolcell-{}", rustix::process::geteuid().as_raw()))
}

/// The home of this process, which it made and removes.
#[derive(Debug)]
pub struct ScratchHome {
    dir: Dir,
    users: Dir,
    name: String,
    next: AtomicU64,
    /// Held as long as the home exists.
    _lock: File,
}

impl ScratchHome {
    /// The home of this process, made at first use.
    pub(crate) fn obtain() -> Result<Arc<Self>> {
        static HOME: Mutex<Weak<ScratchHome>> = Mutex::new(Weak::new());
        let mut home = HOME.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = home.upgrade() {
            return Ok(home);
        }
        let made = Arc::new(Self::make(&place())?);
        *home = Arc::downgrade(&made);
        Ok(made)
    }

    fn make(place: &Path) -> Result<Self> {
        let users = users_folder(place)?;
        // No sweep runs between making a home and locking it.
        let turn = open_lock(&users)?;
        turn.lock()?;
        sweep(&users);
        let name = format!("{:016x}", getrandom::u64().map_err(Error::other)?);
        users.create_dir_with(&name, &private())?;
        let dir = users.open_dir(&name)?;
        let lock = open_lock(&dir)?;
        lock.try_lock()?;
        Ok(Self { dir, users, name, next: AtomicU64::new(0), _lock: lock })
    }

    /// A home in this place.
    ///
    /// # Errors
    /// It is not a folder that only this user may enter, or an error of the system.
    pub fn at(place: &Path) -> Result<Arc<Self>> {
        Self::make(place).map(Arc::new)
    }

    /// A folder in it for a sandbox process.
    ///
    /// # Errors
    /// An error of the system.
    pub fn of_process(self: &Arc<Self>) -> Result<Arc<ProcessScratch>> {
        let name = format!("p{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.dir.create_dir_with(&name, &private())?;
        let dir = self.dir.open_dir(&name)?;
        Ok(Arc::new(ProcessScratch { home: Arc::clone(self), dir, name, removed: AtomicBool::new(false) }))
    }
}

impl Drop for ScratchHome {
    fn drop(&mut self) {
        // Processes hold the home, so only the lock is left in it. A later host sweeps leftovers.
        let _ = self.dir.remove_file(LOCK);
        let _ = self.users.remove_dir(&self.name);
    }
}

/// The scratch space of a sandbox process, on the host's side.
#[derive(Debug)]
pub struct ProcessScratch {
    home: Arc<ScratchHome>,
    dir: Dir,
    name: String,
    removed: AtomicBool,
}

impl ProcessScratch {
    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Removes it with everything in it, after the process has ended.
    pub fn remove(&self) {
        if !self.removed.swap(true, Ordering::AcqRel) {
            // A later process sweeps leftovers, for instance after a disk error.
            drop(remove(&self.home.dir, &self.name));
        }
    }
}

impl Drop for ProcessScratch {
    fn drop(&mut self) {
        self.remove();
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Opens the folder of this user's scratch space. Anybody can make a folder at this path, so its
/// owner and mode are checked.
fn users_folder(place: &Path) -> Result<Dir> {
    use std::os::unix::fs::DirBuilderExt as _;
    match std::fs::DirBuilder::new().mode(0o700).create(place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits()).unwrap_or_default();
    let dir = Dir::from_std_file(std::fs::OpenOptions::new().read(true).custom_flags(flags).open(place)?);
    let data = dir.dir_metadata()?;
    if data.uid() != rustix::process::geteuid().as_raw() || data.mode() & 0o077 != 0 {
        let text = format!("{} is not a folder that only this user may enter", place.display());
        return Err(Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(dir)
}

fn open_lock(dir: &Dir) -> Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600).custom_flags(flags);
    Ok(dir.open_with(LOCK, &options)?.into_std())
}

/// Removes homes that no process holds. Failures are left for the next time.
fn sweep(users: &Dir) {
    let Ok(entries) = users.entries() else { return };
    for entry in
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).take(STALE_HOMES_MAX)
    {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(home) = users.open_dir(&name) else { continue };
        if open_lock(&home).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = remove(users, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn a_home_whose_process_is_gone_is_swept_and_one_in_use_is_not() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("toolcell-test");
        let used = ScratchHome::make(&place).unwrap();
        let users = users_folder(&place).unwrap();
        users.create_dir_with("stale", &private()).unwrap();
        users.create_dir("stale/7").unwrap();
        users.write("stale/7/data", b"left behind").unwrap();
        let _next = ScratchHome::make(&place).unwrap();
        assert!(!users.exists("stale"));
        assert!(users.exists(&used.name));
    }

    #[test]
    fn a_place_that_others_may_enter_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("toolcell-test");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(ScratchHome::make(&place).unwrap_err().kind(), ErrorKind::PermissionDenied);
        let link = base.path().join("toolcell-link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        assert!(ScratchHome::make(&link).is_err());
    }
}
