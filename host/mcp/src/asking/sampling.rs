//! The params of `sampling/createMessage`, checked for the rules of every revision.

use serde_json::{Map, Value};

use super::ClientAskError;
use crate::frame::{integer, scan};

/// Deepest nesting of the params: a client's 128 without the frame around them.
const DEPTH_MAX: usize = 64;

/// The members that every revision has.
const MEMBERS: [&str; 8] = [
    "messages",
    "modelPreferences",
    "systemPrompt",
    "includeContext",
    "temperature",
    "maxTokens",
    "stopSequences",
    "metadata",
];

/// Capabilities that the params need besides sampling itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SamplingNeeds {
    pub(super) tools: bool,
    pub(super) context: bool,
}

/// Checks the params. Returns them on one line, with the capabilities that they need.
pub(super) fn params(text: &str, rich: bool) -> Result<(String, SamplingNeeds), ClientAskError> {
    let invalid = ClientAskError::Invalid;
    match scan::check_value(text, DEPTH_MAX) {
        Err(fault) => return Err(invalid(format!("its params cannot be taken: {fault}"))),
        Ok(Some(key)) => return Err(invalid(format!("its params have the key {key:?} twice in one object"))),
        Ok(None) => {}
    }
    let mut params: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| invalid("its params must be a JSON object".to_owned()))?;
    let known = |key: &str| MEMBERS.contains(&key) || (rich && matches!(key, "tools" | "toolChoice"));
    if let Some(key) = params.keys().find(|key| !known(key)) {
        return Err(invalid(format!("its params have no member {key:?}")));
    }
    let tokens = params.get_mut("maxTokens").ok_or(()).and_then(written_as_integer);
    if tokens.is_err() {
        return Err(invalid("maxTokens must be a positive integer".to_owned()));
    }
    let messages = params.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| invalid("messages must be a list that is not empty".to_owned()))?;
    if let Some(place) = messages.iter().position(|message| !is_message(message, rich)) {
        let text = format!("messages/{place} must be an object with role (user or assistant) and content");
        return Err(invalid(text));
    }
    let context = params.get("includeContext").is_some_and(|value| value != "none");
    let tools = params.contains_key("tools") || params.contains_key("toolChoice");
    let line = serde_json::to_string(&params).map_err(|_| invalid("its params cannot be written".to_owned()))?;
    Ok((line, SamplingNeeds { tools, context }))
}

/// Writes a positive integer without a fraction, for clients with strict parsers: `100.0` becomes
/// `100`.
fn written_as_integer(value: &mut Value) -> Result<(), ()> {
    let Value::Number(number) = &*value else { return Err(()) };
    let number = integer(&number.to_string()).filter(|number| *number > 0).ok_or(())?;
    *value = number.into();
    Ok(())
}

/// True for a `SamplingMessage`. Revisions since 2025-11-25 allow several blocks in one.
pub(super) fn is_message(message: &Value, rich: bool) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    let is_block = |block: &Value| block.get("type").is_some_and(Value::is_string);
    let content = match message.get("content") {
        Some(Value::Array(blocks)) => rich && blocks.iter().all(is_block),
        Some(block) => is_block(block),
        None => false,
    };
    matches!(role, Some("user" | "assistant")) && content
}
