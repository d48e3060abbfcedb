//! The ways in which programs save a file, and the effects that tests then wait for: notifications,
//! generations, the status.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::patience;
use crate::{Command, Folder, TestHost};

/// The notification of a changed list of tools.
pub const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A way to save a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// Truncates and writes the file, as `cp` does.
    InPlace,
    /// Truncates the file and writes it a piece at a time.
    InPieces,
    /// Writes a new file next to it and renames that over it, as most editors do.
    RenamedOver,
    /// Removes the file, then makes it again.
    DeletedAndCreated,
    /// Moves the file to a backup's name, then makes it again, as `vim` does by default.
    MovedAwayAndCreated,
    /// Puts a hard link to a new file in its place.
    Linked,
    /// Replaces the file with a symlink, by a rename.
    SymlinkSwapped,
}

impl Saving {
    /// All ways.
    pub const ALL: [Self; 7] = [
        Self::InPlace,
        Self::InPieces,
        Self::RenamedOver,
        Self::DeletedAndCreated,
        Self::MovedAwayAndCreated,
        Self::Linked,
        Self::SymlinkSwapped,
    ];
}

/// Bytes of one piece, for files that are written in pieces.
const PIECE_BYTES: usize = 4 << 10;

impl Folder {
    /// Saves a file in this way.
    ///
    /// # Panics
    /// If that fails.
    pub fn save(&self, way: Saving, relative: &str, bytes: impl AsRef<[u8]>) {
        let bytes = &*self.shared_in(relative, bytes.as_ref());
        let path = self.path().join(relative);
        let beside = |ending: &str| path.with_extension(ending);
        match way {
            Saving::InPlace => fs::write(&path, bytes).unwrap(),
            Saving::InPieces => write_in_pieces(&path, bytes),
            Saving::RenamedOver => {
                fs::write(beside("part"), bytes).unwrap();
                fs::rename(beside("part"), &path).unwrap();
            }
            Saving::DeletedAndCreated => {
                fs::remove_file(&path).unwrap();
                fs::write(&path, bytes).unwrap();
            }
            Saving::MovedAwayAndCreated => {
                fs::rename(&path, beside("backup")).unwrap();
                fs::write(&path, bytes).unwrap();
            }
            Saving::Linked => {
                let _ = fs::remove_file(beside("linked"));
                fs::write(beside("linked"), bytes).unwrap();
                fs::remove_file(&path).unwrap();
                fs::hard_link(beside("linked"), &path).unwrap();
            }
            Saving::SymlinkSwapped => {
                fs::write(beside("target"), bytes).unwrap();
                std::os::unix::fs::symlink(beside("target"), beside("link")).unwrap();
                fs::rename(beside("link"), &path).unwrap();
            }
        }
    }

    /// Saves a built fixture in this way.
    ///
    /// # Panics
    /// If it was not built, or that fails.
    pub fn save_fixture(&self, way: Saving, relative: &str, fixture: &str) {
        self.save(way, relative, crate::fixture_bytes(fixture));
    }
}

fn write_in_pieces(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).unwrap();
    for piece in bytes.chunks(PIECE_BYTES) {
        file.write_all(piece).unwrap();
    }
}

impl TestHost {
    /// The process's status, from its control socket.
    ///
    /// # Panics
    /// If it does not answer, or another process does too.
    #[must_use]
    pub fn status(&self) -> Value {
        only(Command::in_folder(self.folder(), &["status", "--json"]).run().json())
    }

    /// Makes the host check its files now, and returns the outcome.
    ///
    /// # Panics
    /// As [`TestHost::status`].
    #[must_use]
    pub fn reload(&self) -> Value {
        only(Command::in_folder(self.folder(), &["reload", "--json"]).run().json())
    }

    /// Waits until the host has checked the files of its start once more, as it does with files
    /// that are new.
    ///
    /// # Panics
    /// If it finds a change.
    pub fn is_done_with_its_start(&self) {
        let outcome = self.reload();
        assert_eq!(outcome["outcome"], "unchanged", "{outcome:#}");
    }

    /// Waits until `is_so` holds for the status, and returns it.
    ///
    /// # Panics
    /// If it does not hold in time.
    pub fn status_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + patience();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(Instant::now() < end, "never {what}: {status:#}\n{}", self.said());
        }
    }

    /// Waits until this generation serves.
    ///
    /// # Panics
    /// If it does not in time.
    pub fn serves_generation(&self, generation: u64) {
        self.will_all_say(&format!("ms: generation {generation}: "));
    }

    /// The number of list-changed notifications so far. Those sent before the last answer are among
    /// them.
    ///
    /// # Panics
    /// If the host does not answer any more.
    pub fn list_changes(&mut self) -> usize {
        self.still_answers();
        self.kept().iter().filter(|frame| frame["method"] == LIST_CHANGED).count()
    }
}

/// The answer of the only process that serves the manifest.
fn only(answers: Value) -> Value {
    match answers.as_array().map(Vec::as_slice) {
        Some([answer]) => answer.clone(),
        _ => panic!("one answer was expected: {answers:#}"),
    }
}
