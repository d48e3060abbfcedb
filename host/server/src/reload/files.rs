//! The files that a generation was made of, and how they looked: shared between whoever reads them and whoever watches them.
use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::stamp::{self, Stamps};

/// The files to watch. Cheap to clone.
#[derive(Clone)]
pub struct Files(Arc<Shared>);

struct Shared {
    /// As they were when they were last read.
    seen: Mutex<Stamps>,
    /// Takes a byte each time that the set of files changed.
    other: PipeWriter,
}

impl Files {
    /// None yet, and what becomes readable when there are others.
    pub fn new() -> io::Result<(Self, PipeReader)> {
        let (reader, other) = io::pipe()?;
        Ok((Self(Arc::new(Shared { seen: Mutex::default(), other })), reader))
    }

    /// These are about to be read, and look so: taken before they are read, so that no change falls between.
    pub fn reading(&self, seen: Stamps) {
        self.note(|_| seen);
    }

    /// It is these from now on. Those among them that are being read already keep the looks that they had before that: what
    /// changed since they were read is seen.
    pub fn reading_also(&self, paths: &BTreeSet<PathBuf>) {
        self.note(|held| {
            let mut seen = stamp::all(paths.iter().filter(|path| !held.contains_key(*path)));
            seen.extend(
                held.iter().filter(|(path, _)| paths.contains(*path)).map(|(path, look)| (path.clone(), *look)),
            );
            seen
        });
    }

    fn note(&self, seen: impl FnOnce(&Stamps) -> Stamps) {
        let mut held = self.seen();
        let seen = seen(&held);
        let same = held.keys().eq(seen.keys());
        *held = seen;
        drop(held);
        if !same {
            // The reader takes what is there at every look: the pipe never fills up.
            let _ = (&self.0.other).write(&[1]);
        }
    }

    /// The files.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        self.seen().keys().cloned().collect()
    }

    /// Those that look other than when they were last read, and how.
    pub fn changed(&self) -> Stamps {
        let seen = self.seen().clone();
        let now = stamp::all(seen.keys());
        now.into_iter().filter(|(path, stamp)| seen.get(path) != Some(stamp)).collect()
    }

    /// Whether any was changed at this time or later.
    pub fn changed_since(&self, time: SystemTime) -> bool {
        stamp::any_since(&self.seen(), time)
    }

    fn seen(&self) -> MutexGuard<'_, Stamps> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_changes_between_being_read_and_the_next_note_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (manifest, component) = (folder.path().join("toolcell.toml"), folder.path().join("tool.wasm"));
        let (files, _others) = Files::new().unwrap();
        files.reading(stamp::all([&manifest]));
        // Written after it was read, and before its components are known.
        fs::write(&manifest, "other").unwrap();
        fs::write(&component, "code").unwrap();
        files.reading_also(&[manifest.clone(), component.clone()].into());
        assert!(files.changed().into_keys().eq([manifest.clone()]));
        assert_eq!(files.paths(), [manifest, component].into());
    }
}
