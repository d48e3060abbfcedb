//! From a file's bytes to a compiled component, counted before. Must not hold: linking, or exports.
use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmtime::Engine;
use wasmtime::component::Component;

use super::cache::CodeCache;
use super::digest::Digest;
use super::error::{LoadError, invalid};
use super::features;
use super::file_kind::FileKind;
use super::imports::offered;
use super::inspect::names_ahead;
use super::precompiled::{self, CodeOrigin};
use super::preview1;
use super::sandbox::{LinkedEngine, Sandbox};
use super::survey::{COMPONENT_BYTES_MAX, Survey};
use super::told;
use crate::failure::{one_line, panic_line};

/// The first eight bytes of a component: magic, version 13, layer 1.
const COMPONENT_PREAMBLE: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// The first four bytes of anything WebAssembly.
const WASM_MAGIC: [u8; 4] = *b"\0asm";

/// A compiled component, and the facts found on the way.
pub(crate) struct Compiled<'s> {
    pub(crate) component: Component,
    pub(crate) origin: CodeOrigin,
    pub(crate) lane: &'s LinkedEngine,
    pub(crate) survey: Survey,
    /// The name of its code in the cache, if there is a cache.
    pub(crate) entry: Option<String>,
}

/// Refuses files that are no component and counts the parts of the others. Then it compiles: for
/// the pool where the component fits, else to run on demand. What an earlier start kept is taken.
pub(crate) fn compile<'s>(sandbox: &'s Sandbox, (bytes, digest): (&[u8], Digest)) -> Result<Compiled<'s>, LoadError> {
    if let Some(compiled) = find(sandbox, (bytes, digest)) {
        return Ok(compiled);
    }
    guarded(bytes, || compile_anew(sandbox, (bytes, digest)))
}

/// [`compile`], for a component that is linked afterwards. One that imports what this host does not
/// offer is refused before it is compiled.
pub(crate) fn compile_to_link<'s>(
    sandbox: &'s Sandbox,
    (bytes, digest): (&[u8], Digest),
) -> Result<Compiled<'s>, LoadError> {
    if let Some(compiled) = find(sandbox, (bytes, digest)) {
        return Ok(compiled);
    }
    guarded(bytes, || {
        check_imports(bytes)?;
        compile_anew(sandbox, (bytes, digest))
    })
}

fn compile_anew<'s>(sandbox: &'s Sandbox, (bytes, digest): (&[u8], Digest)) -> Result<Compiled<'s>, LoadError> {
    let survey = survey(bytes)?;
    let lane = lane(sandbox, &survey).map_err(|error| invalid(one_line(&error)))?;
    let code = precompiled::component(lane.engine(), sandbox.cache().zip(lane.functions()), (bytes, digest));
    let code = code.map_err(|error| features::named(error.into(), bytes))?;
    if let Some((cache, name)) = survey_place(sandbox, (bytes, digest)) {
        told::keep_own_survey(cache, &name, &survey);
    }
    let precompiled::Code { component, origin, entry } = code;
    Ok(Compiled { component, origin, lane, survey, entry })
}

/// The component of these bytes, if an earlier load of a process like this one counted and compiled
/// it.
pub(crate) fn find<'s>(sandbox: &'s Sandbox, (bytes, digest): (&[u8], Digest)) -> Option<Compiled<'s>> {
    let (cache, name) = survey_place(sandbox, (bytes, digest))?;
    let survey = told::own_survey(cache, &name)?;
    let lane = lane(sandbox, &survey).ok()?;
    let pooled = std::ptr::eq(lane, sandbox.pooled());
    let name = if pooled { name } else { precompiled::name(lane.engine(), bytes, digest) };
    let precompiled::Code { component, origin, entry } = precompiled::find(lane.engine(), cache, &name)?;
    Some(Compiled { component, origin, lane, survey, entry })
}

/// The cache, and the name of the counts of a component in it. They do not depend on where it runs:
/// the name is that of code for the pool.
fn survey_place<'s>(sandbox: &'s Sandbox, (bytes, digest): (&[u8], Digest)) -> Option<(&'s CodeCache, String)> {
    Some((sandbox.cache()?, precompiled::name(sandbox.pooled().engine(), bytes, digest)))
}

/// The engine that runs a component of this size.
pub(super) fn lane<'s>(sandbox: &'s Sandbox, survey: &Survey) -> wasmtime::Result<&'s LinkedEngine> {
    let fits = survey.fits_pool() && survey.memories() <= sandbox.slots().memories_max().into();
    if fits { Ok(sandbox.pooled()) } else { sandbox.on_demand() }
}

/// Refuses a component that imports what this host does not offer, before it is compiled. Where its
/// imports cannot be read ahead, linking refuses it.
fn check_imports(bytes: &[u8]) -> Result<(), LoadError> {
    let imports = names_ahead(bytes).unwrap_or_default().imports;
    let names: Vec<String> = imports.into_iter().filter(|name| !offered(name)).collect();
    if names.is_empty() { Ok(()) } else { Err(LoadError::Imports { names }) }
}

/// Counts the parts of a component and compiles it, for another process to map. None of its code
/// becomes executable here.
pub(crate) fn compile_elsewhere(engine: &Engine, bytes: &[u8]) -> Result<(Survey, Vec<u8>), LoadError> {
    guarded(bytes, || {
        let survey = survey(bytes)?;
        check_imports(bytes)?;
        let code = precompiled::serialized(engine, bytes);
        Ok((survey, code.map_err(|error| features::named(error.into(), bytes))?))
    })
}

/// Runs the work on these bytes. The engine has bugs, and some end in a panic: that refuses the
/// component that met one, and takes nothing else along.
fn guarded<T>(bytes: &[u8], work: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
    // Nothing that the work had begun with is used again: a compilation owns what it changes, and
    // functions that it kept are whole.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(LoadError::EngineFault { reason: panic_line(&*panic), digest: Digest::of(bytes) }))
}

/// Refuses files that are no component, and counts the parts of the others.
fn survey(bytes: &[u8]) -> Result<Survey, LoadError> {
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { bytes: bytes.len() as u64 });
    }
    if !bytes.starts_with(&WASM_MAGIC) {
        return Err(FileKind::of(bytes).map_or(LoadError::NotWasm, LoadError::OtherFile));
    }
    if preview1::is_module(bytes) {
        let survey = Survey::of_program(bytes)?;
        preview1::check(bytes).map_err(LoadError::CoreModule)?;
        Ok(survey)
    } else if bytes.starts_with(&COMPONENT_PREAMBLE) {
        Ok(Survey::of(bytes)?)
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
        let (digest, version) = (Digest::of(b"bytes"), env!("CARGO_PKG_VERSION"));
        let expected = format!(
            "the engine failed at this component: invalid adapter module 7 (component {digest}, toolcell {version})"
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("fault of the engine"), "{}", error.hint());
    }
}
