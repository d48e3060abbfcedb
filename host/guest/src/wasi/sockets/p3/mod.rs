//! `wasi:sockets` of WASI 0.3: TCP and look-ups, over the sockets, doors and denials of 0.2. UDP is
//! not there: its packets would need turns between the tasks of a guest.
//!
//! | file | holds |
//! |---|---|
//! | `tcp.rs`, `streams.rs` | TCP sockets, and the two directions of a connection |
//! | `lookup.rs` | look-ups of names |
//! | `udp.rs` | the answer `not-supported` for UDP |
//! | `convert.rs`, `bindings.rs` | its types, and what is generated |
//!
//! No person is asked about a target that no rule allows, as with [requests](crate::wasi::p3).
mod bindings;
mod convert;
mod lookup;
mod streams;
mod tcp;
mod udp;

use wasmtime::component::{HasSelf, Linker};

use crate::wasi::state::CallState;

/// Why a function fails.
pub type Refused = wasmtime_wasi::TrappableError<bindings::types::ErrorCode>;

pub use udp::NoUdp;

/// Offers `wasi:sockets` of WASI 0.3 to guests.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    bindings::ip_name_lookup::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)
}
