//! Files: our own `wasi:filesystem` over cap-std. It adds quotas, mounts of single files, mounts
//! within mounts and scratch space, which WASI hosts commonly lack. It refuses everything but
//! regular files and folders.
//!
//! | file | holds |
//! |---|---|
//! | `handed.rs`, `prepared.rs` | mounts as the host handed them over, and as they lie in a guest's tree |
//! | `call.rs`, `mount.rs` | the files of one call, and the places of a guest's paths |
//! | `open.rs`, `entries.rs`, `listing.rs` | opening, changing names, listing |
//! | `handle.rs`, `streams.rs` | reading and writing |
//! | `ledger.rs`, `permits.rs` | quotas, and permits for open files |
//! | `scratch.rs` | space of the call's own |
//! | `devices.rs` | the devices of a program |
//! | `host.rs`, `interface.rs` | the functions of the interface, and their threads |
//! | `bindings.rs`, `refused.rs`, `facts.rs` | its errors and its types |
//! | `p3/` | the interface of WASI 0.3, over the same functions |
//!
//! The policy decides what is allowed (`toolcell_policy::Mount::open`); nothing here widens it.

mod bindings;
mod call;
mod devices;
mod entries;
mod facts;
mod handed;
mod handle;
mod host;
mod interface;
mod ledger;
mod listing;
mod mount;
mod open;
pub(crate) mod p3;
mod permits;
mod prepared;
mod refused;
mod scratch;
mod streams;
#[cfg(test)]
mod tests;

use wasmtime::component::Linker;

pub use call::Descriptor;
pub(crate) use call::Files;
pub(crate) use handed::HandedFiles;
pub(crate) use host::{FilesView, WasiFiles};
pub use listing::Listing;
pub(crate) use prepared::Prepared;
pub use refused::Refused;
pub(crate) use scratch::ScratchFolder;

/// Offers `wasi:filesystem` to guests.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> FilesView<'_>,
) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<T, WasiFiles>(linker, view)?;
    bindings::preopens::add_to_linker::<T, WasiFiles>(linker, view)
}
