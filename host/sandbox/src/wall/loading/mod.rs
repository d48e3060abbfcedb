//! Components that are loaded in processes of their own, *loaders*: bytes go in, code and facts
//! come out. Must not hold: what the host makes of them.
//!
//! Two processes load a component, one after the other. The first compiles. It is sealed before it
//! sees a byte of the component, and makes nothing executable. The second maps that code before it
//! is sealed, then links it, and lists its tools. Both are killed when they are late or too large.
//!
//! | file | holds |
//! |---|---|
//! | `message.rs` | what is said to a loader, and by it |
//! | `loader.rs` | the host's end: the two processes of a load, one after the other |
//! | `run.rs` | the host's end of one process: its answers, its time and memory, its end |
//! | `kept.rs` | what the host keeps of a load for the next start |
//! | `inside.rs` | the end in the process |
pub(crate) mod inside;
pub(crate) mod kept;
pub(crate) mod loader;
pub(crate) mod message;
mod run;
#[cfg(test)]
mod tests;
