//! Denied requests of tools, each written to a file once, to suggest rules. It allows nothing.
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

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
        let opened = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(&path);
        let file = opened
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
