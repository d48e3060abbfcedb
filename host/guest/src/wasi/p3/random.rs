//! `wasi:random` of WASI 0.3. A guest may get fewer bytes than it asks for, and then asks again. So
//! no request takes long, and each is paid as a call of the host.
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::p3::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::random::WasiRandom;

use crate::wasi::random::SHORT_BYTES;
use crate::wasi::state::CallState;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    random::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)?;
    insecure::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)?;
    insecure_seed::add_to_linker::<CallState, WasiRandom>(linker, |state| state.ctx().ctx.random())
}

impl CallState {
    /// The bytes of one request, at most.
    fn short(&self, bytes_max: u64) -> u64 {
        bytes_max.min(self.random_bytes_max()).min(SHORT_BYTES)
    }
}

impl random::Host for CallState {
    fn get_random_bytes(&mut self, bytes_max: u64) -> wasmtime::Result<Vec<u8>> {
        let bytes = self.short(bytes_max);
        random::Host::get_random_bytes(self.ctx().ctx.random(), bytes)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        random::Host::get_random_u64(self.ctx().ctx.random())
    }
}

impl insecure::Host for CallState {
    fn get_insecure_random_bytes(&mut self, bytes_max: u64) -> wasmtime::Result<Vec<u8>> {
        let bytes = self.short(bytes_max);
        insecure::Host::get_insecure_random_bytes(self.ctx().ctx.random(), bytes)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        insecure::Host::get_insecure_random_u64(self.ctx().ctx.random())
    }
}
