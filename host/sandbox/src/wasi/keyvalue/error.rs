//! Errors of kept state: texts for the guest and its model, for the loader of a manifest, and for
//! the log.
use std::io;

use toolcell_wall::doors::state::UnfitOperation;

use toolcell_wall::failure::CallFailure;

/// Why a component's state cannot be used at all. Shown to the operator while loading, so it may
/// name paths.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StateOpenError {
    /// The folder is missing and cannot be made, or is not a folder.
    #[error("the state folder {folder} cannot be made or read: {source}")]
    Folder {
        /// The folder's path.
        folder: String,
        /// The system's error.
        source: io::Error,
    },
    /// Every user of the machine may write the folder.
    #[error("every user of this machine may write to the state folder {folder}")]
    Open {
        /// The folder's path.
        folder: String,
    },
    /// The file cannot be opened, or is not a regular file.
    #[error("the state file {file} cannot be opened: {source}")]
    File {
        /// The file's path.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has it open.
    #[error("another process has the state file {file} open")]
    Taken {
        /// The file's path.
        file: String,
    },
    /// Its checksums are wrong, or it is another kind of file.
    #[error("the state file {file} is damaged, or is not a state file: {reason}")]
    Damaged {
        /// The file's path.
        file: String,
        /// The difference.
        reason: String,
    },
    /// A later version wrote it.
    #[error("the state file is of format {format}, which this version does not know")]
    Format {
        /// The format's number.
        format: u64,
    },
    /// Reading or writing it failed.
    #[error("the state file cannot be read or written: {0}")]
    Storage(#[from] StateFault),
}

impl StateOpenError {
    /// A hint on how to fix it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "name a folder that the host may write in [server]: state = \"…\"",
            Self::Open { .. } => "take that right away (chmod o-w), or name another folder in [server]: state = \"…\"",
            Self::File { source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                "put a regular file there, or move it away: the component then starts with nothing"
            }
            Self::File { .. } | Self::Storage(_) => {
                "check that the host may read and write it, and that the disk has room"
            }
            Self::Taken { .. } => {
                "hosts take turns with a state folder, and that one has it all the time: stop it, or give this one its own in \
                 [server]: state = \"…\""
            }
            Self::Damaged { .. } => {
                "put a backup in its place, or move it away: the component then starts with nothing"
            }
            Self::Format { .. } => {
                "use the version that wrote it, or move it away: the component then starts with nothing"
            }
        }
    }
}

/// The file failed, not the guest: the call cannot go on. For the log; it may name paths.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StateFault {
    /// redb's own error, or the system's.
    #[error("{0}")]
    Storage(Box<redb::Error>),
    /// redb panicked.
    #[error("the state file is damaged: {0}")]
    Panicked(String),
    /// The call's writes were lost with an earlier failure of the file.
    #[error("the state file failed, and was opened again without what this call had written")]
    Lost,
    /// It failed, and cannot be reopened.
    #[error("the state file failed and cannot be opened again: {0}")]
    Closed(String),
}

impl From<&StateFault> for CallFailure {
    fn from(fault: &StateFault) -> Self {
        Self::Host { detail: fault.to_string() }
    }
}

/// Each kind of error that redb's operations return converts to `redb::Error`.
macro_rules! fault_of {
    ($($error:ty),*) => {$(
        impl From<$error> for StateFault {
            fn from(error: $error) -> Self {
                Self::Storage(Box::new(error.into()))
            }
        }
        impl From<$error> for StateOpenError {
            fn from(error: $error) -> Self {
                Self::Storage(error.into())
            }
        }
        impl From<$error> for StateRefusal {
            fn from(error: $error) -> Self {
                Self::Fault(error.into())
            }
        }
    )*};
}

fault_of!(redb::TransactionError, redb::TableError, redb::StorageError, redb::CommitError, redb::SetDurabilityError);

/// Why one operation was not done. `Display` is for the guest and its model: no paths.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StateRefusal {
    /// No bucket has such a name.
    #[error("no bucket has such a name")]
    NoSuchStore,
    /// The tool is granted no state.
    #[error("this tool is granted no state")]
    Denied,
    /// The operation itself is malformed.
    #[error(transparent)]
    Unfit(#[from] UnfitOperation),
    /// The value is larger than allowed.
    #[error(
        "quota: one value is at most {max} bytes, and this one is {bytes}; split it over several keys or store less"
    )]
    Value {
        /// Its length, in bytes.
        bytes: u64,
        /// The largest allowed.
        max: u64,
    },
    /// Keys and values together would exceed the namespace's quota.
    #[error(
        "quota: keys and values together are at most {max} bytes, {held} are in use and this would make them {wanted}; \
         delete keys that are no longer needed, or store less"
    )]
    Bytes {
        /// Bytes in use.
        held: u64,
        /// Bytes that would be in use.
        wanted: u64,
        /// The most.
        max: u64,
    },
    /// More entries than the namespace may hold.
    #[error(
        "quota: at most {max} entries, and this would make {wanted}; delete keys that are no longer needed, or put more \
         into one value"
    )]
    Entries {
        /// The resulting number of entries.
        wanted: u64,
        /// The most.
        max: u64,
    },
    /// More callers than one component may keep state for.
    #[error("quota: state is kept for at most {max} callers at once, and none of them has given up its own")]
    Callers {
        /// The most.
        max: u64,
    },
    /// An increment of a value that is not a number.
    #[error("the value is not a decimal number from 0 to 18446744073709551615, so it cannot be incremented")]
    NoNumber,
    /// An increment past the largest number.
    #[error("the number would be larger than 18446744073709551615")]
    Overflow,
    /// The requested values together exceed an answer.
    #[error("these values together are more than {max} bytes; ask for fewer keys at once")]
    Answer {
        /// The most, in bytes.
        max: u64,
    },
    /// The caller stopped waiting, so nothing was done.
    #[error("the call ended before this was done")]
    Stopped,
    /// Another host has the file open and does not close it.
    #[error("busy: what this tool keeps is in use by another host; try again")]
    Busy,
    /// The server that keeps the state of all replicas did not answer.
    #[error("{away}{}", if *.may_be_done { ": it may have been done, so look first" } else { "" })]
    Away {
        /// For the operator: it may name hosts.
        away: toolcell_shared::Away,
        /// True if the operation may have taken place.
        may_be_done: bool,
    },
    /// The file failed, not the guest.
    #[error("the host could not read or write what this tool keeps")]
    Fault(#[from] StateFault),
}
