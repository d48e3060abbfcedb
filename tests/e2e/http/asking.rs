//! Tools that ask over HTTP. A legacy client is asked on the stream of its call; a modern one in
//! rounds that may use any connection and any replica. Invalid answers are tried as well.
//!
//! Promise: an answer counts in its session.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{Folder, alone, manifest_of, modern_meta};

/// The capabilities of a client that answers every kind of question.
fn everything() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}})
}

fn who() -> Value {
    json!({"who": {"form": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}})
}

fn poem() -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "A poem"}}]);
    json!({"poem": {"sampling": {"messages": messages, "maxTokens": 9}}})
}

fn accepting(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// A manifest of `asks` and `good`. `approval` is the setting for calls of `echo`.
fn manifest(approval: &str) -> String {
    format!("{}approval = \"{approval}\"\n", manifest_of(&["asks", "good"]))
}

fn host() -> WebHost {
    let folder = Folder::with_manifest(&manifest("always"));
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

/// A legacy session whose client answers every kind of question.
fn session(host: &WebHost) -> String {
    let client = json!({"name": "toolcell-tests", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": everything(), "clientInfo": client});
    let reply = host.ask(&Ask::request(0, "initialize", params));
    let id = reply.field("mcp-session-id").unwrap_or_else(|| panic!("no session: {reply:?}")).to_owned();
    let ready = Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(host.ask(&ready.of_session(&id)).status(), 202);
    id
}

fn call(tool: &str, arguments: Value) -> Ask {
    Ask::request(1, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Begins a call in this session. Returns its stream and the first question on it.
fn asked(host: &WebHost, session: &str, ask: &Ask) -> (Wire, Value) {
    let mut wire = host.connect();
    wire.send(&ask.clone().of_session(session).bytes());
    let head = wire.head();
    assert_eq!((head.status(), head.field("content-type")), (200, Some("text/event-stream")), "{head:?}");
    let question = wire.event().expect("a question");
    (wire, question)
}

/// Posts an answer to the question with this id into a session.
fn answer(host: &WebHost, session: &str, id: &Value, result: Value) -> Reply {
    let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
    host.ask(&Ask::post(&message).of_session(session))
}

/// The text of the result at the end of this stream.
fn text(wire: &mut Wire) -> String {
    let last = wire.event().expect("an answer");
    assert_eq!(wire.event(), None, "the stream ends with the answer");
    said(&last)
}

fn said(frame: &Value) -> String {
    frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {frame}")).to_owned()
}

/// A modern call from a client with these capabilities. `more` holds further params.
fn modern(capabilities: Value, tool: &str, arguments: Value, more: &Value) -> Ask {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    Ask::call(tool, json!({})).saying(&message.to_string())
}

/// Params that bring these answers to the questions of an earlier round.
fn bringing(round: &Value, answers: Value) -> Value {
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    json!({"requestState": round["result"]["requestState"], "inputResponses": answers})
}

#[test]
fn a_legacy_client_is_asked_on_the_stream_of_its_call_and_answers_with_a_post() {
    let host = host();
    let session = session(&host);
    let (mut wire, question) = asked(&host, &session, &call("ask", json!({"rounds": [who(), poem()]})));
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "The tool \"ask\" asks: Who?");
    let taken = answer(&host, &session, &question["id"], accepting("Ada"));
    assert_eq!((taken.status(), taken.body()), (202, &b""[..]));
    let question = wire.event().unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Rose"}});
    assert_eq!(answer(&host, &session, &question["id"], message).status(), 202);
    let text = text(&mut wire);
    assert!(text.starts_with("accepted {\"name\":\"Ada\"}; message {") && text.contains("Rose"), "{text}");
}

#[test]
fn a_modern_client_brings_the_answers_over_another_connection_or_to_another_replica() {
    let _alone = alone("it starts replicas of its own");
    let lines = "[server]\nstate_key = \"file:key\"\n";
    let [one, other] = [(); 2].map(|()| {
        let folder = Folder::with_manifest(&format!("{}{lines}", manifest("always")));
        folder.write("key", "one key for all replicas, of 32 bytes and more");
        std::fs::set_permissions(folder.path().join("key"), Permissions::from_mode(0o600)).unwrap();
        WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
    });
    let arguments = json!({"rounds": [who(), poem()]});
    let first = one.ask(&modern(everything(), "ask", arguments.clone(), &json!({})));
    assert_eq!((first.status(), first.field("content-type")), (200, Some("application/json")));
    let first = first.frame();
    assert_eq!(first["result"]["inputRequests"]["who"]["method"], "elicitation/create", "{first}");
    let brought = bringing(&first, json!({"who": accepting("Ada")}));
    let second = other.ask(&modern(everything(), "ask", arguments.clone(), &brought)).frame();
    assert_eq!(second["result"]["inputRequests"]["poem"]["method"], "sampling/createMessage", "{second}");
    let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Rose"}});
    let brought = bringing(&second, json!({"poem": message}));
    let last = one.ask(&modern(everything(), "ask", arguments, &brought)).frame();
    assert_eq!(last["result"]["resultType"], "complete");
    assert!(said(&last).starts_with("accepted {\"name\":\"Ada\"}; message {"), "{last}");
}

#[test]
fn an_approval_of_an_anonymous_caller_holds_for_one_call() {
    let folder = Folder::with_manifest(&format!("{}remember = \"10m\"\n", manifest("always")));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    for _ in 0..2 {
        let session = session(&host);
        let (mut wire, question) = asked(&host, &session, &call("echo", json!({"text": "hello"})));
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Allow the tool \"echo\"") && !message.contains("further calls"), "{message}");
        answer(&host, &session, &question["id"], json!({"action": "accept", "content": {}}));
        assert_eq!(text(&mut wire), "hello");
    }
}

#[test]
fn a_call_is_approved_through_clients_of_both_eras() {
    let host = host();
    let session = session(&host);
    for (action, expected) in [("accept", "hello"), ("decline", "the person declined: \"echo\" was not run")] {
        let (mut wire, question) = asked(&host, &session, &call("echo", json!({"text": "hello"})));
        assert!(question["params"]["message"].as_str().unwrap().starts_with("Allow the tool \"echo\""), "{question}");
        answer(&host, &session, &question["id"], json!({"action": action, "content": {}}));
        assert_eq!(text(&mut wire), expected);
        let arguments = json!({"text": "hello"});
        let first = host.ask(&modern(everything(), "echo", arguments.clone(), &json!({}))).frame();
        let decided = bringing(&first, json!({"toolcell.approval": {"action": action, "content": {}}}));
        let last = host.ask(&modern(everything(), "echo", arguments.clone(), &decided)).frame();
        assert_eq!(said(&last), expected);
        let again = host.ask(&modern(everything(), "echo", arguments, &decided)).frame();
        assert_eq!(again["result"]["isError"], true, "an approval is for one call: {again}");
    }
}

#[test]
fn a_legacy_client_that_takes_json_alone_is_told_so_and_does_not_wait() {
    let host = host();
    let session = session(&host);
    let only_json = |ask: Ask| host.ask(&ask.of_session(&session).with("accept", "application/json")).frame();
    let refused = only_json(call("echo", json!({"text": "hello"})));
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(
        said(&refused),
        "the tool \"echo\" needs a person's approval: the client cannot be asked: it accepts nothing but JSON in answer to this \
         call (header Accept), and a question comes as an event"
    );
    assert_eq!(said(&only_json(call("ask", json!({"rounds": [who()]})))), "unsupported Kind::Form");
    let can = only_json(call("can_ask", json!({})));
    assert_eq!(can["result"]["structuredContent"]["form"], false, "a tool knows: {can}");
    let record = host.process().recorded("a question", |record| record["event"] == "call.asked");
    assert_eq!(record["answer"], "unsupported", "{record}");
}

#[test]
fn a_modern_client_that_takes_json_alone_is_asked_as_any_other() {
    let host = host();
    let first = modern(everything(), "ask", json!({"rounds": [who()]}), &json!({})).with("accept", "application/json");
    assert_eq!(host.ask(&first).frame()["result"]["resultType"], "input_required");
}

#[test]
fn answers_that_are_none_change_nothing() {
    let _alone = alone("ids of its own questions");
    let host = host();
    let mine = session(&host);
    let others = session(&host);
    let (mut wire, question) = asked(&host, &mine, &call("ask", json!({"rounds": [who()]})));
    let (mut other_wire, other_question) = asked(&host, &others, &call("ask", json!({"rounds": [who()]})));
    assert_eq!(question["id"], other_question["id"], "ids are the session's own");
    // None of these is the answer. Each is accepted like any response, and has no effect.
    for id in
        [json!("toolcell/ask/2"), json!("toolcell/ask/01"), json!("toolcell/ask/"), json!(1), json!("1"), Value::Null]
    {
        assert_eq!(answer(&host, &mine, &id, accepting("Mallory")).status(), 202, "{id}");
    }
    // Without a session, or with an invented one, no question is open.
    let forged = json!({"jsonrpc": "2.0", "id": question["id"], "result": accepting("Mallory")});
    assert_eq!(host.ask(&Ask::post(&forged)).status(), 400);
    assert_eq!(host.ask(&Ask::post(&forged).of_session(&"0".repeat(32))).status(), 404);
    // The id is the same in both sessions, and each answer reaches only the question of its own
    // session.
    assert_eq!(answer(&host, &others, &question["id"], accepting("Bob")).status(), 202);
    assert_eq!(text(&mut other_wire), "accepted {\"name\":\"Bob\"}");
    assert_eq!(answer(&host, &mine, &question["id"], accepting("Ada")).status(), 202);
    assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}");
    // A second answer, which is also late.
    assert_eq!(answer(&host, &mine, &question["id"], accepting("Mallory")).status(), 202);
    let (mut wire, question) = asked(&host, &mine, &call("ask", json!({"rounds": [who()]})));
    assert_eq!(question["id"], "toolcell/ask/2", "an answer that came early is not kept for it");
    let misfit = json!({"action": "accept", "content": {"name": 7}});
    assert_eq!(answer(&host, &mine, &question["id"], misfit).status(), 202);
    let text = text(&mut wire);
    assert!(text.starts_with("failed: the client's answer to \"who\": content does not fit the form"), "{text}");
}

#[test]
fn a_question_that_nobody_answers_is_taken_back_before_the_call_is_answered() {
    let manifest = format!("{}[components.asks.limits]\nask_wait = \"1s\"\n", manifest("always"));
    let host = WebHost::with_manifest(&manifest);
    let session = session(&host);
    let (mut wire, question) = asked(&host, &session, &call("ask", json!({"rounds": [who()]})));
    let taken_back = wire.event().expect("the question is taken back");
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(text(&mut wire), "timed out");
}

#[test]
fn a_call_that_is_cancelled_takes_its_question_back_and_leaves_those_of_others() {
    let host = host();
    let session = session(&host);
    let (mut wire, question) = asked(&host, &session, &call("ask", json!({"rounds": [who()]})));
    let other = Ask::request(77, "tools/call", json!({"name": "ask", "arguments": {"rounds": [who()]}}));
    let (mut other_wire, other_question) = asked(&host, &session, &other);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(host.ask(&Ask::post(&cancel).of_session(&session)).status(), 202);
    let taken_back = wire.event().expect("the question is taken back");
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(wire.event(), None, "a cancelled call has no answer");
    assert_eq!(answer(&host, &session, &other_question["id"], accepting("Ada")).status(), 202);
    assert_eq!(text(&mut other_wire), "accepted {\"name\":\"Ada\"}");
}

#[test]
fn a_session_that_ends_takes_its_questions_along() {
    let host = host();
    let session = session(&host);
    let (mut wire, question) = asked(&host, &session, &call("ask", json!({"rounds": [who()]})));
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 204);
    while wire.event().is_some() {}
    assert_eq!(host.outcome("ask"), "cancelled");
    assert_eq!(answer(&host, &session, &question["id"], accepting("Ada")).status(), 404);
}
