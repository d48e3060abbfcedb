//! `echo` for hyper-mcp: an Extism plugin with the exports of its second interface.

use extism_pdk::{FnResult, plugin_fn};
use serde::Deserialize;
use serde_json::json;

/// The input of a call.
#[derive(Deserialize)]
struct Called {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

/// The tools.
#[plugin_fn]
pub fn list_tools(_: String) -> FnResult<String> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = json!({"name": "echo", "description": "Gives back the text it is given.", "inputSchema": schema});
    Ok(json!({"tools": [tool]}).to_string())
}

/// One call.
#[plugin_fn]
pub fn call_tool(called: String) -> FnResult<String> {
    let called: Called = serde_json::from_str(&called)?;
    Ok(json!({"content": [{"type": "text", "text": called.request.arguments.text}]}).to_string())
}
