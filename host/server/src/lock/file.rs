//! The lock file on the disk: read whole, written whole or not at all.
use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use toolcell_policy::quantity::show_bytes;
use toolcell_sandbox::remove_abandoned_drafts;

use super::pinned::Lock;
use crate::files::blocking_files;
use crate::files::file::{self, Unreadable, folder_of, write_whole};

/// The file's extension. The lock of `toolcell.toml` is `toolcell.lock`.
const EXTENSION: &str = "lock";

/// Most bytes of a lock file: a hundred components with a hundred tools of 800 bytes each. Parsed,
/// each byte may take seventy in memory.
const BYTES_MAX: u64 = 8 << 20;

/// Why the lock cannot be used. Each names the file.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It cannot be read.
    #[error("{} {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason.
        problem: String,
    },
    /// It has more bytes than a lock may have, or would have.
    #[error("{} is larger than {}, the most that a lock may be", path.display(), show_bytes(BYTES_MAX))]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not a valid lock.
    #[error("{} is not a lock file, or was damaged: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The problem and its place.
        problem: String,
    },
    /// It belongs to another manifest.
    #[error("{} is the lock of {of}, not of {manifest}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The manifest that it names.
        of: String,
        /// The manifest next to it.
        manifest: String,
    },
    /// It cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Reason.
        error: io::Error,
    },
}

impl LockError {
    /// Advice to the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "it must be a file that this user can read",
            Self::TooLarge { .. } => "divide the components among several manifests: each has a lock of its own",
            Self::Corrupt { .. } => {
                "take it from version control again, or write it anew with `toolcell lock` and read what differs"
            }
            Self::Foreign { .. } => {
                "if the manifest was renamed, remove this file and pin anew with `toolcell lock`; else give one of the two another name"
            }
            Self::Unwritable { .. } => "is the folder writable, and the disk not full?",
        }
    }
}

/// The lock of a manifest: its path, and the manifest that it must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPath {
    path: PathBuf,
    manifest: String,
}

impl LockPath {
    /// The path alone.
    pub fn into_path(self) -> PathBuf {
        self.path
    }
}

impl Deref for LockPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Path of a manifest's lock: next to it, with its name. Each manifest of a folder has its own.
pub fn path_beside(manifest: &Path) -> LockPath {
    let name = manifest.file_name().unwrap_or_default();
    LockPath { path: manifest.with_extension(EXTENSION), manifest: name.to_string_lossy().into_owned() }
}

/// Reads the lock, if any. A lock that names no manifest is accepted: earlier versions wrote no
/// name.
pub fn read(lock: &LockPath) -> Result<Option<Lock>, LockError> {
    let path = lock.path.as_path();
    let own = path.to_owned();
    if let Ok(Err(error)) = blocking_files::run(path, move |_| fs::symlink_metadata(own))
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    let bytes = file::read(path, BYTES_MAX).map_err(|problem| match problem {
        Unreadable::TooLarge { .. } => LockError::TooLarge { path: path.to_owned() },
        Unreadable::Otherwise(problem) => LockError::Unreadable { path: path.to_owned(), problem },
    })?;
    let corrupt = |problem| LockError::Corrupt { path: path.to_owned(), problem };
    let text = String::from_utf8(bytes).map_err(|_| corrupt("not UTF-8 text".to_owned()))?;
    let parsed = Lock::parse(&text).map_err(corrupt)?;
    match parsed.manifest {
        Some(of) if of != lock.manifest => {
            Err(LockError::Foreign { path: path.to_owned(), of, manifest: lock.manifest.clone() })
        }
        _ => Ok(Some(parsed.lock)),
    }
}

/// Writes the lock: a draft next to it is flushed to disk, then replaces the old file.
pub fn write(place: &LockPath, lock: &Lock) -> Result<(), LockError> {
    // If the path is a link, the file behind it is written, and the link stays.
    let path = place.canonicalize().unwrap_or_else(|_| place.path.clone());
    let unwritable = |error| LockError::Unwritable { path: path.clone(), error };
    let text = lock.text(&place.manifest);
    // A longer one could not be read again.
    if text.len() as u64 > BYTES_MAX {
        return Err(LockError::TooLarge { path });
    }
    write_whole(&path, text.as_bytes()).map_err(unwritable)
}

/// Removes drafts of writers that were interrupted; returns their number.
pub fn remove_drafts(path: &Path) -> usize {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(name) = path.file_name().map(|name| format!(".{}.", name.to_string_lossy())) else { return 0 };
    remove_abandoned_drafts(&folder_of(&path), &name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::PinnedComponent;

    const MANIFEST: &str = "toolcell.toml";

    #[test]
    fn each_manifest_of_a_folder_has_its_own_lock() {
        for (manifest, lock) in [
            ("toolcell.toml", "toolcell.lock"),
            ("team/tools.toml", "team/tools.lock"),
            ("team/tools.v2.toml", "team/tools.v2.lock"),
            ("tools", "tools.lock"),
        ] {
            assert_eq!(&*path_beside(Path::new(manifest)), Path::new(lock));
        }
    }

    #[test]
    fn the_lock_of_another_manifest_is_refused_and_one_without_a_name_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let own = path_beside(&folder.path().join("tools.toml"));
        let other = path_beside(&folder.path().join("tools"));
        assert_eq!(*own, *other, "two manifests of one name have one path");
        write(&own, &Lock::default()).unwrap();
        assert_eq!(read(&own).unwrap(), Some(Lock::default()));
        assert!(matches!(read(&other), Err(LockError::Foreign { of, .. }) if of == "tools.toml"));
        fs::write(&*own, "version = 1\n").unwrap();
        assert_eq!(read(&other).unwrap(), Some(Lock::default()));
    }

    #[test]
    fn a_lock_of_megabytes_that_are_nothing_is_not_parsed() {
        let folder = tempfile::tempdir().unwrap();
        let own = path_beside(&folder.path().join(MANIFEST));
        fs::write(&*own, format!("x = [{}]", "[],".repeat(3 << 20))).unwrap();
        let error = read(&own).unwrap_err();
        assert!(matches!(error, LockError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_lock_that_could_not_be_read_again_is_not_written_and_its_hint_says_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let own = path_beside(&folder.path().join(MANIFEST));
        let source = "x".repeat(usize::try_from(BYTES_MAX).unwrap());
        let large = PinnedComponent { source, ..PinnedComponent::default() };
        let error = write(&own, &Lock { components: [("large".to_owned(), large)].into() }).unwrap_err();
        assert!(error.to_string().ends_with("is larger than 8MiB, the most that a lock may be"), "{error}");
        assert_eq!(error.hint(), "divide the components among several manifests: each has a lock of its own");
        assert!(!own.exists());
    }

    #[test]
    fn a_lock_is_written_whole_and_what_a_killed_writer_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_beside(&folder.path().join(MANIFEST));
        assert!(read(&path).unwrap().is_none());
        // No process has this id: it is above the most that Linux gives.
        fs::write(folder.path().join(".toolcell.lock.2000000000.new"), "half").unwrap();
        fs::write(folder.path().join(".toolcell.lock.notes.new"), "somebody's own").unwrap();
        assert_eq!(remove_drafts(&path), 1);
        write(&path, &Lock::default()).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Lock::default()));
        assert_eq!(remove_drafts(&path), 0);
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".toolcell.lock.notes.new", "toolcell.lock"]);
    }

    #[test]
    fn a_corrupt_lock_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_beside(&folder.path().join(MANIFEST));
        for bytes in [&b""[..], b"version = ", b"\xff"] {
            fs::write(&*path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert!(matches!(error, LockError::Corrupt { .. }), "{error}");
            assert!(error.hint().contains("toolcell lock"));
        }
    }

    #[test]
    fn a_lock_behind_a_link_is_written_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(folder.path().join("real/toolcell.lock"), "").unwrap();
        std::os::unix::fs::symlink("real/toolcell.lock", folder.path().join("toolcell.lock")).unwrap();
        let path = path_beside(&folder.path().join(MANIFEST));
        write(&path, &Lock::default()).unwrap();
        assert!(fs::symlink_metadata(&*path).unwrap().is_symlink());
        assert!(read(&path_beside(&folder.path().join("real/toolcell.toml"))).unwrap().is_some());
    }
}
