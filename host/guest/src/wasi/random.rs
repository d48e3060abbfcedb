//! `wasi:random` with lengths that the guest chooses. wasmtime-wasi makes the bytes in pieces,
//! between which other guests get a turn; the guest pays for each byte.
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::p2::bindings::random as wasi;
use wasmtime_wasi::random::WasiRandomCtx;

use crate::wasi::state::CallState;

/// The generated bindings of `wasi:random`. Nothing is written by hand there.
mod bindings {
    #![allow(missing_docs, clippy::all, rust_2018_idioms)]
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "wasi:random/imports",
        imports: {
            "wasi:random/random.get-random-bytes": async | trappable,
            "wasi:random/insecure.get-insecure-random-bytes": async | trappable,
            default: trappable,
        },
    });
}

use bindings::wasi::random::{insecure, random};

/// Bytes made at once. At about 1.5 ns each, that is a fraction of the time that a guest computes
/// before it yields.
const PIECE_BYTES: u64 = 64 * 1024;

/// Bytes up to which the current thread makes them, even if it has other duties: 12 µs.
pub(super) const SHORT_BYTES: u64 = 8 * 1024;

/// Fuel of each byte: about what a guest computes in the same time.
const BYTE_FUEL: u64 = 10;

/// `random` and `insecure`. The latter's seed is wasmtime-wasi's.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    random::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)?;
    insecure::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)
}

impl CallState {
    async fn random(
        &mut self,
        length: u64,
        make: fn(&mut WasiRandomCtx, u64) -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Vec<u8>> {
        if length > self.random_bytes_max() || length <= SHORT_BYTES {
            // wasmtime-wasi refuses a length that is too large.
            return make(self.ctx().ctx.random(), length);
        }
        self.spend(length.saturating_mul(BYTE_FUEL))?;
        let mut bytes = Vec::new();
        let mut left = length;
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            bytes.extend(make(self.ctx().ctx.random(), piece)?);
            left -= piece;
            if left > 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(bytes)
    }
}

impl random::Host for CallState {
    async fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.random(length, wasi::random::Host::get_random_bytes).await
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        wasi::random::Host::get_random_u64(self.ctx().ctx.random())
    }
}

impl insecure::Host for CallState {
    async fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.random(length, wasi::insecure::Host::get_insecure_random_bytes).await
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        wasi::insecure::Host::get_insecure_random_u64(self.ctx().ctx.random())
    }
}
