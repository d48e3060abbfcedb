//! The era of each message, and the methods of each era.

use crate::host::{Client, IDENTITY, MODERN, error, legacy_text_result};

const MISSING: &str =
    "Missing in params._meta: io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities";

fn initialized(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"init","result":{{"protocolVersion":"{revision}","capabilities":{{"logging":{{}},"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"test","version":"1.2.3"}}}}}}"#
    )
}

fn discovered(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{{"logging":{{}},"tools":{{"listChanged":true}}}},"ttlMs":0,"cacheScope":"public",{IDENTITY}}}}}"#
    )
}

#[test]
fn initialize_settles_the_revision_asked_for_or_the_newest_legacy_one() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        assert_eq!(Client::new().initialize(asked), initialized(given), "{asked}");
    }
}

/// Bridges put several clients on one pipe. Each begins with `initialize` and counts from there.
#[test]
fn a_second_initialize_begins_a_session_and_calls_go_on() {
    let client = Client::legacy("2024-11-05");
    client.call_legacy(1, "hold", "{}");
    client.expect_begun("hold");
    assert!(client.initialize("2025-11-25").contains(r#""protocolVersion":"2025-11-25""#));
    client.call_legacy(1, "structured", r#"{"json":"{\"a\":1}"}"#);
    client.expect_begun("structured");
    assert!(client.next().contains("structuredContent"), "the second revision, under an id that is free again");
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), legacy_text_result("1", "held"));
    client.expect_silence();

    client.call_legacy(1, "hold", "{}");
    client.expect_begun("hold");
    assert!(client.initialize("2025-06-18").contains("2025-06-18"));
    client.call_legacy(1, "hold", "{}");
    client.expect_begun("hold");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    client.send(cancel);
    client.expect_silence();
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), legacy_text_result("1", "held"), "the session's own was cancelled first");
    client.expect_idle();
}

#[test]
fn initialize_with_ill_typed_params_is_refused() {
    let client = Client::new();
    for (params, message) in [
        ("{}", "params.protocolVersion must be a string"),
        (r#"{"protocolVersion":1}"#, "params.protocolVersion must be a string"),
        (r#"{"protocolVersion":"2025-06-18"}"#, "params.capabilities must be an object"),
        (
            r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#,
            "params.clientInfo must be an object with a name and a version",
        ),
        (
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x"}}"#,
            "params.clientInfo must be an object with a name and a version",
        ),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        assert_eq!(client.ask(&frame), error("1", -32602, message));
    }
    assert_eq!(client.initialize("2025-06-18"), initialized("2025-06-18"));
}

#[test]
fn before_any_era_is_known_only_ping_and_initialize_are_answered() {
    let client = Client::new();
    client.expect_silence();
    for method in
        ["tools/list", "tools/call", "server/discover", "logging/setLevel", "subscriptions/listen", "nonsense"]
    {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(client.ask(&frame), error("1", -32602, MISSING), "{method}");
    }
}

#[test]
fn a_probe_with_discover_leaves_the_way_to_initialize_open() {
    let client = Client::new();
    assert_eq!(client.ask_modern(1, "server/discover", ""), discovered(1));
    assert_eq!(client.initialize("2025-06-18"), initialized("2025-06-18"));
    let list = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(!list.contains("resultType"), "{list}");
    assert_eq!(client.ask_modern(3, "server/discover", ""), discovered(3), "both eras in one process");
    assert_eq!(
        client.ask(r#"{"jsonrpc":"2.0","id":4,"method":"server/discover"}"#),
        error("4", -32601, "Method not found: server/discover")
    );
}

#[test]
fn methods_of_the_other_era_and_methods_not_offered_do_not_exist() {
    let modern = Client::new();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "tasks/get",
        "tools/List",
        "",
    ] {
        let expected = error("1", -32601, &format!("Method not found: {method}"));
        assert_eq!(modern.ask_modern(1, method, ""), expected);
    }
    let legacy = Client::legacy("2025-11-25");
    for method in [
        "resources/list",
        "resources/subscribe",
        "prompts/list",
        "completion/complete",
        "subscriptions/listen",
        "tasks/list",
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        assert_eq!(legacy.ask(&frame), error("1", -32601, &format!("Method not found: {method}")));
    }
}

#[test]
fn a_version_that_is_not_served_is_named_with_those_that_are() {
    let client = Client::new();
    for (version, supported) in [
        ("1900-01-01", r#"["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]"#),
        ("2025-11-25", r#"["2026-07-28"]"#),
    ] {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}}}}}"#
        );
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"Unsupported protocol version","data":{{"supported":{supported},"requested":"{version}"}}}}}}"#
        );
        assert_eq!(client.ask(&frame), expected);
    }
}

#[test]
fn a_notification_or_a_response_before_the_first_request_is_ignored() {
    let client = Client::new();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    assert_eq!(client.initialize("2025-03-26"), initialized("2025-03-26"));
}

#[test]
fn the_revision_and_the_client_reach_the_call() {
    let legacy = Client::legacy("2025-03-26");
    legacy.call_legacy(7, "echo", "{}");
    let context = legacy.expect_begun("echo");
    assert_eq!(context.revision.name(), "2025-03-26");
    assert_eq!(
        context.client.map(|client| (client.name.clone(), client.version.clone())),
        Some(("c".into(), "1".into()))
    );
    assert_eq!((context.request_id.as_str(), context.meta_json.as_str()), ("7", "{}"));

    let modern = Client::new();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let meta = MODERN.replace(
        "{}}",
        &format!(r#"{{}},"traceparent":"{parent}","tracestate":"a=b","baggage":"k=v","com.example/x":{{"y":[1]}},"progressToken":3}}"#),
    );
    modern.send(&format!(r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{{"name":"echo",{meta}}}}}"#));
    let context = modern.expect_begun("echo");
    let trace = context.trace.unwrap();
    assert_eq!(
        (trace.traceparent.as_str(), trace.tracestate.as_deref(), trace.baggage.as_deref()),
        (parent, Some("a=b"), Some("k=v"))
    );
    assert_eq!(
        context.meta_json,
        format!(r#"{{"traceparent":"{parent}","tracestate":"a=b","baggage":"k=v","com.example/x":{{"y":[1]}}}}"#)
    );
    assert_eq!(context.client, None);
}

#[test]
fn a_trace_parent_of_the_wrong_form_is_left_out() {
    for parent in [
        "",
        "00-0-0-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
    ] {
        let client = Client::new();
        let meta = MODERN.replace("{}}", &format!(r#"{{}},"traceparent":"{parent}"}}"#));
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo",{meta}}}}}"#));
        assert_eq!(client.expect_begun("echo").trace, None, "{parent}");
    }
}
