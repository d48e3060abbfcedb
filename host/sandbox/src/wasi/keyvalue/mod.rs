//! State that tools keep between calls (`wasi:keyvalue`), bounded by the manifest: in one file per
//! component, or on a server that all replicas share.
//!
//! - A `Keeper` keeps a component's state; `granted` makes it ready at load, and all of the
//!   component's tools share it. There are two: `in_file` over a `Store`, and `on_server`. What
//!   follows is about the first.
//! - A write is visible to other calls at once and costs microseconds. It is made durable once,
//!   when its call ends and before the answer is given. Calls that end together share one wait for
//!   the disk. A host that is killed in the middle of a call loses that call's writes, as whole
//!   transactions, and nothing else.
//! - The file is open while calls use it and a moment longer, so that several hosts can take turns
//!   with it.
//! - `serve` is the host's end of a guest's door.
//! - Not `watch`: no guest runs between calls.
//!
//! Must not hold: rights and quotas, which are the policy's.
mod database;
mod error;
mod file;
mod granted;
mod in_file;
mod keeper;
mod on_server;
mod operations;
mod reading;
mod serve;
mod session;
mod store;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use granted::{GrantedState, StatePlace, prepare};
pub(crate) use operations::KeptState;
pub(crate) use serve::{Failed, serve};
pub(crate) use session::Session;
