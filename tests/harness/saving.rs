//! The ways in which programs save a file, and what tests wait for after one: notifications,
//! generations, the status.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::frames::PATIENCE;
use crate::{Command, Folder, TestHost};

/// The notification that the list of tools changed.
pub const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A way to save a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// Truncated and written, as `cp` does.
    InPlace,
    /// Truncated and written a piece at a time, each piece flushed.
    InPieces,
    /// A new file is written beside it and renamed over it, as most editors do.
    RenamedOver,
    /// Removed, then made anew.
    DeletedAndCreated,
    /// Moved to a backup's name, then made anew, as `vim` does by default.
    MovedAwayAndCreated,
    /// A hard link to a new file is put in its place.
    Linked,
    /// It is a symlink from now on, which is swapped in by a rename.
    SymlinkSwapped,
}

impl Saving {
    /// Every way.
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

/// Bytes of a piece, of those that are written one after the other.
const PIECE_BYTES: usize = 4 << 10;

impl Folder {
    /// Saves a file in this way.
    ///
    /// # Panics
    /// Where that fails.
    pub fn save(&self, way: Saving, relative: &str, bytes: impl AsRef<[u8]>) {
        let (path, bytes) = (self.path().join(relative), bytes.as_ref());
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
    /// Where it was not built, or that fails.
    pub fn save_fixture(&self, way: Saving, relative: &str, fixture: &str) {
        self.save(way, relative, crate::fixture_bytes(fixture));
    }
}

fn write_in_pieces(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).unwrap();
    for piece in bytes.chunks(PIECE_BYTES) {
        file.write_all(piece).unwrap();
        file.sync_data().unwrap();
    }
}

impl TestHost {
    /// What the process says of itself over its control socket.
    ///
    /// # Panics
    /// Where it does not answer, or another process does too.
    #[must_use]
    pub fn status(&self) -> Value {
        only(Command::in_folder(self.folder(), &["status", "--json"]).run().json())
    }

    /// Has it look at its files now, and gives what came of it.
    ///
    /// # Panics
    /// As [`TestHost::status`].
    #[must_use]
    pub fn reload(&self) -> Value {
        only(Command::in_folder(self.folder(), &["reload", "--json"]).run().json())
    }

    /// Waits until it has looked once more at the files that it was started with, as it does where
    /// they are new.
    ///
    /// # Panics
    /// Where it finds something else.
    pub fn is_done_with_its_start(&self) {
        let outcome = self.reload();
        assert_eq!(outcome["outcome"], "unchanged", "{outcome:#}");
    }

    /// Waits until its status is so, and gives it.
    ///
    /// # Panics
    /// Where it does not become so in time.
    pub fn status_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
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
    /// Where it does not in time.
    pub fn serves_generation(&self, generation: u64) {
        self.will_say(&format!("ms: generation {generation}: "));
    }

    /// How many notifications of another list came so far. What was sent before the last answer is
    /// among them.
    ///
    /// # Panics
    /// Where the host does not answer any more.
    pub fn list_changes(&mut self) -> usize {
        self.still_answers();
        self.kept().iter().filter(|frame| frame["method"] == LIST_CHANGED).count()
    }
}

/// The answer of the one process that serves a manifest.
fn only(answers: Value) -> Value {
    match answers.as_array().map(Vec::as_slice) {
        Some([answer]) => answer.clone(),
        _ => panic!("one answer was expected: {answers:#}"),
    }
}
