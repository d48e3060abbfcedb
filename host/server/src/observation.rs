//! What tools tried and were denied, written down once each while they are observed. Nothing is allowed by it.
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use toolcell_policy::Denial;
use toolcell_sandbox::Redactor;

/// Different attempts of one observation: guests choose what they ask for.
const ATTEMPTS_MAX: usize = 10_000;

/// The permissions of the file: nobody else reads what tools look for.
const FILE_MODE: u32 = 0o600;

/// An observation.
pub struct Observation(Mutex<Seen>);

struct Seen {
    file: File,
    attempts: HashSet<(String, String)>,
    failed: bool,
}

impl Observation {
    /// Adds to a file, or makes it.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)?;
        Ok(Self(Mutex::new(Seen { file, attempts: HashSet::new(), failed: false })))
    }

    /// Notes what a component was denied, the first time.
    pub fn note(&self, component: &str, denial: &Denial, redactor: &Redactor) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.attempts.len() < ATTEMPTS_MAX
            && seen.attempts.insert((component.to_owned(), denial.asked().to_owned()));
        if !is_new || seen.failed {
            return;
        }
        let line = json!({
            "event": "call.denied",
            "component": component,
            "capability": denial.capability().name(),
            "asked": redactor.text(denial.asked()),
            "allow": denial.allow().map(|allow| redactor.text(allow.line())),
        });
        if let Err(error) = seen.file.write_all(format!("{line}\n").as_bytes()) {
            seen.failed = true;
            tracing::error!("the observation ends: its file cannot be written: {error}");
        }
    }

    /// How many different attempts there were.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).attempts.len()
    }
}
