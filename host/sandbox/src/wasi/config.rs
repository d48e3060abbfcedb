//! `wasi:config`: the settings that the manifest gives a tool, and the secrets that it exposes to it. wasmtime-wasi-config
//! has the interface; this has what it tells. Must not hold: where values come from.
use toolcell_policy::Grants;
use wasmtime::component::Linker;
use wasmtime_wasi_config::{WasiConfig, WasiConfigVariables};

use crate::wasi::state::CallState;

/// `wasi:config/store`.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wasmtime_wasi_config::add_to_linker(linker, |state: &mut CallState| {
        WasiConfig::from(state.called().reach().config())
    })
}

/// What a tool with these grants is told. An exposed secret goes by its name, which no setting has.
pub(crate) fn variables<'s>(
    grants: &Grants,
    exposed: impl IntoIterator<Item = (&'s str, &'s str)>,
) -> WasiConfigVariables {
    let mut variables = WasiConfigVariables::new();
    for (name, value) in exposed {
        variables.insert(name, value);
    }
    for (name, value) in grants.config() {
        variables.insert(name, value);
    }
    variables
}
