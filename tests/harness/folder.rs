//! A folder that one test has to itself, gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture;

/// A temporary folder with a manifest and the fixtures that it names.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with this `toolcell.toml`, and beside it `components/NAME.wasm` for each fixture that it names so.
    ///
    /// # Panics
    /// Where a fixture was not built, or the folder cannot be written.
    #[must_use]
    pub fn with_manifest(manifest: &str) -> Self {
        let folder = Self(tempfile::Builder::new().prefix("toolcell-test-").tempdir().unwrap());
        fs::write(folder.manifest(), manifest).unwrap();
        fixture::place_named_in(manifest, folder.path());
        folder
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The manifest in it.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.path().join("toolcell.toml")
    }

    /// Writes a file at this relative path, with the folders on its way.
    ///
    /// # Panics
    /// Where that fails.
    pub fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
