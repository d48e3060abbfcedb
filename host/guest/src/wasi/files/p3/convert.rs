//! The types of WASI 0.3's files, from and to those of 0.2.
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p3::bindings::clocks::system_clock::Instant;

use super::super::bindings::types as p2;
use super::bindings::types as p3;

/// The error of the same name.
macro_rules! same_error {
    ($code:expr, $($name:ident)*) => {
        match $code {
            $(p2::ErrorCode::$name => p3::ErrorCode::$name,)*
            // WASI 0.3 has no code for it, since nothing there waits.
            p2::ErrorCode::WouldBlock => p3::ErrorCode::Other(None),
        }
    };
}

pub(super) fn error(code: p2::ErrorCode) -> p3::ErrorCode {
    same_error!(
        code,
        Access Already BadDescriptor Busy Deadlock Quota Exist FileTooLarge IllegalByteSequence InProgress Interrupted
        Invalid Io IsDirectory Loop TooManyLinks MessageSize NameTooLong NoDevice NoEntry NoLock InsufficientMemory
        InsufficientSpace NotDirectory NotEmpty NotRecoverable Unsupported NoTty NoSuchDevice Overflow NotPermitted Pipe
        ReadOnly InvalidSeek TextFileBusy CrossDevice
    )
}

pub(super) fn kind(kind: p2::DescriptorType) -> p3::DescriptorType {
    match kind {
        p2::DescriptorType::Unknown => p3::DescriptorType::Other(None),
        p2::DescriptorType::BlockDevice => p3::DescriptorType::BlockDevice,
        p2::DescriptorType::CharacterDevice => p3::DescriptorType::CharacterDevice,
        p2::DescriptorType::Directory => p3::DescriptorType::Directory,
        p2::DescriptorType::Fifo => p3::DescriptorType::Fifo,
        p2::DescriptorType::SymbolicLink => p3::DescriptorType::SymbolicLink,
        p2::DescriptorType::RegularFile => p3::DescriptorType::RegularFile,
        p2::DescriptorType::Socket => p3::DescriptorType::Socket,
    }
}

pub(super) fn entry(entry: p2::DirectoryEntry) -> p3::DirectoryEntry {
    p3::DirectoryEntry { type_: kind(entry.type_), name: entry.name }
}

pub(super) fn stat(stat: p2::DescriptorStat) -> p3::DescriptorStat {
    p3::DescriptorStat {
        type_: kind(stat.type_),
        link_count: stat.link_count,
        size: stat.size,
        data_access_timestamp: stat.data_access_timestamp.and_then(instant),
        data_modification_timestamp: stat.data_modification_timestamp.and_then(instant),
        status_change_timestamp: stat.status_change_timestamp.and_then(instant),
    }
}

fn instant(at: Datetime) -> Option<Instant> {
    Some(Instant { seconds: i64::try_from(at.seconds).ok()?, nanoseconds: at.nanoseconds })
}

/// # Errors
/// A time before 1970, which files here do not get.
pub(super) fn time(time: p3::NewTimestamp) -> Result<p2::NewTimestamp, p2::ErrorCode> {
    Ok(match time {
        p3::NewTimestamp::NoChange => p2::NewTimestamp::NoChange,
        p3::NewTimestamp::Now => p2::NewTimestamp::Now,
        p3::NewTimestamp::Timestamp(Instant { seconds, nanoseconds }) => {
            let seconds = u64::try_from(seconds).map_err(|_| p2::ErrorCode::Overflow)?;
            p2::NewTimestamp::Timestamp(Datetime { seconds, nanoseconds })
        }
    })
}

pub(super) fn hash(hash: p2::MetadataHashValue) -> p3::MetadataHashValue {
    p3::MetadataHashValue { lower: hash.lower, upper: hash.upper }
}

pub(super) fn path_flags(flags: p3::PathFlags) -> p2::PathFlags {
    given(flags.contains(p3::PathFlags::SYMLINK_FOLLOW), p2::PathFlags::SYMLINK_FOLLOW, p2::PathFlags::empty())
}

pub(super) fn open_flags(flags: p3::OpenFlags) -> p2::OpenFlags {
    let each = [
        (p3::OpenFlags::CREATE, p2::OpenFlags::CREATE),
        (p3::OpenFlags::DIRECTORY, p2::OpenFlags::DIRECTORY),
        (p3::OpenFlags::EXCLUSIVE, p2::OpenFlags::EXCLUSIVE),
        (p3::OpenFlags::TRUNCATE, p2::OpenFlags::TRUNCATE),
    ];
    let none = p2::OpenFlags::empty();
    each.into_iter().fold(none, |all, (later, flag)| all | given(flags.contains(later), flag, none))
}

/// The flags of descriptors in both versions.
const DESCRIPTOR_FLAGS: [(p3::DescriptorFlags, p2::DescriptorFlags); 6] = [
    (p3::DescriptorFlags::READ, p2::DescriptorFlags::READ),
    (p3::DescriptorFlags::WRITE, p2::DescriptorFlags::WRITE),
    (p3::DescriptorFlags::FILE_INTEGRITY_SYNC, p2::DescriptorFlags::FILE_INTEGRITY_SYNC),
    (p3::DescriptorFlags::DATA_INTEGRITY_SYNC, p2::DescriptorFlags::DATA_INTEGRITY_SYNC),
    (p3::DescriptorFlags::REQUESTED_WRITE_SYNC, p2::DescriptorFlags::REQUESTED_WRITE_SYNC),
    (p3::DescriptorFlags::MUTATE_DIRECTORY, p2::DescriptorFlags::MUTATE_DIRECTORY),
];

pub(super) fn flags_to_open(flags: p3::DescriptorFlags) -> p2::DescriptorFlags {
    let none = p2::DescriptorFlags::empty();
    DESCRIPTOR_FLAGS.into_iter().fold(none, |all, (later, flag)| all | given(flags.contains(later), flag, none))
}

pub(super) fn flags_of_open(flags: p2::DescriptorFlags) -> p3::DescriptorFlags {
    let none = p3::DescriptorFlags::empty();
    DESCRIPTOR_FLAGS.into_iter().fold(none, |all, (flag, earlier)| all | given(flags.contains(earlier), flag, none))
}

fn given<F>(is_set: bool, flag: F, none: F) -> F {
    if is_set { flag } else { none }
}
