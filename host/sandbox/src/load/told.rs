//! Facts about components, kept beside their code from one start to the next. Must not hold: the
//! form of a file, or its MAC (that is `cache`).
//!
//! Two kinds of processes find facts. Those of loaders may be anything that a component wanted, and
//! only a host with walls believes them. Those of a host without walls are its own, and only such a
//! host believes them. Their names differ, and the MAC covers the name.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::CodeCache;
use super::survey::Survey;
use crate::encoding::{decode, encode};

/// The end of the name of a file of facts or of a list.
const TOLD: &str = ".told";
/// Bytes of all of those. Facts and a list of a Rust tool have some kilobytes.
const TOLD_BYTES_MAX: u64 = 128 << 20;

/// Bytes of the counts of one component: a dozen numbers.
const SURVEY_BYTES_MAX: u64 = 1 << 10;

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

/// The counts of a component that this process made code of under this name.
pub(crate) fn own_survey(cache: &CodeCache, name: &str) -> Option<Survey> {
    find(cache, &own_facts(name), SURVEY_BYTES_MAX)
}

pub(crate) fn keep_own_survey(cache: &CodeCache, name: &str, survey: &Survey) {
    keep(cache, &own_facts(name), survey, SURVEY_BYTES_MAX);
}

fn own_facts(name: &str) -> String {
    format!("own-facts-{name}")
}
