//! Notes as files: names, reading, replacing in one step, adding. Holds nothing of tools.

use std::collections::hash_map::RandomState;
use std::fs::{self, OpenOptions};
use std::hash::BuildHasher;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toolkit::Failure;

use crate::MOUNT;

/// The longest name of a note, in characters; the schemas say the same. File systems end at 255 bytes.
const NAME_CHARS_MAX: usize = 60;

/// What the file of every note ends with.
const SUFFIX: &str = ".md";

/// Errors that the standard library has kinds for, but not on WASI: its numbers for a full disk, a used-up quota, and a disk
/// that is only read. For a full disk it gives mostly the one for a failure of any kind.
const WASI_IO: i32 = 29;
const WASI_NOSPC: i32 = 51;
const WASI_DQUOT: i32 = 19;
const WASI_ROFS: i32 = 69;

/// A folder of notes.
pub struct Folder<'a>(&'a Path);

/// A note, as a list shows it.
#[derive(Serialize)]
pub struct Note {
    note: String,
    bytes: u64,
}

impl<'a> Folder<'a> {
    /// The folder at this path.
    pub fn at(path: &'a Path) -> Result<Self, Failure> {
        if fs::read_dir(path).is_err() {
            return Err(Failure::Failed(format!(
                "there is no folder for notes: the server's manifest gives this tool none at {MOUNT}"
            )));
        }
        Ok(Self(path))
    }

    /// The notes in the order of their names.
    pub fn list(&self) -> Result<Vec<Note>, Failure> {
        let entries = fs::read_dir(self.0).map_err(|error| failure("list the notes", &error))?;
        let mut notes: Vec<Note> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().strip_suffix(SUFFIX)?.to_owned();
                let bytes = entry.metadata().ok().filter(fs::Metadata::is_file)?.len();
                is_name(&name).then_some(Note { note: name, bytes })
            })
            .collect();
        notes.sort_by(|one, other| one.note.cmp(&other.note));
        Ok(notes)
    }

    /// The text of a note.
    pub fn read(&self, note: &str) -> Result<String, Failure> {
        let path = self.path(note)?;
        fs::read_to_string(path).map_err(|error| about(note, "read", &error))
    }

    /// Replaces a note in one step: who reads it meanwhile gets the old text or the new one.
    pub fn write(&self, note: &str, text: &str) -> Result<(), Failure> {
        let path = self.path(note)?;
        // Two calls may write the same note at once.
        let number = RandomState::new().hash_one(note);
        let draft = self.0.join(format!(".{number:016x}.draft"));
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|error| {
            // What was written so far counts against the quota; where it cannot be removed, nothing can be done about it.
            let _ = fs::remove_file(&draft);
            about(note, "keep", &error)
        })
    }

    /// Adds to a note and gives the bytes it holds then. Where the text does not fit, nothing is added.
    pub fn append(&self, note: &str, text: &str) -> Result<u64, Failure> {
        let path = self.path(note)?;
        let held = fs::metadata(&path).map_or(0, |about| about.len());
        let mut file =
            OpenOptions::new().append(true).create(true).open(&path).map_err(|error| about(note, "keep", &error))?;
        if let Err(error) = file.write_all(text.as_bytes()) {
            let _ = file.set_len(held);
            return Err(about(note, "keep", &error));
        }
        Ok(file.metadata().map_or(held, |about| about.len()))
    }

    /// Deletes a note. False without one.
    pub fn delete(&self, note: &str) -> Result<bool, Failure> {
        match fs::remove_file(self.path(note)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(about(note, "delete", &error)),
        }
    }

    fn path(&self, note: &str) -> Result<PathBuf, Failure> {
        if is_name(note) {
            return Ok(self.0.join(format!("{note}{SUFFIX}")));
        }
        Err(Failure::invalid(format!(
            "a note's name is 1 to {NAME_CHARS_MAX} letters, digits, blanks, dots, - and _, and starts with a letter or a digit; \
             {note:?} is not"
        )))
    }
}

fn is_name(note: &str) -> bool {
    let inner = |letter: char| letter.is_alphanumeric() || " .-_".contains(letter);
    let length = note.chars().count();
    (1..=NAME_CHARS_MAX).contains(&length) && note.starts_with(char::is_alphanumeric) && note.chars().all(inner)
}

fn about(note: &str, verb: &str, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::invalid(format!("there is no note {note:?}; notes_list names those there are")),
        _ => failure(&format!("{verb} {note:?}"), error),
    }
}

fn failure(what: &str, error: &std::io::Error) -> Failure {
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) | (_, Some(WASI_NOSPC | WASI_DQUOT | WASI_IO)) => {
            Failure::Failed(format!(
                "there is no room left to {what}: shorten or delete notes, or have the quota of {MOUNT} raised in the \
                 server's manifest"
            ))
        }
        (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, _) | (_, Some(WASI_ROFS)) => Failure::Failed(
            format!("this tool may not {what}: the server's manifest lets it read {MOUNT} and not write there"),
        ),
        (kind, _) => Failure::Failed(format!("cannot {what}: {kind}")),
    }
}
