//! `wasi:sockets` of WASI 0.3, over the sockets, doors, questions and denials of 0.2.
//!
//! | file | holds |
//! |---|---|
//! | `tcp.rs`, `streams.rs` | TCP sockets, and the two directions of a connection |
//! | `lookup.rs` | look-ups of names |
//! | `udp.rs` | UDP sockets |
//! | `convert.rs`, `bindings.rs` | its types, and what is generated |
mod bindings;
mod convert;
mod lookup;
mod streams;
mod tcp;
mod udp;

use std::net::SocketAddr;

use wasmtime::component::{HasSelf, Linker};

use crate::consent::PermissionQuestion;
use crate::wasi::state::CallState;

/// Why a function fails.
pub type Refused = wasmtime_wasi::TrappableError<bindings::types::ErrorCode>;

/// Offers `wasi:sockets` of WASI 0.3 to guests.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    bindings::ip_name_lookup::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)
}

/// The address to use, after a person was asked about it if somebody is to be.
async fn asked(question: Option<PermissionQuestion>, to: SocketAddr) -> Result<SocketAddr, Refused> {
    match question {
        Some(question) => Ok(question.ask().await.map_err(Refused::trap)?.unwrap_or(to)),
        None => Ok(to),
    }
}
