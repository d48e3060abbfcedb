//! Calls that run in sandbox processes: the messages between the host and such a process, both ends
//! of them, and the groups of components that share processes. Must not hold: the walls themselves
//! (`toolcell_walls`), or anything of a call that is the same in the host's own process.
//!
//! | file | holds |
//! |---|---|
//! | `message.rs` | every message, its version and its bounds |
//! | `inside/` | the end in the sandbox process: components loaded, calls run, callers asked |
//! | `process.rs` | the host's end: one process, its pending calls, its end |
//! | `group.rs`, `conduct.rs` | components that share processes, started when needed; those that end them |
//!
//! The host treats all that comes out of a sandbox process as hostile: native code may run there.
//! A message is bounded before it is decoded, names a call that is under way, and is charged to it.
mod conduct;
pub(crate) mod group;
pub(crate) mod inside;
pub(crate) mod message;
pub(crate) mod process;
#[cfg(test)]
mod tests;
