//! The answers to malformed input: exactly one, or none if none is due, and the connection lives.

use crate::host::{Client, MODERN, error, legacy_text_result, no_id, text_result};

#[test]
fn an_id_that_appears_twice_beside_another_key_is_not_echoed() {
    for frame in [
        r#"{"jsonrpc":"2.0","id":"x","jsonrpc":"1.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"ping"}"#,
        r#"{"params":{"a":1,"a":2},"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#,
        r#"{"extra":{"a":1,"a":2},"jsonrpc":"2.0","id":1,"method":"ping","id":1}"#,
    ] {
        assert_eq!(Client::new().ask(frame), error("", -32600, "Duplicate key: id"), "{frame}");
        for revision in ["2025-06-18", "2025-11-25"] {
            let expected = error(no_id(revision), -32600, "Duplicate key: id");
            assert_eq!(Client::legacy(revision).ask(frame), expected, "{frame}");
        }
    }
}

/// Frames that are refused in every era, with code and message; no id could be read unless given.
#[test]
fn what_is_not_a_request_gets_its_error_in_every_era() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"a":{deep}}}}}}}"#
    );
    let table: &[(&str, &str, i32, &str)] = &[
        // Not JSON that this host reads.
        ("garbage", "", -32700, "Parse error: not valid JSON at byte 0"),
        ("{", "", -32700, "Parse error: not valid JSON at byte 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, "", -32700, "Parse error: not valid JSON at byte 40"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, "", -32700, "Parse error: not valid JSON at byte 40"),
        (r#"{'jsonrpc':"2.0"}"#, "", -32700, "Parse error: not valid JSON at byte 1"),
        (r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, "", -32700, "Parse error: not valid JSON at byte 23"),
        (r#"{"jsonrpc":"2.0","id":+1,"method":"ping"}"#, "", -32700, "Parse error: not valid JSON at byte 22"),
        (r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#, "", -32700, "Parse error: not valid JSON at byte 22"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\tb\",\"method\":\"ping\"}",
            "",
            -32700,
            "Parse error: not valid JSON at byte 24",
        ),
        // One mark at the start is passed over, and no other.
        ("\u{feff}{}", "", -32600, r#"The member jsonrpc must be "2.0""#),
        ("\u{feff}\u{feff}{}", "", -32700, "Parse error: not valid JSON at byte 0"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e400}}"#,
            "1",
            -32602,
            "The request cannot be taken: a number at byte 54 is too large for a 64-bit float",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-1E+999}}"#,
            "1",
            -32602,
            "The request cannot be taken: a number at byte 54 is too large for a 64-bit float",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\ud800"}}"#,
            "1",
            -32602,
            "The request cannot be taken: an unpaired surrogate at byte 55",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\ude00\ud83d"}}"#,
            "1",
            -32602,
            "The request cannot be taken: an unpaired surrogate at byte 55",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\ud83dx"}}"#,
            "1",
            -32602,
            "The request cannot be taken: an unpaired surrogate at byte 55",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\x41"}}"#,
            "",
            -32700,
            "Parse error: not valid JSON at byte 56",
        ),
        (&deep_arguments, "1", -32602, "The request cannot be taken: nested deeper than 128 levels at byte 212"),
        (
            r#"{"jsonrpc":"2.0","method":"ping","params":{"\ud800":"\ud83d\ud83d\ude00"},"id":1}"#,
            "1",
            -32602,
            "The request cannot be taken: an unpaired surrogate at byte 44",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"\ud800","id":1}"#,
            "1",
            -32602,
            "The request cannot be taken: an unpaired surrogate at byte 27",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1e400}"#,
            "1",
            -32602,
            "The request cannot be taken: a number at byte 44 is too large for a 64-bit float",
        ),
        // JSON, but not a message.
        ("1", "", -32600, "A message is one JSON object"),
        ("1e400", "", -32600, "A message is one JSON object"),
        ("null", "", -32600, "A message is one JSON object"),
        (r#""ping""#, "", -32600, "A message is one JSON object"),
        ("{}", "", -32600, r#"The member jsonrpc must be "2.0""#),
        (r#"{"id":1,"method":"ping"}"#, "1", -32600, r#"The member jsonrpc must be "2.0""#),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "1", -32600, r#"The member jsonrpc must be "2.0""#),
        (r#"{"jsonrpc":2.0,"id":"x","method":"ping"}"#, r#""x""#, -32600, r#"The member jsonrpc must be "2.0""#),
        (r#"{"jsonrpc":"2.0","id":1}"#, "1", -32600, "The member method is missing"),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, "1", -32600, "The member method is missing"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1", -32600, "The member method must be a string"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            "1",
            -32600,
            "A message has either a method or a result",
        ),
        // Ids.
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":1e-1,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":9007199254740992.5,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":-9007199254740993,"method":"ping"}"#, "", -32600, ID),
        (r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, "", -32600, ID),
        // Duplicate keys outside the params.
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, "1", -32600, "Duplicate key: method"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "", -32600, "Duplicate key: id"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"x"}"#, "1", -32600, "Duplicate key: method"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#, "1", -32600, "Duplicate key: params"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":{"a":1,"a":2}}"#, "1", -32600, "Duplicate key: a"),
        // Params that are not an object.
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, "1", -32602, "The params must be an object"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, "1", -32602, "The params must be an object"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":7}}"#,
            "1",
            -32602,
            "The member _meta must be an object",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":1}}"#, "1", -32602, "Duplicate key: a"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1,"a":1}}}"#,
            "1",
            -32602,
            "Duplicate key: a",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":{"x":[{"a":1,"b":2,"a":1}]}}}"#,
            "1",
            -32602,
            "Duplicate key: a",
        ),
    ];
    let legacy = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let clients = legacy.map(|revision| (Client::legacy(revision), no_id(revision)));
    for (client, no_id) in std::iter::once((Client::new(), "")).chain(clients) {
        for (frame, id, code, message) in table {
            let id = if id.is_empty() { no_id } else { id };
            assert_eq!(client.ask(frame), error(id, *code, message), "{frame:.200}");
            client.expect_silence();
        }
    }
}

const ID: &str = "The id must be a string or an integer within ±2^53";

#[test]
fn bytes_that_are_not_utf8_are_a_parse_error() {
    let client = Client::new();
    client.connection.receive(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}");
    assert_eq!(client.next(), error("", -32700, "Parse error: not valid UTF-8"));
    client.expect_silence();
}

#[test]
fn a_frame_full_of_keys_the_protocol_has_no_use_for_is_refused() {
    let keys: Vec<String> = (0..2_000).map(|number| format!(r#""k{number}":0"#)).collect();
    let keys = keys.join(",");
    let client = Client::new();
    let refused =
        |id| error(id, -32602, "The request cannot be taken: more than 1024 members in the envelope, params and _meta");
    let answer = client.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{{keys}}}}}"#));
    assert_eq!(answer, refused("1"));
    let answer = client.ask(&format!(r#"{{{keys},"jsonrpc":"2.0","method":"ping","id":1}}"#));
    assert_eq!(answer, refused("1"), "the id behind them");
    let answer = client.ask(&format!(r#"{{{keys},"id":1,"id":2,"id":3}}"#));
    assert_eq!(answer, error("", -32600, "Duplicate key: id"));
    client.expect_silence();
}

/// Clients in Go, Java and C# write `null` for members that they leave out.
#[test]
fn null_in_an_optional_member_is_its_absence() {
    let legacy = Client::legacy("2025-06-18");
    let same = |with: &str, without: &str| {
        let ask = |rest: &str| legacy.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#));
        assert_eq!(ask(with), ask(without), "{with}");
    };
    same(r#""method":"ping","params":null"#, r#""method":"ping""#);
    same(r#""method":"ping","params":{"_meta":null}"#, r#""method":"ping""#);
    same(r#""method":"ping","result":null,"error":null"#, r#""method":"ping""#);
    for params in ["null", r#"{"cursor":null}"#, r#"{"cursor":""}"#, r#"{"_meta":null}"#] {
        same(&format!(r#""method":"tools/list","params":{params}"#), r#""method":"tools/list""#);
    }
    let call = r#""method":"tools/call","params":{"name":"echo"}"#;
    for more in [r#""arguments":null"#, r#""_meta":null"#, r#""_meta":{"progressToken":null}"#, r#""task":null"#] {
        same(&format!(r#""method":"tools/call","params":{{"name":"echo",{more}}}"#), call);
    }
    let initialized = |client: &str| {
        let params = format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{{{client}}},"clientInfo":"#);
        legacy.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}{{"name":"c","version":"1","title":null}},"_meta":null}}}}"#
        ))
    };
    assert_eq!(initialized(r#""elicitation":null,"sampling":null,"roots":null,"experimental":null"#), initialized(""));
    for notification in [r#""params":null"#, r#""id":null"#, r#""params":{"_meta":null},"id":null"#] {
        legacy.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/initialized",{notification}}}"#));
        legacy.expect_silence();
    }
    // Required members stay so.
    for (rest, message) in [
        (r#""method":"tools/call","params":{"name":null}"#, "params.name must be a string"),
        (r#""method":"logging/setLevel","params":{"level":null}"#, "params.level is missing"),
    ] {
        assert_eq!(legacy.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#)), error("1", -32602, message));
    }
    let modern = Client::new();
    for more in [r#""arguments":null,"#, r#""requestState":null,"#, r#""inputResponses":null,"#] {
        let answer = modern.ask_modern(1, "tools/call", &format!(r#""name":"echo",{more}"#));
        assert_eq!(answer, text_result("1", "{}"), "{more}");
    }
}

#[test]
fn error_messages_are_one_line() {
    let client = Client::new();
    let answer = client.ask_modern(1, "tools/call", r#""name":"a\nb\r\n\u001b[31mc","#);
    assert_eq!(answer, error("1", -32602, "Unknown tool: a b c"));
    let answer = client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a\n":1,"a\n":2}}"#);
    assert_eq!(answer, error("1", -32602, "Duplicate key: a "));
}

#[test]
fn what_asks_for_no_answer_gets_none() {
    let client = Client::new();
    for frame in [
        "",
        "   \t\r",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
    ] {
        client.send(frame);
        client.expect_silence();
    }
}

#[test]
fn ids_come_back_exactly() {
    let client = Client::new();
    for id in [
        "0",
        "1",
        "-1",
        "9007199254740992",
        "-9007199254740992",
        r#""""#,
        r#""1""#,
        r#""null""#,
        r#""a b/c\"d\\e""#,
        r#""é😀""#,
    ] {
        let answer = client.ask(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    for (written, echoed) in [("1.0", "1"), ("-2.000", "-2"), ("1e3", "1000"), ("90e-1", "9"), ("-0.0", "0")] {
        let answer = client.ask(&format!(r#"{{"jsonrpc":"2.0","id":{written},"method":"ping"}}"#));
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{echoed},"result":{{}}}}"#), "the same integer");
    }
    let escaped = client.ask(r#"{"jsonrpc":"2.0","id":"\u0061\u0007","method":"ping"}"#);
    assert_eq!(escaped, r#"{"jsonrpc":"2.0","id":"a\u0007","result":{}}"#, "the same string, escaped as it must be");
}

#[test]
fn params_that_do_not_fit_a_call_are_invalid_params() {
    let table = [
        ("", "params.name must be a string"),
        (r#""name":7,"#, "params.name must be a string"),
        (r#""name":null,"#, "params.name must be a string"),
        (r#""name":"nope","#, "Unknown tool: nope"),
        (r#""name":"Echo","#, "Unknown tool: Echo"),
        (r#""name":"echo","arguments":[],"#, "params.arguments must be an object"),
        (r#""name":"echo","arguments":"{}","#, "params.arguments must be an object"),
        (r#""name":"echo","arguments":{"n":1,"n":2},"#, "Duplicate key: n"),
        (r#""name":"echo","name":"echo","#, "Duplicate key: name"),
    ];
    let modern = Client::new();
    let legacy = Client::legacy("2025-06-18");
    for (params, message) in table {
        assert_eq!(modern.ask_modern(5, "tools/call", params), error("5", -32602, message), "{params}");
        let params = params.trim_end_matches(',');
        let frame = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{{params}}}}}"#);
        assert_eq!(legacy.ask(&frame), error("5", -32602, message), "{params}");
    }
    let without = r#"{"jsonrpc":"2.0","id":6,"method":"tools/call"}"#;
    assert_eq!(legacy.ask(without), error("6", -32602, "params.name must be a string"));
    let long = format!(r#""name":"{}","#, "é".repeat(500));
    let shown = format!("Unknown tool: {}…", "é".repeat(128));
    assert_eq!(modern.ask_modern(7, "tools/call", &long), error("7", -32602, &shown));
}

#[test]
fn metadata_of_the_wrong_type_is_invalid_params() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let level = "io.modelcontextprotocol/logLevel must be one of debug, info, notice, warning, error, critical, alert, emergency";
    let table = [
        (
            r#""io.modelcontextprotocol/protocolVersion":7"#.to_owned(),
            "io.modelcontextprotocol/protocolVersion must be a string",
        ),
        (version.to_owned(), "Missing in params._meta: io.modelcontextprotocol/clientCapabilities"),
        (
            format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":[]"#),
            "io.modelcontextprotocol/clientCapabilities must be an object",
        ),
        (
            format!(r#"{version},{capabilities},"io.modelcontextprotocol/clientInfo":"x""#),
            "io.modelcontextprotocol/clientInfo must be an object with a name and a version",
        ),
        (format!(r#"{version},{capabilities},"io.modelcontextprotocol/logLevel":"loud""#), level),
        (format!(r#"{version},{capabilities},"io.modelcontextprotocol/logLevel":3"#), level),
        (
            format!(r#"{version},{capabilities},"progressToken":1.5"#),
            "progressToken must be a string or an integer within ±2^53",
        ),
        (
            format!(r#"{version},{capabilities},"progressToken":"{}""#, "x".repeat(1_025)),
            "progressToken must have at most 1024 bytes",
        ),
        (
            format!(r#"{version},{capabilities},"a/b":"{}""#, "x".repeat(65_536)),
            "params._meta has more than 65536 bytes besides the protocol's own keys",
        ),
    ];
    let client = Client::new();
    for (meta, message) in table {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","_meta":{{{meta}}}}}}}"#
        );
        assert_eq!(client.ask(&frame), error("1", -32602, message), "{meta}");
    }
}

#[test]
fn odd_but_legal_input_is_served() {
    let client = Client::new();
    let spaced = format!(
        "  {{ \"method\" : \"tools/call\" ,\t\"params\" : {{ \"name\" : \"echo\" , \"arguments\" : {{ \"s\" : \"\\ud83d\\ude00\\u0000\" }} , {MODERN} }} , \"id\" : 1 , \"jsonrpc\" : \"2.0\" , \"extra\" : null }}\r"
    );
    assert_eq!(client.ask(&spaced), text_result("1", r#"{ "s" : "\ud83d\ude00\u0000" }"#));
    let tasked = client.ask_modern(2, "tools/call", r#""name":"echo","task":{"ttl":1},"unknown":[1,2],"#);
    assert_eq!(tasked, text_result("2", "{}"));
    let legacy = Client::legacy("2025-11-25");
    legacy.call_legacy(3, "echo", r#"{"big":12345678901234567890123,"exact":0.1}"#);
    assert_eq!(legacy.next(), legacy_text_result("3", r#"{"big":12345678901234567890123,"exact":0.1}"#));
    let deep = format!("{}{}", "[".repeat(125), "]".repeat(125));
    legacy.call_legacy(4, "echo", &format!(r#"{{"a":{deep}}}"#));
    assert_eq!(legacy.next(), legacy_text_result("4", &format!(r#"{{"a":{deep}}}"#)));
}
