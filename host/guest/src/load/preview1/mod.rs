//! Programs built for WASI preview 1: core modules, made into components by the official adapter.
//! Must not hold: running.
//!
//! | file | holds |
//! |---|---|
//! | `memory/` | room for the adapter in a module's memory |
//! | `exit.rs` | exit codes |
//! | `paths.rs` | paths that are not UTF-8 |
//! | `sections.rs` | sections of a module, read and replaced |
mod exit;
mod memory;
mod paths;
mod sections;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as ADAPTER,
};
use wasmparser::{ExternalKind, Parser, Payload};
use wit_component::ComponentEncoder;

/// The entry point of a program.
const START: &str = "_start";

/// Modules that a refusal names: enough to recognize the host that the module was built for.
const MODULES_SHOWN_MAX: usize = 5;

/// Why a core module is not a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAProgram {
    /// It imports from elsewhere than WASI preview 1. Only the host it was built for has that.
    #[error("it imports from {}", .0.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", "))]
    Imports(Vec<String>),
    /// It does not export `_start`.
    #[error("it exports no \"_start\"")]
    NoStart,
    /// It cannot be read as a module, or does not fit the adapter.
    #[error("{0}")]
    Invalid(String),
}

impl NotAProgram {
    /// A hint on how to fix it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        let from = |wanted: &[&str]| match self {
            Self::Imports(modules) => modules.iter().any(|module| wanted.contains(&module.as_str())),
            _ => false,
        };
        if matches!(self, Self::NoStart) {
            "a library's functions take addresses in memory: build a component for wasm32-wasip2, or a program, as a command with a main function"
        } else if from(&["gojs", "go"]) {
            "build it with GOOS=wasip1 GOARCH=wasm: GOOS=js is for browsers"
        } else if from(&["wbg", "__wbindgen_placeholder__", "__wbindgen_externref_xform__"]) {
            "build it for wasm32-wasip1 or wasm32-wasip2 without wasm-bindgen, which is for browsers"
        } else if from(&["wasi_unstable"]) {
            "build it with a newer toolchain: it was built for what came before WASI preview 1"
        } else if from(&["env", "a"]) {
            "build it for wasm32-wasi (wasi-libc, emcc -sSTANDALONE_WASM, or AssemblyScript's wasi-shim); \"env\" is left where something is not linked"
        } else {
            "a program is built for wasm32-wasip1 or wasm32-wasip2, as a command with a main function"
        }
    }
}

/// Bump when adapted components change in a way that the adapter's own bytes do not show.
const FORMAT: u8 = 3;

/// The inputs, in addition to the module, that adapted code depends on.
pub(crate) const fn adapter() -> (u8, &'static [u8]) {
    (FORMAT, ADAPTER)
}

/// Checks that a core module is a program, without making a component from it.
///
/// # Errors
/// The reason why it is not a program.
pub(crate) fn check(module: &[u8]) -> Result<(), NotAProgram> {
    let invalid = |error: wasmparser::BinaryReaderError| NotAProgram::Invalid(error.message().to_owned());
    let mut foreign: Vec<String> = Vec::new();
    let mut starts = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(invalid)? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let name = import.map_err(invalid)?.module;
                    if name != PREVIEW1 && !foreign.iter().any(|other| other == name) {
                        foreign.push(name.to_owned());
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(invalid)?;
                    starts |= export.name == START && export.kind == ExternalKind::Func;
                }
            }
            // Code and data follow; they do not matter here.
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    if !foreign.is_empty() {
        foreign.truncate(MODULES_SHOWN_MAX);
        return Err(NotAProgram::Imports(foreign));
    }
    if starts { Ok(()) } else { Err(NotAProgram::NoStart) }
}

/// The component that a program's module becomes.
///
/// # Errors
/// Why the module does not fit the adapter.
pub(crate) fn component(module: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let widened = memory::with_room(module);
    let module = widened.as_deref().unwrap_or(module);
    let with_codes = exit::with_codes(module).map_err(wasmtime::Error::msg)?;
    let module = with_codes.as_deref().unwrap_or(module);
    let adapter = paths::with_path_checks(ADAPTER).ok_or_else(|| wasmtime::Error::msg("the adapter cannot be read"))?;
    // It is validated when it is compiled.
    let encoder = ComponentEncoder::default().validate(false).module(module);
    let ready = encoder.and_then(|encoder| encoder.adapter(PREVIEW1, &adapter));
    let component = ready.and_then(|mut encoder| encoder.encode());
    component.map_err(|error| wasmtime::Error::msg(format!("{error:#}")))
}
