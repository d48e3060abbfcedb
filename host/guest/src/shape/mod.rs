//! The shapes of components that are tools, recognized by their exports. Must not hold: the tools
//! of a shape, or how they are called; each shape has a folder for that.
//!
//! | file | holds |
//! |---|---|
//! | `contract/` | components that keep the tool contract |
//! | `typed/` | functions over WIT values |
//! | `program/` | command-line programs |
//! | `tool_call.rs` | a call of a tool, and its answer, for every shape |
//! | `dev_source.rs` | files of a project that `toolcell dev` serves, imported |
//! | `error.rs` | why a component has no shape |
mod contract;
pub(crate) mod dev_source;
mod error;
pub(crate) mod program;
mod tool_call;
pub(crate) mod typed;

#[cfg(test)]
mod tests;

use toolcell_wall::load::facts::{LeftOutFunction, ShapeName};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};

use program::RunExport;
use typed::TypedFunctions;

use crate::wasi::state::CallState;

pub(crate) use error::ShapeError;
pub(crate) use tool_call::{ToolAnswer, ToolCall};

/// The shape of a component: how its exports become tools.
#[allow(clippy::large_enum_variant, reason = "there is one of each component")]
pub(crate) enum ComponentShape {
    /// It exports the tool contract, and lists its tools itself.
    Contract(contract::Indices),
    /// It is a command-line program, from which the manifest makes tools.
    Program(ComponentExportIndex),
    /// It exports functions over WIT values: each is a tool.
    Typed {
        functions: TypedFunctions,
        /// Its entry point, if it is also a command-line program.
        run: Option<ComponentExportIndex>,
    },
}

/// The tools of a component, found in its exports.
pub(crate) struct ExportedTools {
    pub(crate) shape: ComponentShape,
    /// Functions that are not tools, each with the reason.
    pub(crate) left_out: Vec<LeftOutFunction>,
}

/// The interfaces of the contract, by their prefix.
const CONTRACT: &str = "toolcell:mcp/";

/// Why a function of a component with the contract is not a tool.
const NOT_LISTED: &str = "the component lists its tools itself, by the contract";

/// The exports of one instance, as its shape calls them.
pub(crate) enum Exports {
    Contract(contract::ContractFunctions),
    Typed(Instance),
    Program(RunExport),
}

impl Exports {
    /// The instance itself; `None` for a program, which exports nothing else.
    pub(crate) const fn instance(&self) -> Option<Instance> {
        match self {
            Self::Contract(functions) => Some(functions.instance),
            Self::Typed(instance) => Some(*instance),
            Self::Program(_) => None,
        }
    }
}

impl ExportedTools {
    /// Finds the shape of a linked component, and the functions that are left out.
    ///
    /// # Errors
    /// [`ShapeError`] if it has none, or if its exports have wrong types.
    pub(crate) fn of(pre: &InstancePre<CallState>, bytes: &[u8], exports: &[String]) -> Result<Self, ShapeError> {
        let component = pre.component();
        if let Some(indices) = contract::detect(pre, exports)? {
            let left_out = typed::left_out_all(component, NOT_LISTED);
            return Ok(Self { shape: ComponentShape::Contract(indices), left_out });
        }
        let mut functions = TypedFunctions::of(component, bytes)?;
        let mut left_out = functions.take_left_out();
        let run = match program::detect(component, exports) {
            // The functions are still tools.
            Err(ShapeError::Mismatch { reason }) if !functions.is_empty() => {
                left_out.push(LeftOutFunction { function: "wasi:cli/run.run".to_owned(), reason });
                None
            }
            run => run?,
        };
        let shape = match run {
            Some(run) if functions.is_empty() => ComponentShape::Program(run),
            None if functions.is_empty() && left_out.is_empty() => {
                return Err(ShapeError::NotATool { exports: exports.to_vec() });
            }
            run => ComponentShape::Typed { functions, run },
        };
        Ok(Self { shape, left_out })
    }
}

/// Refuses a component by the names of its exports, if runtimes call all of them and it has no
/// tools. The contract and programs are looked at when they are linked.
///
/// # Errors
/// [`ShapeError::NotATool`].
pub(crate) fn check_exports(exports: &[String]) -> Result<(), ShapeError> {
    let may_be_tool =
        |name: &String| name.starts_with(CONTRACT) || program::is_export(name) || !typed::is_of_runtime(name);
    if exports.iter().any(may_be_tool) { Ok(()) } else { Err(ShapeError::NotATool { exports: exports.to_vec() }) }
}

impl ComponentShape {
    pub(crate) const fn name(&self) -> ShapeName {
        match self {
            Self::Contract(_) => ShapeName::Contract,
            Self::Typed { .. } => ShapeName::Typed,
            Self::Program(_) => ShapeName::Program,
        }
    }

    /// True if it is a command-line program, whatever else it is.
    pub(crate) const fn is_program(&self) -> bool {
        matches!(self, Self::Program(_) | Self::Typed { run: Some(_), .. })
    }

    /// Finds the exports in an instance of the component.
    pub(crate) fn exports(&self, store: &mut Store<CallState>, instance: Instance) -> wasmtime::Result<Exports> {
        Ok(match self {
            Self::Contract(indices) => Exports::Contract(indices.load(store, &instance)?),
            Self::Typed { .. } => Exports::Typed(instance),
            Self::Program(run) => Exports::Program(instance.get_typed_func(store, run)?),
        })
    }

    /// Calls a tool of an instance.
    ///
    /// # Errors
    /// An error of the engine: a trap, or a limit. A failure that the guest itself reports is an
    /// answer.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        exports: &Exports,
        ask: ToolCall<'_>,
    ) -> wasmtime::Result<ToolAnswer> {
        match (self, exports) {
            (Self::Contract(_), Exports::Contract(functions)) => contract::call(store, functions, ask).await,
            (Self::Typed { functions, run }, Exports::Typed(instance)) => match ask.program.zip(run.as_ref()) {
                Some((program, run)) => {
                    let run: RunExport = instance.get_typed_func(&mut *store, run)?;
                    program::run(store, &run, program, ask).await
                }
                None => functions.call(store, instance, ask).await,
            },
            (Self::Program(_), Exports::Program(run)) => match ask.program {
                Some(program) => program::run(store, run, program, ask).await,
                None => Err(wasmtime::Error::msg("the manifest does not say how the program is run")),
            },
            _ => Err(wasmtime::Error::msg("the instance is of another shape than its component")),
        }
    }
}
