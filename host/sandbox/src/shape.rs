//! What makes tools of a component: one shape per way of being one, told by the component's own exports. Must not hold:
//! what a shape's tools are, or how they are called; that is in a file for each.
mod contract;
mod typed;

#[cfg(test)]
mod tests;

use toolcell_policy::Limits;
use wasmtime::Store;
use wasmtime::component::{Component, Instance, InstancePre};

use crate::bindings::{self, ToolComponent as Bindings, contract as types};
use crate::component::LoadError;
use crate::inspect::Inspection;
use crate::state::CallState;
use crate::typed::Functions;

pub(crate) use contract::EXPORT as CONTRACT_EXPORT;

/// How a component's exports become tools.
pub(crate) enum Shape {
    /// It exports the tool contract, and lists its tools itself.
    Contract(bindings::ToolComponentIndices),
    /// It exports functions over WIT values: each is a tool.
    Typed(Functions),
}

/// A shape by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeName {
    /// Exports the tool contract.
    Contract,
    /// Exports functions over WIT values.
    Typed,
}

impl ShapeName {
    /// As texts and files name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Typed => "typed",
        }
    }
}

/// The exports of one instance, as its shape calls them.
pub(crate) enum Exports {
    Contract(Bindings),
    Typed(Instance),
}

/// One call of one tool.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The tool's own name.
    pub(crate) tool: &'a str,
    /// A JSON object.
    pub(crate) arguments_json: &'a str,
    pub(crate) limits: &'a Limits,
}

/// What a tool says: its result, or why there is none.
pub(crate) type Answer = Result<types::CallResult, types::Failure>;

impl Shape {
    /// Tells the shape of a component that is linked already.
    ///
    /// # Errors
    /// [`LoadError`] where it has none, or where it is not what its exports promise.
    pub(crate) fn of(
        (component, bytes): (&Component, &[u8]),
        pre: &InstancePre<CallState>,
        inspection: &Inspection,
    ) -> Result<Self, LoadError> {
        if let Some(indices) = contract::detect(pre, inspection)? {
            return Ok(Self::Contract(indices));
        }
        if let Some(functions) = typed::detect(component, bytes)? {
            return Ok(Self::Typed(functions));
        }
        Err(LoadError::NotATool { exports: inspection.exports().to_vec() })
    }

    pub(crate) const fn name(&self) -> ShapeName {
        match self {
            Self::Contract(_) => ShapeName::Contract,
            Self::Typed(_) => ShapeName::Typed,
        }
    }

    /// Finds the exports in an instance of the component.
    pub(crate) fn exports(&self, store: &mut Store<CallState>, instance: Instance) -> wasmtime::Result<Exports> {
        Ok(match self {
            Self::Contract(indices) => Exports::Contract(indices.load(store, &instance)?),
            Self::Typed(_) => Exports::Typed(instance),
        })
    }

    /// Calls a tool of an instance.
    ///
    /// # Errors
    /// The engine's: a trap, or a limit. What the guest itself reports is an answer.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        exports: &Exports,
        ask: Ask<'_>,
    ) -> wasmtime::Result<Answer> {
        match (self, exports) {
            (Self::Contract(_), Exports::Contract(bindings)) => contract::call(store, bindings, ask).await,
            (Self::Typed(functions), Exports::Typed(instance)) => functions.call(store, instance, ask).await,
            _ => Err(wasmtime::Error::msg("the instance is of another shape than its component")),
        }
    }
}
