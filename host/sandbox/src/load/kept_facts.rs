//! Facts about components, kept next to their code for the next start.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::CodeCache;
use toolcell_wall::encoding::{decode, encode};

/// The suffix of a file of facts or of a list.
const EXTENSION: &str = ".facts";
/// Bytes of all files with this suffix. Facts and a list of a Rust tool have some kilobytes.
const KEPT_BYTES_MAX: u64 = 128 << 20;

/// The facts under this name, if they are kept and have at most `bytes_max` bytes.
pub(crate) fn find<T: DeserializeOwned>(cache: &CodeCache, name: &str, bytes_max: u64) -> Option<T> {
    decode(&cache.find_bytes(name, EXTENSION, bytes_max)?).ok()
}

/// Keeps facts under this name, if they have at most `bytes_max` bytes.
pub(crate) fn keep(cache: &CodeCache, name: &str, facts: &impl Serialize, bytes_max: u64) {
    match encode(facts) {
        Ok(bytes) if bytes.len() as u64 <= bytes_max => cache.keep_bytes(name, EXTENSION, &bytes, KEPT_BYTES_MAX),
        // The next start makes them again.
        _ => {}
    }
}
