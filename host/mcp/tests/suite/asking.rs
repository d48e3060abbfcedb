//! Asking the client while a call runs: by request in the legacy era, in rounds in the modern one.

use serde_json::{Value, json};
use toolcell_mcp::{ServerOptions, StateKey};

use crate::host::{Client, error, legacy_text_result};

const EVERYTHING: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

fn name_form() -> Value {
    json!({"form": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}})
}

fn poem() -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": "A poem"}});
    json!({"sampling": {"messages": [message], "maxTokens": 50}})
}

fn parse(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

fn legacy_ask(client: &Client, id: u32, rounds: &Value) {
    client.call_legacy(id, "ask", &json!({"rounds": rounds}).to_string());
}

fn reply(client: &Client, id: &str, result: &Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

/// A modern call of `ask` with these params besides its name.
struct ModernCall<'c> {
    client: &'c Client,
    capabilities: Value,
    params: Value,
}

impl<'c> ModernCall<'c> {
    fn new(client: &'c Client, rounds: &Value) -> Self {
        let params = json!({"name": "ask", "arguments": {"rounds": rounds}});
        Self { client, capabilities: parse(EVERYTHING), params }
    }

    fn with(mut self, key: &str, value: &Value) -> Self {
        self.params[key] = value.clone();
        self
    }

    fn argument(mut self, key: &str, value: &Value) -> Self {
        self.params["arguments"][key] = value.clone();
        self
    }

    fn declaring(mut self, capabilities: &Value) -> Self {
        self.capabilities = capabilities.clone();
        self
    }

    fn answer(mut self) -> Value {
        self.params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": self.params});
        parse(&self.client.ask(&frame.to_string()))
    }

    fn text(self) -> String {
        let answer = self.answer();
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Asks once, and returns the state that comes with the questions.
    fn state(self) -> Value {
        let answer = self.answer();
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        answer["result"]["requestState"].clone()
    }

    fn refusal(self) -> (i64, String) {
        let answer = self.answer();
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"));
        (answer["error"]["code"].as_i64().unwrap(), message.to_owned())
    }
}

fn accepted(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

#[test]
fn a_legacy_client_is_sent_a_request_and_the_call_goes_on_with_its_answer() {
    let client = Client::declaring("2025-06-18", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"who": name_form()}]));
    assert_eq!(
        client.next(),
        r#"{"jsonrpc":"2.0","id":"toolcell/ask/1","method":"elicitation/create","params":{"message":"The tool \"ask\" asks: Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"#
    );
    reply(&client, "toolcell/ask/1", &accepted(&json!({"name": "Ada", "more": 1})));
    assert_eq!(client.next(), legacy_text_result("7", r#"accepted {"name":"Ada"}"#), "without what was not asked for");
}

#[test]
fn several_questions_are_sent_at_once_and_answered_in_any_order() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(
        &client,
        7,
        &json!([{"who": name_form(), "page": {"page": "https://example.com/x"}, "poem": poem(), "where": {}}]),
    );
    let methods: Vec<Value> = (0..4).map(|_| parse(&client.next())["method"].clone()).collect();
    assert_eq!(methods, ["elicitation/create", "elicitation/create", "sampling/createMessage", "roots/list"]);
    reply(&client, "toolcell/ask/4", &json!({"roots": [{"uri": "file:///work"}]}));
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "Roses"}, "model": "m", "_meta": {}});
    reply(&client, "toolcell/ask/3", &message);
    reply(&client, "toolcell/ask/2", &json!({"action": "decline"}));
    reply(&client, "toolcell/ask/1", &json!({"action": "cancel"}));
    let said = r#"dismissed; declined; message {"role":"assistant","content":{"type":"text","text":"Roses"},"model":"m"}; roots file:///work"#;
    assert_eq!(client.next(), legacy_text_result("7", said));
}

#[test]
fn a_page_has_an_id_in_the_legacy_era_and_none_in_the_modern_one() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let rounds = json!([{"page": {"page": "https://example.com/a?b={c"}}]);
    legacy_ask(&client, 7, &rounds);
    let refused = parse(&client.next());
    assert_eq!(refused["params"]["elicitationId"], "toolcell/page/1", "{refused}");
    assert_eq!(refused["params"]["url"], "https://example.com/a?b={c");
    reply(&client, "toolcell/ask/1", &json!({"action": "accept"}));
    assert_eq!(client.next(), legacy_text_result("7", "accepted {}"));
    let modern = ModernCall::new(&client, &rounds).answer();
    let params = json!({"mode": "url", "message": "The tool \"ask\" asks: Go", "url": "https://example.com/a?b={c"});
    assert_eq!(modern["result"]["inputRequests"]["page"]["params"], params);
}

#[test]
fn a_client_that_did_not_declare_it_is_not_asked() {
    let lacks = |wanting: &str| format!("the client cannot be asked this: it does not declare {wanting}");
    let page = json!({"page": "https://example.com/"});
    for (revision, capabilities, question, wanting) in [
        ("2025-11-25", "{}", name_form(), "elicitation with forms"),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#, name_form(), "elicitation with forms"),
        ("2025-11-25", r#"{"elicitation":{}}"#, page.clone(), "elicitation with pages (\"url\")"),
        ("2025-06-18", EVERYTHING, page, "elicitation with pages (\"url\")"),
        ("2025-03-26", EVERYTHING, name_form(), "elicitation with forms"),
        ("2024-11-05", r#"{"roots":{}}"#, poem(), "sampling"),
        ("2025-11-25", r#"{"sampling":{}}"#, json!({}), "roots"),
    ] {
        let client = Client::declaring(revision, capabilities);
        legacy_ask(&client, 7, &json!([{"it": question}]));
        let answer = parse(&client.next());
        assert_eq!(answer["result"]["isError"], true, "{revision} {capabilities}");
        assert_eq!(answer["result"]["content"][0]["text"], lacks(wanting), "{revision} {capabilities}");
    }
}

#[test]
fn the_first_revisions_have_sampling_and_roots() {
    let client = Client::declaring("2024-11-05", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"poem": poem(), "where": {}}]));
    assert_eq!(parse(&client.next())["method"], "sampling/createMessage");
    assert_eq!(parse(&client.next())["method"], "roots/list");
}

#[test]
fn what_answers_no_question_is_ignored() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"who": name_form()}]));
    client.next();
    for id in [r#""toolcell/ask/2""#, r#""toolcell/ask/01""#, r#""toolcell/ask/+1""#, r#""other""#, "1", "null"] {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#));
    }
    client.expect_silence();
    reply(&client, "toolcell/ask/1", &json!({"action": "decline"}));
    assert_eq!(client.next(), legacy_text_result("7", "declined"));
    reply(&client, "toolcell/ask/1", &json!({"action": "accept"}));
    client.expect_silence();
}

#[test]
fn a_legacy_answer_that_does_not_fit_is_told_to_the_tool() {
    let long = "x".repeat(1_000);
    for (question, answer, told) in [
        (name_form(), json!({"action": "maybe"}), "action must be accept, decline or cancel"),
        (name_form(), json!({}), "action must be accept, decline or cancel"),
        (name_form(), json!([]), "it must be an object"),
        (name_form(), accepted(&json!("Ada")), "content must be an object"),
        (name_form(), accepted(&json!({})), "content does not fit the form:\n- (root): \"name\" is required"),
        (name_form(), accepted(&json!({"name": 1})), "content does not fit the form:\n- /name: must be of type string"),
        (name_form(), accepted(&json!({"name": long})), "it has 1041 bytes, more than 1000"),
        (poem(), json!({"role": "assistant"}), "it must have role (user or assistant), content and model"),
        (json!({}), json!({"roots": [{"uri": "https://x"}]}), "each root must have a uri that begins with file://"),
        (json!({}), json!({"roots": {}}), "roots must be a list"),
    ] {
        let client = Client::declaring("2025-11-25", EVERYTHING);
        legacy_ask(&client, 7, &json!([{"it": question}]));
        client.next();
        reply(&client, "toolcell/ask/1", &answer);
        let text = parse(&client.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the client's answer to \"it\": {told}"));
    }
}

#[test]
fn an_error_of_the_client_is_told_to_the_tool_in_short() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"poem": poem()}]));
    client.next();
    let message = format!("User\u{1b}[31m rejected\n{}", "x".repeat(500));
    client.send(
        &json!({"jsonrpc": "2.0", "id": "toolcell/ask/1", "error": {"code": -1, "message": message}}).to_string(),
    );
    let text = parse(&client.next())["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("the client's answer to \"poem\": an error: User rejected x"), "{text}");
    assert!(text.len() < 200, "{text}");
}

#[test]
fn a_malformed_response_ends_its_question() {
    for (members, told) in [
        (r#""result":{"action":"accept","content":{"name":"Ada"}},"error":{"code":-1,"message":"no"}"#, "an error: no"),
        (r#""error":{"code":-1,"message":"no"},"result":{"action":"decline"}"#, "an error: no"),
        (r#""result":{"action":"decline","action":"accept"}"#, "an error: Duplicate key: action"),
        (r#""result":{"action":"decline"},"result":{"action":"accept"}"#, "an error: Duplicate key: result"),
        (r#""method":"ping","result":{"action":"accept"}"#, "an error: A message has either a method or a result"),
        (r#""result":{"action":"\ud800"}"#, "it cannot be taken: an unpaired surrogate at byte 11"),
        (r#""result":{"action":1e400}"#, "it cannot be taken: a number at byte 10 is too large for a 64-bit float"),
        ("", "an error: The member method is missing"),
    ] {
        let client = Client::declaring("2025-11-25", EVERYTHING);
        legacy_ask(&client, 7, &json!([{"it": name_form()}]));
        client.next();
        let members = if members.is_empty() { String::new() } else { format!(",{members}") };
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":"toolcell/ask/1"{members}}}"#));
        let text = parse(&client.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the client's answer to \"it\": {told}"), "{members}");
    }
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"it": name_form()}]));
    client.next();
    client.send(
        r#"{"jsonrpc":"2.0","id":"toolcell/ask/1","result":{"action":"accept","content":{"name":"Ada"}},"error":null}"#,
    );
    assert_eq!(client.next(), legacy_text_result("7", r#"accepted {"name":"Ada"}"#), "null counts as absent");
}

#[test]
fn a_cancelled_call_takes_its_questions_back() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"who": name_form(), "where": {}}]));
    client.next();
    client.next();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    let mut taken: Vec<Value> = (0..2).map(|_| parse(&client.next())["params"]["requestId"].clone()).collect();
    taken.sort_by_key(Value::to_string);
    assert_eq!(taken, ["toolcell/ask/1", "toolcell/ask/2"]);
    client.expect_idle();
    reply(&client, "toolcell/ask/1", &json!({"action": "decline"}));
    client.expect_silence();
}

#[test]
fn a_client_that_is_gone_is_waited_for_by_nobody() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    legacy_ask(&client, 7, &json!([{"who": name_form()}]));
    client.next();
    client.connection.end_asking();
    let gone = "the client is gone, so nobody can answer";
    assert_eq!(parse(&client.next())["result"]["content"][0]["text"], gone);
    legacy_ask(&client, 8, &json!([{"who": name_form()}]));
    assert_eq!(parse(&client.next())["result"]["content"][0]["text"], gone, "and nothing more is asked");
}

#[test]
fn a_modern_client_is_given_the_questions_and_calls_again_with_the_answers() {
    let client = Client::new();
    let rounds = json!([{"who": name_form(), "where": {}}, {"poem": poem()}]);
    let first = ModernCall::new(&client, &rounds).answer();
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(
        first["result"]["inputRequests"],
        json!({
            "who": {"method": "elicitation/create", "params": {
                "message": "The tool \"ask\" asks: Who?", "requestedSchema": name_form()["form"]}},
            "where": {"method": "roots/list", "params": {}},
        })
    );
    assert_eq!(first["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
    let state = &first["result"]["requestState"];
    let answers = json!({"who": accepted(&json!({"name": "Ada"})), "where": {"roots": []}});
    let second =
        ModernCall::new(&client, &rounds).with("inputResponses", &answers).with("requestState", state).answer();
    assert_eq!(second["result"]["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["poem"]);
    assert_ne!(second["result"]["requestState"], *state);
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "Roses"}, "model": "m"});
    let third = ModernCall::new(&client, &rounds).with("inputResponses", &json!({"poem": message}));
    let said = third.with("requestState", &second["result"]["requestState"]).text();
    assert_eq!(said, format!("accepted {{\"name\":\"Ada\"}}; roots ; message {message}"));
}

#[test]
fn what_a_modern_client_left_out_is_asked_again_with_what_it_gave_kept() {
    let client = Client::new();
    let rounds = json!([{"who": name_form(), "where": {}}]);
    let state = ModernCall::new(&client, &rounds).state();
    let half = ModernCall::new(&client, &rounds).with("requestState", &state);
    let half = half.with("inputResponses", &json!({"where": {"roots": []}, "else": {"x": 1}})).answer();
    assert_eq!(half["result"]["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["who"]);
    let rest = ModernCall::new(&client, &rounds).with("requestState", &half["result"]["requestState"]);
    assert_eq!(rest.with("inputResponses", &json!({"who": {"action": "decline"}})).text(), "declined; roots ");
}

#[test]
fn answers_without_a_state_count_unless_the_question_must_have_been_asked() {
    let client = Client::new();
    let rounds = json!([{"who": name_form()}]);
    let answers = json!({"who": accepted(&json!({"name": "Ada"})), "unknown": {"action": "accept"}});
    let call = || ModernCall::new(&client, &rounds).with("inputResponses", &answers);
    assert_eq!(call().text(), r#"accepted {"name":"Ada"}"#);
    let asked = call().argument("permits", &json!(true)).answer();
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = &asked["result"]["requestState"];
    let said = call().argument("permits", &json!(true)).with("requestState", state).text();
    assert_eq!(said, r#"accepted {"name":"Ada"}"#);
}

#[test]
fn malformed_answers_of_a_modern_client_are_refused() {
    let client = Client::new();
    let rounds = json!([{"who": name_form()}]);
    for (member, value, message) in [
        ("inputResponses", json!([]), "params.inputResponses must be an object"),
        ("inputResponses", json!({"who": 12345}), "params.inputResponses[\"who\"] must be an object"),
        (
            "inputResponses",
            json!({"who": {}}),
            "params.inputResponses[\"who\"]: action must be accept, decline or cancel",
        ),
        (
            "inputResponses",
            json!({"who": accepted(&json!({"name": 1}))}),
            "params.inputResponses[\"who\"]: content does not fit the form: - /name: must be of type string",
        ),
        ("requestState", json!(7), "params.requestState must be a string"),
    ] {
        let refusal = ModernCall::new(&client, &rounds).with(member, &value).refusal();
        assert_eq!(refusal, (-32602, message.to_owned()), "{member}: {value}");
    }
}

/// The answer to a state of another process, or of nobody.
const NOT_OURS: &str = "params.requestState is not one that this server gave out, or was changed. Processes that \
                        answer one client, or start anew for it, need the same state_key in [server]";

#[test]
fn a_state_that_was_changed_or_made_up_is_refused() {
    let client = Client::new();
    let rounds = json!([{"who": name_form()}]);
    let state = ModernCall::new(&client, &rounds).state();
    let state = state.as_str().unwrap();
    let flipped = format!("{}{}", if state.starts_with('A') { 'B' } else { 'A' }, &state[1..]);
    for wrong in ["", "x", &format!("{state}-TAMPERED"), &flipped, &state[..state.len() - 4], &state.repeat(2)] {
        let refusal = ModernCall::new(&client, &rounds).with("requestState", &json!(wrong)).refusal();
        assert_eq!(refusal, (-32602, NOT_OURS.to_owned()), "{wrong}");
    }
    let never = client.ask_modern(3, "tools/call", &format!(r#""name":"echo","requestState":"{state}","#));
    assert_eq!(never, error("3", -32602, NOT_OURS), "a tool that never asks gives none out");
}

#[test]
fn a_state_belongs_to_its_call_and_what_it_is_about() {
    let client = Client::new();
    let rounds = json!([{"who": name_form()}]);
    let state = ModernCall::new(&client, &rounds).state();
    let message = "params.requestState belongs to another call: the tool, what it may reach, or its arguments differ";
    let other = ModernCall::new(&client, &rounds).argument("extra", &json!(1)).with("requestState", &state);
    assert_eq!(other.refusal(), (-32602, message.to_owned()));
    "code 2".clone_into(&mut client.shared.code.lock().unwrap());
    let replaced = ModernCall::new(&client, &rounds).with("requestState", &state);
    assert_eq!(replaced.refusal(), (-32602, message.to_owned()));
}

#[test]
fn arguments_count_by_what_they_say() {
    let client = Client::new();
    let call = |arguments: &str, more: &str| {
        let capabilities = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#;
        parse(&client.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","arguments":{arguments},{more}{capabilities}}}}}"#
        )))
    };
    let first = call(r#"{"rounds":[{"where":{}}],"a":{"x":1,"y":2}}"#, "");
    let more =
        format!(r#""inputResponses":{{"where":{{"roots":[]}}}},"requestState":{},"#, first["result"]["requestState"]);
    let second = call(r#"{ "a": {"y":2, "x":1}, "rounds": [{"where": {}}] }"#, &more);
    assert_eq!(second["result"]["content"][0]["text"], "roots ");
}

#[test]
fn a_state_expires() {
    let client = Client::new();
    let rounds = json!([{"who": name_form()}]);
    let call = || ModernCall::new(&client, &rounds).argument("within_ms", &json!(0));
    let state = call().state();
    let message = "params.requestState has expired: call the tool again without it";
    assert_eq!(call().with("requestState", &state).refusal(), (-32602, message.to_owned()));
}

#[test]
fn a_state_opens_in_another_process_only_with_the_same_key() {
    let rounds = json!([{"where": {}}]);
    let replica = |key: &StateKey| Client::with(ServerOptions { state_key: key.clone(), ..ServerOptions::default() });
    let key = StateKey::of(&[1; 32]).unwrap();
    let state = ModernCall::new(&replica(&key), &rounds).state();
    let answers = json!({"where": {"roots": []}});
    let retry = |client: &Client| {
        ModernCall::new(client, &rounds).with("inputResponses", &answers).with("requestState", &state).answer()
    };
    assert_eq!(retry(&replica(&key))["result"]["content"][0]["text"], "roots ");
    assert_eq!(retry(&Client::new())["error"]["code"], -32602);
}

#[test]
fn a_modern_client_without_the_capability_is_told_what_is_required() {
    let client = Client::new();
    let page = json!({"page": "https://example.com/"});
    let rounds = json!([{"who": name_form(), "page": page, "poem": poem(), "where": {}}]);
    for (declared, required) in [
        (json!({}), json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})),
        (json!({"elicitation": {}, "roots": {}}), json!({"elicitation": {"url": {}}, "sampling": {}})),
        (json!({"elicitation": {"url": {}}, "sampling": {}}), json!({"elicitation": {"form": {}}, "roots": {}})),
    ] {
        let answer = ModernCall::new(&client, &rounds).declaring(&declared).answer();
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["data"]), (&json!(-32021), &json!({"requiredCapabilities": required})));
        let message = error["message"].as_str().unwrap();
        let start = "The tool \"ask\" needs an answer, and this client cannot be asked for it: it does not declare ";
        assert!(message.starts_with(start), "{declared}: {message}");
    }
}

#[test]
fn one_key_is_one_question() {
    let client = Client::new();
    let twice = ModernCall::new(&client, &json!([{"who": name_form()}, {"who": {}}]));
    let said = twice.with("inputResponses", &json!({"who": {"action": "decline"}})).text();
    assert_eq!(said, "the question is not well formed: the key \"who\" was used before in this call");
    let said = ModernCall::new(&client, &json!([{"": {}}])).text();
    assert_eq!(said, "the question is not well formed: a key is 1 to 64 of A-Z, a-z, 0-9, _, -, . and /");
}

#[test]
fn what_no_form_has_is_refused() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let form = |field: Value| json!({"type": "object", "properties": {"f": field}});
    for (schema, told) in [
        (json!([]), "must be an object"),
        (json!({"type": "array"}), "must have \"type\": \"object\""),
        (json!({"type": "object"}), "must have properties, as an object"),
        (json!({"type": "object", "properties": {}, "$ref": "#"}), "has \"$ref\", which is not allowed in forms"),
        (
            json!({"type": "object", "properties": {}, "required": ["f"]}),
            "requires \"f\", which is not one of its properties",
        ),
        (
            form(json!({"type": "object"})),
            "is wrong at properties/f: type must be string, number, integer, boolean, or array for a choice of several",
        ),
        (
            form(json!({"type": "string", "pattern": "a"})),
            "is wrong at properties/f: has \"pattern\", which is not allowed in forms",
        ),
        (
            form(json!({"type": "string", "format": "ipv4"})),
            "is wrong at properties/f: format must be one of email, uri, date, date-time",
        ),
        (form(json!({"type": "string", "enum": []})), "is wrong at properties/f: there must be 1 to 256 choices"),
        (
            form(json!({"type": "string", "enum": ["a"], "enumNames": []})),
            "is wrong at properties/f: enumNames must name each choice",
        ),
        (
            form(json!({"type": "string", "oneOf": [{"const": "a"}]})),
            "is wrong at properties/f: each choice must be {const, title}, both strings",
        ),
        (
            form(json!({"type": "array", "items": {"type": "integer"}})),
            "is wrong at properties/f: items must have enum, a list of strings, or anyOf",
        ),
    ] {
        legacy_ask(&client, 7, &json!([{"it": {"form": schema}}]));
        let text = parse(&client.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the question is not well formed: its schema {told}"), "{schema}");
    }
}

#[test]
fn every_field_of_a_form_is_held_to_its_schema() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let titled = json!([{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]);
    for (field, fits, fits_not) in [
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!("abc"), json!("a")),
        (json!({"type": "string", "format": "email"}), json!("a@example.com"), json!("nobody")),
        (json!({"type": "string", "format": "uri"}), json!("https://example.com"), json!("no uri")),
        (json!({"type": "string", "format": "date"}), json!("2026-02-28"), json!("2026-02-30")),
        (json!({"type": "string", "format": "date-time"}), json!("2026-02-28T10:00:00Z"), json!("today")),
        (json!({"type": "integer", "minimum": 1, "maximum": 9}), json!(9), json!(9.5)),
        (json!({"type": "number", "default": 0.5}), json!(1.5), json!("1.5")),
        (json!({"type": "boolean", "default": true}), json!(false), json!("yes")),
        (json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}), json!("b"), json!("c")),
        (json!({"type": "string", "oneOf": titled}), json!("r"), json!("Red")),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1}),
            json!(["a"]),
            json!(["a", "b"]),
        ),
        (json!({"type": "array", "items": {"anyOf": titled}}), json!(["r", "g"]), json!(["x"])),
    ] {
        for (value, expected) in [(&fits, true), (&fits_not, false)] {
            let client = &client;
            legacy_ask(client, 7, &json!([{"it": {"form": {"type": "object", "properties": {"f": field}}}}]));
            let asked = parse(&client.next());
            reply(client, asked["id"].as_str().unwrap(), &accepted(&json!({"f": value})));
            let text = parse(&client.next())["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            assert_eq!(text == format!("accepted {}", json!({"f": value})), expected, "{field} {value}: {text}");
        }
    }
}

#[test]
fn what_people_read_is_cleaned_of_what_misleads() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let field = json!({"type": "string", "title": "Na\u{202e}me", "description": "\u{1b}[2Jyours"});
    legacy_ask(&client, 7, &json!([{"it": {"form": {"type": "object", "properties": {"f": field}}}}]));
    let asked = parse(&client.next());
    let sent = &asked["params"]["requestedSchema"]["properties"]["f"];
    assert_eq!(*sent, json!({"type": "string", "title": "Name", "description": "yours"}));
}

#[test]
fn addresses_of_pages_are_held_to_what_people_can_judge() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    for (url, told) in [
        ("http://example.com/", "must begin with https://"),
        ("http://localhost.example.com/", "must begin with https://"),
        ("javascript:alert(1)", "must begin with https://"),
        ("https:///x", "must name a host, and no user"),
        ("https://bank.example@evil.example/", "must name a host, and no user"),
        ("https://example.com/a b", "has characters that are not allowed in an address"),
        ("https://exämple.com/", "has characters that are not allowed in an address"),
    ] {
        legacy_ask(&client, 7, &json!([{"it": {"page": url}}]));
        let text = parse(&client.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the question is not well formed: the address {told}"), "{url}");
    }
    for url in ["https://example.com", "http://localhost:8080/x", "http://127.0.0.1/", "http://[::1]:1/"] {
        legacy_ask(&client, 7, &json!([{"it": {"page": url}}]));
        let asked = parse(&client.next());
        assert_eq!(asked["params"]["url"], url);
        reply(&client, asked["id"].as_str().unwrap(), &json!({"action": "accept"}));
        client.next();
    }
}

#[test]
fn sampling_needs_what_every_revision_needs() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let message = json!({"role": "user", "content": {"type": "text", "text": "A poem"}});
    for (params, told) in [
        (json!([]), "its params must be a JSON object"),
        (json!({"messages": [message]}), "maxTokens must be a positive integer"),
        (json!({"messages": [], "maxTokens": 1}), "messages must be a list that is not empty"),
        (
            json!({"messages": [{"role": "system", "content": {"type": "text"}}], "maxTokens": 1}),
            "messages/0 must be an object with role (user or assistant) and content",
        ),
        (json!({"messages": [message], "maxTokens": 1, "task": {}}), "its params have no member \"task\""),
    ] {
        legacy_ask(&client, 7, &json!([{"it": {"sampling": params}}]));
        let text = parse(&client.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the question is not well formed: {told}"), "{params}");
    }
}

#[test]
fn a_number_of_tokens_is_an_integer_however_it_is_written() {
    let client = Client::declaring("2025-11-25", EVERYTHING);
    let ask = |tokens: &str| {
        let message = r#"{"role":"user","content":{"type":"text","text":"A poem"}}"#;
        let params = format!(r#"{{"messages":[{message}],"maxTokens":{tokens}}}"#);
        client.call_legacy(7, "ask", &format!(r#"{{"rounds":[{{"it":{{"sampling":{params}}}}}]}}"#));
        parse(&client.next())
    };
    for (written, tokens) in [("100", 100), ("100.0", 100), ("1e2", 100), ("9007199254740992.0", 1_i64 << 53)] {
        let asked = ask(written);
        assert_eq!(asked["params"]["maxTokens"], json!(tokens), "{written}: {asked}");
        reply(
            &client,
            asked["id"].as_str().unwrap(),
            &json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}),
        );
        client.next();
    }
    for wrong in ["0", "0.0", "-1", "-1.0", "1.5", "1e300", "\"100\"", "null", "[1]"] {
        let text = ask(wrong)["result"]["content"][0]["text"].clone();
        assert_eq!(text, "the question is not well formed: maxTokens must be a positive integer", "{wrong}");
    }
}

#[test]
fn sampling_with_tools_or_context_is_a_capability_of_its_own() {
    let message = json!({"role": "user", "content": {"type": "text", "text": "A poem"}});
    for (member, value, required, name) in [
        (
            "tools",
            json!([]),
            json!({"tools": {}}),
            "sampling with tools, so \"tools\" and \"toolChoice\" cannot be sent",
        ),
        (
            "includeContext",
            json!("allServers"),
            json!({"context": {}}),
            "sampling with context, so \"includeContext\" can only be \"none\"",
        ),
    ] {
        let mut params = json!({"messages": [message], "maxTokens": 1});
        params[member] = value;
        let rounds = json!([{"it": {"sampling": params}}]);
        let legacy = Client::declaring("2025-11-25", r#"{"sampling":{}}"#);
        legacy_ask(&legacy, 7, &rounds);
        let text = parse(&legacy.next())["result"]["content"][0]["text"].clone();
        assert_eq!(text, format!("the client cannot be asked this: it does not declare {name}"));
        let client = Client::new();
        let ask = |declared| ModernCall::new(&client, &rounds).declaring(&json!({"sampling": declared})).answer();
        let error = &ask(json!({}))["error"];
        assert_eq!((&error["code"], &error["data"]["requiredCapabilities"]["sampling"]), (&json!(-32021), &required));
        assert_eq!(ask(required)["result"]["resultType"], "input_required", "{member}");
    }
}
