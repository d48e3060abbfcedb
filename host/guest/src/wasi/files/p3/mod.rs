//! `wasi:filesystem` of WASI 0.3, over the functions that 0.2 has. The mounts, the permits, the
//! ledger and the denials are the same; types and streams have another form.
//!
//! | file | holds |
//! |---|---|
//! | `bindings.rs`, `convert.rs` | the interface, and its types from and to those of 0.2 |
//! | `interface.rs` | the functions, while other tasks of the guest go on |
//! | `streams.rs` | files and folders as streams |
mod bindings;
mod convert;
mod interface;
mod streams;

use wasmtime::component::Linker;

use super::WasiFiles;
use crate::wasi::state::CallState;

/// Offers `wasi:filesystem` of WASI 0.3 to guests.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<CallState, WasiFiles>(linker, CallState::files)?;
    bindings::preopens::add_to_linker::<CallState, WasiFiles>(linker, CallState::files)
}
