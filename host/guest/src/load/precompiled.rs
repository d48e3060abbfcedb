//! From a component's bytes to machine code, and from a file of that to a component that can run.
//!
//! The only file of the project with `unsafe` in it.
use std::borrow::Cow;
use std::fs::File;
use std::hash::{Hash as _, Hasher};

use wasmtime::component::Component;
use wasmtime::{CodeBuilder, Engine};

use crate::engine::errors::one_line;
use crate::load::error::{LoadError, invalid};
use crate::load::{preview1, readers, survey};
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::sections::is_module;

/// Bump this when a change of this crate makes earlier code unusable in a way that wasmtime cannot
/// see, or when it refuses components that it compiled before.
const FORMAT: u8 = 4;

/// Compiles a component, or the component that a program for WASI preview 1 becomes, to bytes. None
/// of them becomes executable here.
///
/// # Errors
/// It would cost too much, or the engine does not take it.
pub(crate) fn serialized(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    // Code in the cache was counted before it was compiled.
    survey::check_code(bytes)?;
    compiled(engine, bytes).map_err(|error| invalid(one_line(&error)))
}

fn compiled(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let bytes: Cow<'_, [u8]> = if is_module(bytes) { preview1::component(bytes)?.into() } else { bytes.into() };
    CodeBuilder::new(engine).wasm_binary(bytes.as_ref(), None)?.compile_component_serialized()
}

/// The name of these engines. It covers everything that compiled code depends on, except for the
/// component, and for the engine that it is for.
pub(crate) fn engine_name<'e>(engines: impl IntoIterator<Item = &'e Engine>) -> EngineName {
    let mut settings = SettingsHasher(blake3::Hasher::new());
    for engine in engines {
        engine.precompile_compatibility_hash().hash(&mut settings);
    }
    settings.write_u8(FORMAT);
    settings.write_u8(readers::FORMAT);
    let (format, adapter) = preview1::adapter();
    settings.write_u8(format);
    settings.write(adapter);
    EngineName::new(*settings.0.finalize().as_bytes())
}

/// A hasher that keeps all of its input, where `Hasher` has 64 bits.
struct SettingsHasher(blake3::Hasher);

impl Hasher for SettingsHasher {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
}

/// Maps code that the host handed to this process.
#[allow(unsafe_code)]
pub(crate) fn handed(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    use std::os::fd::AsRawFd as _;
    // The file is opened by its descriptor, so it is the very file that was verified, even if its
    // path leads elsewhere now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the bytes must come from `Component::serialize` for an engine of the same settings,
    // and must not change while mapped. The host sends the file over the link that this process or
    // thread was started with. It has the file from a loader, or from an entry of the cache whose
    // MAC it verified, made under a key that only this user can read. Nobody writes to either any
    // more. What a loader made may be anything that its component wanted: so it is mapped behind
    // walls. With `walls = "none"` the loader is a thread of this process, and the bytes are the
    // compiler's.
    unsafe { Component::deserialize_file(engine, path) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcell_wall::load::facts::GuestEngine;
    use wasmtime::InstanceAllocationStrategy;

    use super::*;
    use crate::engine;
    use crate::load::functions::handed::HandedFunctions;

    #[test]
    fn the_name_of_an_engine_depends_on_the_settings_of_its_code_alone() {
        let name = |config: &wasmtime::Config| engine_name([&Engine::new(config).unwrap()]);
        let config = |engine| engine::config(engine, 1 << 19);
        let plain = name(&config(GuestEngine::Sync));
        assert_ne!(plain, name(&wasmtime::Config::new()));
        assert_ne!(plain, name(&config(GuestEngine::Async)));
        // Engines that compile keep functions, and those that run have slots.
        let mut compiles = config(GuestEngine::Sync);
        compiles.enable_incremental_compilation(Arc::new(HandedFunctions::default())).unwrap();
        let mut runs = config(GuestEngine::Sync);
        runs.allocation_strategy(InstanceAllocationStrategy::pooling());
        assert_eq!([name(&compiles), name(&runs)], [plain; 2]);
    }
}
