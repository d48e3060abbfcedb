//! The methods of prompts, and completion. Getting a prompt is a call, like that of a tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::ConnectionParts;
use super::calls::{Becomes, RequestedCall, raw};
use super::dispatch::RequestExchange;
use crate::asking::RoundInput;
use crate::completion::{Completing, Completions};
use crate::declared::{DeclaredResource, ResourceReader};
use crate::frame::{ErrorCode, Object, RequestId, RpcError, echo, json_text, push_json, result_frame, scan};
use crate::host::{Host, ServedCatalog as _};
use crate::revision::{Revision, push_prompt_result};
use crate::tool::{CheckedResult, McpPrompt, McpTool};

impl<H: Host> ConnectionParts<H> {
    /// Starts getting a prompt, once its arguments fit.
    pub(super) fn get_prompt(self: &Arc<Self>, exchange: RequestExchange<'_, H>) -> Result<(), RpcError> {
        let params = &exchange.request.params;
        let input = RoundInput::read(params, exchange.peer.revision)?;
        let name = params.string("name")?;
        let arguments = prompt_arguments(params.get("arguments").unwrap_or("{}"))?;
        let path = McpPrompt::path(&name);
        {
            let catalog = exchange.catalog.get(&*self.server.host);
            let view = catalog.view(&self.caller);
            let entries = view.as_deref().unwrap_or_else(|| catalog.tools());
            let prompt = entries.find(&path).and_then(|(_, entry)| entry.prompt());
            let Some(prompt) = prompt else {
                self.observe_unseen(&**catalog, &self.caller, &path, &Becomes::Prompt);
                return Err(unknown(&name));
            };
            prompt.check(&arguments)?;
        }
        self.start(exchange, RequestedCall::new(path, arguments, Becomes::Prompt, input))
    }

    /// The messages of a prompt, from the result of its call.
    pub(super) fn prompt_of(
        &self,
        id: &RequestId,
        entry: &McpTool,
        result: CheckedResult,
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        if result.is_error {
            return Err(failure(&result));
        }
        let identity = &self.server.identity;
        let write =
            |out: &mut Vec<u8>| push_prompt_result(out, entry.definition(), &result, revision.features(), identity);
        Ok(result_frame(id, write))
    }

    /// Starts completing an argument, once it is known to exist.
    pub(super) fn complete(self: &Arc<Self>, exchange: RequestExchange<'_, H>) -> Result<(), RpcError> {
        let (reference, completing) = read_completion(&exchange.request.params)?;
        let (name, known) = self.subject(&exchange, &reference, &completing.argument)?;
        if !known {
            let name = echo(&completing.argument);
            return Err(RpcError::params(format!("params.argument.name is not one of its arguments: {name}")));
        }
        let arguments = raw(completing.to_json())?;
        let becomes = Becomes::Completions(completing);
        self.start(exchange, RequestedCall::new(name, arguments, becomes, RoundInput::default()))
    }

    /// The entry whose argument is completed; fails if it has no such argument.
    fn subject(
        &self,
        exchange: &RequestExchange<'_, H>,
        reference: &CompletedThing,
        argument: &str,
    ) -> Result<(String, bool), RpcError> {
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let entries = view.as_deref().unwrap_or_else(|| catalog.tools());
        match reference {
            CompletedThing::Prompt(name) => {
                let path = McpPrompt::path(name);
                let prompt = entries.find(&path).and_then(|(_, entry)| entry.prompt());
                let known = prompt.ok_or_else(|| unknown(name))?.argument(argument).is_some();
                Ok((path, known))
            }
            CompletedThing::Resource(uri) => {
                let is_it = |declared: &&DeclaredResource| declared.uri == *uri && declared.is_seen_with(entries);
                let declared = catalog.resources().iter().find(is_it);
                let unknown = || RpcError::params(format!("Unknown resource template: {}", echo(uri)));
                let declared = declared.ok_or_else(unknown)?;
                let known = declared.variables.iter().any(|(name, _)| name == argument);
                match &declared.reader {
                    ResourceReader::Tool { tool, .. } => Ok((tool.clone(), known)),
                    // Any tool of the component will do.
                    ResourceReader::Host { tools } => Ok((tools.first().cloned().ok_or_else(unknown)?, known)),
                    // Its address has no variables.
                    ResourceReader::Held { .. } => Err(unknown()),
                }
            }
        }
    }

    /// Writes completions.
    pub(super) fn completed(
        &self,
        id: &RequestId,
        found: Result<Completions, String>,
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        let found = found.map_err(RpcError::internal)?;
        Ok(self.complete_frame(id, revision.features().typed_results, |result| {
            let mut completion = Object::open(result.key("completion"));
            push_json(completion.key("values"), found.values());
            if let Some(total) = found.total() {
                completion.json("total", &total);
            }
            completion.flag("hasMore", found.has_more());
        }))
    }
}

/// The arguments of a prompt. One that is `null` counts as absent: all are strings.
fn prompt_arguments(text: &str) -> Result<Box<RawValue>, RpcError> {
    if !scan::is_object(text) {
        return Err(RpcError::params("params.arguments must be an object"));
    }
    if !text.contains("null") {
        return raw(text.to_owned());
    }
    let given: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| RpcError::params("params.arguments must be an object"))?;
    let given: BTreeMap<_, _> = given.into_iter().filter(|(_, value)| value.get() != "null").collect();
    raw(json_text(|out| push_json(out, &given)))
}

/// What is completed.
enum CompletedThing {
    Prompt(String),
    Resource(String),
}

/// Reads `ref`, `argument` and `context` (2026-07-28, Completion, "Protocol Messages").
fn read_completion(params: &crate::frame::Params<'_>) -> Result<(CompletedThing, Completing), RpcError> {
    let object = |member: &str| {
        let text = params.get(member).filter(|text| scan::is_object(text));
        let value: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        value.ok_or_else(|| RpcError::params(format!("params.{member} must be an object")))
    };
    let text = |value: &Value, place: &str, member: &str| {
        let text = value.get(member).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| RpcError::params(format!("params.{place}.{member} must be a string")))
    };
    let of = object("ref")?;
    let argument = object("argument")?;
    let reference = match of.get("type").and_then(Value::as_str) {
        Some("ref/prompt") => CompletedThing::Prompt(text(&of, "ref", "name")?),
        Some("ref/resource") => CompletedThing::Resource(text(&of, "ref", "uri")?),
        _ => return Err(RpcError::params("params.ref.type must be \"ref/prompt\" or \"ref/resource\"")),
    };
    let template = match &reference {
        CompletedThing::Prompt(_) => None,
        CompletedThing::Resource(uri) => Some(uri.clone()),
    };
    let name = text(&argument, "argument", "name")?;
    let value = text(&argument, "argument", "value")?;
    let others = match params.get("context") {
        None => Vec::new(),
        Some(_) => others(&object("context")?)?,
    };
    Ok((reference, Completing { template, argument: name, value, others }))
}

/// The members of `context.arguments`.
fn others(context: &Value) -> Result<Vec<(String, String)>, RpcError> {
    let Some(arguments) = context.get("arguments").filter(|arguments| !arguments.is_null()) else {
        return Ok(Vec::new());
    };
    // Some clients write `null` for an absent member.
    let given: Option<BTreeMap<String, Option<String>>> = serde_json::from_value(arguments.clone()).ok();
    let given = given.ok_or_else(|| RpcError::params("params.context.arguments must be an object of strings"))?;
    Ok(given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

impl Completing {
    /// The JSON that is measured and recorded like a call's arguments.
    fn to_json(&self) -> String {
        let others: BTreeMap<&str, &str> =
            self.others.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let Self { template, argument, value, .. } = self;
        serde_json::json!({"template": template, "argument": argument, "value": value, "others": others}).to_string()
    }
}

fn unknown(name: &str) -> RpcError {
    RpcError::params(format!("Unknown prompt: {}", echo(name)))
}

/// The error for a prompt that was not got (2026-07-28, Prompts, "Error Handling").
fn failure(result: &CheckedResult) -> RpcError {
    let said = result.content.iter().find_map(|content| match &content.kind {
        crate::content::ContentKind::Text(text) => Some(text.clone()),
        _ => None,
    });
    let code = if result.blames_arguments() { ErrorCode::InvalidParams } else { ErrorCode::Internal };
    RpcError::new(code, said.unwrap_or_else(|| "The prompt cannot be fetched".to_owned()))
}
