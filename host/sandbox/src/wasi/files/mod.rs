//! Files: an own `wasi:filesystem` over cap-std, which adds what WASI hosts commonly lack: quotas, mounts of single files,
//! mounts within mounts, scratch space, and refusal of everything that is neither a regular file nor a folder.
//!
//! | file | holds |
//! |---|---|
//! | `prepared.rs` | mounts made ready at load |
//! | `call.rs`, `mount.rs` | the files of one call, and which place a path of the guest is |
//! | `open.rs`, `entries.rs`, `listing.rs` | opening, changing names, listing |
//! | `handle.rs`, `streams.rs` | reading and writing |
//! | `ledger.rs`, `measure.rs`, `permits.rs` | quotas, and how much is open at once |
//! | `scratch.rs` | space of the call's own |
//! | `host.rs`, `interface.rs` | the functions of the interface, and on which thread each runs |
//! | `bindings.rs`, `refused.rs`, `facts.rs` | its errors and its types |
//!
//! What may be done is the policy's decision (`toolcell_policy::Mount::open`); nothing here widens it.

mod bindings;
mod call;
mod entries;
mod facts;
mod handle;
mod host;
mod interface;
mod ledger;
mod listing;
mod measure;
mod mount;
mod open;
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
pub use facts::Identity;
pub(crate) use host::{FilesView, WasiFiles};
pub use listing::Listing;
pub(crate) use prepared::{Prepared, Surroundings};
pub use refused::Refused;

/// Offers `wasi:filesystem` to guests.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> FilesView<'_>,
) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<T, WasiFiles>(linker, view)?;
    bindings::preopens::add_to_linker::<T, WasiFiles>(linker, view)
}
