//! The messages through a wall, between the host and its sandbox processes and loaders, and the
//! types in them.
//!
//! Must not hold: an engine, a process, a file or a socket. Both ends depend on this crate, and
//! neither end on the other.
//!
//! | file | holds |
//! |---|---|
//! | `encoding.rs`, `counted.rs` | the form of messages, and of kept facts; a bound on their lists |
//! | `digest.rs` | the digest of a component |
//! | `export.rs` | the exports of a component by their paths |
//! | `doors/` | a guest's way to the network and its state, through the host |
//! | `sections/` | the custom sections of a component: requested permissions, metadata, a compiler's |
//! | `pool_sizes.rs` | room in the pool of a process, in numbers |
//! | `load/` | facts about a component, and what is said to load it |
//! | `contract.rs`, `weight.rs` | the contract's plain types, and the size of an answer |
//! | `caller.rs`, `denials.rs`, `asking.rs` | the sender of a call, its notifications and questions |
//! | `message.rs`, `mounts.rs`, `report.rs` | the messages of a sandbox process, and the report of a call |
//! | `failure.rs`, `start_call.rs` | why a call gave nothing; why nothing is prewarmed |
//! | `nested.rs` | calls of other tools |
//! | `tape.rs`, `uses.rs` | the functions of the host that a recorded call used; what they reached |
//! | `rate.rs` | the rate at which messages of one call may come |
//! | `seeds.rs` | the inputs that fuzz targets begin with, for tests |
#![forbid(unsafe_code)]

pub mod asking;
pub mod caller;
pub mod contract;
mod counted;
pub mod denials;
pub mod digest;
pub mod doors;
pub mod encoding;
pub mod export;
pub mod failure;
pub mod load;
pub mod message;
pub mod mounts;
pub mod nested;
pub mod pool_sizes;
pub mod rate;
pub mod report;
pub mod sections;
#[cfg(test)]
mod seeds;
pub mod start_call;
pub mod tape;
pub mod uses;
pub mod weight;
