//! A tool's definition on the first line of the input, and arguments or structured results on each
//! further line. A definition that compiles is listed as valid JSON in every revision. A checked
//! value is answered within its bounds.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcell_fuzz::{Client, server};
use toolcell_mcp::{CallResult, McpTool, Patience, ToolDefinition, ToolList};

/// Values of one input at most.
const VALUES_MAX: usize = 8;

/// An upper bound of any refusal's text, in bytes. A refusal lists only some of many problems and
/// cuts its quotes.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let Some(Ok(Value::Object(said))) = lines.next().map(serde_json::from_slice) else { return };
    let tool = match McpTool::compile(definition(said)) {
        Ok(tool) => tool,
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a problem");
            return problems.iter().for_each(|problem| drop(problem.to_string()));
        }
    };
    is_clean(&tool);
    for line in lines.take(VALUES_MAX) {
        if let Ok(value) = serde_json::from_slice::<Box<RawValue>>(line) {
            is_answered(&tool, &value);
        }
    }
    is_listed(tool);
});

/// The definition that this object gives, with plain defaults for absent members.
fn definition(mut said: Map<String, Value>) -> ToolDefinition {
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let input = said.remove("inputSchema").unwrap_or_else(|| json!({"type": "object"}));
    let name = text(said.remove("name")).unwrap_or_else(|| "tool".to_owned());
    let description = text(said.remove("description")).unwrap_or_default();
    let mut definition = ToolDefinition::new(name, description, input);
    definition.title = text(said.remove("title"));
    definition.output_schema = said.remove("outputSchema");
    definition.hints.title = text(said.remove("hint"));
    definition.meta = match said.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    definition
}

fn is_clean(tool: &McpTool) {
    let definition = tool.definition();
    for line in [&definition.title, &definition.hints.title].into_iter().flatten() {
        assert!(!line.chars().any(char::is_control), "a title with controls: {line:?}");
    }
    let control = definition.description.chars().find(|found| found.is_control() && !matches!(found, '\n' | '\t'));
    assert_eq!(control, None, "in {:?}", definition.description);
}

fn is_answered(tool: &McpTool, value: &RawValue) {
    if let Err(problems) = tool.check_arguments(value, &Patience::default()) {
        let text = problems.to_string();
        assert!(!text.is_empty() && text.len() <= REFUSAL_BYTES_MAX, "{} bytes of problems", text.len());
        assert!(tool.refuse_arguments(&problems).is_error);
    }
    let finished = tool.finish(CallResult::structured(value.to_owned()), &Patience::default());
    assert!(finished.is_error || finished.structured.is_some(), "a structured result is lost");
}

/// Asserts that every revision lists it as JSON.
fn is_listed(tool: McpTool) {
    let list = ToolList::new(1, vec![Arc::new(tool)]).expect("one tool has one name");
    let server = server(list);
    for revision in REVISIONS {
        let client = Client::of(&server);
        let params =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}});
        let _ = ask(&client, json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        let listed = ask(&client, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        assert!(listed["result"]["tools"][0]["inputSchema"].is_object(), "{revision} lists {listed}");
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listed = ask(
        &Client::of(&server),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta}}),
    );
    assert!(listed["result"]["tools"][0]["inputSchema"].is_object(), "2026-07-28 lists {listed}");
}

fn ask(client: &Client, request: Value) -> Value {
    let answers = client.ask(request.to_string().as_bytes());
    let [answer] = answers.as_slice() else { panic!("{} answers to {request}", answers.len()) };
    serde_json::from_slice(answer).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(answer)))
}
