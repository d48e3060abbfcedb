//! Folders that a process makes if they are missing. What root makes belongs to the owner of the
//! folder around it, so that a command of root's does not lock out a service of another user.
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Gid, Mode, OFlags, RawMode, Uid};
use rustix::io::Errno;

/// A folder on a path. It need not be readable.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Makes a folder, and those on its path, if they are missing. New ones have this mode, minus the
/// umask.
///
/// # Errors
/// An error of the system.
pub fn make_folders(path: &Path, mode: u32) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let mut at = rustix::fs::openat(CWD, "/", FOLDER, Mode::empty())?;
    for part in path.components() {
        at = match part {
            Component::Normal(name) => entered(&at, name, mode)?,
            Component::ParentDir => rustix::fs::openat(&at, "..", FOLDER, Mode::empty())?,
            Component::RootDir | Component::CurDir | Component::Prefix(_) => at,
        };
    }
    Ok(())
}

/// Opens the folder with this name in another one, and makes it if it is missing.
fn entered(at: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<OwnedFd> {
    match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(mode as RawMode)) {
        // Another process was faster.
        Err(Errno::EXIST) => return Ok(rustix::fs::openat(at, name, FOLDER, Mode::empty())?),
        made => made?,
    }
    // By its descriptor: the owner of the folder around it could replace it by something else.
    let new = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let made = rustix::fs::openat(at, name, new, Mode::empty())?;
    adopt(&made, at)?;
    Ok(made)
}

/// Gives what this process has just made to the owner of the folder around it, if this process is
/// root's.
///
/// # Errors
/// An error of the system.
pub fn adopt(made: impl AsFd, folder: impl AsFd) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let around = rustix::fs::fstat(folder)?;
    let own = rustix::fs::fstat(&made)?;
    let is_new = own.st_uid == 0 && (own.st_nlink == 1 || own.st_mode & 0o170_000 == 0o040_000);
    if around.st_uid == 0 || !is_new {
        return Ok(());
    }
    let owner = Uid::from_raw(around.st_uid);
    let group = Gid::from_raw(around.st_gid);
    Ok(rustix::fs::fchown(made, Some(owner), Some(group))?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn what_root_makes_belongs_to_who_owns_the_folder_around() {
        let root = tempfile::tempdir().unwrap();
        let owned = root.path().join("owned");
        make_folders(&owned, 0o755).unwrap();
        let owner = |path: &Path| fs::metadata(path).map(|about| (about.uid(), about.gid())).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            rustix::fs::chown(&owned, Some(Uid::from_raw(77)), Some(Gid::from_raw(78))).unwrap();
        }
        let expected = owner(&owned);
        for path in ["a/b/c", "a/b/../d", "a/b/c"] {
            make_folders(&owned.join(path), 0o700).unwrap();
        }
        for path in ["a", "a/b", "a/b/c", "a/d"] {
            assert_eq!(owner(&owned.join(path)), expected, "{path}");
            assert_eq!(fs::metadata(owned.join(path)).unwrap().mode() & 0o777, 0o700, "{path}");
        }
        symlink(root.path(), owned.join("link")).unwrap();
        make_folders(&owned.join("link/beside"), 0o700).unwrap();
        assert_eq!(owner(&root.path().join("beside")), owner(root.path()), "a link is followed as ever");
        fs::write(owned.join("file"), "").unwrap();
        assert!(make_folders(&owned.join("file/c"), 0o700).is_err());
    }
}
