//! Components that keep the tool contract, and its generated types → the plain types that cross the
//! wall, and back. Values are moved, never copied.
//!
//! | file | holds |
//! |---|---|
//! | `imports.rs` | the imports of the contract: progress, log, asking, … |
//! | `optional.rs` | exports that may be missing: prompts, completion, resources |
mod imports;
mod optional;

use toolcell_wall::{asking as plain, caller, contract, export, nested};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::error::ShapeError;
use super::tool_call::{ToolAnswer, ToolCall};
use crate::bindings::optional::{
    CompletionExport, CompletionExportIndices, PromptsExport, PromptsExportIndices, ResourcesExport,
    ResourcesExportIndices, prompts, resources,
};
use crate::bindings::toolcell::mcp::{asking, calling, log, types};
use crate::bindings::{ToolComponent as Bindings, ToolComponentIndices};
use crate::engine::errors::one_line;
use crate::wasi::state::CallState;
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
            (prompts || completion || resources).then(|| "it does not export the contract's `tools`".to_owned());
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

/// A type with a generated and a plain form.
pub(super) trait Convert {
    /// Its other form.
    type Twin;

    /// Moves the value into the other form.
    fn convert(self) -> Self::Twin;
}

/// Types that are the same in both forms.
macro_rules! same {
    ($($type:ty,)*) => {$(
        impl Convert for $type {
            type Twin = Self;

            fn convert(self) -> Self {
                self
            }
        }
    )*};
}

/// Records with the same fields.
macro_rules! records {
    ($($from:path => $to:path { $($field:ident),* $(,)? })*) => {$(
        impl Convert for $from {
            type Twin = $to;

            fn convert(self) -> $to {
                let Self { $($field),* } = self;
                $to { $($field: $field.convert()),* }
            }
        }
    )*};
}

/// Variants with the same names and values.
macro_rules! variants {
    ($($from:path => $to:path { $($variant:ident $(($value:ident))?),* $(,)? })*) => {$(
        impl Convert for $from {
            type Twin = $to;

            fn convert(self) -> $to {
                match self {
                    $(Self::$variant $(($value))? => <$to>::$variant $(($value.convert()))?,)*
                }
            }
        }
    )*};
}

/// The same, with the other direction.
macro_rules! both_ways {
    ($macro:ident: $($one:path => $other:path { $($part:tt)* })*) => {
        $macro! { $($one => $other { $($part)* } $other => $one { $($part)* })* }
    };
}

// Bytes have an impl of their own, so that they move as a whole.
same! { String, bool, u32, u64, f64, Vec<u8>, }

impl<T: Convert> Convert for Option<T> {
    type Twin = Option<T::Twin>;

    fn convert(self) -> Self::Twin {
        self.map(T::convert)
    }
}

impl<T: Convert> Convert for Vec<T> {
    type Twin = Vec<T::Twin>;

    fn convert(self) -> Self::Twin {
        self.into_iter().map(T::convert).collect()
    }
}

impl<T: Convert, E: Convert> Convert for Result<T, E> {
    type Twin = Result<T::Twin, E::Twin>;

    fn convert(self) -> Self::Twin {
        self.map(T::convert).map_err(E::convert)
    }
}

both_ways! {
    records:
    types::Annotations => contract::ContentHints { audience, priority, last_modified }
    types::Icon => contract::GuestIcon { src, mime_type, sizes, theme }
    types::Hints => contract::GuestToolHints { read_only, destructive, idempotent, open_world }
    types::Tool => contract::GuestTool {
        name, title, description, input_schema_json, output_schema_json, hints, icons, meta_json,
    }
    types::TextContent => contract::TextContent { text, annotations, meta_json }
    types::MediaContent => contract::MediaContent { data, mime_type, annotations, meta_json }
    types::ResourceLink => contract::GuestLink {
        uri, name, title, description, mime_type, size, annotations, icons, meta_json,
    }
    types::EmbeddedResource => contract::EmbeddedResource { uri, mime_type, body, annotations, meta_json }
}

records! {
    types::CallResult => contract::GuestResult { content, structured_json, is_error, meta_json }
    prompts::Argument => contract::GuestPromptArgument { name, title, description, required, values }
    prompts::Prompt => contract::GuestPrompt { name, title, description, arguments, icons, meta_json }
    resources::Variable => contract::TemplateVariable { name, values }
    resources::Definition => contract::ListedResource {
        uri, name, title, description, mime_type, size, annotations, icons, meta_json, variables,
    }
    asking::Form => plain::QuestionForm { message, schema_json }
    asking::Page => plain::QuestionPage { message, url }
    asking::Inquiry => plain::Inquiry { key, question }
    plain::WorkRoot => asking::Root { uri, name }
    calling::Place => nested::ProgramPlace { line, column }
    nested::CalledResult => calling::Called { content, structured_json }
    nested::NestedRefusal => calling::Refusal { reason, text }
    nested::FoundTool => calling::Found { name, title, description }
    caller::Trace => crate::bindings::toolcell::mcp::request::TraceContext { traceparent, tracestate, baggage }
}

both_ways! {
    variants:
    types::Role => contract::GuestRole { User, Assistant }
    types::Theme => contract::Theme { Light, Dark }
    types::ResourceBody => contract::GuestResourceBody { Text(body), Blob(body) }
    types::Content => contract::GuestContent {
        Text(item), Image(item), Audio(item), ResourceLink(item), EmbeddedResource(item),
    }
    asking::Kind => plain::AskKind { Form, Page, Sampling, Roots }
}

variants! {
    types::Failure => toolcell_wall::failure::CallFailure { InvalidInput(text), Failed(text) }
    log::Level => caller::GuestLogLevel { Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency }
    asking::Question => plain::GuestQuestion { Form(form), Page(page), Sampling(params), Roots }
    plain::GuestAnswer => asking::Answer { Accepted(text), Declined, Dismissed, Message(text), Roots(roots) }
    nested::NotCalledReason => calling::Reason {
        Denied, Unknown, InvalidArguments, OverLimit, Busy, NotApproved, Cancelled, Failed,
    }
    nested::NotCalled => calling::NotCalled { Failed(called), Refused(refusal) }
    plain::AskRefusal => asking::Refusal { Unsupported(kind), Invalid(text), OverLimit(text), TimedOut, Failed(text) }
}
