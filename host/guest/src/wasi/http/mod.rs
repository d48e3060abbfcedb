//! A guest's HTTP requests on their way to the host. Nothing is decided here: the host does.
mod fault;
mod held;
mod hooks;
pub(crate) mod outside;
#[cfg(test)]
mod tests;

pub(crate) use hooks::{HttpHooks, add_handle, context};
