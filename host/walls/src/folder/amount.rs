//! What a folder holds towards its quota: a bounded walk over names and sizes that follows no link.
use std::ffi::OsStr;

use cap_std::fs::{Dir, ReadDir};

use super::Facts;

/// Nesting depth of folders. Each is open while the walk is in it; the deepest trees of package
/// managers stay below.
const DEPTH_MAX: usize = 64;

/// The amounts that quotas count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Lengths of regular files and of the texts of links. A file with several names counts for
    /// each.
    pub bytes: u64,
    /// Names: of files, folders and links.
    pub files: u64,
}

/// The result of counting a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All of it.
    All(Amount),
    /// More names than `files_max`.
    TooMany,
    /// Folders nested too deeply.
    TooDeep,
}

/// Counts the content of `root`; `None` if there are more than `files_max` names or they are nested
/// too deeply.
///
/// # Errors
/// An error of the system.
pub fn folder(root: &Dir, files_max: u64) -> std::io::Result<Option<Amount>> {
    Ok(match count(root, files_max)? {
        Counted::All(amount) => Some(amount),
        Counted::TooMany | Counted::TooDeep => None,
    })
}

/// Counts the content of `root`, up to `files_max` names.
///
/// # Errors
/// An error of the system.
pub fn count(root: &Dir, files_max: u64) -> std::io::Result<Counted> {
    let mut amount = Amount::default();
    let mut open: Vec<ReadDir> = vec![root.entries()?];
    while let Some(entries) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        let facts = match entry.metadata() {
            Ok(data) => Facts::from(&data),
            // Removed since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        amount.files += 1;
        amount.bytes = amount.bytes.saturating_add(facts.charged_bytes());
        if amount.files > files_max {
            return Ok(Counted::TooMany);
        }
        if open.len() > DEPTH_MAX {
            return Ok(Counted::TooDeep);
        }
        if facts.is_folder() {
            match entry.open_dir().and_then(|folder| folder.entries()) {
                Ok(inner) => open.push(inner),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                // If the host may not read a folder, guests cannot write to it.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Counted::All(amount))
}

/// Counts one file, which may be missing.
///
/// # Errors
/// An error of the system.
pub fn file(folder: &Dir, name: &OsStr) -> std::io::Result<Option<Amount>> {
    match folder.symlink_metadata(name) {
        Ok(data) => Ok(Some(Amount { bytes: Facts::from(&data).charged_bytes(), files: 1 })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some(Amount::default())),
        Err(error) => Err(error),
    }
}
