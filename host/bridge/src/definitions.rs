//! What a bridge's guest reads: lines of JSON. The first names the server; then each tool has a
//! line for its requests, and behind all of them one for its definition. So a call reads the line
//! of one tool, and no schema.
use serde::Serialize;
use serde_json::Value;

use crate::Origin;
use crate::body::Body;
use crate::parameters::Parameter;

/// Version of the lines. The guest refuses others.
const FORMAT: u32 = 1;

/// Tools of a bridge.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// The server of all requests.
    pub origin: Origin,
    /// In the order of the document.
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
    /// What its method says.
    pub hints: Hints,
    /// The request that it makes.
    #[serde(skip)]
    pub(crate) request: Request,
}

/// What a method says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hints {
    /// GET and HEAD.
    pub read_only: bool,
    /// DELETE. Of other methods that change something nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// GET, HEAD, PUT and DELETE.
    pub idempotent: bool,
}

impl Hints {
    /// By RFC 9110, section 9.2.
    pub(crate) fn of(method: &str) -> Self {
        let read_only = matches!(method, "GET" | "HEAD");
        let destructive = if read_only { Some(false) } else { (method == "DELETE").then_some(true) };
        Self { read_only, destructive, idempotent: read_only || matches!(method, "PUT" | "DELETE") }
    }
}

/// The request of a tool.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    /// From the root of the server, with `{NAME}` in a parameter's place.
    pub(crate) path: String,
    pub(crate) parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Body>,
    pub(crate) accept: String,
    pub(crate) output: OutputForm,
}

/// How a JSON answer becomes structured content, which is an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutputForm {
    /// As it is; nothing where it is not an object.
    Free,
    /// As it is, by the output schema.
    Object,
    /// As the member `result`, by the output schema.
    Result,
}

#[derive(Serialize)]
struct Head<'a> {
    format: u32,
    origin: &'a str,
}

#[derive(Serialize)]
struct RequestLine<'a> {
    tool: &'a str,
    #[serde(flatten)]
    request: &'a Request,
}

impl Definitions {
    /// The lines. The same tools always give the same bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_line(&mut bytes, &Head { format: FORMAT, origin: &self.origin.to_string() });
        for tool in &self.tools {
            push_line(&mut bytes, &RequestLine { tool: &tool.name, request: &tool.request });
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
    /// The method and path of its requests, for people.
    #[must_use]
    pub fn operation(&self) -> String {
        format!("{} {}", self.request.method, self.request.path)
    }
}
