//! Legacy sessions: `initialize` gives an id that cannot be guessed, requests share it, GET opens a
//! stream, DELETE ends it.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, LEGACY_REVISIONS, PATIENCE, manifest_of};

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
        ("a chosen id", Ask::initialize("2025-11-25").of_session("chosen"), 404),
        ("a second handshake", Ask::initialize("2025-11-25").of_session(&session), 400),
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
    assert_eq!(host.ask(&Ask::bare("PUT", "/mcp")).field("allow"), Some("POST, GET, DELETE"));
    assert_eq!(host.ask(&ping().of_session(&session)).status(), 200, "the session itself goes on");
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 204);
    assert_eq!(host.ask(&ping().of_session(&session)).status(), 404);
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 404);
}

#[test]
fn ids_are_long_and_never_the_same() {
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
    let (mut first, mut second) = (host.connect(), host.connect());
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
        let end = Instant::now() + PATIENCE;
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
    let folder = Folder::with_manifest(&manifest_of(&["good", "loops"]));
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
    assert_eq!((reply.status(), reply.body()), (202, &b""[..]), "a cancelled request has no answer");
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
}

#[test]
fn ending_a_session_stops_what_runs_in_it() {
    let folder = Folder::with_manifest(&manifest_of(&["good", "loops"]));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let session = host.session("2025-11-25");
    let mut wire = host.connect();
    wire.send(&call(2, "sleep_hour", json!({})).of_session(&session).bytes());
    host.begins("sleep_hour");
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&session)).status(), 204);
    assert_eq!(wire.reply().status(), 202);
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
}

#[test]
fn a_session_ends_at_its_age_with_its_stream() {
    let limits = "[http]\nsession_time = \"300ms\"\nsession_idle = \"100ms\"\n";
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
