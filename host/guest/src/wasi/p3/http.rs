//! `wasi:http/client` of WASI 0.3. wasmtime-wasi-http makes the request; the same hooks as in 0.2
//! send it to the host, which decides on it and counts it.
//!
//! No person is asked about a request that no rule allows: the deadline stands still while a person
//! answers, and the guest's other tasks would go on meanwhile.
use wasmtime::component::Linker;

use crate::wasi::state::CallState;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p3::add_to_linker(linker)
}
