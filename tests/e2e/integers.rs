//! Integers that are written `1.0`: JSON has one kind of number, and some writers have only floats.
//! Whatever the protocol has as an integer is read however it is written, and answered as one.

use serde_json::{Value, json};
use toolcell_tests::{MODERN_REVISION, TestHost, manifest_of};

/// One request of the session, as it stands here.
fn line(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[test]
fn ids_and_progress_tokens_are_integers_however_they_are_written() {
    let mut host = TestHost::recording(&manifest_of(&["good"]));
    host.initialize("2025-11-25");
    for (id, token) in [("701.0", "71.0"), ("7.01e2", "7.1e1"), ("70100e-2", "710e-1")] {
        let params = r#"{"name":"slow","arguments":{"steps":2,"step_ms":1},"_meta":{"progressToken":TOKEN}}"#;
        host.send_line(&line(id, "tools/call", &params.replace("TOKEN", token)));
        assert_eq!(host.next_of("notifications/progress")["params"]["progressToken"], json!(71), "{token}");
        let reply = host.reply_to(&json!(701));
        assert_eq!(reply["result"]["isError"], false, "{id}: {reply}");
    }
    let params = r#"{"name":"slow","arguments":{"steps":100000,"step_ms":20},"_meta":{"progressToken":72}}"#;
    host.send_line(&line("702", "tools/call", params));
    while host.next_of("notifications/progress")["params"]["progressToken"] != json!(72) {}
    host.send_line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":702.0}}"#);
    let _ = host.recorded("a call that was cancelled", |record| record["outcome"] == "cancelled");
    for wrong in ["1.5", "9007199254740993.5", "1e300"] {
        host.send_line(&line(wrong, "ping", "{}"));
        let refused = loop {
            let frame = host.receive();
            // Progress of the cancelled call may still come.
            if frame.get("method").is_none() {
                break frame;
            }
        };
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "{wrong}: {refused}");
    }
    host.still_works();
}

#[test]
fn a_modern_stream_is_named_by_its_integer() {
    let mut host = TestHost::serving(&["good"]);
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN_REVISION}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    let wanted = format!(r#"{{{meta},"notifications":{{"toolsListChanged":true}}}}"#);
    host.send_line(&line("703.0", "subscriptions/listen", &wanted));
    let acknowledged = host.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(703));
}

#[test]
fn the_life_of_a_task_is_an_integer_however_it_is_written() {
    let rules = "[components.tasks.tools.slow_compute]\ntask = \"0ms\"\n";
    let mut host = TestHost::with_manifest(&format!("{}{rules}", manifest_of(&["tasks"])));
    host.initialize("2025-11-25");
    for (id, ttl) in [(711, "60000"), (712, "60000.0"), (713, "6e4")] {
        let params = r#"{"name":"slow_compute","arguments":{"seconds":0},"task":{"ttl":TTL}}"#;
        host.send_line(&line(&id.to_string(), "tools/call", &params.replace("TTL", ttl)));
        let task = host.reply_to(&json!(id))["result"]["task"].clone();
        assert_eq!(task["ttl"], json!(60_000), "{ttl}: {task}");
    }
}

#[test]
fn a_number_of_results_is_an_integer_however_it_is_written() {
    let manifest = format!("{}\n[server]\ndiscovery = \"search\"\n", manifest_of(&["good"]));
    let mut host = TestHost::with_manifest(&manifest);
    host.initialize("2025-11-25");
    for limit in [json!(1), json!(1.0)] {
        let answer = host.call("find_tools", json!({"query": "text", "limit": limit}));
        assert_eq!(answer.structured()["tools"].as_array().unwrap().len(), 1, "{answer:?}");
    }
    let refused = host.call("find_tools", json!({"query": "text", "limit": 1.5}));
    assert!(refused.is_error(), "{refused:?}");
}

#[test]
fn a_number_of_tokens_is_asked_for_as_an_integer() {
    let mut host = TestHost::serving(&["asks"]);
    host.initialize_declaring("2025-11-25", json!({"sampling": {}}));
    let message = json!({"role": "user", "content": {"type": "text", "text": "A poem"}});
    let id =
        host.start_call("ask", json!({"rounds": [{"poem": {"sampling": {"messages": [message], "maxTokens": 9.0}}}]}));
    let asked = host.next_of("sampling/createMessage");
    assert_eq!(asked["params"]["maxTokens"], json!(9), "{asked}");
    let said = json!({"role": "assistant", "content": {"type": "text", "text": "Roses"}, "model": "m"});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
    assert!(host.answer_to(&id).text().contains("Roses"));
}

#[test]
fn an_integer_of_a_function_is_one_however_it_is_written() {
    let mut host = TestHost::serving(&["drawings"]);
    let mut sum = |values: Value| host.call("sum", json!({"values": values})).structured()["result"].clone();
    assert_eq!(sum(json!([1.0, 2, 3e0])), 6);
    let refused = host.call("sum", json!({"values": [1.5]}));
    assert!(refused.is_error(), "{refused:?}");
}
