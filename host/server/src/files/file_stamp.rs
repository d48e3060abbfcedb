//! File stamps: metadata that reveals a replaced or changed file without reading it.
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::blocking_files;

/// Stamp of a file, links followed; `None` if it does not exist.
pub type Stamp = Option<FileVersion>;

/// Identity of a file, its size, and its times of modification and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// Stamps of some files.
pub type Stamps = BTreeMap<PathBuf, Stamp>;

/// The stamp of a file.
pub fn of(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileVersion {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        written: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// The stamps of these files. A file that does not answer counts as missing.
pub fn all<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Stamps {
    let looked = blocking_files::each(paths.into_iter().cloned(), of);
    looked.into_iter().map(|(path, stamp)| (path, stamp.flatten())).collect()
}

impl FileVersion {
    /// True if the file changed at this time or later, by the filesystem's clock.
    fn since(&self, time: SystemTime) -> bool {
        let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        u64::try_from(self.changed.0).is_ok_and(|changed| changed >= seconds)
    }
}

/// True if any of these changed at this time or later.
pub fn any_since(stamps: &Stamps, time: SystemTime) -> bool {
    stamps.values().flatten().any(|version| version.since(time))
}
