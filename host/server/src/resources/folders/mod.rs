//! Folders of the host whose files are resources: the files that there are, and their addresses.
//! Must not hold: who may read them, or the protocol.
//!
//! | address below `file:///docs/` | file below the folder |
//! |---|---|
//! | `a%20b/c.md` | `a b/c.md` |
//! | `.git/config`, `a/../b`, `%2e%2e/b`, `a//b` | none: no part is empty or begins with a dot |
//! | `a%2Fb`, `a%00b` | none: a slash or a control character is not part of a name |
//! | `a?b`, `a#b` | none: these stand for nothing in a name; `%3F` and `%23` do |
mod index;
pub mod media_type;
mod read;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use toolcell_mcp::{Completions, ResourceEntry, normal_uri};
use toolcell_policy::ResourceRule;

use crate::files::blocking_files;
use index::{FileIndex, FolderScan};
pub use read::{FileReads, ReadFile, ReadProblem};
pub use watch::{FolderChanges, FolderWaker, FolderWatch};

/// Longest address of a file, in bytes. Clients and proxies take as much.
const URI_BYTES_MAX: usize = 2_048;

/// Deepest file: parts of its path. A tree that is deeper is made to be.
const DEPTH_MAX: usize = 32;

/// Places of the host that decide which files are served.
#[derive(Clone, Debug)]
pub struct FolderPlaces {
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// The folder of tools' state, which no mount shows.
    pub state: PathBuf,
}

/// A folder whose files are resources.
#[derive(Debug)]
pub struct Folder {
    /// Its absolute path.
    root: PathBuf,
    /// The folder of tools' state, which is not served.
    state: PathBuf,
    /// The address of its files before their path.
    prefix: String,
    /// The media type of all of its files, where the manifest names one.
    mime_type: Option<String>,
    file_bytes_max: u64,
    files_max: usize,
    index: RwLock<Arc<FileIndex>>,
}

impl Folder {
    /// The folder of a rule. `None` if the rule is for no folder.
    pub fn open(rule: &ResourceRule, places: &FolderPlaces) -> Option<Self> {
        let files = rule.files()?;
        let absolute = |path: &Path| crate::files::file::absolute(&places.base.join(path));
        let folder = Self {
            root: absolute(Path::new(files.path())),
            state: absolute(&places.state),
            prefix: rule.uri().folder()?.to_owned(),
            mime_type: rule.mime_type().map(str::to_owned),
            file_bytes_max: files.file_bytes_max(),
            files_max: files.files_max(),
            index: RwLock::default(),
        };
        folder.rescan();
        Some(folder)
    }

    /// Looks which files there are; returns the index before and after. A folder that does not
    /// answer has none.
    fn rescan(&self) -> (Arc<FileIndex>, Arc<FileIndex>) {
        let scan = FolderScan {
            root: self.root.clone(),
            state: self.state.clone(),
            prefix: self.prefix.clone(),
            files_max: self.files_max,
        };
        let found = blocking_files::run(&self.root, move |heartbeat| scan.index(heartbeat));
        let found = found.and_then(|found| found).unwrap_or_else(|error| {
            tracing::warn!(
                "the files of {} are not listed: {}",
                self.root.display(),
                crate::files::file::plain(&error)
            );
            FileIndex::default()
        });
        let new = Arc::new(found);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        (std::mem::replace(&mut index, Arc::clone(&new)), new)
    }

    fn index(&self) -> Arc<FileIndex> {
        Arc::clone(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// True for the same files at the same addresses.
    fn is_like(&self, other: &Self) -> bool {
        self.root == other.root && self.prefix == other.prefix
    }

    /// Text that changes once the folder or its addresses change.
    pub fn identity(&self) -> String {
        format!("{} {} {:?}", self.root.display(), self.prefix, self.mime_type)
    }

    /// At most `most` of its files, behind this address.
    pub fn entries(&self, after: Option<&str>, most: usize) -> Vec<ResourceEntry> {
        self.index().behind(after).take(most).map(|(uri, bytes)| self.entry(uri, bytes)).collect()
    }

    fn entry(&self, uri: &str, size_bytes: u64) -> ResourceEntry {
        let path = self.path_of(uri).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let mime_type = self.mime_type.clone().or_else(|| media_type::of_name(&name).map(str::to_owned));
        ResourceEntry { uri: uri.to_owned(), name, mime_type, size_bytes }
    }

    /// Paths of listed files that begin as what is typed. A path that a template cannot say as it
    /// stands is left out: `%`, `?` and `#` have a meaning of their own there.
    pub fn complete(&self, typed: &str) -> Completions {
        let index = self.index();
        let paths = index.behind(None).filter_map(|(uri, _)| self.path_of(uri));
        let paths: Vec<String> = paths.filter(|path| !path.contains(['%', '?', '#'])).collect();
        Completions::matching(paths.iter().map(String::as_str), typed)
    }

    /// The relative path that an address stands for; `None` if it stands for no file's.
    pub fn path_of(&self, uri: &str) -> Option<String> {
        let rest = uri.strip_prefix(&self.prefix).filter(|_| uri.len() <= URI_BYTES_MAX)?;
        let path = decoded(rest, false)?;
        is_served(&path).then_some(path)
    }
}

/// The text that this part of an address spells. `slashes`: escapes may stand for slashes.
pub fn decoded(rest: &str, slashes: bool) -> Option<String> {
    let bytes = rest.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'?' | b'#' => return None,
            b'%' => {
                let digits =
                    bytes.get(place + 1..place + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                path.push(byte);
                if byte == b'/' && !slashes {
                    return None;
                }
                place += 3;
            }
            byte => {
                path.push(*byte);
                place += 1;
            }
        }
    }
    String::from_utf8(path).ok()
}

/// True for a path that leads down, by names that are served.
fn is_served(path: &str) -> bool {
    path.split('/').count() <= DEPTH_MAX && path.split('/').all(is_served_name)
}

/// True for a name that is served. Names that begin with a dot are not: they are hidden, or lead
/// up.
fn is_served_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control)
}

/// The address of a file, in its one spelling.
pub fn uri_of(prefix: &str, path: &str) -> String {
    // These separate parts of an address, and `%` begins an escape.
    let escaped = path.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
    format!("{prefix}{}", normal_uri(&escaped))
}

#[cfg(test)]
mod tests;
