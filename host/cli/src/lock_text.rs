//! Differences from the lock and errors of the lock file, as people see them.
use std::path::Path;

use toolcell_server::lock::{self, Drift, Lock, LockError, LockPath};

use crate::args::manifest_words;
use crate::exit::Exit;
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

/// Reads the lock at this path, or reports why it cannot be read. The manifest is the one beside
/// it.
pub fn read_or_report(path: &LockPath, manifest: &Path) -> Result<Lock, Exit> {
    match lock::read(path) {
        Ok(Some(locked)) => Ok(locked),
        Ok(None) if !manifest.exists() => {
            let hint = "name the manifest with --manifest, or run this in its folder";
            terminal::error(&format!("there is no {}", manifest.display()), Some(hint));
            Err(Exit::AtFault)
        }
        Ok(None) => {
            let hint = format!("write it with `toolcell lock{}`", manifest_words(manifest));
            terminal::error(&format!("there is no {}", path.display()), Some(&hint));
            Err(Exit::AtFault)
        }
        Err(error) => Err(lock_at_fault(&error)),
    }
}

/// Reports an invalid lock.
pub fn lock_at_fault(error: &LockError) -> Exit {
    terminal::error(&error.to_string(), Some(error.hint()));
    Exit::AtFault
}

/// Reports that an earlier writer was interrupted.
pub fn report_removed(drafts: usize) {
    if drafts > 0 {
        terminal::eprint("note: a draft of the lock file, left by a process that was stopped, was removed\n");
    }
}
