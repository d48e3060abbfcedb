//! Malformed frames: the exact answer to each, and a process that lives on.
//!
//! Promise: a hostile client cannot stop the process.

use serde_json::{Value, json};
use toolcell_tests::{LEGACY_REVISIONS, MODERN_REVISION, TestHost};

/// The bytes that the client sends, and all frames that come back before the answer to a `ping`
/// sent after them.
type Row = (Vec<u8>, Vec<Value>);

/// The answer to a frame of this id; `null` where none could be read, and the answer has none.
fn error(id: Value, code: i32, message: &str) -> Vec<Value> {
    let mut answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    if id.is_null() {
        answer.as_object_mut().unwrap().remove("id");
    }
    vec![answer]
}

/// An answer as a client gets it whose revision wants an id.
fn with_null(mut answers: Vec<Value>) -> Vec<Value> {
    for answer in &mut answers {
        let answer = answer.as_object_mut().unwrap();
        answer.entry("id").or_insert(Value::Null);
    }
    answers
}

fn parse_error(why: &str) -> Vec<Value> {
    error(Value::Null, -32700, &format!("Parse error: {why}"))
}

/// The answer to a request of id 1 that is JSON and cannot be taken.
fn untaken(why: &str) -> Vec<Value> {
    error(json!(1), -32602, &format!("The request cannot be taken: {why}"))
}

fn no_request(id: Value, why: &str) -> Vec<Value> {
    error(id, -32600, why)
}

fn pong(id: Value) -> Vec<Value> {
    vec![json!({"jsonrpc": "2.0", "id": id, "result": {}})]
}

/// Sends each row on one host, then makes a call, which must work.
fn are_answered(mut host: TestHost, rows: Vec<Row>) {
    for (line, expected) in rows {
        let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
        let answers = host.all_that_comes_after(&line);
        assert_eq!(answers, expected, "{shown}");
        // Messages are for people who write clients in any language.
        let said = serde_json::to_string(&answers).unwrap();
        for words in ["invalid type", "missing field", "unknown field", "unknown variant", "ill-typed"] {
            assert!(!said.contains(words), "{words} in {said}");
        }
    }
    host.still_works();
}

fn text_rows(rows: &[(&str, Vec<Value>)]) -> Vec<Row> {
    rows.iter().map(|(line, expected)| (line.as_bytes().to_vec(), expected.clone())).collect()
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    let rows = text_rows(&[
        ("{", parse_error("not valid JSON at byte 1")),
        ("hello", parse_error("not valid JSON at byte 0")),
        ("{'jsonrpc':'2.0'}", parse_error("not valid JSON at byte 1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, parse_error("not valid JSON at byte 40")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, parse_error("not valid JSON at byte 40")),
        (r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, parse_error("not valid JSON at byte 23")),
        (r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#, parse_error("not valid JSON at byte 22")),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"\u{1}\",\"method\":\"ping\"}", parse_error("not valid JSON at byte 23")),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", pong(json!(1))),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
            parse_error("not valid JSON at byte 41"),
        ),
    ]);
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn an_answer_to_what_has_no_readable_id_has_the_id_that_the_revision_wants() {
    for revision in LEGACY_REVISIONS {
        let mut host = TestHost::serving(&["good"]);
        host.initialize(revision);
        for (line, answers) in [
            ("{", parse_error("not valid JSON at byte 1")),
            ("7", no_request(Value::Null, "A message is one JSON object")),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                no_request(Value::Null, "The id must be a string or an integer within ±2^53"),
            ),
            (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, no_request(json!(4), "The member jsonrpc must be \"2.0\"")),
        ] {
            let expected = if revision < "2025-11-25" { with_null(answers) } else { answers };
            assert_eq!(host.all_that_comes_after(line.as_bytes()), expected, "{revision}: {line}");
        }
    }
}

#[test]
fn what_is_not_utf8_is_a_parse_error() {
    let with =
        |bytes: &[u8]| [b"{\"jsonrpc\":\"2.0\",\"id\":\"".as_slice(), bytes, b"\",\"method\":\"ping\"}"].concat();
    let invalid = parse_error("not valid UTF-8");
    let rows = vec![
        (with(b"\xff"), invalid.clone()),
        (with(b"\xc0\x80"), invalid.clone()),
        (with(b"\xed\xa0\x80"), invalid.clone()),
        (with(b"\xf4\x90\x80\x80"), invalid.clone()),
        (b"\xff\xfe{\0}\0".to_vec(), invalid),
        (with("\u{1f980}".as_bytes()), pong(json!("\u{1f980}"))),
    ];
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn empty_lines_are_no_frames() {
    are_answered(TestHost::serving(&["good"]), text_rows(&[("", vec![]), ("\r", vec![]), ("  \t ", vec![])]));
}

#[test]
fn a_line_may_end_as_windows_ends_it() {
    are_answered(
        TestHost::serving(&["good"]),
        text_rows(&[("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", pong(json!(1)))]),
    );
}

#[test]
fn a_key_twice_is_refused_wherever_it_is() {
    let in_params = |id| error(json!(id), -32602, "Duplicate key: name");
    let mut rows = text_rows(&[
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, no_request(json!(1), "Duplicate key: method")),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, no_request(Value::Null, "Duplicate key: id")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":{"a":1,"a":2}}"#, no_request(json!(1), "Duplicate key: a")),
        // The key is the same, spelled differently.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"x"}"#,
            no_request(json!(1), "Duplicate key: method"),
        ),
    ]);
    let meta = toolcell_tests::modern_meta();
    for (id, params) in [
        (2, format!(r#"{{"name":"echo","name":"add","_meta":{meta}}}"#)),
        (3, format!(r#"{{"name":"echo","arguments":{{"name":"a","name":"b"}},"_meta":{meta}}}"#)),
        (4, format!(r#"{{"name":"echo","arguments":{{"x":[{{"name":"a","name":"b"}}]}},"_meta":{meta}}}"#)),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        rows.push((line.into_bytes(), in_params(id)));
    }
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn what_is_json_and_no_request_is_an_invalid_request() {
    let object = || no_request(Value::Null, "A message is one JSON object");
    let version = |id| no_request(id, "The member jsonrpc must be \"2.0\"");
    are_answered(
        TestHost::serving(&["good"]),
        text_rows(&[
            ("7", object()),
            ("null", object()),
            ("\"ping\"", object()),
            ("true", object()),
            ("{}", version(Value::Null)),
            (r#"{"id":1,"method":"ping"}"#, version(json!(1))),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, version(json!(1))),
            (r#"{"jsonrpc":2.0,"id":"a","method":"ping"}"#, version(json!("a"))),
            (r#"{"JSONRPC":"2.0","id":1,"method":"ping"}"#, version(json!(1))),
            (r#"{"jsonrpc":"2.0","id":1}"#, no_request(json!(1), "The member method is missing")),
            (r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#, no_request(json!(1), "The member method is missing")),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, no_request(json!(1), "The member method must be a string")),
            (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, no_request(json!(1), "The member method is missing")),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
                no_request(json!(1), "A message has either a method or a result"),
            ),
        ]),
    );
}

#[test]
fn params_of_the_wrong_type_are_invalid_params() {
    let params = |id: i32| error(json!(id), -32602, "The params must be an object");
    are_answered(
        TestHost::serving(&["good"]),
        text_rows(&[
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, params(1)),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":"x"}"#, params(2)),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":null}"#, pong(json!(3))),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":7}}"#,
                error(json!(4), -32602, "The member _meta must be an object"),
            ),
        ]),
    );
}

#[test]
fn ids_echo_exactly_or_are_refused() {
    let frame = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into_bytes();
    let mut rows = Vec::new();
    for id in [
        json!(0),
        json!(-1),
        json!(1),
        json!(9_007_199_254_740_992_i64),
        json!(-9_007_199_254_740_992_i64),
        json!(""),
        json!("a"),
        json!("1"),
        json!("null"),
        json!("\u{0}\n\"\\/"),
        json!("\u{1f980}"),
        json!("x".repeat(1000)),
    ] {
        rows.push((frame(&id.to_string()), pong(id)));
    }
    for (written, echoed) in [("1.0", 1), ("-7.000", -7), ("1e3", 1_000), ("50e-1", 5)] {
        rows.push((frame(written), pong(json!(echoed))));
    }
    let longest = json!("x".repeat(1_024));
    rows.push((frame(&longest.to_string()), pong(longest)));
    let too_long = no_request(Value::Null, "The id must have at most 1024 bytes");
    rows.push((frame(&json!("x".repeat(1_025)).to_string()), too_long));
    let refused = no_request(Value::Null, "The id must be a string or an integer within ±2^53");
    for id in [
        "null",
        "true",
        "{}",
        "[]",
        "[1]",
        "1.5",
        "1e-3",
        "9007199254740992.5",
        "9007199254740993",
        "-9007199254740993",
        "18446744073709551616",
        "100000000000000000000000000",
    ] {
        rows.push((frame(id), refused.clone()));
    }
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn numbers_and_surrogates_that_nobody_can_hold_are_refused_under_their_id() {
    let call =
        |text: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{text}}}}}"#).into_bytes();
    let number = untaken("a number at byte 54 is too large for a 64-bit float");
    let surrogate = untaken("an unpaired surrogate at byte 55");
    let rows = vec![
        (call("1e400"), number.clone()),
        (call("-1e400"), number.clone()),
        (call(&"9".repeat(400)), number),
        (call("1e308"), pong(json!(1))),
        (call("1e-400"), pong(json!(1))),
        (call(r#""\ud800""#), surrogate.clone()),
        (call(r#""\udc00""#), surrogate.clone()),
        (call(r#""\ud800\ud800""#), surrogate),
        (call(r#""\ud83e\udd80""#), pong(json!(1))),
    ];
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn three_thousand_levels_of_nesting_are_refused() {
    let nested = |depth: usize, open: &str, inner: &str, close: &str| {
        let open = open.repeat(depth);
        let close = close.repeat(depth);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{open}{inner}{close}}}}}"#).into_bytes()
    };
    let refused = untaken("nested deeper than 128 levels at byte 180");
    let in_objects = untaken("nested deeper than 128 levels at byte 684");
    let rows = vec![
        (nested(3000, "[", "", "]"), refused.clone()),
        (nested(3000, "{\"a\":", "1", "}"), in_objects),
        (nested(1_000_000, "[", "", "]"), refused.clone()),
        ("[".repeat(3000).into_bytes(), parse_error("not valid JSON at byte 3000")),
        (nested(127, "[", "", "]"), refused),
        (nested(126, "[", "", "]"), pong(json!(1))),
    ];
    are_answered(TestHost::serving(&["good"]), rows);
}

#[test]
fn a_line_of_fifty_megabytes_is_refused_and_not_kept() {
    let mut host = TestHost::serving(&["good"]);
    host.still_works();
    let before = host.resident_bytes();
    let block = vec![b'x'; 1 << 20];
    host.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"");
    for _ in 0..50 {
        host.send_bytes(&block);
    }
    let replies = host.all_that_comes_after(b"\"}}");
    assert_eq!(replies, error(json!(1), -32600, "The message is longer than 16777216 bytes"));
    let grown = host.resident_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "the host grew by {grown} bytes");
    host.still_works();
}

#[test]
fn batches_are_of_one_revision_only() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#;
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::serving(&["good"]);
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let replies = host.all_that_comes_after(batch);
        if revision == "2025-03-26" {
            let [one, two] = [pong(json!(1)), pong(json!("b"))].map(|mut replies| replies.remove(0));
            assert_eq!(replies, [json!([one, two])], "{revision}");
        } else {
            let [reply] = replies.as_slice() else { panic!("{revision}: {replies:?}") };
            let id = (revision < "2025-11-25").then_some(&Value::Null);
            assert_eq!((reply.get("id"), &reply["error"]["code"]), (id, &json!(-32600)), "{revision}: {reply}");
        }
        host.still_works();
    }
}

#[test]
fn the_odd_batches_of_the_revision_that_has_them() {
    let mut host = TestHost::serving(&["good"]);
    host.initialize("2025-03-26");
    let object = || with_null(no_request(Value::Null, "A message is one JSON object")).remove(0);
    let rows = text_rows(&[
        ("[]", with_null(no_request(Value::Null, "An empty batch asks for nothing"))),
        (r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#, vec![]),
        ("[1,[]]", vec![json!([object(), object()])]),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#, vec![json!([pong(json!(1)).remove(0), object()])]),
    ]);
    for (line, expected) in rows {
        assert_eq!(host.all_that_comes_after(&line), expected, "{}", String::from_utf8_lossy(&line));
    }
    let call = |id: i32, text: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}});
    host.send(&json!([call(10, "one"), call(11, "two")]));
    let mut texts: Vec<(i64, String)> = host
        .receive()
        .as_array()
        .expect("one array answers a batch")
        .iter()
        .map(|reply| {
            (reply["id"].as_i64().unwrap(), reply["result"]["content"][0]["text"].as_str().unwrap().to_owned())
        })
        .collect();
    texts.sort();
    assert_eq!(texts, [(10, "one".to_owned()), (11, "two".to_owned())]);
    host.still_works();
}

#[test]
fn notifications_and_responses_before_any_era_are_ignored() {
    are_answered(
        TestHost::serving(&["good"]),
        text_rows(&[
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#, vec![]),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, vec![]),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, vec![]),
            (r#"{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":[1]}"#, vec![]),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, vec![]),
            (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#, vec![]),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, vec![]),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, vec![]),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, vec![]),
        ]),
    );
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let mut host = TestHost::serving(&["good", "loops"]);
    let id = host.start_call("sleep_hour", json!({}));
    let params = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": toolcell_tests::modern_meta()});
    let again = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let replies = host.all_that_comes_after(again.to_string().as_bytes());
    let [reply] = replies.as_slice() else { panic!("{replies:?}") };
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
    host.still_works();
}

#[test]
fn long_names_are_not_repeated_in_full() {
    let mut host = TestHost::serving(&["good"]);
    let long = "x".repeat(100_000);
    for (method, params) in [("tools/call", json!({"name": long, "arguments": {}})), (long.as_str(), json!({}))] {
        let reply = host.request(method, params);
        assert!(reply.to_string().len() < 1000, "{} bytes", reply.to_string().len());
    }
    host.still_works();
}
