//! What a file looks like from outside: enough to see that it was replaced or written to, without reading it.
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::aside;

/// A file as `stat` shows it, links followed; `None` where there is none.
pub type Stamp = Option<Looks>;

/// Which file it is, how large, and when it was last written to and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// The stamps of some files.
pub type Stamps = BTreeMap<PathBuf, Stamp>;

/// The stamp of a file.
pub fn of(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Looks {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        written: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// The stamps of these files. One that does not answer looks as if it were gone.
pub fn all<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Stamps {
    let looked = aside::each(paths.into_iter().cloned(), of);
    looked.into_iter().map(|(path, stamp)| (path, stamp.flatten())).collect()
}

impl Looks {
    /// Whether it was changed at this time or later, as far as the filesystem's clock tells.
    fn since(&self, time: SystemTime) -> bool {
        let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        u64::try_from(self.changed.0).is_ok_and(|changed| changed >= seconds)
    }
}

/// Whether any of these was changed at this time or later.
pub fn any_since(stamps: &Stamps, time: SystemTime) -> bool {
    stamps.values().flatten().any(|looks| looks.since(time))
}
