//! WASI 0.3 (p3), linked in the engine of async components. Its functions have another form than
//! those of 0.2, and the same rights, counters, denials and records: each of them works on
//! [`CallState`], as 0.2 does.
//!
//! Each call of a function is counted as a call of the host, and so is each piece that goes through
//! a stream. Tasks, streams and futures count as handles, whoever made them.
//!
//! | file | holds |
//! |---|---|
//! | `cli.rs` | the environment, the standard streams, the end of a program |
//! | `clocks.rs` | waiting; the rest of the clocks is wasmtime-wasi's own |
//! | `http.rs` | requests, over wasmtime-wasi-http and the same hooks as 0.2 |
//! | `outcome.rs` | how streams end |
//! | `random.rs` | random bytes |
//!
//! Files are in `wasi/files/p3`, sockets in `wasi/sockets/p3`.
mod cli;
mod clocks;
mod http;
pub(crate) mod outcome;
mod random;

use wasmtime::component::Linker;

use crate::wasi::state::CallState;
use crate::wasi::{files, sockets};

/// Adds every interface of WASI 0.3 that this host offers.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    cli::add_to_linker(linker)?;
    clocks::add_to_linker(linker)?;
    random::add_to_linker(linker)?;
    files::p3::add_to_linker(linker)?;
    sockets::p3::add_to_linker(linker)?;
    http::add_to_linker(linker)
}
