//! A guest's HTTP requests on their way to the host. Only the host decides on them.
//!
//! | file | holds |
//! |---|---|
//! | `hooks.rs` | the hooks of wasi:http |
//! | `held.rs` | bodies that are whole before their head goes out |
//! | `outside.rs` | the door to the host |
//! | `unsent.rs` | bounds of what is not sent yet |
//! | `fault.rs` | the host's errors, as wasi:http has them |
mod fault;
mod held;
mod hooks;
pub(crate) mod outside;
#[cfg(test)]
mod tests;
mod unsent;

pub(crate) use hooks::{HttpHooks, add_handle, context};
pub(crate) use unsent::{UnsentMessages, add_bounds, add_p3_bounds};
