//! What a bridge's guest reads: lines of JSON. The first names the server; then each tool has a
//! line for its requests, and behind all of them one for its definition. So a call reads the lines
//! of one tool, and the schema of its answers.
use serde::Serialize;
use serde_json::Value;
use toolcell_bridge_lines::{BridgeServer, FORMAT, Head, Hints, RemoteCall, Request};

/// Tools of a bridge.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// The server of all requests.
    pub server: BridgeServer,
    /// In the order of the document or the list.
    pub tools: Vec<ToolDefinition>,
}

/// One tool.
#[derive(Clone, Debug, Serialize)]
pub struct ToolDefinition {
    /// Its name without the component's prefix.
    pub name: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Value,
    /// JSON Schema of its structured results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What its method or its server says of it.
    pub hints: Hints,
    /// Pictures, as the protocol writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// The request that it makes.
    #[serde(skip)]
    pub(crate) call: ToolCall,
}

/// What a tool asks for.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ToolCall {
    /// An operation of an HTTP API.
    Http(Request),
    /// A tool of another MCP server.
    Remote(RemoteCall),
}

/// What a method says of a tool, by RFC 9110, section 9.2. Of methods that change something, only
/// DELETE says what.
pub(crate) fn hints_of_method(method: &str) -> Hints {
    let read_only = matches!(method, "GET" | "HEAD");
    Hints {
        read_only: Some(read_only),
        destructive: if read_only { Some(false) } else { (method == "DELETE").then_some(true) },
        idempotent: Some(read_only || matches!(method, "PUT" | "DELETE")),
        open_world: Some(true),
    }
}

#[derive(Serialize)]
struct CallLine<'a> {
    tool: &'a str,
    #[serde(flatten)]
    call: &'a ToolCall,
}

impl Definitions {
    /// The lines. The same tools always give the same bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_line(&mut bytes, &Head { format: FORMAT, server: self.server.clone() });
        for tool in &self.tools {
            push_line(&mut bytes, &CallLine { tool: &tool.name, call: &tool.call });
        }
        self.tools.iter().for_each(|tool| push_line(&mut bytes, tool));
        bytes
    }
}

fn push_line(bytes: &mut Vec<u8>, line: &impl Serialize) {
    // Texts, numbers and lists of them always have a form in JSON.
    bytes.extend(serde_json::to_vec(line).unwrap_or_default());
    bytes.push(b'\n');
}

impl ToolDefinition {
    /// What it asks for, for people: the method and path of its requests, or the tool's name at the
    /// other server.
    #[must_use]
    pub fn operation(&self) -> String {
        match &self.call {
            ToolCall::Http(request) => format!("{} {}", request.method, request.path),
            ToolCall::Remote(call) => call.remote.clone(),
        }
    }
}
