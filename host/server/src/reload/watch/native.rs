//! inotify: watched folders, and their entries that matter.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::super::path_entries::PathEntry;

/// Buffer for events of one read: about a hundred.
const EVENT_BYTES: usize = 16 * 1024;

/// One inotify instance.
pub struct Inotify {
    fd: OwnedFd,
    /// By the kernel's watch descriptor: the folder, and its entries that matter.
    watched: BTreeMap<i32, (PathBuf, BTreeSet<OsString>)>,
}

impl Inotify {
    pub fn new() -> rustix::io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { fd, watched: BTreeMap::new() })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Watches these entries and no others. Returns the folders.
    pub fn follow(&mut self, steps: impl Iterator<Item = PathEntry>) -> rustix::io::Result<Vec<PathBuf>> {
        let mut wanted: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
        for step in steps {
            wanted.entry(step.folder).or_default().insert(step.name);
        }
        // Reports a file when it is closed after writing, not at each write: it stays unseen until
        // it is whole.
        let mask = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut watched = BTreeMap::new();
        for (folder, names) in wanted {
            match inotify::add_watch(&self.fd, &folder, mask) {
                Ok(number) => drop(watched.insert(number, (folder, names))),
                // It was removed meanwhile: an event of the entry above it follows.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(error) => return Err(error),
            }
        }
        for number in self.watched.keys().filter(|number| !watched.contains_key(number)) {
            // The kernel may have removed the watch with its folder.
            let _ = inotify::remove_watch(&self.fd, *number);
        }
        self.watched = watched;
        Ok(self.watched.values().map(|(folder, _)| folder.clone()).collect())
    }

    /// Reads events; true if any matters.
    pub fn noticed(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let mut noticed = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            noticed = self.matters(event.wd(), event.events(), name) || noticed;
        }
        noticed
    }

    fn matters(&self, number: i32, events: ReadFlags, name: Option<&OsStr>) -> bool {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            return true;
        }
        let Some((folder, names)) = self.watched.get(&number) else { return false };
        let Some(name) = name else { return !events.contains(ReadFlags::IGNORED) };
        (names.contains(name) || names.contains(OsStr::new("")))
            && !(events.contains(ReadFlags::CREATE) && is_being_written(&folder.join(name)))
    }
}

/// True for a new regular file: it is written next, and counts once it is closed. Links and folders
/// are whole at once.
fn is_being_written(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() == 1)
}
