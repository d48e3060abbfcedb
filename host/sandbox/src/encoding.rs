//! The form of messages between processes, and of what is kept in files: postcard's, behind a
//! version. Must not hold: any message.

use serde::{Deserialize, Serialize};

/// The version of all messages and of all that is kept: the first byte of each. Bump it with every
/// change of them.
const VERSION: u8 = 5;

/// Bytes that are no message of this version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodingError {
    /// Of another version, or of none.
    #[error("a message of another version")]
    Version,
    /// Not a message.
    #[error("not a message: {0}")]
    Format(#[from] postcard::Error),
    /// It goes on behind its end.
    #[error("a message with {0} bytes behind its end")]
    Rest(usize),
}

/// The bytes of a message.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, EncodingError> {
    // Most messages fit; a larger one grows.
    let bytes = Vec::with_capacity(512);
    let bytes = postcard::to_extend(&VERSION, bytes)?;
    Ok(postcard::to_extend(message, bytes)?)
}

/// The message of these bytes. Decoding takes no more memory than a small multiple of them.
pub(crate) fn decode<'b, M: Deserialize<'b>>(bytes: &'b [u8]) -> Result<M, EncodingError> {
    let (version, rest) = bytes.split_first().ok_or(EncodingError::Version)?;
    if *version != VERSION {
        return Err(EncodingError::Version);
    }
    let (message, rest) = postcard::take_from_bytes(rest)?;
    if rest.is_empty() { Ok(message) } else { Err(EncodingError::Rest(rest.len())) }
}
