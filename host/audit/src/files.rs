//! The files of one audit: the one that is being written, and the closed ones.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::chain::LINE_START;

/// The most closed files that are kept or searched.
pub const FILES_MAX: u32 = 1_000;

/// The most processes that write one audit at once: windows of an editor and clients of a bridge.
/// Each has a chain of its own.
pub const CHAINS_MAX: u32 = 64;

/// Most symbolic links that are followed to a missing file: the limit of Linux.
const LINKS_MAX: u32 = 40;

/// Digits of the longest number.
const DIGITS_MAX: usize = 20;

/// The files of an audit.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// The file of the first chain.
    audit: PathBuf,
    current: PathBuf,
}

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// The identity of the file at this path; `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        found(fs::metadata(path).map(|metadata| Self::from(&metadata)))
    }
}

/// Records that a rotation removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The first of them; `None` if none is removed.
    pub(crate) first: Option<u64>,
    /// The first that stays, in a file that exists already.
    pub(crate) next: Option<u64>,
    /// The time when the last of them was written.
    pub(crate) written: Option<SystemTime>,
}

impl Removal {
    /// The records from the beginning of one file to the beginning of another.
    fn between(oldest: &Path, kept: Option<&Path>, youngest: &Path) -> io::Result<Self> {
        let next = kept.map(first_record).transpose()?.flatten();
        let written = fs::metadata(youngest).and_then(|metadata| metadata.modified()).ok();
        Ok(Self { first: first_record(oldest)?, next, written })
    }
}

/// The number of a file's first record, if it begins with one.
pub(crate) fn first_record(path: &Path) -> io::Result<Option<u64>> {
    let mut begin = [0; LINE_START.len() + DIGITS_MAX];
    let read = open_regular(path)?.read(&mut begin)?;
    let digits = begin.get(..read).and_then(|begin| begin.strip_prefix(LINE_START)).unwrap_or_default();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let digits = digits.get(..end).and_then(|digits| std::str::from_utf8(digits).ok());
    Ok(digits.and_then(|digits| digits.parse().ok()))
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl Files {
    /// The files of the audit with this path. If it is a link, closed files are next to its target,
    /// even while a rotation leaves the link dangling.
    pub(crate) fn of(path: &Path) -> Self {
        let mut current = path.to_owned();
        for _ in 0..LINKS_MAX {
            if let Ok(found) = fs::canonicalize(&current) {
                return Self { audit: found.clone(), current: found };
            }
            let Ok(target) = fs::read_link(&current) else { break };
            current = current.parent().unwrap_or(Path::new("")).join(target);
        }
        Self { audit: current.clone(), current }
    }

    /// The files of another chain of this audit; 1 is the first, which has the audit's own name. A
    /// process that finds a chain in use writes into the next.
    pub(crate) fn chain(&self, number: u32) -> Self {
        if number <= 1 {
            return Self { audit: self.audit.clone(), current: self.audit.clone() };
        }
        let mut name = OsString::from(&self.audit);
        name.push(format!("-{number}"));
        Self { audit: self.audit.clone(), current: PathBuf::from(name) }
    }

    /// The file of the first chain, which has the audit's own name.
    pub(crate) fn audit(&self) -> &Path {
        &self.audit
    }

    /// The file that is being written.
    pub(crate) fn current(&self) -> &Path {
        &self.current
    }

    /// A closed file; 1 is the newest. 0 is the file that is being written.
    pub(crate) fn number(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.current.clone();
        }
        let mut name = OsString::from(&self.current);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// The numbers of the closed files, newest first. An interrupted rotation leaves a gap of one.
    pub(crate) fn closed(&self) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for number in 1..=FILES_MAX {
            if exists(&self.number(number))? {
                numbers.push(number);
            } else if numbers.last().is_none_or(|last| last + 1 < number) && number > 1 {
                break;
            }
        }
        Ok(numbers)
    }

    /// All numbers of files that are named like closed ones, the lowest first.
    pub(crate) fn numbered(&self) -> io::Result<Vec<PathBuf>> {
        let Some(name) = self.current.file_name() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder())? {
            let entry = entry?.file_name();
            let Some(rest) = entry.as_bytes().strip_prefix(name.as_bytes()) else { continue };
            let Some(digits) = rest.strip_prefix(b".") else { continue };
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
                found.push((digits.len(), self.current.with_file_name(&entry)));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// The number of closed files up to the first gap.
    fn closed_in_row(&self) -> io::Result<u32> {
        for number in 1..=FILES_MAX {
            if !exists(&self.number(number))? {
                return Ok(number - 1);
            }
        }
        Ok(FILES_MAX)
    }

    /// The records that the next rotation removes, if `keep` closed files are kept.
    pub(crate) fn removal(&self, keep: u32) -> io::Result<Removal> {
        let closed = self.closed_in_row()?;
        if keep == 0 {
            // The file is removed as soon as it is closed, and so are all before it.
            return Removal::between(&self.number(closed), None, self.current());
        }
        let keep = keep.clamp(1, FILES_MAX);
        if closed < keep {
            return Ok(Removal::default());
        }
        Removal::between(&self.number(closed), Some(&self.number(keep - 1)), &self.number(keep))
    }

    /// Makes room for one more closed file among `keep`: the oldest are removed, the others move up
    /// by one. If it is interrupted, it leaves at most one gap, which the next rotation fills.
    pub(crate) fn make_place(&self, keep: u32) -> io::Result<()> {
        let keep = keep.clamp(1, FILES_MAX);
        let closed = self.closed_in_row()?;
        for number in (keep..=closed).rev() {
            fs::remove_file(self.number(number))?;
        }
        for number in (1..=closed.min(keep - 1)).rev() {
            fs::rename(self.number(number), self.number(number + 1))?;
        }
        Ok(())
    }

    /// Writes the folder's entries to the disk.
    pub(crate) fn sync_folder(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()
    }

    fn folder(&self) -> &Path {
        let folder = self.current.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}

/// Opens a regular file for reading. It opens nothing else, since a FIFO would wait for its other
/// end.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`]: it is not a regular file. Otherwise an error of the system.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = File::open(path)?;
    // The path may have come to name another file.
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    found(fs::symlink_metadata(path)).map(|metadata| metadata.is_some())
}

/// `None` for a missing file, an error for one that cannot be read.
pub(crate) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
