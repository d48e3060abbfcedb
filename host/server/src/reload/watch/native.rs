//! inotify: watched folders, and their entries that matter.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::path_entries::PathEntry;
use crate::files::inotify::{Event, Inotify, Watching};

/// The watched folders, and their entries that matter.
pub struct WatchedEntries {
    inotify: Inotify,
    /// By the kernel's watch descriptor.
    watched: BTreeMap<i32, (PathBuf, BTreeSet<OsString>)>,
}

impl WatchedEntries {
    pub fn new() -> rustix::io::Result<Self> {
        Ok(Self { inotify: Inotify::new()?, watched: BTreeMap::new() })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.fd()
    }

    /// Watches these entries and no others. Returns the folders.
    pub fn follow(&mut self, steps: impl Iterator<Item = PathEntry>) -> rustix::io::Result<Vec<PathBuf>> {
        let mut wanted: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
        for step in steps {
            wanted.entry(step.folder).or_default().insert(step.name);
        }
        let mut watched = BTreeMap::new();
        for (folder, names) in wanted {
            if let Some(watch) = self.inotify.add(&folder, Watching::Attributes)? {
                watched.insert(watch, (folder, names));
            }
        }
        for watch in self.watched.keys().filter(|watch| !watched.contains_key(watch)) {
            self.inotify.remove(*watch);
        }
        self.watched = watched;
        Ok(self.watched.values().map(|(folder, _)| folder.clone()).collect())
    }

    /// Reads events; true if any is relevant.
    pub fn noticed(&self) -> bool {
        let mut noticed = false;
        self.inotify.take(|event| noticed = self.matters(&event) || noticed);
        noticed
    }

    fn matters(&self, event: &Event<'_>) -> bool {
        if event.overflowed {
            return true;
        }
        let Some((folder, names)) = self.watched.get(&event.watch) else { return false };
        let Some(name) = event.name else { return !event.ended };
        (names.contains(name) || names.contains(OsStr::new("")))
            && !(event.created && is_being_written(&folder.join(name)))
    }
}

/// True for a new regular file: it is written next, and counts once it is closed. Links and folders
/// are complete at once.
fn is_being_written(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() == 1)
}
