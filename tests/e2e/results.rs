//! Malformed results of tools, and the host's handling of them.
//!
//! Promise: a guest's JSON cannot forge a frame.

use serde_json::{Value, json};
use toolcell_tests::{LEGACY_REVISIONS, TestHost};

#[test]
fn structured_content_that_is_none_becomes_an_error() {
    let mut host = TestHost::serving(&["good", "liar"]);
    let not_json = |why: &str| format!("the tool returned an invalid result: structured-json is not JSON: {why}");
    let unusable = |tool: &str, why: &str| format!("The result of {tool} is unusable: its {why}");
    let unfit =
        |tool: &str, why: &str| unusable(tool, &format!("structured content does not fit its output schema:\n- {why}"));
    let meta =
        |field: &str, why: &str| format!("the tool returned an invalid result: {field} is not a JSON object{why}");
    for (tool, expected) in [
        ("not_json", not_json("key must be a string at line 1 column 2")),
        ("two_values", not_json("trailing characters at line 1 column 12")),
        ("empty_json", not_json("EOF while parsing a value at line 1 column 0")),
        (
            "number_too_large",
            unusable(
                "number_too_large",
                "structured content cannot be taken: a number at byte 9 is too large for a 64-bit float",
            ),
        ),
        (
            "lone_surrogate",
            unusable("lone_surrogate", "structured content cannot be taken: an unpaired surrogate at byte 10"),
        ),
        ("twice_the_key", unusable("twice_the_key", "structured content has the key \"count\" twice in one object")),
        ("wrong_type", unfit("wrong_type", "(root): must be of type object")),
        ("non_conforming", unfit("non_conforming", "/count: must be at least 1")),
        (
            "nothing_structured",
            unusable("nothing_structured", "output schema asks for structured content, and there is none"),
        ),
        ("broken_meta", meta("meta-json", ": EOF while parsing an object at line 1 column 1")),
        ("array_meta", meta("meta-json", ", but an array")),
        ("content_meta", meta("meta-json of content item 0", ", but a number")),
    ] {
        assert_eq!(host.call(tool, json!({})).error_text(), expected, "{tool}");
        host.still_works();
    }
}

#[test]
fn structured_content_may_nest_as_deep_as_a_frame_but_no_deeper() {
    let mut host = TestHost::serving(&["good", "hungry"]);
    assert_eq!(host.call("deep_structured", json!({"depth": 100})).text(), "[".repeat(100) + &"]".repeat(100));
    let expected = "The result of deep_structured is unusable: its structured content cannot be taken: nested deeper than 120 levels at byte 120";
    for depth in [200, 30_000] {
        assert_eq!(host.call("deep_structured", json!({"depth": depth})).error_text(), expected);
        host.still_works();
    }
}

#[test]
fn an_error_needs_no_structured_content() {
    let mut host = TestHost::serving(&["good", "liar"]);
    assert_eq!(host.call("error_without", json!({})).error_text(), "no count today");
}

#[test]
fn line_breaks_in_json_do_not_split_a_frame() {
    let mut host = TestHost::serving(&["good", "liar"]);
    let answer = host.call("line_break", json!({}));
    assert_eq!(answer.structured(), &json!({"count": 1, "next": 2}));
    assert_eq!(answer.result()["_meta"]["a"], 1);
    assert_eq!(host.call("frames", json!({})).text(), "\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    host.still_works();
    assert_eq!(host.kept(), [Value::Null; 0]);
}

#[test]
fn odd_annotations_are_not_passed_on() {
    let mut host = TestHost::serving(&["good", "liar"]);
    for tool in ["priority", "priority_nan", "date"] {
        let answer = host.call(tool, json!({}));
        assert_eq!(answer.text(), "fine");
        let annotations = &answer.result()["content"][0]["annotations"];
        let priority = annotations.get("priority").map_or(0.0, |priority| priority.as_f64().unwrap());
        assert!((0.0..=1.0).contains(&priority), "{tool}: {annotations}");
    }
    for tool in ["mime_type", "uri", "nothing"] {
        let answer = host.call(tool, json!({}));
        assert!(answer.result()["content"].is_array(), "{tool}: {}", answer.reply());
        host.still_works();
    }
}

#[test]
fn what_a_tool_says_to_the_model_is_passed_on_as_it_is() {
    let mut host = TestHost::serving(&["good", "liar", "quitter"]);
    let text = host.call("escapes", json!({})).text().to_owned();
    assert_eq!(text, "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{202e}evil\u{202c} zero\u{200b}width\u{0}");
    assert_eq!(host.call("failed_with_escapes", json!({})).error_text(), "\u{1b}[31mred\u{1b}[0m alert\u{7}");
    for revision in LEGACY_REVISIONS {
        let mut host = TestHost::serving(&["liar"]);
        host.initialize(revision);
        assert_eq!(host.call("escapes", json!({})).text(), text, "{revision}");
    }
}
