//! Compiled functions that are kept, so that after an edit only what changed is compiled. Must not
//! hold: whole components (that is `cache`).
//!
//! wasmtime asks for each function by a key: the SHA-256 of Cranelift's input and settings. The
//! bytes that it gets back become native code.
//!
//! | file | holds |
//! |---|---|
//! | `handed.rs` | those that a loader was handed, and those that it makes |
//! | `segment.rs` | a file of them |
pub(crate) mod handed;
mod segment;
