//! `wasi:keyvalue` in a guest's process. The host keeps the state.
//!
//! | file | holds |
//! |---|---|
//! | `host.rs` | the functions of the interface, their handles and fuel |
//! | `outside.rs` | the door to the host |
//! | `bindings.rs` | generated |
pub(crate) mod bindings;
pub(crate) mod host;
pub(crate) mod outside;
#[cfg(test)]
mod tests;

pub(crate) use host::{KeyvalueView, add_to_linker};
pub(crate) use outside::{OutsideState, StateFailed};
