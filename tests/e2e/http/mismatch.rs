//! Headers that contradict the body. A proxy would trust the headers and the host the body.
//!
//! Promise: a proxy and the host see one request.

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};

#[test]
fn every_disagreement_between_headers_and_body_is_refused() {
    let host = WebHost::serving(&["good"]);
    let echo = || Ask::call("echo", json!({"text": "x"}));
    let list = || Ask::modern(1, "tools/list", json!({}));
    for (what, ask) in [
        ("no version", echo().without("mcp-protocol-version")),
        ("another version", echo().with("mcp-protocol-version", "2025-11-25")),
        ("two versions", echo().and("mcp-protocol-version", "2026-07-28")),
        ("no method", echo().without("mcp-method")),
        ("another method", echo().with("mcp-method", "tools/list")),
        ("a method in capitals", echo().with("mcp-method", "TOOLS/CALL")),
        ("two methods", echo().and("mcp-method", "tools/list")),
        ("an encoded method", echo().with("mcp-method", "=?base64?dG9vbHMvY2FsbA==?=")),
        ("a method for another", list().with("mcp-method", "tools/call")),
        ("no name", echo().without("mcp-name")),
        ("an empty name", echo().with("mcp-name", "")),
        ("another name", echo().with("mcp-name", "add")),
        ("a name in capitals", echo().with("mcp-name", "Echo")),
        ("two names", echo().and("mcp-name", "add")),
        ("two equal names", echo().and("mcp-name", "echo")),
        ("another encoded name", echo().with("mcp-name", "=?base64?YWRk?=")),
        ("an encoded name without padding", echo().with("mcp-name", "=?base64?ZWNobw?=")),
        ("an encoded name of another alphabet", echo().with("mcp-name", "=?base64?ZWN-bw==?=")),
        ("a name that is not ASCII", echo().with("mcp-name", "echö")),
        ("an unknown method without its header", Ask::modern(1, "what/ever", json!({})).without("mcp-method")),
        ("a prompt's name", Ask::modern(1, "prompts/get", json!({"name": "p"})).with("mcp-name", "q")),
        (
            "a resource's address",
            Ask::modern(1, "resources/read", json!({"uri": "file:///a"})).with("mcp-name", "file:///b"),
        ),
    ] {
        let reply = host.ask(&ask);
        assert_eq!(reply.error(), (400, -32020), "{what}");
        assert_eq!(reply.frame()["id"], 1, "{what}");
    }
    for (what, ask) in [
        ("an encoded name", echo().with("mcp-name", "=?base64?ZWNobw==?=")),
        ("space around", echo().with("mcp-name", "  echo \t")),
        ("headers of another case", echo().without("mcp-method").with("MCP-METHOD", "tools/call")),
        ("a name that nothing repeats", list().with("mcp-name", "echo")),
        ("a parameter that no tool repeats", echo().with("mcp-param-region", "here")),
    ] {
        assert_eq!(host.ask(&ask).status(), 200, "{what}");
    }
}

#[test]
fn one_parse_decides_what_headers_are_compared_with() {
    let host = WebHost::serving(&["good"]);
    let body = |twice: &str| {
        let meta = toolcell_tests::modern_meta();
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",{twice}"params":{{"name":"echo","arguments":{{}},"_meta":{meta}}}}}"#
        )
    };
    for (what, body) in [
        ("two methods", body(r#""method":"tools/list","#)),
        ("two params", body(r#""params":{"name":"add"},"#)),
        ("two names", body("").replace(r#""name":"echo","arguments""#, r#""name":"add","name":"echo","arguments""#)),
        ("two metas", body("").replace(r#""arguments":{}"#, r#""arguments":{},"_meta":{}"#)),
    ] {
        let reply = host.ask(&Ask::call("echo", json!({})).saying(&body));
        let (status, code) = reply.error();
        assert!(status == 400 && matches!(code, -32600 | -32602), "{what}: {reply:?}");
    }
}
