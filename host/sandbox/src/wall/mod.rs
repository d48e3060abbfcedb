//! Calls that run in sandbox processes: the host's end of such a process, and the groups of
//! components that share processes. Must not hold: the walls themselves (`toolcell_walls`), or the
//! messages through them (`toolcell_wall`).
//!
//! | file | holds |
//! |---|---|
//! | `process/` | the host's end: one process, its pending calls, its end |
//! | `address_space.rs` | the address space of a process, tried before the first one starts |
//! | `attention.rs` | a thread that waits for its calls' replies and for other things at once |
//! | `disk.rs` | what a process puts into folders, counted from outside |
//! | `required.rs` | the walls that a process must have |
//! | `group.rs`, `crash_history.rs` | components that share processes, started when needed; those that end them |
//! | `loading/` | components compiled and listed in processes, and what is kept of it |
//! | `duties.rs` | threads that have other duties than calls |
//! | `reuse.rs` | an instance that serves one caller again |
//! | `pool.rs` | processes that have started and wait for a group |
//! | `bound.rs` | the memory of a process, from the limits of its components |
//!
//! The host treats all output of a sandbox process as hostile: native code may run there. A message
//! is bounded before it is decoded, must name a running call, and is charged to it.
pub(crate) mod address_space;
pub(crate) mod attention;
mod bound;
pub(crate) mod crash_history;
mod disk;
pub(crate) mod duties;
pub(crate) mod group;
pub(crate) mod loading;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod required;
pub(crate) mod reuse;
#[cfg(test)]
pub(crate) mod tests;
