//! A guest's HTTP requests on their way to the host. Only the host decides on them.
//!
//! | file | holds |
//! |---|---|
//! | `hooks.rs` | the hooks of wasi:http |
//! | `held.rs` | bodies that are whole before their head goes out |
//! | `outside.rs` | the door to the host |
//! | `fault.rs` | the host's errors, as wasi:http has them |
mod fault;
mod held;
mod hooks;
pub(crate) mod outside;
#[cfg(test)]
mod tests;

pub(crate) use hooks::{HttpHooks, add_handle, context};
