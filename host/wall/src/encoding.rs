//! The form of messages between processes, and of kept files: postcard's, after a version.
use std::cell::Cell;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::counted::CountedSeed;

/// The version of all messages and kept files: their first byte. Bump it with every change of their
/// types, and with every change of what a component is found to list.
const VERSION: u8 = 16;

/// Bytes of memory that the items of a message's lists may take for each of its bytes. A name of
/// four letters is 5 bytes of a message, and 24 in memory.
const ITEM_BYTES_PER_BYTE: usize = 4;

/// Bytes that they may take in addition: ten thousand empty texts of an answer, the most that a
/// limit allows.
const ITEM_BYTES: usize = 4 << 20;

/// Bytes of a message whose items fit in any case. An item takes at least one byte of a message,
/// and at most 512 bytes of memory.
const FITTING_BYTES: usize = ITEM_BYTES / 512;

/// Bytes of arguments, or of a result with everything that was printed, that one frame can always
/// hold. A larger one ends its call, whatever its limits are.
pub const TAKEN_BYTES: u64 = 16 << 20;

/// Why bytes are not a message of this version.
#[derive(Debug, thiserror::Error)]
pub enum EncodingError {
    /// Another version, or none.
    #[error("a message of another version")]
    Version,
    /// Not a message.
    #[error("not a message: {0}")]
    Format(#[from] postcard::Error),
    /// Bytes follow its end.
    #[error("a message with {0} bytes after its end")]
    Rest(usize),
}

/// The bytes of a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, EncodingError> {
    // Most messages fit; a larger one grows.
    let bytes = Vec::with_capacity(512);
    let bytes = postcard::to_extend(&VERSION, bytes)?;
    Ok(postcard::to_extend(message, bytes)?)
}

/// The bytes of a message that [`decode`] accepts at the other end.
///
/// # Errors
/// It cannot be written, or its lists have too many items. Decoding it, as the other end does,
/// checks that.
pub fn encode_fitting<M: Serialize + DeserializeOwned>(message: &M) -> Result<Vec<u8>, EncodingError> {
    let bytes = encode(message)?;
    if bytes.len() > FITTING_BYTES {
        decode::<M>(&bytes)?;
    }
    Ok(bytes)
}

/// The message with these bytes. Its lists may take four bytes of memory for each of them plus 4
/// MiB, and the whole message twice that.
pub fn decode<'b, M: Deserialize<'b>>(bytes: &'b [u8]) -> Result<M, EncodingError> {
    let items = bytes.len().saturating_sub(1).saturating_mul(ITEM_BYTES_PER_BYTE).saturating_add(ITEM_BYTES);
    decode_within(bytes, items)
}

/// Like [`decode`], but all items of its lists together take no more memory than this.
///
/// # Errors
/// They are not a message of this version, or its lists are longer.
pub fn decode_within<'b, M: Deserialize<'b>>(bytes: &'b [u8], item_bytes_max: usize) -> Result<M, EncodingError> {
    let (version, rest) = bytes.split_first().ok_or(EncodingError::Version)?;
    if *version != VERSION {
        return Err(EncodingError::Version);
    }
    let left = Cell::new(item_bytes_max);
    let mut format = postcard::Deserializer::from_bytes(rest);
    let message = M::deserialize(CountedSeed::new(&mut format, &left))?;
    let rest = format.finalize()?;
    if rest.is_empty() { Ok(message) } else { Err(EncodingError::Rest(rest.len())) }
}
