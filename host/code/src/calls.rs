//! The calls of a script, as the contract's: from JSON to calls and back.

use serde_json::{Value, json};
use toolkit::Content;
use toolkit::bindings::toolcell::mcp::calling::{self, Called, NotCalled, Place, Reason, Wanted};

/// A call of a script: the tool, its arguments as JSON, and the line and column where it stands.
type ScriptCall = (String, String, Option<(u32, u32)>);

/// Makes these calls: `[[tool, arguments as JSON, [line, column] or null], …]`. Gives a JSON list
/// with an object for each, in their order: `value`, or `error` with the `reason`. `Err` says why
/// the calls cannot be read: then none is made.
pub(crate) fn all(calls_json: &str) -> Result<String, String> {
    let calls: Vec<ScriptCall> =
        serde_json::from_str(calls_json).map_err(|error| format!("the calls cannot be written as JSON: {error}"))?;
    let place = |(_, _, at): &ScriptCall| at.map(|(line, column)| Place { line, column });
    calling::stand_at(&calls.iter().map(place).collect::<Vec<_>>());
    let wanted = |(tool, arguments_json, _): ScriptCall| Wanted { tool, arguments_json };
    let wanted: Vec<Wanted> = calls.into_iter().map(wanted).collect();
    let ends = match wanted.as_slice() {
        [only] => vec![calling::call(&only.tool, &only.arguments_json)],
        all => calling::call_all(all),
    };
    let ends: Vec<String> = ends.into_iter().map(end).collect();
    Ok(format!("[{}]", ends.join(",")))
}

/// When the run began, in milliseconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of thousands of years are exact")]
pub(crate) fn run_began() -> f64 {
    calling::run_began() as f64
}

/// Finds tools. A JSON list.
pub(crate) fn find(words: &str, limit: u32) -> String {
    let found = calling::find(words, limit)
        .into_iter()
        .map(|tool| json!({"name": tool.name, "title": tool.title, "description": tool.description}));
    Value::Array(found.collect()).to_string()
}

/// Describes a tool: a JSON object, or `null`.
pub(crate) fn describe(name: &str) -> String {
    let Some(tool) = calling::describe(name) else { return "null".to_owned() };
    let schema = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
    let described = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema(tool.input_schema_json),
        "outputSchema": tool.output_schema_json.map(schema),
    });
    described.to_string()
}

fn end(end: Result<Called, NotCalled>) -> String {
    match end {
        Ok(called) => format!(r#"{{"value":{}}}"#, value(called)),
        Err(NotCalled::Failed(called)) => {
            let text = texts(&called).or_else(|| called.structured_json.clone()).unwrap_or_default();
            let value = called.structured_json.unwrap_or_else(|| "null".to_owned());
            format!(r#"{{"error":{},"reason":"failed","value":{value}}}"#, Value::from(text))
        }
        Err(NotCalled::Refused(refusal)) => {
            json!({"error": refusal.text, "reason": reason(refusal.reason)}).to_string()
        }
    }
}

/// The value of a call, as JSON: the structured one, else the text, else all pieces.
fn value(called: Called) -> String {
    if let Some(json) = called.structured_json {
        return json;
    }
    match texts(&called) {
        Some(text) => Value::from(text).to_string(),
        None => json!({"content": called.content.iter().map(piece).collect::<Vec<_>>()}).to_string(),
    }
}

/// The text of a result that is nothing else.
fn texts(called: &Called) -> Option<String> {
    let text = |piece: &Content| match piece {
        Content::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    let texts: Option<Vec<String>> = called.content.iter().map(text).collect();
    texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
}

/// A piece of a result. Scripts get the size of pictures and sounds, and no bytes.
fn piece(piece: &Content) -> Value {
    match piece {
        Content::Text(text) => json!({"type": "text", "text": text.text}),
        Content::Image(media) => json!({"type": "image", "mimeType": media.mime_type, "bytes": media.data.len()}),
        Content::Audio(media) => json!({"type": "audio", "mimeType": media.mime_type, "bytes": media.data.len()}),
        Content::ResourceLink(link) => json!({"type": "resource_link", "uri": link.uri, "name": link.name}),
        Content::EmbeddedResource(resource) => json!({"type": "resource", "uri": resource.uri}),
    }
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Denied => "denied",
        Reason::Unknown => "unknown",
        Reason::InvalidArguments => "invalid-arguments",
        Reason::OverLimit => "over-limit",
        Reason::Busy => "busy",
        Reason::NotApproved => "not-approved",
        Reason::Cancelled => "cancelled",
        Reason::Failed => "failed",
    }
}
