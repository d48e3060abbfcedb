//! A component's file in the folder of components, removed again unless the manifest names it.
use std::fs;
use std::path::{Path, PathBuf};

use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::file::{read_bounded, write_whole};

use crate::exit::Failure;

/// Folder of components, next to the manifest.
pub const FOLDER: &str = "components";

/// A placed file. It is removed again unless it is [kept](Self::keep).
pub struct PlacedFile {
    path: PathBuf,
    /// False if it already existed.
    is_new: bool,
}

impl PlacedFile {
    /// Writes the file of this component. An existing one must be the same.
    pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<Self, Failure> {
        let components = folder.join(FOLDER);
        let path = components.join(format!("{name}.wasm"));
        if path.symlink_metadata().is_ok() {
            if read_bounded(&path, COMPONENT_BYTES_MAX).is_ok_and(|there| there == bytes) {
                return Ok(Self { path, is_new: false });
            }
            let problem = format!("{} exists already, and is something else", path.display());
            return Err(Failure::at_fault(problem, "give the component another name with --name, or remove that file"));
        }
        let written = fs::create_dir_all(&components).and_then(|()| write_whole(&path, bytes));
        written.map_err(|error| {
            let problem = format!("{} cannot be written: {error}", path.display());
            Failure::at_fault(problem, "is the folder writable, and the disk not full?")
        })?;
        Ok(Self { path, is_new: true })
    }

    pub fn keep(mut self) {
        self.is_new = false;
    }
}

impl Drop for PlacedFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
            // This only removes an empty folder.
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_file_goes_again_unless_it_is_kept_or_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("components/a.wasm");
        drop(PlacedFile::write(folder.path(), "a", b"one").unwrap());
        assert!(!folder.path().join("components").exists());
        PlacedFile::write(folder.path(), "a", b"one").unwrap().keep();
        drop(PlacedFile::write(folder.path(), "a", b"one").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(PlacedFile::write(folder.path(), "a", b"two").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }
}
