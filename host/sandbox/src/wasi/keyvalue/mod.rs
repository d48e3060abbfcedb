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
//!
//! | file | holds |
//! |---|---|
//! | `keeper.rs` | the one who keeps a component's state |
//! | `in_file.rs`, `session.rs` | a file as a keeper, and one call's use of it |
//! | `store.rs`, `tables.rs` | operations in a file, and its layout |
//! | `database.rs`, `file.rs` | the file: open, in turns; on the disk |
//! | `on_server.rs` | a server as a keeper |
//! | `granted.rs`, `operations.rs` | state made ready at load, and what a tool may do with it |
//! | `serve.rs` | the host's side of a door |
//! | `reading.rs` | entries that the host reads for itself |
//! | `error.rs` | errors, for guests, loads and the log |
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
pub(crate) use serve::{StateFailure, serve};
pub(crate) use session::StateSession;
