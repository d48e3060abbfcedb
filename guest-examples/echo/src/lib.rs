//! `echo`: one tool, written with nothing but `wit-bindgen` and `serde_json`, to be read first and copied.
//!
//! Must not use the examples' toolkit: what a tool needs of the contract stands here in full.

mod bindings;

use bindings::{CallResult, Content, Failure, Guest, Hints, TextContent, Tool};
use serde::Deserialize;

struct Echo;

/// What the input schema below says, as a type.
#[derive(Deserialize)]
struct Arguments {
    text: String,
}

const INPUT_SCHEMA: &str = r#"{
  "type": "object",
  "properties": { "text": { "type": "string", "description": "What to give back." } },
  "required": ["text"],
  "additionalProperties": false
}"#;

impl Guest for Echo {
    fn list_tools() -> Vec<Tool> {
        vec![Tool {
            name: "echo".to_owned(),
            title: Some("Echo".to_owned()),
            description: "Gives back the text it is given, unchanged. Good for trying a connection.".to_owned(),
            input_schema_json: INPUT_SCHEMA.to_owned(),
            output_schema_json: None,
            hints: Some(Hints {
                read_only: Some(true),
                destructive: None,
                idempotent: Some(true),
                open_world: Some(false),
            }),
            icons: Vec::new(),
            meta_json: None,
        }]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        if name != "echo" {
            return Err(Failure::Failed(format!("this component has no tool named {name:?}")));
        }
        // The host has checked the arguments against the schema already; this check keeps the tool right alone.
        let arguments: Arguments =
            serde_json::from_str(&arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
        let text = TextContent { text: arguments.text, annotations: None, meta_json: None };
        Ok(CallResult { content: vec![Content::Text(text)], structured_json: None, is_error: false, meta_json: None })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn call(arguments: &str) -> Result<CallResult, Failure> {
        Echo::call_tool("echo".to_owned(), arguments.to_owned())
    }

    #[test]
    fn gives_back_the_text() {
        let result = call(r#"{"text":"caf\u00e9 ☕"}"#).unwrap();
        assert!(!result.is_error);
        match result.content.as_slice() {
            [Content::Text(text)] => assert_eq!(text.text, "café ☕"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_without_text_are_the_callers_mistake() {
        match call("{}").unwrap_err() {
            Failure::InvalidInput(message) => {
                assert!(message.contains("missing field `text`"), "{message}")
            }
            Failure::Failed(message) => panic!("{message}"),
        }
    }

    #[test]
    fn the_input_schema_is_json() {
        let schema: serde_json::Value = serde_json::from_str(INPUT_SCHEMA).unwrap();
        assert_eq!(schema["required"][0], "text");
    }
}
