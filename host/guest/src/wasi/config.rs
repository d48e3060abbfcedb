//! `wasi:config`: the values of the tool's manifest, by name.
use std::collections::BTreeMap;

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, Lower};

use crate::wasi::state::CallState;

/// The names and values of one tool. The manifest bounds both.
pub(crate) type ConfigValues = BTreeMap<String, String>;

/// The interface under each name that components were built with. All have the same two functions:
/// wasmtime provides the first, componentize-js and older toolchains the next two, Spin the last.
pub(crate) const INTERFACES: [&str; 4] = [
    "wasi:config/store@0.2.0-rc.1",
    "wasi:config/store@0.2.0-draft",
    "wasi:config/runtime@0.2.0-draft",
    "wasi:config/store@0.2.0-draft-2024-09-27",
];

/// The interface's `error`. A lookup in memory never fails, so there is never a value of it.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum ConfigError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

/// Adds the interface under each of its names.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for interface in INTERFACES {
        let mut instance = linker.instance(interface)?;
        instance.func_wrap("get", |mut store: StoreContextMut<'_, CallState>, (name,): (String,)| {
            let value = store.data_mut().called().setting(&name);
            Ok((Ok::<_, ConfigError>(value),))
        })?;
        instance.func_wrap("get-all", |mut store: StoreContextMut<'_, CallState>, (): ()| {
            let values = store.data_mut().called().capabilities().config();
            let values: Vec<_> = values.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            Ok((Ok::<_, ConfigError>(values),))
        })?;
    }
    Ok(())
}
