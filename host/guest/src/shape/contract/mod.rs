//! Components that keep the tool contract. Must not hold: the contract's values.
//!
//! | file | holds |
//! |---|---|
//! | `convert.rs` | the engine's generated types → the plain ones, and back |
//! | `imports.rs` | the imports of the contract: progress, log, asking, … |
//! | `optional.rs` | exports that may be missing: prompts, completion, resources |
mod convert;
mod imports;
mod optional;

use toolcell_wall::contract;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use convert::Convert as _;

use super::error::ShapeError;
use super::tool_call::{ToolAnswer, ToolCall};
use crate::bindings::optional::{
    CompletionExport, CompletionExportIndices, PromptsExport, PromptsExportIndices, ResourcesExport,
    ResourcesExportIndices,
};
use crate::bindings::{ToolComponent as Bindings, ToolComponentIndices};
use crate::engine::errors::one_line;
use crate::wasi::state::CallState;
use toolcell_wall::export;
use toolcell_wall::load::inspection::{COMPLETION, PROMPTS, RESOURCES, TOOLS};

/// The contract's functions in a component.
pub(crate) struct Indices {
    tools: ToolComponentIndices,
    prompts: Option<PromptsExportIndices>,
    completion: Option<CompletionExportIndices>,
    resources: Option<ResourcesExportIndices>,
}

/// The contract's functions in an instance.
pub(crate) struct ContractFunctions {
    pub(crate) instance: Instance,
    tools: Bindings,
    prompts: Option<PromptsExport>,
    completion: Option<CompletionExport>,
    resources: Option<ResourcesExport>,
}

/// Finds the contract's functions in a component that exports it.
///
/// # Errors
/// It is a version of the contract that this host does not support, or the types differ from the
/// contract's.
pub(super) fn detect(pre: &InstancePre<CallState>, exports: &[String]) -> Result<Option<Indices>, ShapeError> {
    let known = |export: &'static str| exports.iter().find(|name| name.starts_with(export));
    let spoken = |export: &'static str| match known(export) {
        Some(name) if name.strip_prefix(export).is_some_and(|version| version.starts_with("1.")) => Ok(true),
        Some(name) => Err(ShapeError::Contract { found: name.clone() }),
        None => Ok(false),
    };
    let mismatch = |error: wasmtime::Error| ShapeError::Mismatch { reason: one_line(&error) };
    let prompts = spoken(PROMPTS)?;
    let completion = spoken(COMPLETION)?;
    let resources = spoken(RESOURCES)?;
    if !spoken(TOOLS)? {
        // Functions besides the contract are not tools.
        let alone =
            (prompts || completion || resources).then(|| "it exports nothing of the contract's `tools`".to_owned());
        return alone.map_or(Ok(None), |reason| Err(ShapeError::Mismatch { reason }));
    }
    Ok(Some(Indices {
        tools: ToolComponentIndices::new(pre).map_err(mismatch)?,
        prompts: prompts.then(|| PromptsExportIndices::new(pre)).transpose().map_err(mismatch)?,
        completion: completion.then(|| CompletionExportIndices::new(pre)).transpose().map_err(mismatch)?,
        resources: resources.then(|| ResourcesExportIndices::new(pre)).transpose().map_err(mismatch)?,
    }))
}

impl Indices {
    pub(super) fn load(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<ContractFunctions> {
        Ok(ContractFunctions {
            instance: *instance,
            tools: self.tools.load(&mut *store, instance)?,
            prompts: self.prompts.as_ref().map(|prompts| prompts.load(&mut *store, instance)).transpose()?,
            completion: self.completion.as_ref().map(|found| found.load(&mut *store, instance)).transpose()?,
            resources: self.resources.as_ref().map(|found| found.load(&mut *store, instance)).transpose()?,
        })
    }

    /// True if the component has prompts.
    pub(crate) const fn has_prompts(&self) -> bool {
        self.prompts.is_some()
    }

    /// True if the component has resources.
    pub(crate) const fn has_resources(&self) -> bool {
        self.resources.is_some()
    }
}

impl ContractFunctions {
    /// Asks for the component's tools.
    pub(crate) async fn list_tools(&self, store: &mut Store<CallState>) -> wasmtime::Result<Vec<contract::GuestTool>> {
        Ok(self.tools.toolcell_mcp_tools().call_list_tools(store).await?.convert())
    }

    /// Asks for its prompts, if it has any.
    pub(crate) async fn list_prompts(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Vec<contract::GuestPrompt>> {
        match &self.prompts {
            Some(prompts) => Ok(prompts.toolcell_mcp_prompts().call_list_prompts(store).await?.convert()),
            None => Ok(Vec::new()),
        }
    }

    /// Asks for its resources, if it has any.
    pub(crate) async fn list_resources(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Vec<contract::ListedResource>> {
        match &self.resources {
            Some(resources) => Ok(resources.toolcell_mcp_resources().call_list_resources(store).await?.convert()),
            None => Ok(Vec::new()),
        }
    }
}

pub(super) async fn call(
    store: &mut Store<CallState>,
    functions: &ContractFunctions,
    ask: ToolCall<'_>,
) -> wasmtime::Result<ToolAnswer> {
    let missing = || wasmtime::Error::msg("the component has no such export");
    if let Some(name) = export::prompt_of(ask.tool) {
        let prompts = functions.prompts.as_ref().ok_or_else(missing)?;
        return optional::get_prompt(store, prompts, name, ask.arguments_json).await;
    }
    if ask.tool == export::COMPLETION {
        let completion = functions.completion.as_ref().ok_or_else(missing)?;
        return optional::complete(store, completion, ask.arguments_json).await;
    }
    if ask.tool == export::RESOURCES {
        let resources = functions.resources.as_ref().ok_or_else(missing)?;
        return optional::read_resource(store, resources, ask.arguments_json).await;
    }
    let answer = functions.tools.toolcell_mcp_tools().call_call_tool(store, ask.tool, ask.arguments_json).await?;
    Ok(answer.convert())
}
