//! Folders of the host whose files are resources: their files and addresses. Must not hold: who may
//! read them, or the protocol.
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
use std::sync::Arc;

use parking_lot::RwLock;
use toolcell_mcp::{Completions, ResourceEntry, normal_uri};
use toolcell_policy::ResourceRule;

use crate::files::blocking_files;
use index::{FileIndex, FolderScan};
pub use read::{FileReads, ReadFile, ReadProblem};
pub use watch::{FolderChanges, FolderWaker, FolderWatch};

/// Longest address of a file, in bytes. Clients and proxies accept this much.
const URI_BYTES_MAX: usize = 2_048;

/// Nesting depth of files. Only an attacker nests deeper.
const DEPTH_MAX: usize = 32;

/// Folders of the host that decide which files are served.
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
    /// The folder of a rule, if it has one.
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

    /// Rescans the files; returns the index before and after. A folder that does not respond counts
    /// as empty.
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
        let mut index = self.index.write();
        (std::mem::replace(&mut index, Arc::clone(&new)), new)
    }

    fn index(&self) -> Arc<FileIndex> {
        Arc::clone(&self.index.read())
    }

    /// True for the same files at the same addresses.
    fn is_like(&self, other: &Self) -> bool {
        self.root == other.root && self.prefix == other.prefix
    }

    /// A text that changes if the folder or its addresses change.
    pub fn identity(&self) -> String {
        format!("{} {} {:?}", self.root.display(), self.prefix, self.mime_type)
    }

    /// At most `most` of its files, after this address.
    pub fn entries(&self, after: Option<&str>, most: usize) -> Vec<ResourceEntry> {
        self.index().behind(after).take(most).map(|(uri, bytes)| self.entry(uri, bytes)).collect()
    }

    fn entry(&self, uri: &str, size_bytes: u64) -> ResourceEntry {
        let path = self.path_of(uri).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let mime_type = self.mime_type.clone().or_else(|| media_type::of_name(&name).map(str::to_owned));
        ResourceEntry { uri: uri.to_owned(), name, mime_type, size_bytes }
    }

    /// Paths of listed files that begin with the typed text. Paths with `%`, `?` or `#` are left
    /// out, since these have a meaning of their own in a template.
    pub fn complete(&self, typed: &str) -> Completions {
        let index = self.index();
        let paths = index.behind(None).filter_map(|(uri, _)| self.path_of(uri));
        let paths: Vec<String> = paths.filter(|path| !path.contains(['%', '?', '#'])).collect();
        Completions::matching(paths.iter().map(String::as_str), typed)
    }

    /// The relative path that an address stands for, if any.
    pub fn path_of(&self, uri: &str) -> Option<String> {
        let rest = uri.strip_prefix(&self.prefix).filter(|_| uri.len() <= URI_BYTES_MAX)?;
        let path = decoded(rest, false)?;
        is_served(&path).then_some(path)
    }
}

/// The decoded text of this part of an address. With `slashes`, escapes may stand for slashes.
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

/// True for a path without `..` and with only served names.
fn is_served(path: &str) -> bool {
    path.split('/').count() <= DEPTH_MAX && path.split('/').all(is_served_name)
}

/// True for a name that is served. Names that begin with a dot are not.
fn is_served_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control)
}

/// The canonical address of a file.
pub fn uri_of(prefix: &str, path: &str) -> String {
    // These separate parts of an address, and `%` begins an escape.
    let escaped = path.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
    format!("{prefix}{}", normal_uri(&escaped))
}

#[cfg(test)]
mod tests;
