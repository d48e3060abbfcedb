//! Legacy sessions: `initialize` gives an id that cannot be guessed, requests share it, GET opens a
//! stream, DELETE ends it.
//!
//! Promise: a session cannot be guessed or taken over.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, LEGACY_REVISIONS, alone, manifest_of, patience};

fn call(id: u64, tool: &str, arguments: Value) -> Ask {
    Ask::request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

#[test]
fn every_revision_has_a_conversation_in_a_session() {
    let host = WebHost::serving(&["good"]);
    for revision in LEGACY_REVISIONS {
        let session = host.session(revision);
        let reply = host.ask(&call(1, "echo", json!({"text": revision})).of_session(&session));
        assert_eq!(reply.status(), 200);
        assert_eq!(reply.field("content-type"), Some("application/json"));
        assert_eq!(reply.frame()["result"]["content"][0]["text"], revision);
        let ping = Ask::request(2, "ping", json!({})).of_session(&session).with("mcp-protocol-version", revision);
        assert_eq!(host.ask(&ping).frame()["result"], json!({}));
        let unknown = host.ask(&Ask::request(3, "prompts/list", json!({})).of_session(&session));
        assert_eq!(unknown.error(), (200, -32601), "404 would say that the session is gone");
    }
}

#[test]
fn events_of_a_call_come_on_its_own_stream() {
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let mut params = json!({"name": "slow", "arguments": {"steps": 1, "step_ms": 1}});
    params["_meta"] = json!({"progressToken": 4});
    let reply = host.ask(&Ask::request(1, "tools/call", params).of_session(&session));
    assert_eq!(reply.field("content-type"), Some("text/event-stream"));
    let methods: Vec<Value> = reply.frames().iter().map(|frame| frame["method"].clone()).collect();
    assert_eq!(methods, [json!("notifications/message"), json!("notifications/progress"), Value::Null]);
}

#[test]
fn only_the_batches_of_one_revision_are_taken() {
    let host = WebHost::serving(&["good"]);
    let requests = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]);
    let takes = host.session("2025-03-26");
    let reply = host.ask(&Ask::post(&requests).of_session(&takes));
    assert_eq!(reply.frame().as_array().unwrap().len(), 2);
    let nothing = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(host.ask(&Ask::post(&nothing).of_session(&takes)).status(), 202);
    let refuses = host.session("2025-06-18");
    assert_eq!(host.ask(&Ask::post(&requests).of_session(&refuses)).error(), (400, -32600));
    assert_eq!(host.ask(&Ask::post(&requests)).error(), (400, -32600), "no session");
}

#[test]
fn a_request_needs_a_session_that_is_there() {
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let ping = || Ask::request(1, "ping", json!({}));
    let notification = || Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let response = || Ask::post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let get = || Ask::bare("GET", "/mcp").with("accept", "text/event-stream");
    for (what, ask, status) in [
        ("no session", ping(), 400),
        ("a notification without one", notification(), 400),
        ("a response without one", response(), 400),
        ("an unknown session", ping().of_session("0123456789abcdef0123456789abcdef"), 404),
        ("part of an id", ping().of_session(&session[..31]), 404),
        ("two ids", ping().of_session(&session).and("mcp-session-id", &session), 400),
        ("a stale id", Ask::initialize("2025-11-25").of_session("0123456789abcdef0123456789abcdef"), 200),
        ("a second handshake", Ask::initialize("2025-11-25").of_session(&session), 200),
        ("a slash behind the path", ping().of_session(&session).to("/mcp/"), 200),
        ("two slashes", ping().of_session(&session).to("/mcp//"), 404),
        ("a response", response().of_session(&session), 202),
        ("no revision", ping().of_session(&session).with("mcp-protocol-version", "1999-01-01"), 400),
        ("the modern revision", ping().of_session(&session).with("mcp-protocol-version", "2026-07-28"), 400),
        ("a stream without a session", get(), 400),
        ("a stream of an unknown session", get().of_session("x"), 404),
        ("a stream that cannot be one", get().of_session(&session).with("accept", "application/json"), 406),
        ("a modern stream", get().with("mcp-protocol-version", "2026-07-28"), 405),
        ("a modern end", Ask::bare("DELETE", "/mcp").with("mcp-protocol-version", "2026-07-28"), 405),
        ("no session to end", Ask::bare("DELETE", "/mcp"), 400),
        ("another method", Ask::bare("PUT", "/mcp"), 405),
        ("another path", Ask::bare("GET", "/"), 404),
    ] {
        assert_eq!(host.ask(&ask).status(), status, "{what}");
    }
    assert_eq!(host.ask(&Ask::bare("PUT", "/mcp")).field("allow"), Some("POST, GET, DELETE, OPTIONS"));
    assert_eq!(host.ask(&ping().of_session(&session)).status(), 200, "the session itself goes on");
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 204);
    // Other replicas hear of it a moment later.
    let end = Instant::now() + patience();
    let mut in_a_row = 0;
    while in_a_row < host.process().replica_count() {
        let status = host.ask(&ping().of_session(&session)).status();
        in_a_row = if status == 404 { in_a_row + 1 } else { 0 };
        assert!(in_a_row > 0 || host.process().replica_count() > 1 && Instant::now() < end, "{status}");
    }
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 404);
}

#[test]
fn ids_are_long_and_never_the_same() {
    let _alone = alone("ids of its own sessions");
    let host = WebHost::serving(&["good"]);
    let ids: BTreeSet<String> = (0..100).map(|_| host.session("2025-11-25")).collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{ids:?}");
}

#[test]
fn a_session_is_told_of_another_list_on_one_stream() {
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let get = Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&session);
    let mut first = host.connect();
    let mut second = host.connect();
    first.send(&get.bytes());
    assert_eq!(first.head().status(), 200);
    second.send(&get.bytes());
    assert_eq!(second.head().status(), 200);
    assert_eq!(first.event(), None, "the newer stream takes over");
    let folder = host.process().folder();
    let manifest = folder.read("toolcell.toml");
    folder.write("toolcell.toml", manifest.replace("[components.good]", "[components.good]\nprefix = \"new_\""));
    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(second.event(), Some(told));
}

#[test]
fn what_a_session_is_to_be_told_is_kept_until_its_stream_is_open() {
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let folder = host.process().folder();
    let manifest = folder.read("toolcell.toml");
    for (prefix, tool) in [("one_", "one_echo"), ("two_", "two_echo")] {
        let prefixed = format!("[components.good]\nprefix = \"{prefix}\"");
        folder.write("toolcell.toml", manifest.replace("[components.good]", &prefixed));
        let list = Ask::request(5, "tools/list", json!({})).of_session(&session);
        let end = Instant::now() + patience();
        while !String::from_utf8_lossy(host.ask(&list).body()).contains(tool) {
            assert!(Instant::now() < end, "{tool} is never listed");
        }
    }
    // The notification of the last reload may still be on its way: it comes on the stream, or was
    // kept with the first.
    let mut stream = host.connect();
    stream.send(&Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&session).bytes());
    assert_eq!(stream.head().status(), 200);
    assert_eq!(stream.event().unwrap()["method"], "notifications/tools/list_changed");
}

#[test]
fn a_client_that_goes_away_has_cancelled_nothing_until_it_says_so() {
    let folder =
        Folder::with_manifest(&manifest_of(&["good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\""));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let session = host.session("2025-11-25");
    let mut wire = host.connect();
    wire.send(&call(1, "slow", json!({"steps": 3, "step_ms": 100})).of_session(&session).bytes());
    host.begins("slow");
    wire.stream().shutdown(Shutdown::Both).unwrap();
    assert_eq!(host.outcome("slow"), "ok");

    let mut wire = host.connect();
    wire.send(&call(2, "sleep_hour", json!({})).of_session(&session).bytes());
    host.begins("sleep_hour");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(host.ask(&Ask::post(&cancel).of_session(&session)).status(), 202);
    let reply = wire.reply();
    assert_eq!((reply.status(), reply.field("content-type")), (200, Some("text/event-stream")));
    assert_eq!(reply.frames(), [json!(null); 0], "a cancelled request has no answer");
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
}

#[test]
fn ending_a_session_stops_what_runs_in_it() {
    let folder =
        Folder::with_manifest(&manifest_of(&["good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\""));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let session = host.session("2025-11-25");
    let mut wire = host.connect();
    wire.send(&call(2, "sleep_hour", json!({})).of_session(&session).bytes());
    host.begins("sleep_hour");
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 204);
    let reply = wire.reply();
    assert_eq!((reply.status(), reply.frames()), (200, vec![]));
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
}

#[test]
fn a_session_ends_at_its_age_with_its_stream() {
    let limits = "[http]\nsession_time = \"3s\"\nsession_idle = \"1500ms\"\n";
    let host = WebHost::with_manifest(&format!("{}\n{limits}", manifest_of(&["good"])));
    let session = host.session("2025-11-25");
    let mut stream = host.connect();
    stream.send(&Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&session).bytes());
    assert_eq!(stream.head().status(), 200, "with a stream it is in use");
    assert_eq!(stream.event(), None);
    assert_eq!(host.ask(&Ask::request(1, "ping", json!({})).of_session(&session)).status(), 404);
    host.still_works();
}

#[test]
fn past_the_most_the_session_idle_the_longest_makes_room() {
    let _alone = alone("its own number of sessions");
    let host = WebHost::with_manifest(&format!("{}\n[http]\nsessions = 3\n", manifest_of(&["good"])));
    let sessions: Vec<String> = (0..3).map(|_| host.session("2025-11-25")).collect();
    let ping = |session: &str| host.ask(&Ask::request(1, "ping", json!({})).of_session(session)).status();
    assert_eq!(ping(&sessions[0]), 200);
    let one_more = host.session("2025-11-25");
    assert_eq!(
        [&sessions[0], &sessions[1], &sessions[2], &one_more].map(|session| ping(session)),
        [200, 404, 200, 200]
    );
}

#[test]
fn a_refusal_has_the_id_of_its_request() {
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let old = host.session("2025-06-18");
    let ping = |id: u64| Ask::request(id, "ping", json!({}));
    let unknown = "0123456789abcdef0123456789abcdef";
    let notification = || Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let null = Some(Value::Null);
    for (what, ask, id, status) in [
        ("an unknown session", ping(7).of_session(unknown), Some(json!(7)), 404),
        ("no session", ping(8), Some(json!(8)), 400),
        (
            "another revision",
            ping(9).of_session(&session).with("mcp-protocol-version", "1999-01-01"),
            Some(json!(9)),
            400,
        ),
        ("a notification", notification().of_session(unknown), None, 404),
        ("no JSON", ping(1).saying("{").of_session(&session), None, 400),
        ("an empty body", ping(1).saying(" ").of_session(&session), None, 400),
        ("no JSON of an older session", ping(1).saying("{").of_session(&old), null.clone(), 400),
        ("no JSON of an older client", ping(1).saying("{").with("mcp-protocol-version", "2025-06-18"), null, 400),
        ("no JSON of nobody", ping(1).saying("{"), None, 400),
        (
            "an ill id",
            ping(1).saying("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}").of_session(&session),
            None,
            400,
        ),
    ] {
        let reply = host.ask(&ask);
        assert_eq!((reply.status(), reply.frame().get("id")), (status, id.as_ref()), "{what}: {reply:?}");
    }
}

/// The schemas up to 2025-06-18 want an `id` in every error, and later ones take its absence.
#[test]
fn a_refusal_before_the_body_has_the_id_that_the_revision_wants() {
    let host = WebHost::serving(&["good"]);
    for revision in LEGACY_REVISIONS {
        let session = host.session(revision);
        let wanted = (revision < "2025-11-25").then_some(Value::Null);
        let ping = || Ask::request(1, "ping", json!({})).of_session(&session);
        for (what, ask, status) in [
            ("another type", ping().with("content-type", "text/plain"), 415),
            ("nothing accepted", ping().with("accept", "text/html"), 406),
            ("another method", Ask::bare("PUT", "/mcp").of_session(&session), 405),
        ] {
            let reply = host.ask(&ask);
            assert_eq!((reply.status(), reply.frame().get("id")), (status, wanted.as_ref()), "{revision} {what}");
        }
        let named = Ask::bare("GET", "/mcp").with("accept", "text/event-stream").with("mcp-protocol-version", revision);
        let reply = host.ask(&named);
        assert_eq!((reply.status(), reply.frame().get("id")), (400, wanted.as_ref()), "{revision}: no session");
    }
}

#[test]
fn errors_of_a_method_are_answers_also_of_the_level_of_messages() {
    let host = WebHost::serving(&["good"]);
    for revision in LEGACY_REVISIONS {
        let session = host.session(revision);
        for params in [json!({"level": "loud"}), json!({"level": 7}), json!({})] {
            let reply = host.ask(&Ask::request(1, "logging/setLevel", params).of_session(&session));
            assert_eq!((reply.error(), &reply.frame()["id"]), ((200, -32602), &json!(1)), "{revision}");
        }
        let ping = || Ask::request(1, "ping", json!({})).of_session(&session);
        let surrogate = r#"{"jsonrpc":"2.0","method":"ping","params":{"x":"\ud83d"},"id":5}"#;
        let reply = host.ask(&ping().saying(surrogate));
        assert_eq!((reply.error(), &reply.frame()["id"]), ((200, -32602), &json!(5)), "{revision}");
        let marked = ping().saying("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\",\"params\":null}");
        assert_eq!(host.ask(&marked).frame(), json!({"jsonrpc": "2.0", "id": 6, "result": {}}), "{revision}");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_under_the_id_in_its_beginning() {
    let _alone = alone("a balancer refuses a long body by itself");
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let long = "x".repeat(17 << 20);
    let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{{"x":"{long}"}}}}"#);
    // The rest is not read, so the head and the beginning are sent, and no more.
    let ask = Ask::request(9, "ping", json!({})).of_session(&session).saying(&body);
    let mut wire = host.connect();
    wire.send(&ask.bytes()[..128 << 10]);
    let reply = wire.reply();
    assert_eq!((reply.status(), &reply.frame()["id"]), (413, &json!(9)), "{reply:?}");
}

#[test]
fn what_a_message_of_the_other_era_lacks_is_not_a_session() {
    let host = WebHost::serving(&["good"]);
    let says = |ask: &Ask| host.ask(ask).frame()["error"]["message"].as_str().unwrap().to_owned();
    let response = Ask::post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let missing = "The header Mcp-Session-Id is missing: initialize gives one, by POST";
    assert_eq!(says(&response), missing);
    let session = host.session("2025-11-25");
    let two = Ask::request(1, "ping", json!({})).of_session(&session).and("mcp-session-id", &session);
    assert_eq!(says(&two), "The header Mcp-Session-Id must name one session");
    let modern = |ask: Ask| ask.with("mcp-protocol-version", "2026-07-28");
    let batch = Ask::post(&json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]));
    let one = "From 2026-07-28 on a body is one request or one notification: no response, and no batch";
    assert_eq!([says(&modern(response)), says(&modern(batch))], [one, one]);
    let bare = says(&modern(Ask::request(1, "tools/list", json!({}))));
    assert!(bare.starts_with("Missing in params._meta") && !bare.contains("Session"), "{bare}");
}

/// The call of a tool that takes some time and reports on the way.
fn slow(id: u64, steps: u32, step_ms: u32) -> Ask {
    let mut params = json!({"name": "slow", "arguments": {"steps": steps, "step_ms": step_ms}});
    params["_meta"] = json!({"progressToken": 4});
    Ask::request(id, "tools/call", params)
}

#[test]
fn event_streams_begin_with_an_event_to_come_back_by() {
    let host = WebHost::serving(&["good"]);
    for revision in LEGACY_REVISIONS {
        let session = host.session(revision);
        let reply = host.ask(&slow(1, 1, 1).of_session(&session));
        let text = String::from_utf8(reply.body().to_vec()).unwrap();
        let primed = text.starts_with("id: answer.") && text.contains("\ndata: \n\ndata: {");
        assert_eq!(primed, revision == "2025-11-25", "{revision}: {text}");
        assert_eq!(text.matches("id: ").count(), usize::from(primed), "{revision}: {text}");
    }
}

#[test]
fn a_stream_that_broke_is_taken_up_by_the_id_of_its_first_event() {
    let _alone = alone("an answer's stream is taken up at the replica that had it");
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let get = || Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&session);
    let mut own = host.connect();
    own.send(&get().bytes());
    assert_eq!(own.head().status(), 200);
    let mut wire = host.connect();
    wire.send(&slow(5, 20, 100).of_session(&session).bytes());
    assert_eq!(wire.head().status(), 200);
    let id = wire.event_id().expect("a first event with an id");
    wire.stream().shutdown(Shutdown::Both).unwrap();
    let mut again = host.connect();
    again.send(&get().with("last-event-id", &id).bytes());
    assert_eq!(again.head().status(), 200);
    let mut last = None;
    while let Some(event) = again.event() {
        last = Some(event);
    }
    assert_eq!(last.unwrap()["result"]["content"][0]["text"], "20 steps done");
    let over = host.ask(&get().with("last-event-id", &id));
    assert_eq!(over.error(), (400, -32600), "it has ended");
    let other = host.session("2025-11-25");
    let stolen = Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&other);
    assert_eq!(host.ask(&stolen.with("last-event-id", "answer.1")).status(), 400, "another session's");

    // The session's own stream was not touched by any of this.
    let folder = host.process().folder();
    let manifest = folder.read("toolcell.toml");
    folder.write("toolcell.toml", manifest.replace("[components.good]", "[components.good]\nprefix = \"new_\""));
    assert_eq!(own.event().unwrap()["method"], "notifications/tools/list_changed");
}
