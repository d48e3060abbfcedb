//! State that tools keep between calls (`wasi:keyvalue`): one file per component, bounded by its manifest.
//!
//! - `Store` is a component's state; `granted` makes it ready at load, and all of the component's tools share it.
//! - A write is visible to other calls at once and costs microseconds. It is made durable once, when its call ends and
//!   before the answer is given: an answer never speaks of what the disk does not have. Calls that end together share
//!   one wait for the disk. The host killed in the middle of a call loses what that call wrote, whole transactions of it,
//!   and nothing else.
//! - The file is open while calls use it and a moment longer, so that several hosts can take turns with it.
//! - Not `watch`: nothing runs between calls that could be told.
//!
//! Must not hold: which tool may keep state, and how much. That is the policy's.
mod bindings;
mod database;
mod error;
mod file;
mod granted;
mod host;
mod session;
mod store;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use error::Fault;
pub(crate) use granted::{GrantedState, prepare};
pub(crate) use host::{KeyvalueView, add_to_linker};
pub(crate) use session::Session;
