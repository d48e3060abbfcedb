//! `[components.NAME.http_tool]`: one request over HTTP as a tool, for an API without a document.
//!
//! The component is the bridge that comes with this program, with these lines in it. What it may
//! reach stands in `network`, as for any other.

use serde_json::{Map, Value, json};

use crate::read::{Entry, Problems, input};
use crate::settings::accessors;
use crate::table::table;

/// Methods of a request.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Longest address, in bytes: what servers and proxies take.
const URL_BYTES_MAX: usize = 2_048;

table! {
    /// One request over HTTP, which is the component's only tool.
    pub(crate) HTTP_TOOL "HttpTool" {
        /// The method of the request.
        "method": Words(&METHODS), {"default": "GET", "examples": ["POST"]};
        /// The address. `{name}` is an argument: a part of the path, or the value of a part of the
        /// query.
        "url" required: Text,
            {"minLength": 1, "maxLength": URL_BYTES_MAX, "examples": ["https://api.example.com/v1/places/{city}?lang={lang}"]};
        /// What the tool does, for models.
        "description" required: Text, {"minLength": 1, "examples": ["Finds places of this name."]};
        /// The arguments: each with a description, a type and a description, or a JSON Schema.
        /// `body` becomes the request's body, in JSON.
        "input": Any, {"examples": [{"city": "the name of a city", "lang?": "two letters"}]};
    }
    other names {
        "address" => "url", "uri" => "url", "verb" => "method", "schema" => "input", "parameters" => "input",
        "arguments" => "input", "input_schema" => "input",
    }
}

accessors! {
    /// One request over HTTP as a tool.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HttpTool {
        /// The method, in capitals.
        method: String => &str,
        /// The address, with `{NAME}` in an argument's place.
        url: String => &str,
        /// What the tool does, for models.
        description: String => &str,
        /// JSON Schema of the arguments.
        input: Map<String, Value> => &Map<String, Value>,
    }
}

/// The request of a section.
pub(crate) fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<HttpTool> {
    let section = entry.table(&HTTP_TOOL, problems)?;
    let method = match section.get("method") {
        None => Some("GET".to_owned()),
        Some(entry) => entry.string(problems).map(str::to_owned).and_then(|method| {
            if METHODS.contains(&method.as_str()) {
                return Some(method);
            }
            let message = format!("method must be one of {}, not {method:?}", METHODS.join(", "));
            problems.refuse(entry.error("components::http_tool", message))
        }),
    };
    let mut required = |key: &str, hint: &str| match section.get(key) {
        Some(text) => text.string(problems).map(str::to_owned),
        None => {
            let message = format!("http_tool has no {key}");
            problems.refuse(entry.key_error("manifest::missing", message).hint(hint))
        }
    };
    let url = required("url", "add url = \"https://api.example.com/v1/places/{city}\"");
    let description = required("description", "add description = \"…\": a model chooses tools by it");
    let input = match section.get("input") {
        Some(entry) => input::read(&entry, problems),
        None => json!({"type": "object", "properties": {}}).as_object().cloned(),
    };
    let url = url?;
    if url.len() > URL_BYTES_MAX {
        let message = format!("url must have at most {URL_BYTES_MAX} bytes");
        return problems.refuse(entry.key_error("components::http_tool", message));
    }
    Some(HttpTool { method: method?, url, description: description?, input: input? })
}
