//! Denied requests of tools, each written to a file once, to suggest rules. It allows nothing.
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::json;
use toolcell_policy::{Denial, Reason};
use toolcell_sandbox::Redactor;

use crate::error::StartError;
use crate::files::file::plain;

/// Different requests of one observation: guests choose what they ask for.
const ATTEMPTS_MAX: usize = 10_000;

/// Mode of the file: only its owner may read it.
const FILE_MODE: u32 = 0o600;

/// A file of denied attempts.
pub struct Observation {
    /// The file.
    pub path: PathBuf,
    log: Mutex<AttemptLog>,
}

struct AttemptLog {
    file: File,
    attempts: HashSet<(String, String)>,
    failed: bool,
}

impl Observation {
    /// Appends to a file, or creates it.
    pub fn open(path: PathBuf) -> Result<Self, StartError> {
        let file = open(&path)
            .map_err(|error| StartError::refused(format!("the observation cannot be written: {}", plain(&error))))?;
        Ok(Self { path, log: Mutex::new(AttemptLog { file, attempts: HashSet::new(), failed: false }) })
    }

    /// Writes a denial of a component, if it is new.
    pub fn note(&self, component: &str, denial: &Denial, redactor: &Redactor) {
        // A rule already allows it.
        if *denial.reason() == Reason::NoLogin {
            return;
        }
        let mut log = self.log.lock();
        let is_new =
            log.attempts.len() < ATTEMPTS_MAX && log.attempts.insert((component.to_owned(), denial.asked().to_owned()));
        if !is_new || log.failed {
            return;
        }
        let line = json!({
            "event": "call.denied",
            "component": component,
            "capability": denial.capability().name(),
            "asked": redactor.text(denial.asked()),
            "allow": denial.allow().map(|allow| redactor.text(allow.line())),
        });
        if let Err(error) = log.file.write_all(format!("{line}\n").as_bytes()) {
            log.failed = true;
            tracing::error!("the observation ends: its file cannot be written: {error}");
        }
    }

    /// Number of different attempts.
    pub fn count(&self) -> usize {
        self.log.lock().attempts.len()
    }
}

/// Opens a regular file or a character device. A FIFO without a reader would hold up the start, and
/// a full one every call; reading as well keeps the opening itself from waiting.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_char_device() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("tried.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let Err(error) = Observation::open(fifo) else { unreachable!("it was opened") };
        assert!(error.to_string().contains("it is not a regular file"), "{error}");
        assert!(Observation::open("/dev/null".into()).is_ok());
        assert!(Observation::open(folder.path().join("new.jsonl")).is_ok());
    }
}
