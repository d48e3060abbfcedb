//! `wasi:clocks` of WASI 0.3. A task that waits is a handle of the call, and ends with it.
use std::time::Duration;

use wasmtime::component::{Accessor, HasSelf, Linker};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock as p2;
use wasmtime_wasi::p3::bindings::clocks::{monotonic_clock, system_clock, types};

use crate::wasi::state::CallState;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    types::add_to_linker::<CallState, WasiClocks>(linker, CallState::clocks)?;
    system_clock::add_to_linker::<CallState, WasiClocks>(linker, CallState::clocks)?;
    monotonic_clock::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)
}

impl monotonic_clock::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<monotonic_clock::Mark> {
        p2::Host::now(&mut self.clocks())
    }

    fn get_resolution(&mut self) -> wasmtime::Result<types::Duration> {
        p2::Host::resolution(&mut self.clocks())
    }
}

impl monotonic_clock::HostWithStore<CallState> for HasSelf<CallState> {
    async fn wait_until(store: &Accessor<CallState, Self>, when: monotonic_clock::Mark) -> wasmtime::Result<()> {
        let now = store.with(|mut store| p2::Host::now(&mut store.get().clocks()))?;
        sleep(when.saturating_sub(now)).await;
        Ok(())
    }

    async fn wait_for(store: &Accessor<CallState, Self>, duration: types::Duration) -> wasmtime::Result<()> {
        store.with(|mut store| {
            store.get().called();
        });
        sleep(duration).await;
        Ok(())
    }
}

async fn sleep(nanoseconds: u64) {
    if nanoseconds > 0 {
        tokio::time::sleep(Duration::from_nanos(nanoseconds)).await;
    }
}
