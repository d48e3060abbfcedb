//! Differences from the lock and errors of the lock file, as people see them.
use std::path::Path;

use toolcell_server::lock::{self, Drift, Lock, LockPath};

use crate::args::manifest_words;
use crate::exit::Failure;
use crate::manifest::NAME_MANIFEST;
use crate::terminal;

/// The differences for people.
pub fn differences(drifts: &[Drift]) -> String {
    let mut text = String::new();
    for drift in drifts {
        text.push_str(&format!("{}\n", drift.component));
        drift.differences.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// Reads the lock at this path. The manifest is the one beside it.
pub fn read(path: &LockPath, manifest: &Path) -> Result<Lock, Failure> {
    match lock::read(path)? {
        Some(locked) => Ok(locked),
        None if !manifest.exists() => {
            Err(Failure::at_fault(format!("there is no {}", manifest.display()), NAME_MANIFEST))
        }
        None => {
            let hint = format!("write it with `toolcell lock{}`", manifest_words(manifest));
            Err(Failure::at_fault(format!("there is no {}", path.display()), hint))
        }
    }
}

/// Reports that an earlier writer was interrupted.
pub fn report_removed(drafts: usize) {
    if drafts > 0 {
        terminal::eprint("note: a draft of the lock file, left by a process that was stopped, was removed\n");
    }
}
