//! The facts about a file or folder that need no opening for more: kind, size, links, times,
//! identity.
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Metadata, MetadataExt};
use rustix::fs::FileType;

use super::bindings::types::{DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, NewTimestamp};

/// A device and a number on it: two names are of one file where these are equal.
pub type Identity = (u64, u64);

/// The operating system's facts about a file or folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: FileType,
    /// Bytes: for a sparse file its whole length, for a link the length of its text.
    pub(crate) size: u64,
    pub(crate) links: u64,
    pub(crate) identity: Identity,
    accessed: (i64, i64),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Facts {
    fn from(data: &Metadata) -> Self {
        Self {
            kind: FileType::from_raw_mode(data.mode()),
            size: data.size(),
            links: data.nlink(),
            identity: (data.dev(), data.ino()),
            accessed: (data.atime(), data.atime_nsec()),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl Facts {
    /// Of an open file.
    pub(crate) fn of(file: &std::fs::File) -> std::io::Result<Self> {
        Metadata::from_file(file).map(|data| Self::from(&data))
    }

    /// Bytes that count towards a quota: those of regular files, and the texts of links.
    pub(crate) fn charged_bytes(&self) -> u64 {
        match self.kind {
            FileType::RegularFile | FileType::Symlink => self.size,
            _ => 0,
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }

    pub(crate) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }

    pub(crate) fn stat(&self) -> DescriptorStat {
        DescriptorStat {
            type_: kind(self.kind),
            link_count: self.links,
            size: self.size,
            data_access_timestamp: datetime(self.accessed),
            data_modification_timestamp: datetime(self.modified),
            status_change_timestamp: datetime(self.changed),
        }
    }

    pub(crate) fn hash(&self) -> MetadataHashValue {
        hash(&self.identity)
    }
}

/// A folder that is on no disk: it holds nothing but mounts.
pub(crate) fn stat_of_virtual() -> DescriptorStat {
    DescriptorStat {
        type_: DescriptorType::Directory,
        link_count: 1,
        size: 0,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

/// A number for an identity that reveals nothing of it. Language runtimes take it for the number of
/// the inode and compare it to see if two names are one file. So times and size are no part of it.
/// The key is the process's own.
pub(crate) fn hash(identity: &impl std::hash::Hash) -> MetadataHashValue {
    static KEYS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
    MetadataHashValue { lower: KEYS.0.hash_one(identity), upper: KEYS.1.hash_one(identity) }
}

pub(crate) fn kind(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// WASI counts from 1970 on; an earlier time is not known to it.
fn datetime((seconds, nanoseconds): (i64, i64)) -> Option<wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime> {
    let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    Some(wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime { seconds, nanoseconds })
}

/// The times that a guest sets; unset ones stay.
pub(crate) fn times(accessed: NewTimestamp, modified: NewTimestamp) -> Result<std::fs::FileTimes, ErrorCode> {
    let mut times = std::fs::FileTimes::new();
    if let Some(time) = time(accessed)? {
        times = times.set_accessed(time);
    }
    if let Some(time) = time(modified)? {
        times = times.set_modified(time);
    }
    Ok(times)
}

fn time(asked: NewTimestamp) -> Result<Option<SystemTime>, ErrorCode> {
    let at = match asked {
        NewTimestamp::NoChange => return Ok(None),
        NewTimestamp::Now => return Ok(Some(SystemTime::now())),
        NewTimestamp::Timestamp(at) => at,
    };
    // `Duration::new` panics where the nanoseconds carry over the last second.
    let carried = at.seconds.checked_add(u64::from(at.nanoseconds / 1_000_000_000)).ok_or(ErrorCode::Overflow)?;
    let since = Duration::new(carried, at.nanoseconds % 1_000_000_000);
    SystemTime::UNIX_EPOCH.checked_add(since).map(Some).ok_or(ErrorCode::Overflow)
}
