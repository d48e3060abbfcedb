//! `wasi:config`: the settings that the manifest gives a tool, and the secrets that it exposes to it. wasmtime-wasi-config
//! has the interface; this has what it tells. Must not hold: where values come from.
use wasmtime::component::Linker;
use wasmtime_wasi_config::WasiConfig;

use crate::wasi::state::CallState;

/// `wasi:config/store`.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wasmtime_wasi_config::add_to_linker(linker, |state: &mut CallState| {
        WasiConfig::from(state.called().reach().config())
    })
}
