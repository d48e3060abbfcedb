//! The facts about a file or folder as guests see them, and the times that they set.
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use toolcell_walls::folder::{Facts, FileTime};

use super::bindings::types::{DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, NewTimestamp};

pub(crate) fn stat(facts: &Facts) -> DescriptorStat {
    DescriptorStat {
        type_: kind(facts.kind),
        link_count: facts.links,
        size: facts.size,
        data_access_timestamp: datetime(facts.accessed),
        data_modification_timestamp: datetime(facts.modified),
        status_change_timestamp: datetime(facts.changed),
    }
}

/// The facts of what the host makes itself. It has neither size nor times.
pub(crate) fn stat_of_own(type_: DescriptorType) -> DescriptorStat {
    DescriptorStat {
        type_,
        link_count: 1,
        size: 0,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

/// A number for an identity that reveals nothing about it. Language runtimes use it as an inode
/// number, to check whether two names are one file, so times and size do not go into it. Each
/// process has its own key.
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

/// WASI counts from 1970 on and has no earlier times.
fn datetime(time: FileTime) -> Option<wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime> {
    let seconds = u64::try_from(time.seconds).ok()?;
    let nanoseconds = u32::try_from(time.nanoseconds).ok()?;
    Some(wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime { seconds, nanoseconds })
}

/// The times that a guest sets. Unset ones stay.
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
    // `Duration::new` panics if the nanoseconds carry past the last second.
    let carried = at.seconds.checked_add(u64::from(at.nanoseconds / 1_000_000_000)).ok_or(ErrorCode::Overflow)?;
    let since = Duration::new(carried, at.nanoseconds % 1_000_000_000);
    SystemTime::UNIX_EPOCH.checked_add(since).map(Some).ok_or(ErrorCode::Overflow)
}
