//! Arrays of messages: only revision 2025-03-26 accepts them.

use crate::host::{Client, MODERN, error, legacy_text_result, no_id};

#[test]
fn only_revision_2025_03_26_takes_batches() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let refused = |id: &str| error(id, -32600, "Only revision 2025-03-26 has batches");
    assert_eq!(Client::new().ask(batch), refused(""), "before any era is known");
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(Client::legacy(revision).ask(batch), refused(no_id(revision)), "{revision}");
    }
    let modern = format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{MODERN}}}}}]"#);
    assert_eq!(Client::new().ask(&modern), refused(""));
    assert_eq!(Client::legacy("2025-03-26").ask(batch), r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#);
}

#[test]
fn a_batch_is_answered_by_one_array_with_an_answer_for_each_request() {
    let client = Client::legacy("2025-03-26");
    let answer = client.ask(
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},
            {"jsonrpc":"2.0","method":"notifications/unheard-of"},
            7,
            {"jsonrpc":"2.0","id":2,"method":"nope"},
            {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{}}},
            {"jsonrpc":"2.0","id":4,"result":{}}]"#,
    );
    let mut answers: Vec<String> =
        serde_json::from_str::<Vec<serde_json::Value>>(&answer).unwrap().iter().map(ToString::to_string).collect();
    let mut expected = vec![
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        error("null", -32600, "A message is one JSON object"),
        error("2", -32601, "Method not found: nope"),
        legacy_text_result("3", "{}"),
    ];
    answers.sort();
    expected.sort();
    assert_eq!(answers, expected);
    client.expect_silence();
}

#[test]
fn a_batch_that_asks_for_nothing_gets_nothing_and_an_empty_one_an_error() {
    let client = Client::legacy("2025-03-26");
    client.send(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":4,"result":{}}]"#);
    client.expect_silence();
    assert_eq!(client.ask("[]"), error("null", -32600, "An empty batch asks for nothing"));
    assert_eq!(client.ask("[[]]"), format!("[{}]", error("null", -32600, "A message is one JSON object")));
    let many = format!("[{}]", vec!["1"; 1_001].join(","));
    assert_eq!(client.ask(&many), error("null", -32600, "A batch holds at most 1000 messages"));
}

#[test]
fn what_a_batch_may_not_hold_is_refused_in_its_place() {
    let client = Client::legacy("2025-03-26");
    let answer = client.ask(&format!(
        r#"[{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{}}}},{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{MODERN}}}}}]"#
    ));
    let expected = format!(
        "[{},{}]",
        error("1", -32600, "A batch cannot hold initialize"),
        error("2", -32600, "Only revision 2025-03-26 has batches")
    );
    assert_eq!(answer, expected);
}

#[test]
fn a_cancelled_entry_is_left_out_and_does_not_hold_up_the_rest() {
    let client = Client::legacy("2025-03-26");
    let hold = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"hold"}}}}"#);
    client.send(&format!("[{},{}]", hold(1), hold(2)));
    client.expect_begun("hold");
    client.expect_begun("hold");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), format!("[{}]", legacy_text_result("2", "held")));

    client.send(&format!("[{}]", hold(3)));
    client.expect_begun("hold");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
    client.expect_silence();
}

#[test]
fn replies_that_are_too_long_together_become_errors() {
    let client = Client::legacy("2025-03-26");
    let big = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"big","arguments":{{"bytes":9000000}}}}}}"#
        )
    };
    let answer = client.ask(&format!("[{},{}]", big(1), big(2)));
    assert!(answer.len() < 16 * 1024 * 1024);
    let answers: Vec<serde_json::Value> = serde_json::from_str(&answer).unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.get("result").is_some()).count(), 1);
    let refused = answers.iter().find_map(|answer| answer["error"]["message"].as_str());
    assert_eq!(refused, Some("The replies to this batch are too long together"));
}
