//! Files of a generation with their stamps, shared by reader and watcher.
use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::files::file_stamp::{self, Stamps};

/// The files to watch. Cheap to clone.
#[derive(Clone)]
pub struct WatchedFiles(Arc<FilesShared>);

struct FilesShared {
    /// Stamps from before the files were last read.
    seen: Mutex<Stamps>,
    /// Receives a byte each time the set of files changes.
    other: PipeWriter,
}

impl WatchedFiles {
    /// An empty set, and a pipe that becomes readable when the set changes.
    pub fn new() -> io::Result<(Self, PipeReader)> {
        let (reader, other) = io::pipe()?;
        Ok((Self(Arc::new(FilesShared { seen: Mutex::default(), other })), reader))
    }

    /// Sets the files with their stamps. Take stamps before reading, so that no change is missed.
    pub fn reading(&self, seen: Stamps) {
        self.note(|_| seen);
    }

    /// Sets the files. Files that were already in the set keep their older stamps, so that changes
    /// since they were read are seen.
    pub fn reading_also(&self, paths: &BTreeSet<PathBuf>) {
        self.note(|held| {
            let mut seen = file_stamp::all(paths.iter().filter(|path| !held.contains_key(*path)));
            seen.extend(
                held.iter().filter(|(path, _)| paths.contains(*path)).map(|(path, look)| (path.clone(), *look)),
            );
            seen
        });
    }

    fn note(&self, seen: impl FnOnce(&Stamps) -> Stamps) {
        let mut held = self.0.seen.lock();
        let seen = seen(&held);
        let same = held.keys().eq(seen.keys());
        *held = seen;
        drop(held);
        if !same {
            // The reader drains the pipe each time, so it never fills up.
            let _ = (&self.0.other).write(&[1]);
        }
    }

    /// The files.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        self.0.seen.lock().keys().cloned().collect()
    }

    /// Files that changed since they were last read, with their new stamps.
    pub fn changed(&self) -> Stamps {
        let seen = self.0.seen.lock().clone();
        let now = file_stamp::all(seen.keys());
        now.into_iter().filter(|(path, stamp)| seen.get(path) != Some(stamp)).collect()
    }

    /// True if any file was changed at this time or later.
    pub fn changed_since(&self, time: SystemTime) -> bool {
        file_stamp::any_since(&self.0.seen.lock(), time)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_changes_between_being_read_and_the_next_note_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("toolcell.toml");
        let component = folder.path().join("tool.wasm");
        let (files, _others) = WatchedFiles::new().unwrap();
        files.reading(file_stamp::all([&manifest]));
        // Written after it was read, and before its components are known.
        fs::write(&manifest, "other").unwrap();
        fs::write(&component, "code").unwrap();
        files.reading_also(&[manifest.clone(), component.clone()].into());
        assert!(files.changed().into_keys().eq([manifest.clone()]));
        assert_eq!(files.paths(), [manifest, component].into());
    }
}
