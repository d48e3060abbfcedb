//! Streams and futures in the results of functions: read to their end under the limits of the call,
//! however the guest fills them. In arguments they leave their function out.
//!
//! Promise: waiting ends.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, manifest_of};

fn host(limits: &str) -> TestHost {
    let manifest = manifest_of(&["good", "streams"]).replace("fuel = 20_000_000", "fuel = 500_000_000");
    TestHost::recording(&format!("{manifest}[components.streams.limits]\n{limits}\n"))
}

fn error(host: &mut TestHost, tool: &str, arguments: Value) -> String {
    host.call(tool, arguments).error_text().to_owned()
}

/// What the tool's answer is, which its own schema allows.
fn structured(host: &mut TestHost, tool: &str, arguments: Value) -> Value {
    host.call(tool, arguments).structured().clone()
}

#[test]
fn a_stream_is_the_array_of_its_items_and_a_future_its_value() {
    let mut host = host("output = \"1MiB\"");
    for (tool, arguments, expected) in [
        ("bytes", json!({"count": 4}), json!("AAECAw==")),
        ("bytes", json!({"count": 0}), json!("")),
        ("numbers", json!({"count": 3}), json!([0, 1, 2])),
        ("numbers", json!({"count": 0}), json!([])),
        ("words", json!({"words": ["one", "", "a \"third\""]}), json!(["one", "", "a \"third\""])),
        ("points", json!({"count": 2}), json!([{"x": 0, "name": "p0"}, {"x": -1, "name": "p1"}])),
        ("steps", json!({}), json!(["begins", {"at": {"x": -1, "name": "p1"}}, {"ends": "gone"}])),
        ("lists", json!({}), json!([[], [1, null, "18446744073709551615"]])),
        ("beats", json!({"count": 3}), json!([null, null, null])),
        ("later", json!({"text": "at last"}), json!("at last")),
        ("when", json!({}), Value::Null),
        ("much_later", json!({}), json!({"x": -7, "name": "p7"})),
        ("ends", json!({"well": true}), json!(["YWI=", {"ok": null}])),
        ("ends", json!({"well": false}), json!(["YWI=", {"err": "full"}])),
        ("checked", json!({"well": true}), json!([1, 2])),
        ("maybe", json!({"some": true}), json!([3])),
        ("maybe", json!({"some": false}), Value::Null),
        (
            "files",
            json!({"count": 2, "size": 3}),
            json!([{"name": "file 0", "content": "YWFh"}, {"name": "file 1", "content": "YWFh"}]),
        ),
    ] {
        assert_eq!(structured(&mut host, tool, arguments.clone()), json!({"result": expected}), "{tool} {arguments}");
    }
    let run = json!({"title": "both", "printed": "eHh4", "errors": ["line 0", "line 1", "line 2"], "ended": {"ok": 3}});
    assert_eq!(structured(&mut host, "runs", json!({"turns": 3})), run, "each is filled while the other waits");
    let failed = host.call("checked", json!({"well": false}));
    assert_eq!(failed.result()["structuredContent"], json!({"error": "not well"}));
    let many = structured(&mut host, "numbers", json!({"count": 50_000}));
    assert_eq!(many["result"].as_array().unwrap().last(), Some(&json!(49_999)));
    let long = "x".repeat(100_000);
    assert_eq!(structured(&mut host, "words", json!({"words": [long, "y"]})), json!({"result": [long, "y"]}));
    host.still_works();
}

#[test]
fn the_schema_says_what_comes_and_parameters_with_streams_leave_their_functions_out() {
    let mut host = host("");
    let tools = host.request("tools/list", json!({}))["result"]["tools"].clone();
    let output = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["outputSchema"]["properties"]["result"].clone()
    };
    assert_eq!(output("bytes")["contentEncoding"], "base64");
    assert_eq!(
        output("numbers"),
        json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": u32::MAX}})
    );
    assert_eq!(output("beats"), json!({"type": "array", "items": {"type": "null"}}));
    assert_eq!(output("later"), json!({"type": "string"}));
    assert_eq!(output("when"), json!({"type": "null"}));
    let folder = Folder::with_manifest(&manifest_of(&["streams"]));
    let said = Command::in_folder(&folder, &["check", "toolcell.toml"]).run().stderr;
    for function in ["takes", "takes-later"] {
        let left_out = format!(
            "\"fixture:streams/kinds.{function}\" (its parameter \"data\" has a stream or a future, \
             which only results may have)"
        );
        assert!(said.contains(&left_out), "{said}");
    }
    let inspected = Command::in_folder(&folder, &["inspect", "components/streams.wasm"]).run().succeeded().to_owned();
    assert!(inspected.contains("fixture:streams/kinds") && !inspected.contains("toolcell:streams"), "{inspected}");
}

#[test]
fn what_never_ends_ends_with_its_call() {
    let mut host = host("deadline = \"2s\"\noutput = \"64KiB\"\nmemory = \"16MiB\"\nhandles = 200\n");
    let late = "deadline exceeded: the call took longer than 2s (limit \"deadline\")";
    let output = |text: &str| assert!(text.contains("(limit \"output\")"), "{text}");
    assert_eq!(error(&mut host, "silent", json!({})), late);
    assert_eq!(error(&mut host, "many_silent", json!({"count": 20})), late);
    let handles = error(&mut host, "many_silent", json!({"count": 10_000}));
    assert!(handles.contains("(limit \"handles\")"), "{handles}");
    output(&error(&mut host, "endless_numbers", json!({})));
    output(&error(&mut host, "endless_words", json!({"length": 1000})));
    let long = error(&mut host, "endless_words", json!({"length": 10_000_000}));
    assert!(long.contains("(limit \"memory\")") || long.contains("(limit \"host_data\")"), "{long}");
    output(&error(&mut host, "bytes", json!({"count": 100_000})));
    let empty = error(&mut host, "endless_words", json!({"length": 0}));
    output(&empty);
    let trapped = error(&mut host, "traps", json!({"after": 10}));
    assert!(trapped.contains("no more numbers") || trapped.contains("unreachable"), "{trapped}");
    assert_eq!(structured(&mut host, "plain", json!({"a": 1})), json!({"result": 2}));
    host.still_works();
}
