//! Modern requests (2026-07-28): stateless, answered as JSON or as events, cancelled by closing the
//! connection, told of changes.

use std::net::Shutdown;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, alone, manifest_of};

#[test]
fn a_request_is_answered_as_json_in_one_piece() {
    let host = WebHost::serving(&["good"]);
    let reply = host.ask(&Ask::call("echo", json!({"text": "hello"})));
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(reply.field("mcp-session-id"), None, "this era has no sessions");
    let frame = reply.frame();
    assert_eq!((&frame["id"], &frame["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(frame["result"]["content"][0]["text"], "hello");
    let listed = host.ask(&Ask::modern(2, "tools/list", json!({}))).frame();
    assert!(!listed["result"]["tools"].as_array().unwrap().is_empty());
    let discovered = host.ask(&Ask::modern(3, "server/discover", json!({}))).frame();
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
}

#[test]
fn a_connection_is_used_again_and_a_session_id_is_ignored() {
    let host = WebHost::serving(&["good"]);
    let mut wire = host.connect();
    for text in ["one", "two", "three"] {
        let reply = wire.ask(&Ask::call("echo", json!({"text": text})).of_session("no-such-session"));
        assert_eq!(reply.frame()["result"]["content"][0]["text"], text);
    }
}

#[test]
fn progress_and_log_come_as_events_on_the_requests_own_stream() {
    let host = WebHost::serving(&["good"]);
    let mut ask = json!({"name": "slow", "arguments": {"steps": 2, "step_ms": 1}});
    ask["_meta"] = toolcell_tests::modern_meta();
    ask["_meta"]["progressToken"] = json!("p");
    ask["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": ask}).to_string();
    let ask = Ask::call("slow", json!({})).saying(&body);
    let reply = host.ask(&ask);
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.field("content-type"), Some("text/event-stream"));
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    let told: Vec<String> =
        reply.frames().iter().map(|frame| frame["method"].as_str().unwrap_or("answer").into()).collect();
    let step = ["notifications/message", "notifications/progress"];
    assert_eq!(told, [&step[..], &step, &["answer"]].concat());
    assert_eq!(reply.frame()["result"]["content"][0]["text"], "2 steps done");

    let only_json = host.ask(&ask.clone().with("accept", "application/json"));
    assert_eq!(only_json.field("content-type"), Some("application/json"));
    assert_eq!(only_json.frame()["result"]["content"][0]["text"], "2 steps done");
    let only_events = host.ask(&Ask::call("echo", json!({"text": "x"})).with("accept", "text/event-stream"));
    assert_eq!(only_events.field("content-type"), Some("text/event-stream"));
    assert_eq!(only_events.frame()["result"]["content"][0]["text"], "x");
}

#[test]
fn a_stream_says_to_a_proxy_that_it_cannot_wait() {
    let _alone = alone("a balancer keeps this header for itself");
    let reply =
        WebHost::serving(&["good"]).ask(&Ask::call("echo", json!({"text": "x"})).with("accept", "text/event-stream"));
    assert_eq!(reply.field("x-accel-buffering"), Some("no"));
}

#[test]
fn errors_have_the_status_that_the_specification_gives_them() {
    let host = WebHost::serving(&["good"]);
    let unsupported = Ask::modern(1, "tools/list", json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {}
    }}});
    let unsupported = unsupported.saying(&body.to_string()).with("mcp-protocol-version", "2099-01-01");
    let lacking = |meta: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        Ask::modern(1, "tools/list", json!({})).saying(&body.to_string())
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    for (what, ask, expected) in [
        ("an unknown method", Ask::modern(1, "prompts/list", json!({})), (404, -32601)),
        ("a method of the other era", Ask::modern(1, "initialize", json!({})), (404, -32601)),
        ("an unsupported version", unsupported, (400, -32022)),
        ("no capabilities", lacking(json!({version: "2026-07-28"})), (400, -32602)),
        ("no version", lacking(json!({"io.modelcontextprotocol/clientCapabilities": {}})), (400, -32602)),
        ("no meta", Ask::request(1, "tools/list", json!({})), (400, -32602)),
        ("an unknown tool", Ask::call("nowhere", json!({})), (200, -32602)),
        ("a cursor that was never given", Ask::modern(1, "tools/list", json!({"cursor": "x"})), (200, -32602)),
        ("no JSON", Ask::modern(1, "tools/list", json!({})).saying("{"), (400, -32700)),
        ("an empty body", Ask::modern(1, "tools/list", json!({})).saying(""), (400, -32700)),
        ("no request", Ask::modern(1, "tools/list", json!({})).saying("{\"jsonrpc\":\"2.0\",\"id\":1}"), (400, -32600)),
        ("a batch", Ask::modern(1, "tools/list", json!({})).saying("[]"), (400, -32600)),
    ] {
        assert_eq!(host.ask(&ask).error(), expected, "{what}");
    }
    let failed = host.ask(&Ask::call("add", json!({"a": "x"})));
    assert_eq!((failed.status(), &failed.frame()["result"]["isError"]), (200, &json!(true)));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let notification = Ask::post(&notification).with("mcp-protocol-version", "2026-07-28");
    let reply = host.ask(&notification);
    assert_eq!((reply.status(), reply.body()), (202, &b""[..]));
    host.still_works();
}

#[test]
fn closing_the_connection_cancels_the_call() {
    let manifest = manifest_of(&["good", "loops"]).replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000");
    let manifest = manifest.replace("deadline = \"5s\"", "deadline = \"1h\"");
    let folder = Folder::with_manifest(&manifest);
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    for tool in ["spin", "sleep_hour"] {
        let mut wire = host.connect();
        wire.send(&Ask::call(tool, json!({})).bytes());
        host.begins(tool);
        wire.stream().shutdown(Shutdown::Both).unwrap();
        assert_eq!(host.outcome(tool), "cancelled", "{tool}");
    }
    host.still_works();
}

#[test]
fn a_subscription_is_acknowledged_and_told_of_another_list() {
    let host = WebHost::serving(&["good"]);
    let mut wires: Vec<_> = (0..3).map(|_| host.connect()).collect();
    for (id, wire) in wires.iter_mut().enumerate() {
        wire.send(&Ask::listen(id as u64).bytes());
        assert_eq!(wire.head().field("content-type"), Some("text/event-stream"));
        let acknowledged = wire.event().unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    }
    let folder = host.process().folder();
    let manifest = folder.read("toolcell.toml").replace("[components.good]", "[components.good]\nprefix = \"new_\"");
    folder.write("toolcell.toml", manifest);
    for (id, wire) in wires.iter_mut().enumerate() {
        let told = wire.event().unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed");
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    }
    let listed = host.ask(&Ask::modern(2, "tools/list", json!({}))).frame();
    assert!(listed["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "new_echo"));
    let refused = host.ask(&Ask::listen(4).with("accept", "application/json"));
    assert_eq!(refused.error(), (406, -32600), "a stream cannot be JSON");
}

#[test]
fn a_quiet_stream_carries_comments_and_ends_with_its_result_when_its_time_is_up() {
    let limits = "[http]\nkeep_alive = \"100ms\"\nstream_time = \"1s\"\n";
    let host = WebHost::with_manifest(&format!("{}\n{limits}", manifest_of(&["good"])));
    let reply = host.ask(&Ask::listen(5));
    let text = String::from_utf8(reply.body().to_vec()).unwrap();
    assert!(text.matches(":\n\n").count() >= 2, "{text}");
    let frames = reply.frames();
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!((&frames[1]["id"], &frames[1]["result"]["resultType"]), (&json!(5), &json!("complete")));
}
