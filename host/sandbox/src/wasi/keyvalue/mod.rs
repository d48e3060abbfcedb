//! State that tools keep between calls (`wasi:keyvalue`): one file per component, bounded by its
//! manifest.
//!
//! - `Store` is a component's state; `granted` makes it ready at load, and all of the component's
//!   tools share it.
//! - A write is visible to other calls at once and costs microseconds. It is made durable once,
//!   when its call ends and before the answer is given. Calls that end together share one wait for
//!   the disk. A host that is killed in the middle of a call loses that call's writes, as whole
//!   transactions, and nothing else.
//! - The file is open while calls use it and a moment longer, so that several hosts can take turns
//!   with it.
//! - Not `watch`: no guest runs between calls.
//!
//! Must not hold: rights and quotas, which are the policy's.
mod bindings;
mod database;
mod error;
mod file;
mod granted;
mod host;
mod operations;
pub(crate) mod outside;
mod session;
mod store;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use error::Fault;
pub(crate) use granted::{GrantedState, prepare};
pub(crate) use host::{KeyvalueView, StateWay, add_to_linker};
pub(crate) use operations::KeptState;
pub(crate) use outside::OutsideState;
pub(crate) use session::Session;
