//! Facts about components, kept beside their code from one start to the next.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::CodeCache;
use toolcell_wall::encoding::{decode, encode};

/// The end of the name of a file of facts or of a list.
const TOLD: &str = ".told";
/// Bytes of all of those. Facts and a list of a Rust tool have some kilobytes.
const TOLD_BYTES_MAX: u64 = 128 << 20;

/// The facts of this name, if they are kept and have at most so many bytes.
pub(crate) fn find<T: DeserializeOwned>(cache: &CodeCache, name: &str, bytes_max: u64) -> Option<T> {
    decode(&cache.find_bytes(name, TOLD, bytes_max)?).ok()
}

/// Keeps facts under this name, if they have at most so many bytes.
pub(crate) fn keep(cache: &CodeCache, name: &str, facts: &impl Serialize, bytes_max: u64) {
    match encode(facts) {
        Ok(bytes) if bytes.len() as u64 <= bytes_max => cache.keep_bytes((name, TOLD), &bytes, TOLD_BYTES_MAX),
        // They are found again at the next start.
        _ => {}
    }
}
