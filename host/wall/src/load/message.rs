//! The messages between the host and a loader. Must not hold: what is done about one.
use serde::{Deserialize, Serialize};
use toolcell_policy::{Limit, Limits};

use super::CODE_BYTES_MAX;
use super::definitions::SchemaLimits;
use super::facts::CodeFacts;

/// Bytes of a message with a list of tools, or with facts: as many as of one about a call.
pub const MESSAGE_BYTES_MAX: usize = (16 << 20) + (64 << 10);

/// Bytes of an answer that holds no list: a refusal, or the walls that are missing.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Bytes of the facts about a component. Names of functions have at most 4 MiB,
/// and are told up to three times.
pub const FACTS_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Bytes of a list of tools, with all that the component printed.
pub const LISTING_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Bytes of each file that a loader fills, which may take this much memory: files in memory are
/// memory as well.
#[must_use]
pub fn file_bytes_max(memory_bytes_max: u64) -> u64 {
    memory_bytes_max.min(CODE_BYTES_MAX)
}

/// Settings of a process that compiles.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompileSettings {
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: u64,
    /// Threads that compile.
    pub threads: u32,
    /// True if every other thread of the machine goes first.
    pub gives_way: bool,
    /// Bytes of memory that the process may take.
    pub memory_bytes_max: u64,
}

/// Settings of a process that lists tools.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: u64,
    /// Bytes of memory that the process may take.
    pub memory_bytes_max: u64,
    /// True if every other thread of the machine goes first.
    pub gives_way: bool,
    /// The code that it maps.
    pub facts: CodeFacts,
}

/// From the host to a loader whose walls stand.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToLoader {
    /// Compile. The descriptors are the component's bytes, the file for its code, the file for its
    /// functions, and the functions of earlier loads where there are any.
    Compile {
        /// Bytes of the functions of earlier loads.
        functions_bytes: Option<u64>,
    },
    /// Link. The descriptor is the component's bytes.
    Link,
    /// List the tools. The descriptor is what is written about them outside of the component.
    List {
        /// The limits, by their keys.
        limits: Vec<(String, u64)>,
        /// Those on the schemas of the tools.
        schemas: SchemaLimits,
    },
}

/// The names of a component's exports and imports.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    /// Its exports.
    pub exports: Vec<String>,
    /// Its imports.
    pub imports: Vec<String>,
}

/// Limits in a message.
#[must_use]
pub fn told(limits: &Limits) -> Vec<(String, u64)> {
    limits.entries().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Limits of a message of the host's.
#[must_use]
pub fn limits(told: &[(String, u64)]) -> Limits {
    told.iter().fold(Limits::default(), |limits, (key, value)| {
        let limit = Limit::from_key(key);
        limit.and_then(|limit| limits.with(limit, *value).ok()).unwrap_or(limits)
    })
}
