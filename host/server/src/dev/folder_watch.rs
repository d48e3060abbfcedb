//! inotify on the folders of a project.
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use crate::files::inotify::{Inotify, Watching};

/// One inotify instance.
pub struct FolderWatch {
    inotify: Inotify,
    watched: BTreeSet<i32>,
}

impl FolderWatch {
    pub fn new() -> rustix::io::Result<Self> {
        Ok(Self { inotify: Inotify::new()?, watched: BTreeSet::new() })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.fd()
    }

    /// Watches these folders and no others.
    pub fn follow(&mut self, folders: &BTreeSet<PathBuf>) -> rustix::io::Result<()> {
        let mut watched = BTreeSet::new();
        for folder in folders {
            watched.extend(self.inotify.add(folder, Watching::Entries)?);
        }
        for watch in self.watched.difference(&watched) {
            self.inotify.remove(*watch);
        }
        self.watched = watched;
        Ok(())
    }

    /// Discards the events. The caller then examines the project.
    pub fn take(&self) {
        self.inotify.take(|_| {});
    }
}
