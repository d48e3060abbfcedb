//! The WebAssembly engine's own needs: its settings, its clock, its pool of slots, the memory limit of a store, and
//! the threads that compile and run guests. Must not hold: WASI, components, or calls.
//!
//! | file | holds |
//! |---|---|
//! | `background.rs`, `duties.rs` | threads that give way to others, and threads that must not run a guest for long |
//! | `config.rs` | the settings of an engine |
//! | `epoch.rs` | the clock that makes computing guests yield |
//! | `fuel.rs` | fuel of host functions |
//! | `limiter.rs` | the memory limit of one store |
//! | `slots.rs` | shares of the instance pool |
pub(crate) mod background;
pub(crate) mod config;
pub(crate) mod duties;
pub(crate) mod epoch;
pub(crate) mod fuel;
pub(crate) mod limiter;
pub(crate) mod slots;

pub(crate) use slots::{INSTANCE_BYTES_MAX, TABLE_ELEMENTS};
