//! Components that are loaded in processes of their own, *loaders*: bytes go in, code and facts
//! come out. Must not hold: what the host makes of them.
//!
//! Two processes load a component, one after the other. The first compiles. It is sealed before it
//! sees a byte of the component, and makes nothing executable. The second maps that code before it
//! is sealed, then links it, and lists its tools. Both are killed when they are late or too large.
//!
//! | file | holds |
//! |---|---|
//! | `loader.rs` | the host's end: the two processes of a load, one after the other |
//! | `run.rs` | the host's end of one process: its answers, its time and memory, its end |
//! | `engine.rs` | the engine that kept code is for, by its name |
//! | `listing.rs` | the list of tools that a loader gave |
//! | `kept.rs` | what the host keeps of a load for the next start |
mod engine;
pub(crate) mod kept;
pub(crate) mod listing;
pub(crate) mod loader;
mod run;
#[cfg(test)]
mod tests;
