//! inotify on the folders of a project. Must not hold: which changes count.
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Buffer for events of one read: about a hundred.
const EVENT_BYTES: usize = 16 * 1024;

/// One inotify instance.
pub struct FolderWatch {
    fd: OwnedFd,
    watched: BTreeMap<i32, PathBuf>,
}

impl FolderWatch {
    pub fn new() -> rustix::io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { fd, watched: BTreeMap::new() })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Watches these folders and no others.
    pub fn follow(&mut self, folders: &BTreeSet<PathBuf>) -> rustix::io::Result<()> {
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        let mut watched = BTreeMap::new();
        for folder in folders {
            match inotify::add_watch(&self.fd, folder, what) {
                Ok(number) => drop(watched.insert(number, folder.clone())),
                // It was removed meanwhile: an event of the folder above it follows.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(error) => return Err(error),
            }
        }
        for number in self.watched.keys().filter(|number| !watched.contains_key(number)) {
            // The kernel may have removed the watch with its folder.
            let _ = inotify::remove_watch(&self.fd, *number);
        }
        self.watched = watched;
        Ok(())
    }

    /// Discards the events. The caller then examines the project.
    pub fn take(&self) {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        while reader.next().is_ok() {}
    }
}
