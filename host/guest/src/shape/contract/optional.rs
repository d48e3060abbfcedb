//! The exports of the contract that a component may omit: prompts, completion and resources. What
//! they return becomes the result of a call, so it is redacted, weighed and sent like any other.
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use wasmtime::Store;

use super::super::tool_call::ToolAnswer;
use toolcell_wall::contract::{EmbeddedResource, GuestContent, GuestResult};
use toolcell_wall::failure::CallFailure;

use super::Convert;
use crate::bindings::optional::{self, completion, prompts, resources};
use crate::bindings::toolcell::mcp::types::{Given, Role};
use crate::wasi::state::CallState;

/// Gets a prompt. Its messages become the content of the result; their roles and the description
/// become its structured part.
pub(super) async fn get_prompt(
    store: &mut Store<CallState>,
    exports: &optional::PromptsExport,
    name: &str,
    arguments_json: &str,
) -> wasmtime::Result<ToolAnswer> {
    let given: BTreeMap<String, String> = match serde_json::from_str(arguments_json) {
        Ok(given) => given,
        Err(_) => return Ok(Err(CallFailure::InvalidInput("arguments of a prompt are texts".to_owned()))),
    };
    let answer = exports.toolcell_mcp_prompts().call_get_prompt(store, name, &listed(given)).await?;
    Ok(answer.map_err(Convert::convert).map(|prompts::PromptResult { description, messages, meta_json }| {
        let (roles, content): (Vec<_>, Vec<_>) =
            messages.into_iter().map(|message| (role(message.role), message.content.convert())).unzip();
        let parts = json!({"description": description, "roles": roles}).to_string();
        GuestResult { content, structured_json: Some(parts), is_error: false, meta_json }
    }))
}

/// The text typed so far, in the host's JSON.
#[derive(Deserialize)]
struct Typed {
    template: Option<String>,
    prompt: Option<String>,
    argument: String,
    value: String,
    others: BTreeMap<String, String>,
}

/// Asks for completions. They become the structured part of the result.
pub(super) async fn complete(
    store: &mut Store<CallState>,
    exports: &optional::CompletionExport,
    arguments_json: &str,
) -> wasmtime::Result<ToolAnswer> {
    let typed: Option<Typed> = serde_json::from_str(arguments_json).ok();
    let Some(Typed { template, prompt, argument, value, others }) = typed else {
        return Ok(Err(CallFailure::InvalidInput("the arguments are not those of a completion".to_owned())));
    };
    let subject = match template {
        Some(template) => completion::Subject::Template(template),
        None => completion::Subject::Prompt(prompt.unwrap_or_default()),
    };
    let typed = completion::Typed { subject, argument, value, others: listed(others) };
    let answer = exports.toolcell_mcp_completion().call_complete(store, &typed).await?;
    Ok(answer.map_err(Convert::convert).map(|completion::Completions { values, total, has_more }| {
        let found = json!({"values": values, "total": total, "has_more": has_more}).to_string();
        GuestResult { content: Vec::new(), structured_json: Some(found), is_error: false, meta_json: None }
    }))
}

/// The address to read, in the host's JSON.
#[derive(Deserialize)]
struct ReadingAddress {
    uri: String,
}

/// Reads a resource. Its pieces are embedded in the result.
pub(super) async fn read_resource(
    store: &mut Store<CallState>,
    exports: &optional::ResourcesExport,
    arguments_json: &str,
) -> wasmtime::Result<ToolAnswer> {
    let reading: Option<ReadingAddress> = serde_json::from_str(arguments_json).ok();
    let Some(ReadingAddress { uri }) = reading else {
        return Ok(Err(CallFailure::InvalidInput("the arguments are not those of a reading".to_owned())));
    };
    let answer = exports.toolcell_mcp_resources().call_read_resource(store, &uri).await?;
    let embedded = |contents: resources::Contents| {
        let resources::Contents { uri: own, mime_type, body, meta_json } = contents;
        let uri = own.unwrap_or_else(|| uri.clone());
        let body = body.convert();
        GuestContent::EmbeddedResource(EmbeddedResource { uri, mime_type, body, annotations: None, meta_json })
    };
    Ok(answer.map_err(Convert::convert).map(|contents| GuestResult {
        content: contents.into_iter().map(embedded).collect(),
        structured_json: None,
        is_error: false,
        meta_json: None,
    }))
}

fn listed(given: BTreeMap<String, String>) -> Vec<Given> {
    given.into_iter().map(|(name, value)| Given { name, value }).collect()
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}
