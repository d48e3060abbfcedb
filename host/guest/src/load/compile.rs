//! From a file's bytes to a compiled component, counted before.
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::error::{LoadError, invalid, mismatch};
use super::file_kind::FileKind;
use super::inspect::{ComponentNames, before_code, component_names};
use super::sandbox::{LinkedEngine, Sandbox};
use super::survey::{self, SurveyedComponent};
use super::{features, imports, precompiled, preview1, readers};
use crate::engine::errors::{one_line, panic_line};
use crate::shape;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::load::COMPONENT_BYTES_MAX;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::facts::GuestEngine;
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

/// Refuses a component that imports what this host does not offer, or that exports nothing for it,
/// before it is compiled. What cannot be read without compiling is refused when it is linked.
fn check_names(compiler: &Engine, engine: GuestEngine, bytes: &[u8]) -> Result<(), LoadError> {
    let Some(ComponentNames { exports, imports }) = component_names(bytes) else { return Ok(()) };
    let names: Vec<String> = imports.into_iter().filter(|name| !offered(name)).collect();
    if !names.is_empty() {
        return Err(LoadError::Imports { names });
    }
    check_import_types(compiler, engine, bytes)?;
    Ok(shape::check_exports(&exports)?)
}

/// Refuses a component that imports functions or types which an interface of this host does not
/// have. Only the part before its code is compiled, which takes no time.
fn check_import_types(compiler: &Engine, engine: GuestEngine, bytes: &[u8]) -> Result<(), LoadError> {
    // Where this part is refused the whole is too, and compiling tells why.
    let Some(Ok(imports)) = before_code(bytes).map(|part| Component::new(compiler, part)) else { return Ok(()) };
    let mut linker = Linker::new(compiler);
    imports::add_all(&mut linker, engine).map_err(|error| invalid(one_line(&error)))?;
    linker.instantiate_pre(&imports).map(drop).map_err(|error| mismatch(one_line(&error)))
}

/// A component that was compiled.
pub(crate) struct CompiledComponent {
    /// What one instance of it costs the host.
    pub(crate) cost: InstanceCost,
    /// The engine that it needs.
    pub(crate) engine: GuestEngine,
    /// Its code.
    pub(crate) code: Vec<u8>,
}

/// Refuses files that are not components, counts the parts of the others, and compiles them with
/// the engine that each needs. None of the code becomes executable here.
pub(crate) fn compile<'e>(
    engine_of: impl FnOnce(GuestEngine) -> &'e Engine,
    bytes: &[u8],
) -> Result<CompiledComponent, LoadError> {
    guarded(bytes, || {
        let mut surveyed = counted(bytes)?;
        let compiler = engine_of(surveyed.engine);
        check_names(compiler, surveyed.engine, bytes)?;
        let whole = with_readers(bytes, &mut surveyed)?;
        let SurveyedComponent { cost, engine } = surveyed;
        let code = precompiled::serialized(compiler, &whole);
        let code = code.map_err(|error| features::named(error, bytes))?;
        Ok(CompiledComponent { cost, engine, code })
    })
}

/// The component with readers for the streams that its functions return, counted again if it has
/// any.
fn with_readers<'b>(bytes: &'b [u8], surveyed: &mut SurveyedComponent) -> Result<Cow<'b, [u8]>, LoadError> {
    if surveyed.engine == GuestEngine::Sync {
        return Ok(bytes.into());
    }
    let Some(whole) = readers::added(bytes) else { return Ok(bytes.into()) };
    *surveyed = survey::component(&whole)?;
    Ok(whole.into())
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
fn counted(bytes: &[u8]) -> Result<SurveyedComponent, LoadError> {
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { bytes: bytes.len() as u64 });
    }
    if !bytes.starts_with(&WASM_MAGIC) {
        return Err(FileKind::of(bytes).map_or(LoadError::NotWasm, LoadError::OtherFile));
    }
    if is_module(bytes) {
        let surveyed = survey::program(bytes)?;
        preview1::check(bytes).map_err(LoadError::CoreModule)?;
        Ok(surveyed)
    } else if bytes.starts_with(&COMPONENT_PREAMBLE) {
        Ok(survey::component(bytes)?)
    } else {
        Err(LoadError::NotWasm)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]
    use toolcell_wall::pool_sizes::SandboxOptions;

    use super::*;

    #[test]
    fn what_a_component_imports_and_exports_in_vain_is_named_before_anything_is_compiled() {
        let sandbox = Sandbox::new(SandboxOptions { calls_max: 1, ..SandboxOptions::default() }).unwrap();
        // Code that does not compile: whatever is named instead was found before.
        let code = "(core module (func (result i32) i64.const 0))";
        let run = r#"(core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f"))) (instance $run (export "handle" (func $f)))"#;
        for (text, words) in [
            (code.to_owned(), "exports no tools: "),
            (
                format!(r#"{code} {run} (export "wasi:http/incoming-handler@0.2.3" (instance $run))"#),
                "exports no tools: ",
            ),
            (format!(r#"{code} {run} (export "f" (func $f))"#), "not a valid component: "),
            (format!(r#"{code} {run} (export "wasi:cli/run@0.2.0" (instance $run))"#), "not a valid component: "),
            (format!(r#"{code} {run} (export "toolcell:mcp/tools@9.0.0" (instance $run))"#), "not a valid component: "),
            (
                format!(r#"(import "evil:corp/api@1.0.0" (instance (export "f" (func)))) {code}"#),
                "imports what this host does not offer: evil:",
            ),
            (
                format!(r#"(import "toolcell:mcp/log@1.0.0" (instance (export "erase" (func)))) {code}"#),
                "does not fit what this host offers: it imports \"erase\" of toolcell:mcp/log@1.0.0",
            ),
            (
                format!(
                    r#"(import "wasi:io/poll@0.2.3" (instance $poll (export "pollable" (type (sub resource)))))
                    (alias export $poll "pollable" (type $pollable))
                    (import "wasi:clocks/monotonic-clock@0.2.3" (instance
                        (alias outer 1 $pollable (type $p)) (export "pollable" (type $own (eq $p)))
                        (export "subscribe-duration" (func (param "when" string) (result (own $own)))))) {code}"#
                ),
                "it imports \"subscribe-duration\" of wasi:clocks/monotonic-clock@0.2.3 with another type than it has here",
            ),
        ] {
            let bytes = wat::parse_str(format!("(component {text})")).unwrap();
            let Err(error) = compile(|_| &sandbox.pooled().engine, &bytes) else { panic!("{text} compiles") };
            assert!(error.to_string().contains(words), "{text}: {error}");
            (8..bytes.len()).for_each(|cut| {
                drop(check_names(&sandbox.pooled().engine, GuestEngine::Sync, &bytes[..cut]));
            });
        }
    }

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
