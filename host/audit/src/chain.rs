//! The chain of records: the link that every line carries.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// The longest record, in bytes, newline included. The largest, a component of a thousand tools
/// with the longest names, has about 70 KiB.
pub const RECORD_BYTES_MAX: usize = 128 << 10;

/// The SHA-256 of a line, without its newline.
pub(crate) type Hash = [u8; 32];

/// The link of a chain's first record.
pub(crate) const GENESIS: Hash = [0; 32];

/// The beginning of every line.
pub(crate) const LINE_START: &[u8] = b"{\"seq\":";

/// The event that may begin a chain whose older files were removed.
pub(crate) const ROTATED: &str = "audit.rotated";

/// The part of a line that links it to the line before.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) prev: String,
    pub(crate) time: String,
    #[serde(default)]
    pub(crate) event: String,
}

/// Parses a line's link; `None` if it has none.
pub(crate) fn link(line: &[u8]) -> Option<Link> {
    if !line.starts_with(LINE_START) {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// The SHA-256 of a line, without its newline.
pub(crate) fn hash(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// 64 lower-case digits.
pub(crate) fn hex(hash: &Hash) -> String {
    let mut digits = Vec::with_capacity(2 * hash.len());
    push_hex(&mut digits, hash);
    digits.into_iter().map(char::from).collect()
}

/// Appends 64 lower-case digits.
pub(crate) fn push_hex(line: &mut Vec<u8>, hash: &Hash) {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + (nibble - 10) };
    line.extend(hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}
