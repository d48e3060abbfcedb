//! `wasi:keyvalue` in a guest's process. The host keeps the state.
pub(crate) mod bindings;
pub(crate) mod host;
pub(crate) mod outside;
#[cfg(test)]
mod tests;

pub(crate) use host::{KeyvalueView, add_to_linker};
pub(crate) use outside::{OutsideState, StateFailed};
