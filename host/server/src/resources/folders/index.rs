//! An index of the files of a folder: their addresses, sizes and versions.
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::ops::Bound;
use std::path::PathBuf;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::{DEPTH_MAX, URI_BYTES_MAX, is_served, is_served_name, uri_of};
use crate::files::blocking_files::Heartbeat;
use toolcell_mcp::ResourceNews;

/// Entries of folders that one scan reads, served or not: twice the largest number of files that
/// may be listed.
const ENTRIES_MAX: usize = 20_000;

/// Addresses in one notification. More of them are reported as a change of anything.
const NEWS_MAX: usize = 1_024;

/// The files of a folder.
#[derive(Debug, Default)]
pub struct FileIndex {
    /// By address.
    files: BTreeMap<String, FileFacts>,
    /// The folders that contain them, whose changes are watched.
    pub folders: BTreeSet<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileFacts {
    bytes: u64,
    /// A number that changes when the file is written; never 0.
    version: u64,
}

/// A scan of the files below a folder.
pub struct FolderScan {
    pub root: PathBuf,
    /// The folder of tools' state, which is left out.
    pub state: PathBuf,
    /// The address of the files before their path.
    pub prefix: String,
    pub files_max: usize,
}

impl FolderScan {
    /// Scans. Links are followed if they stay within the folder; folders behind links are not
    /// listed.
    pub fn index(&self, heartbeat: &Heartbeat) -> io::Result<FileIndex> {
        let Self { root, state, prefix, files_max } = self;
        let mut index = FileIndex::default();
        let mut entries = 0;
        let state = state.canonicalize().ok();
        let real = root.canonicalize()?;
        let mut ahead = vec![(String::new(), Dir::open_ambient_dir(root, ambient_authority())?)];
        while let Some((path, dir)) = ahead.pop() {
            if state.as_ref().is_some_and(|state| real.join(&path).starts_with(state)) {
                continue;
            }
            index.folders.insert(root.join(&path));
            heartbeat.beat();
            let mut names = BTreeSet::new();
            for entry in dir.entries()? {
                entries += 1;
                if entries > ENTRIES_MAX {
                    return Ok(index);
                }
                let name = entry.map(|entry| entry.file_name());
                names.extend(name.ok().and_then(|name| name.into_string().ok()).filter(|name| is_served_name(name)));
            }
            let depth = if path.is_empty() { 1 } else { path.split('/').count() + 1 };
            let mut folders = Vec::new();
            for name in names {
                let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                let is_folder = dir.symlink_metadata(&name).is_ok_and(|own| own.is_dir());
                if is_folder {
                    // It may be gone, or unreadable.
                    if let Some(dir) = dir.open_dir(&name).ok().filter(|_| depth < DEPTH_MAX) {
                        folders.push((below, dir));
                    }
                    continue;
                }
                let Some(metadata) = dir.metadata(&name).ok().filter(Metadata::is_file) else { continue };
                // A link to a hidden file is hidden as well.
                let real = dir.canonicalize(&name).ok();
                if !real.is_some_and(|real| real.to_str().is_some_and(is_served)) {
                    continue;
                }
                let uri = uri_of(prefix, &below);
                if uri.len() > URI_BYTES_MAX {
                    continue;
                }
                if index.files.len() >= *files_max {
                    return Ok(index);
                }
                index.files.insert(uri, FileFacts::of(&metadata));
            }
            // The first name comes first.
            ahead.extend(folders.into_iter().rev());
        }
        Ok(index)
    }
}

impl FileIndex {
    /// Addresses and sizes after this address.
    pub fn behind(&self, after: Option<&str>) -> impl Iterator<Item = (&str, u64)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.files.range::<str, _>((from, Bound::Unbounded));
        behind.map(|(uri, facts)| (uri.as_str(), facts.bytes))
    }

    /// The difference from an earlier scan.
    pub fn news_since(&self, earlier: &Self) -> ResourceNews {
        let mut updated = BTreeMap::new();
        for (uri, facts) in &self.files {
            if earlier.files.get(uri) != Some(facts) {
                updated.insert(uri.clone(), facts.version);
            }
        }
        let gone = earlier.files.keys().filter(|uri| !self.files.contains_key(*uri));
        updated.extend(gone.map(|uri| (uri.clone(), 0)));
        let list = !self.files.keys().eq(earlier.files.keys());
        let all = updated.len() > NEWS_MAX;
        if all {
            updated.clear();
        }
        ResourceNews { updated, all, list, ..ResourceNews::default() }
    }
}

impl FileFacts {
    fn of(metadata: &Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        (metadata.dev(), metadata.ino(), metadata.len()).hash(&mut hasher);
        (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
        Self { bytes: metadata.len(), version: hasher.finish() | 1 }
    }
}
