//! Results in each revision: structured content, its mirror in text, its schema.

use crate::host::{ARGUMENTS_BYTES_MAX, Client, text_result};

fn structured(client: &Client, tool: &str, json: &str) -> String {
    client.ask_modern(
        1,
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{{"json":{}}},"#, serde_json::Value::from(json)),
    )
}

fn failed(text: &str) -> String {
    text_result("1", text).replace(r#""isError":false"#, r#""isError":true"#)
}

#[test]
fn structured_content_is_mirrored_in_text_and_carried_where_the_revision_can() {
    let table = [
        ("2024-11-05", r#"{"n":1}"#, false),
        ("2025-03-26", r#"{"n":1}"#, false),
        ("2025-06-18", r#"{"n":1}"#, true),
        ("2025-11-25", r#"{"n":1}"#, true),
        ("2025-11-25", "[1,2]", false),
        ("2025-11-25", "null", false),
    ];
    for (revision, json, carried) in table {
        let client = Client::legacy(revision);
        client.call_legacy(1, "structured", &format!(r#"{{"json":{}}}"#, serde_json::Value::from(json)));
        let carry = if carried { format!(r#","structuredContent":{json}"#) } else { String::new() };
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{}}}]{carry},"isError":false}}}}"#,
            serde_json::Value::from(json)
        );
        assert_eq!(client.next(), expected, "{revision} {json}");
    }
    let client = Client::new();
    for json in [r#"{"n":1}"#, "[1,2]", "null", "7", r#""text""#] {
        let carry = format!(r#"],"structuredContent":{json},"isError""#);
        let expected = text_result("1", json).replace(r#"],"isError""#, &carry);
        assert_eq!(structured(&client, "structured", json), expected);
    }
}

#[test]
fn a_frame_stays_one_line_whatever_the_structured_content() {
    let client = Client::new();
    let answer = structured(&client, "structured", "{\n\t\"a\": [1,\r\n 2],\n \"s\": \"x\\ny\"}");
    assert!(answer.contains(r#""structuredContent":{ "#), "{answer}");
    let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(value["result"]["structuredContent"], serde_json::json!({"a": [1, 2], "s": "x\ny"}));
}

#[test]
fn content_that_does_not_fit_the_output_schema_is_an_error_result() {
    let client = Client::new();
    let ok = structured(&client, "checked", r#"{"n":1}"#);
    assert!(ok.contains(r#""structuredContent":{"n":1},"isError":false"#), "{ok}");
    let lead = "The result of checked is unusable: its structured content";
    for (json, complaint) in [
        (r#"{"n":"x"}"#, " does not fit its output schema:\n- /n: must be of type integer"),
        ("{}", " does not fit its output schema:\n- (root): \"n\" is required"),
        ("[]", " does not fit its output schema:\n- (root): must be of type object"),
        (r#"{"n":1,"n":2}"#, " has the key \"n\" twice in one object"),
        (r#"{"n":1e999}"#, " cannot be taken: a number at byte 5 is too large for a 64-bit float"),
        (r#"{"n":1,"s":"\ud800"}"#, " cannot be taken: an unpaired surrogate at byte 12"),
    ] {
        assert_eq!(structured(&client, "checked", json), failed(&format!("{lead}{complaint}")), "{json}");
        let known = client.shared.complaints.lock().unwrap().pop();
        assert_eq!(known, Some(format!("its structured content{complaint}")), "the catalog is told");
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = "The result of structured is unusable: its structured content cannot be taken: nested deeper than 120 levels at byte 120";
    assert_eq!(structured(&client, "structured", &nested(121)), failed(text));
    assert!(structured(&client, "structured", &nested(120)).contains(r#""isError":false"#));
}

#[test]
fn arguments_that_do_not_fit_are_an_error_result_that_names_each_place() {
    let client = Client::new();
    let answer = client.ask_modern(1, "tools/call", r#""name":"echo","arguments":{"n":-1},"#);
    assert_eq!(answer, failed("The arguments do not fit the input schema of echo:\n- /n: must be at least 0"));
    let legacy = Client::legacy("2024-11-05");
    legacy.call_legacy(2, "echo", r#"{"n":"x"}"#);
    assert!(legacy.next().contains(r#"- /n: must be of type integer"}],"isError":true"#));
    assert_eq!(legacy.shared.running_most.load(std::sync::atomic::Ordering::SeqCst), 0, "the tool never ran");
    let told = legacy.shared.refused.lock().unwrap().clone();
    assert_eq!(told, ["echo, request 2: - /n: must be of type integer"], "the catalog is told");
}

#[test]
fn what_the_host_objects_to_is_answered_before_the_schema_is_asked() {
    let client = Client::new();
    let arguments = |bytes: usize| format!(r#"{{"n":-1,"s":"{}"}}"#, "x".repeat(bytes - r#"{"n":-1,"s":""}"#.len()));
    for (bytes, text) in [
        (
            ARGUMENTS_BYTES_MAX,
            "The arguments do not fit the input schema of echo:\n- /n: must be at least 0".to_owned(),
        ),
        (ARGUMENTS_BYTES_MAX + 1, format!("echo takes at most {ARGUMENTS_BYTES_MAX} bytes")),
    ] {
        let params = format!(r#""name":"echo","arguments":{},"#, arguments(bytes));
        assert_eq!(client.ask_modern(1, "tools/call", &params), failed(&text), "{bytes} bytes");
    }
    assert_eq!(client.shared.running_most.load(std::sync::atomic::Ordering::SeqCst), 0, "the tool never ran");
}

#[test]
fn output_schemas_that_a_revision_cannot_carry_are_left_out_of_its_list() {
    for (revision, schemas) in [("2024-11-05", 0), ("2025-03-26", 0), ("2025-06-18", 1), ("2025-11-25", 1)] {
        let client = Client::legacy(revision);
        let list = client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert_eq!(list.matches("outputSchema").count(), schemas, "{revision}");
    }
    assert_eq!(Client::new().ask_modern(1, "tools/list", "").matches("outputSchema").count(), 2);
}
