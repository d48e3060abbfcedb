//! From a file's bytes to a compiled component, counted before.
use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmtime::Engine;

use super::error::LoadError;
use super::features;
use super::file_kind::FileKind;
use super::inspect::component_names;
use super::precompiled;
use super::preview1;
use super::sandbox::{LinkedEngine, Sandbox};
use super::survey;
use crate::engine::errors::panic_line;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::load::COMPONENT_BYTES_MAX;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::offers::offered;
use toolcell_wall::sections::is_module;

/// The first eight bytes of a component: magic, version 13, layer 1.
const COMPONENT_PREAMBLE: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// The first four bytes of anything WebAssembly.
const WASM_MAGIC: [u8; 4] = *b"\0asm";

/// The engine that runs a component of this size.
pub(super) fn lane<'s>(sandbox: &'s Sandbox, cost: &InstanceCost) -> wasmtime::Result<&'s LinkedEngine> {
    let fits = cost.fits_pool() && cost.memories <= sandbox.slots().memories_max().into();
    if fits { Ok(sandbox.pooled()) } else { sandbox.on_demand() }
}

/// Refuses a component that imports what this host does not offer, before it is compiled. If its
/// imports cannot be read without compiling, linking refuses it.
fn check_imports(bytes: &[u8]) -> Result<(), LoadError> {
    let imports = component_names(bytes).unwrap_or_default().imports;
    let names: Vec<String> = imports.into_iter().filter(|name| !offered(name)).collect();
    if names.is_empty() { Ok(()) } else { Err(LoadError::Imports { names }) }
}

/// Refuses files that are not components, counts the parts of the others, and compiles them. None
/// of the code becomes executable here.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<(InstanceCost, Vec<u8>), LoadError> {
    guarded(bytes, || {
        let cost = counted(bytes)?;
        check_imports(bytes)?;
        let code = precompiled::serialized(engine, bytes);
        Ok((cost, code.map_err(|error| features::named(error.into(), bytes))?))
    })
}

/// Runs `work` on these bytes. The engine has bugs, and some end in a panic. A panic refuses this
/// component and harms nothing else.
fn guarded<T>(bytes: &[u8], work: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
    // Nothing that the work began is used again: a compilation owns what it changes, and the
    // functions that it kept are complete.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(LoadError::EngineFault { reason: panic_line(&*panic), digest: ComponentDigest::of(bytes) })
    })
}

/// Refuses files that are not components, and counts the parts of the others.
fn counted(bytes: &[u8]) -> Result<InstanceCost, LoadError> {
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { bytes: bytes.len() as u64 });
    }
    if !bytes.starts_with(&WASM_MAGIC) {
        return Err(FileKind::of(bytes).map_or(LoadError::NotWasm, LoadError::OtherFile));
    }
    if is_module(bytes) {
        let cost = survey::program(bytes)?;
        preview1::check(bytes).map_err(LoadError::CoreModule)?;
        Ok(cost)
    } else if bytes.starts_with(&COMPONENT_PREAMBLE) {
        Ok(survey::component(bytes)?)
    } else {
        Err(LoadError::NotWasm)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    #[test]
    fn a_panic_of_the_engine_refuses_the_component_in_one_line_with_its_digest_and_the_version() {
        let refused = guarded::<()>(b"bytes", || panic!("invalid adapter\nmodule {}", 7));
        let Err(error) = refused else { panic!("it compiles") };
        let digest = ComponentDigest::of(b"bytes");
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "the engine failed at this component: invalid adapter module 7 (component {digest}, toolcell {version})"
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("fault of the engine"), "{}", error.hint());
    }
}
