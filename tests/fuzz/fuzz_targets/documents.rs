//! A document of an API, or the list of another MCP server, as a person names one to
//! `toolcell add`. What becomes of it is the same twice, has tools that any host lists, and is held
//! to its bounds.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use toolcell_bridge::lines::{Era, Selection};
use toolcell_bridge::{Bridge, BridgeOptions, OPERATIONS_MAX, RemoteList, RemoteOptions, ToolDefinition, read};
use toolcell_mcp::McpTool;

/// The longest name of a tool that model APIs take.
const NAME_CHARS_MAX: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // An answer to `tools/list` has no other beginning here.
    if let Some(list) = text.strip_prefix("{\"tools\":").and_then(|rest| rest.strip_suffix('}')) {
        return if let Ok(tools) = serde_json::from_str(list) {
            listed(tools)
        };
    }
    let Ok(document) = read(text) else { return };
    let options = BridgeOptions {
        server: Some("https://api.example.com".to_owned()),
        deprecated: true,
        all: true,
        prefix: "api_".to_owned(),
        name: "api".to_owned(),
        client_id: Some("client".to_owned()),
        ..BridgeOptions::default()
    };
    let made = || Bridge::of(&document, &options, |tool| compiled(tool).map_err(|problems| problems.join("; ")));
    let bridge = match made() {
        Ok(bridge) => bridge,
        Err(error) => return assert!(!error.problem.is_empty(), "refused without a problem"),
    };
    assert!(bridge.definitions.tools.len() <= OPERATIONS_MAX);
    let names: BTreeSet<_> = bridge.definitions.tools.iter().map(|tool| &tool.name).collect();
    assert_eq!(names.len(), bridge.definitions.tools.len(), "two tools have one name: {names:?}");
    bridge.definitions.tools.iter().for_each(is_listed);
    for rule in &bridge.grants.http {
        assert!(rule.contains(" https://api.example.com"), "a grant leads elsewhere: {rule:?}");
    }
    let again = made().expect("it had tools the first time");
    assert_eq!(again.definitions.bytes(), bridge.definitions.bytes());
});

/// The list of another server.
fn listed(tools: Vec<serde_json::Value>) {
    let made = || {
        let list =
            RemoteList { title: "a 1".to_owned(), era: Era::Session, names_sessions: true, tools: tools.clone() };
        let options = RemoteOptions {
            address: "https://mcp.example.com/mcp".to_owned(),
            selection: Selection { only: Vec::new(), all: true, prefix: "api_".to_owned() },
            secrets: Vec::new(),
            passes_elicitation: false,
        };
        // What the host cannot serve is left out.
        Bridge::of_remote(list, options, |tool| compiled(tool).map_err(|problems| problems.join("; ")))
    };
    let bridge = match made() {
        Ok(bridge) => bridge,
        Err(error) => return assert!(!error.problem.is_empty(), "refused without a problem"),
    };
    assert!(bridge.definitions.tools.len() <= OPERATIONS_MAX);
    let names: BTreeSet<_> = bridge.definitions.tools.iter().map(|tool| &tool.name).collect();
    assert_eq!(names.len(), bridge.definitions.tools.len(), "two tools have one name: {names:?}");
    bridge.definitions.tools.iter().for_each(is_listed);
    assert_eq!(bridge.grants.http, ["DELETE,POST https://mcp.example.com/mcp"]);
    assert_eq!(made().expect("it had tools the first time").definitions.bytes(), bridge.definitions.bytes());
}

/// Asserts that a host takes its definition.
fn is_listed(tool: &ToolDefinition) {
    assert!(tool.name.len() + "api_".len() <= NAME_CHARS_MAX, "a long name: {:?}", tool.name);
    if let Err(problems) = compiled(tool) {
        panic!("{}: {problems:?}", tool.operation());
    }
}

/// Its definition as a host compiles it.
fn compiled(tool: &ToolDefinition) -> Result<(), Vec<String>> {
    let mut definition =
        toolcell_mcp::ToolDefinition::new(tool.name.clone(), tool.description.clone(), tool.input.clone());
    definition.output_schema = tool.output.clone();
    match McpTool::compile(definition) {
        Ok(_) => Ok(()),
        Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
    }
}
