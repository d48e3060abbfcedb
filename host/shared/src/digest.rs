//! Digests, which turn names and requests of any length into short names.
use sha2::{Digest as _, Sha256};

/// Characters of a digest.
pub const DIGEST_CHARS: usize = 64;

/// SHA-256 of this text in hexadecimal.
pub fn digest(text: &str) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}
