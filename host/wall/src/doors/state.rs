//! The operations on the state that a tool keeps. One door carries all operations of a call, one
//! after the other.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::blob::Blob;

/// Bytes of a key: twice what file names and most identifiers need, and still far below a page of
/// the file.
pub const KEY_BYTES_MAX: usize = 512;

/// Keys in one operation: ten times as many as a component keeps by default. Writing them takes a
/// tenth of a second.
pub const BATCH_KEYS_MAX: usize = 10_000;

/// Bytes of keys and values that one operation writes: twice the largest possible value. Other
/// writers wait as long.
pub const BATCH_BYTES_MAX: u64 = 32 << 20;

/// One operation, on the bucket with the name that the guest opened.
#[derive(Debug, Serialize, Deserialize)]
pub struct StateWanted<'b> {
    /// The bucket's name.
    pub bucket: Cow<'b, str>,
    /// The operation.
    pub operation: StateOperation,
}

/// One operation on a bucket.
#[derive(Debug, Serialize, Deserialize)]
pub enum StateOperation {
    /// The guest opens the bucket.
    Open,
    /// The value of a key.
    Get(String),
    /// True if the key has an entry.
    Exists(String),
    /// A page of keys, from the cursor on.
    List(Option<u64>),
    /// Adds to the number under a key.
    Add(String, u64),
    /// The entries of keys.
    GetMany(Vec<String>),
    /// Sets every key, or none.
    SetMany(Vec<(String, Blob)>),
    /// Deletes every key, or none.
    DeleteMany(Vec<String>),
}

/// The outcome of an operation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateOutcome {
    /// Done, without a result.
    Done,
    /// The value of a key.
    Value(Option<Blob>),
    /// True if there is an entry.
    Exists(bool),
    /// Keys, and the cursor of the next page.
    Page(Vec<String>, Option<u64>),
    /// The number that the key now has.
    Number(u64),
    /// The entries of keys, in their order.
    Values(Vec<Option<(String, Blob)>>),
}

/// Why an operation was not done.
#[derive(Debug, Serialize, Deserialize)]
pub enum StateNotDone {
    /// No bucket can have this name.
    NoSuchStore,
    /// The tool is granted no state.
    AccessDenied,
    /// A sentence for the guest.
    Other(String),
    /// The state failed. The host knows the reason.
    Fault,
}

/// Why no state accepts an operation. `Display` is for the guest and its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitOperation {
    /// A key that is empty, or too long.
    #[error("a key is 1 to {max} bytes long, and this one is {bytes}")]
    Key {
        /// Its length, in bytes.
        bytes: usize,
        /// The maximum.
        max: usize,
    },
    /// More keys than one operation may have.
    #[error("one batch has at most {max} keys, and this one has {keys}; split it")]
    Keys {
        /// The number of keys that it has.
        keys: usize,
        /// The maximum.
        max: usize,
    },
    /// More bytes than one operation may have.
    #[error("the keys and values of one batch are at most {max} bytes together, and these are {bytes}; split it")]
    Bytes {
        /// Their bytes together.
        bytes: u64,
        /// The maximum.
        max: u64,
    },
}

impl StateOperation {
    /// Refuses what no state accepts, before anything is done: this bounds the longest operation.
    ///
    /// # Errors
    /// The first exceeded bound.
    pub fn check(&self) -> Result<(), UnfitOperation> {
        match self {
            Self::Open | Self::List(_) => Ok(()),
            Self::Get(key) | Self::Exists(key) | Self::Add(key, _) => check_key(key),
            Self::GetMany(keys) | Self::DeleteMany(keys) => check_keys(keys.iter()),
            Self::SetMany(pairs) => {
                check_keys(pairs.iter().map(|(key, _)| key))?;
                check_bytes(pairs.iter().map(|(key, value)| (key.as_str(), value.0.as_slice())))
            }
        }
    }

    /// The keys of entries that it changes; `None` if it only reads.
    #[must_use]
    pub fn changes(&self) -> Option<Vec<String>> {
        match self {
            Self::Open | Self::List(_) | Self::Get(_) | Self::Exists(_) | Self::GetMany(_) => None,
            Self::Add(key, _) => Some(vec![key.clone()]),
            Self::DeleteMany(keys) => Some(keys.clone()),
            Self::SetMany(pairs) => Some(pairs.iter().map(|(key, _)| key.clone()).collect()),
        }
    }
}

/// Refuses a list of keys if one is invalid.
///
/// # Errors
/// There are too many, or one is empty or too long.
pub fn check_keys<'k>(mut keys: impl ExactSizeIterator<Item = &'k String>) -> Result<(), UnfitOperation> {
    check_count(keys.len())?;
    keys.try_for_each(|key| check_key(key))
}

/// Refuses more keys than one operation may have, before any is used.
///
/// # Errors
/// There are too many.
pub fn check_count(keys: usize) -> Result<(), UnfitOperation> {
    if keys > BATCH_KEYS_MAX { Err(UnfitOperation::Keys { keys, max: BATCH_KEYS_MAX }) } else { Ok(()) }
}

/// Refuses an invalid key.
///
/// # Errors
/// It is empty or too long.
pub fn check_key(key: &str) -> Result<(), UnfitOperation> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(UnfitOperation::Key { bytes: key.len(), max: KEY_BYTES_MAX });
    }
    Ok(())
}

/// Refuses more bytes than one operation may write.
fn check_bytes<'p>(pairs: impl Iterator<Item = (&'p str, &'p [u8])>) -> Result<(), UnfitOperation> {
    let bytes = pairs.map(|(key, value)| (key.len() as u64).saturating_add(value.len() as u64)).sum();
    if bytes > BATCH_BYTES_MAX { Err(UnfitOperation::Bytes { bytes, max: BATCH_BYTES_MAX }) } else { Ok(()) }
}
