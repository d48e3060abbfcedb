//! Lists of other servers, and what becomes of them.
use serde_json::{Value, json};
use toolcell_bridge_lines::{Era, Selection};

use crate::{Bridge, BridgeError, RemoteList, RemoteOptions, SecretGrant, ToolDefinition};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}})
}

fn list(tools: Vec<Value>) -> RemoteList {
    RemoteList { title: "Everything 1.0".to_owned(), era: Era::Session, names_sessions: true, tools }
}

fn options(only: &[&str]) -> RemoteOptions {
    let only = only.iter().map(|&word| word.to_owned()).collect();
    let selection = Selection { only, all: false, prefix: "everything_".to_owned() };
    RemoteOptions {
        address: "https://MCP.example.com/mcp/".to_owned(),
        selection,
        secrets: Vec::new(),
        passes_elicitation: false,
    }
}

fn bridge(tools: Vec<Value>, only: &[&str]) -> Result<Bridge, BridgeError> {
    Bridge::of_remote(list(tools), options(only), |tool: &ToolDefinition| match tool.name.as_str() {
        "refused" => Err("has no proper schema".to_owned()),
        _ => Ok(()),
    })
}

fn lines(bridge: &Bridge) -> Vec<Value> {
    let bytes = bridge.definitions.bytes();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[test]
fn a_list_becomes_lines_and_one_grant() {
    let input = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "in": {"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}},
    }});
    let written = json!({
        "name": "files.read", "title": "Read", "description": "Reads \u{202e}files.", "inputSchema": input,
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "openWorldHint": false},
        "icons": [{"src": "https://a.example/i.png"}, {"src": "http://a.example/i.png"}],
    });
    let bridge = bridge(vec![written], &[]).unwrap();
    assert_eq!(bridge.grants.http, ["DELETE,POST https://mcp.example.com/mcp/"]);
    let lines = lines(&bridge);
    assert_eq!(lines[0]["mcp"]["url"], "https://mcp.example.com/mcp/");
    assert_eq!(
        lines[1],
        json!({"tool": "files_read", "remote": "files.read", "mirrored": [
            {"header": "Region", "path": ["region"]}, {"header": "Tenant", "path": ["in", "tenant"]},
        ]})
    );
    assert_eq!(
        lines[2],
        json!({
            "name": "files_read", "title": "Read", "description": "Reads \u{202e}files.", "input": input,
            "output": {"type": "object"}, "hints": {"read_only": true, "open_world": false},
            "icons": [{"src": "https://a.example/i.png"}],
        }),
        "texts stay as they are: the host cleans them, and a person sees them before"
    );
}

#[test]
fn what_cannot_be_taken_is_left_out_with_its_reason() {
    let with = |name: &str, key: &str, value: Value| {
        let mut tool = tool(name);
        tool[key] = value;
        tool
    };
    let bridge = bridge(
        vec![
            tool("fine"),
            tool("fine"),
            tool(""),
            tool(&"a".repeat(129)),
            json!(1),
            tool("refused"),
            json!({"name": "bare"}),
            with("task", "execution", json!({"taskSupport": "required"})),
            with("view", "_meta", json!({"ui": {"visibility": ["app"]}})),
        ],
        &[],
    )
    .unwrap();
    let names: Vec<&str> = bridge.definitions.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["fine"]);
    let left_out: Vec<String> =
        bridge.left_out.iter().map(|left| format!("{:.8} {}", left.operation, left.reason)).collect();
    for expected in [
        "fine is in the list twice",
        " has no proper name",
        "aaaaaaaa has no proper name",
        "refused has no proper schema",
        "bare has no schema of its arguments",
        "task runs only as a task",
        "view is for views alone",
    ] {
        assert!(left_out.iter().any(|left| left == expected), "{expected}: {left_out:#?}");
    }
}

#[test]
fn tools_are_chosen_and_counted() {
    let many = || (0..101).map(|number| tool(&format!("t{number}"))).collect::<Vec<_>>();
    let names = |bridge: Bridge| bridge.definitions.tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    assert_eq!(names(bridge(many(), &["t7", "t100"]).unwrap()), ["t100", "t7"], "sorted");
    let refused = bridge(many(), &[]).unwrap_err();
    assert_eq!(refused.problem, "the server has 101 tools, and 100 are taken at most");
    assert_eq!(refused.hint, "choose some with --only TOOL; --all takes them all");
    let unknown = bridge(vec![tool("a")], &["b"]).unwrap_err();
    assert_eq!(
        (unknown.problem.as_str(), unknown.hint.as_str()),
        ("the server has no tool \"b\"", "its tools are \"a\"")
    );
    let empty = bridge(Vec::new(), &[]).unwrap_err();
    assert_eq!(empty.problem, "the server has no tool that can be taken");
    let long = json!({"name": "long", "description": "d".repeat(20_000), "inputSchema": {"type": "object"}});
    assert_eq!(bridge(vec![long], &[]).unwrap().definitions.tools[0].description.len(), 16 * 1024);
    let large = (0..100).map(|number| {
        json!({"name": format!("t{number}"), "inputSchema": {"type": "object", "description": "d".repeat(10_000)}})
    });
    let refused = bridge(large.collect(), &[]).unwrap_err();
    assert_eq!(refused.problem, "the definitions of its tools have more than 921600 bytes");
}

#[test]
fn an_address_is_one_that_every_server_reads_in_the_same_way() {
    for (address, url) in [
        ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080/")),
        ("https://a.example/mcp", Some("https://a.example/mcp")),
        ("https://a.example/mcp?key=x", None),
        ("https://a.example/../mcp", None),
        ("https://name:word@a.example/mcp", None),
        ("a.example/mcp", None),
    ] {
        let options = RemoteOptions { address: address.to_owned(), ..options(&[]) };
        let bridge = Bridge::of_remote(list(vec![tool("a")]), options, |_| Ok(())).ok();
        let found = bridge.map(|bridge| lines(&bridge)[0]["mcp"]["url"].clone());
        assert_eq!(found, url.map(|url| json!(url)), "{address}");
    }
}

#[test]
fn a_header_of_the_command_line_becomes_a_secret() {
    for (header, expected) in [
        (
            "Authorization=Bearer env:TOKEN",
            Some("TOKEN = { from = \"env:TOKEN\", header = \"Authorization\", value = \"Bearer {}\""),
        ),
        ("X-Key = env:my_key", Some("MY_KEY = { from = \"env:my_key\", header = \"X-Key\"")),
        (
            "Authorization=Bearer oauth:acme",
            Some("ACME_AUTHORIZATION = { from = \"oauth:acme\", header = \"Authorization\", value = \"Bearer {}\""),
        ),
        ("X-Key=plain", None),
        ("=env:A", None),
        ("a b=env:A", None),
        ("X-Key={env:A", None),
    ] {
        let secret = SecretGrant::of_header("acme", header, "https://a.example");
        let options = RemoteOptions { secrets: secret.into_iter().collect(), ..options(&[]) };
        let bridge = Bridge::of_remote(list(vec![tool("a")]), options, |_| Ok(())).unwrap();
        let tables = bridge.grants.tables("acme");
        let line = tables.lines().last().unwrap();
        match expected {
            Some(expected) => assert_eq!(line, format!("{expected}, for = \"https://mcp.example.com/mcp/\" }}")),
            None => assert_eq!(line, "]", "{header}"),
        }
    }
}
