//! Components that keep the tool contract. Must not hold: the contract's values.
mod imports;

use wasmtime::Store;
use wasmtime::component::InstancePre;

use super::error::ShapeError;
use super::tool_call::{ToolAnswer, ToolCall};
use crate::bindings::{ToolComponent as Bindings, ToolComponentIndices, contract};
use crate::failure::{Failure, one_line};
use crate::wasi::state::CallState;

/// The contract's export, up to its version.
pub(crate) const EXPORT: &str = "toolcell:mcp/tools@";

/// Finds the contract's functions in a component that exports it.
///
/// # Errors
/// It is a version of the contract that this host does not speak, or has other types than the
/// contract.
pub(super) fn detect(
    pre: &InstancePre<CallState>,
    exports: &[String],
) -> Result<Option<ToolComponentIndices>, ShapeError> {
    let Some(export) = exports.iter().find(|name| name.starts_with(EXPORT)) else { return Ok(None) };
    if !export.strip_prefix(EXPORT).is_some_and(|version| version.starts_with("1.")) {
        return Err(ShapeError::Contract { found: export.clone() });
    }
    let indices = ToolComponentIndices::new(pre);
    indices.map(Some).map_err(|error| ShapeError::Mismatch { reason: one_line(&error) })
}

pub(super) async fn call(
    store: &mut Store<CallState>,
    bindings: &Bindings,
    ask: ToolCall<'_>,
) -> wasmtime::Result<ToolAnswer> {
    bindings.toolcell_mcp_tools().call_call_tool(store, ask.tool, ask.arguments_json).await
}

impl From<contract::Failure> for Failure {
    fn from(failure: contract::Failure) -> Self {
        match failure {
            contract::Failure::InvalidInput(text) => Self::InvalidInput(text),
            contract::Failure::Failed(text) => Self::Failed(text),
        }
    }
}
