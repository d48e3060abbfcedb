//! A folder for one test alone, removed afterwards.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::balanced::Shared;
use crate::fixture;

/// The variable that names the folder of the user's sockets.
pub(crate) const RUNTIME_FOLDER: &str = "XDG_RUNTIME_DIR";

/// The name of a folder's manifest.
const MANIFEST: &str = "toolcell.toml";

/// A temporary folder with a manifest and the fixtures that it names. Clones share the folder;
/// dropping the last of them removes it.
#[derive(Clone, Debug)]
pub struct Folder {
    files: Arc<tempfile::TempDir>,
    /// The folder for the sockets of this test's hosts and commands, and of no others.
    runtime: Arc<tempfile::TempDir>,
    /// The state of the replicas in this folder, if there are several.
    shared: Arc<OnceLock<Shared>>,
}

/// The variable that adds `walls` to the manifests of all tests, such as `best`. Those that say
/// something of walls stay as they are.
const WALLS: &str = "TOOLCELL_TEST_WALLS";

/// The manifest with the walls that the variable names.
fn walled(manifest: &str) -> Cow<'_, str> {
    let Ok(walls) = std::env::var(WALLS) else { return manifest.into() };
    if manifest.trim().is_empty() || manifest.contains("walls") {
        return manifest.into();
    }
    let line = format!("walls = \"{walls}\"");
    match manifest.split_once("[server]\n") {
        Some((before, after)) => format!("{before}[server]\n{line}\n{after}").into(),
        // Behind all others, so that no line has another number.
        None => format!("{manifest}\n[server]\n{line}\n").into(),
    }
}

impl Folder {
    /// A folder with this `toolcell.toml`, and next to it `components/NAME.wasm` for each fixture
    /// with such a source.
    ///
    /// # Panics
    /// If a fixture was not built, or the folder cannot be written.
    #[must_use]
    pub fn with_manifest(manifest: &str) -> Self {
        let temporary = |prefix| Arc::new(tempfile::Builder::new().prefix(prefix).tempdir().unwrap());
        let folder =
            Self { files: temporary("toolcell-test-"), runtime: temporary("toolcell-run-"), shared: Arc::default() };
        fs::write(folder.manifest(), &*walled(manifest)).unwrap();
        fixture::place_named_in(manifest, folder.path());
        folder
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// The user's runtime folder that hosts and commands in this folder are given.
    #[must_use]
    pub fn runtime(&self) -> &Path {
        self.runtime.path()
    }

    /// The path of its manifest.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.path().join(MANIFEST)
    }

    /// Makes this folder, and its missing parents.
    ///
    /// # Panics
    /// If that fails.
    pub fn make(&self, relative: &str) {
        fs::create_dir_all(self.path().join(relative)).unwrap();
    }

    /// Makes a symlink at this relative path.
    ///
    /// # Panics
    /// If that fails.
    pub fn link(&self, relative: &str, says: impl AsRef<Path>) {
        std::os::unix::fs::symlink(says, self.path().join(relative)).unwrap();
    }

    /// The text of the file at this relative path.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path().join(relative)).unwrap()
    }

    /// Everything below this relative path, in order. Each path comes with its kind and content.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn tree(&self, relative: &str) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.path().join(relative)];
        while let Some(next) = waiting.pop() {
            let about = fs::symlink_metadata(&next).unwrap();
            let held = if about.is_dir() {
                waiting.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()));
                "a folder".to_owned()
            } else if about.is_symlink() {
                format!("says {}", fs::read_link(&next).unwrap().display())
            } else if about.is_file() {
                format!("holds {}", String::from_utf8_lossy(&fs::read(&next).unwrap()))
            } else {
                "something else".to_owned()
            };
            found.push((next, held));
        }
        found.sort();
        found
    }

    /// Writes a file at this relative path, and makes its missing parents.
    ///
    /// # Panics
    /// If that fails.
    pub fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.shared_in(relative, bytes.as_ref())).unwrap();
    }

    /// Makes all hosts of this folder share state from now on, with these lines for their `[http]`.
    pub(crate) fn share(&self, http: &'static str) {
        self.shared.get_or_init(|| Shared::new(http));
        self.write(MANIFEST, self.read(MANIFEST));
    }

    /// The state that hosts of this folder share, if they do.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.get()
    }

    /// True if hosts of this folder share state.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.get().is_some()
    }

    /// These bytes of a file, which are a manifest that names shared state where there is some.
    pub(crate) fn shared_in<'a>(&self, relative: &str, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match (self.shared.get(), std::str::from_utf8(bytes)) {
            (Some(shared), Ok(text)) if relative == MANIFEST => shared.said_in(text).into_bytes().into(),
            _ => bytes.into(),
        }
    }
}
