//! Documents and what becomes of them, a table for each noun.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]
mod bodies;
mod bombs;
mod http_tool;
mod operations;
mod remote;
mod schemas;
mod security;
mod servers;

use serde_json::{Value, json};

use crate::{Bridge, BridgeError, BridgeOptions, ToolDefinition};

/// A document of 3.0 with these paths.
pub(crate) fn document(paths: Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
    })
}

/// The same with a member at its top.
pub(crate) fn with(mut document: Value, key: &str, value: Value) -> Value {
    document[key] = value;
    document
}

pub(crate) fn options() -> BridgeOptions {
    BridgeOptions { name: "pets".to_owned(), prefix: "pets_".to_owned(), ..BridgeOptions::default() }
}

pub(crate) fn bridge(document: &Value) -> Bridge {
    Bridge::of(document, &options(), |_| Ok(())).unwrap()
}

pub(crate) fn refused(document: &Value) -> BridgeError {
    Bridge::of(document, &options(), |_| Ok(())).unwrap_err()
}

/// The only tool of a document.
pub(crate) fn tool(document: &Value) -> ToolDefinition {
    let tools = bridge(document).definitions.tools;
    assert_eq!(tools.len(), 1);
    tools.into_iter().next().unwrap()
}

/// What the guest reads of the only tool's request.
pub(crate) fn request(document: &Value) -> Value {
    let bytes = bridge(document).definitions.bytes();
    let line = bytes.split(|byte| *byte == b'\n').nth(1).unwrap();
    serde_json::from_slice(line).unwrap()
}
