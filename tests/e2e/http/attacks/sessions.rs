//! Sessions that are opened without end, guessed, chosen, or taken from other clients.

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{alone, manifest_of};

/// Sessions at once, by default.
const SESSIONS: usize = 10_000;

/// Memory that they may take, in bytes: two kilobytes each, and the memory of one client's
/// requests.
const BYTES: u64 = 20 << 20;

fn ping(session: &str) -> Ask {
    Ask::request(1, "ping", json!({})).of_session(session)
}

fn stream(session: &str) -> Ask {
    Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(session)
}

#[test]
fn ten_thousand_idle_sessions_cost_little_and_the_oldest_make_room() {
    let _alone = alone("its own memory and sessions");
    let host = WebHost::serving(&["good"]);
    host.still_works();
    let before = host.process().resident_bytes();
    let mut wire = host.connect();
    let open = |wire: &mut Wire| {
        let reply = wire.ask(&Ask::initialize("2025-11-25"));
        assert_eq!(reply.status(), 200);
        reply.field("mcp-session-id").unwrap().to_owned()
    };
    let streaming = host.session("2025-11-25");
    let mut held = host.connect();
    held.send(&stream(&streaming).bytes());
    assert_eq!(held.head().status(), 200);
    let oldest = open(&mut wire);
    let used = open(&mut wire);
    while_opening(&mut wire, SESSIONS - 4, open);
    let more = host.process().resident_bytes().saturating_sub(before);
    assert!(more < BYTES, "{SESSIONS} sessions took {more} bytes");
    assert_eq!(host.ask(&ping(&oldest)).status(), 200, "there is room for all");
    assert_eq!(host.ask(&ping(&used)).status(), 200);
    // Past the maximum, the sessions that are idle the longest end, and no others.
    while_opening(&mut wire, SESSIONS, open);
    let more = host.process().resident_bytes().saturating_sub(before);
    assert!(more < BYTES, "{SESSIONS} sessions, and as many that had to go, took {more} bytes");
    for gone in [&oldest, &used] {
        assert_eq!(host.ask(&ping(gone)).error(), (404, -32600));
    }
    assert_eq!(host.ask(&ping(&streaming)).status(), 200, "one with a stream is not idle");
    host.still_works();
}

/// Opens that many sessions on one connection. The last of them is used.
fn while_opening(wire: &mut Wire, count: usize, open: impl Fn(&mut Wire) -> String) {
    let mut last = String::new();
    for _ in 0..count {
        last = open(wire);
    }
    assert_eq!(wire.ask(&ping(&last)).status(), 200);
}

#[test]
fn where_every_session_is_in_use_one_more_is_told_to_come_again() {
    let _alone = alone("its own number of sessions");
    let host = WebHost::with_manifest(&format!("{}\n[http]\nsessions = 2\n", manifest_of(&["good"])));
    let sessions: Vec<String> = (0..2).map(|_| host.session("2025-11-25")).collect();
    let streams: Vec<_> = sessions
        .iter()
        .map(|session| {
            let mut wire = host.connect();
            wire.send(&stream(session).bytes());
            assert_eq!(wire.head().status(), 200);
            wire
        })
        .collect();
    let refused = host.ask(&Ask::initialize("2025-11-25"));
    assert_eq!((refused.error(), refused.field("retry-after")), ((503, -32603), Some("1")));
    for session in &sessions {
        assert_eq!(host.ask(&ping(session)).status(), 200, "those that are there go on");
    }
    assert_eq!(host.ask(&Ask::call("echo", json!({"text": "x"}))).status(), 200, "the other era has none");
    drop(streams);
    let end = std::time::Instant::now() + toolcell_tests::patience();
    while host.ask(&Ask::initialize("2025-11-25")).status() != 200 {
        assert!(std::time::Instant::now() < end, "there was never room again");
    }
}

#[test]
fn an_id_is_neither_guessed_nor_chosen() {
    let _alone = alone("ids of its own sessions");
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let mut wire = host.connect();
    let mut guess = |what: &str, id: &str| assert_eq!(wire.ask(&ping(id)).error(), (404, -32600), "{what}: {id}");
    // Every id that differs from the real one in one digit.
    for at in 0..session.len() {
        for digit in "0123456789abcdef".chars() {
            let near: String =
                session.char_indices().map(|(place, own)| if place == at { digit } else { own }).collect();
            if near != session {
                guess("a near one", &near);
            }
        }
    }
    guess("in capitals", &session.to_ascii_uppercase().replace(|digit: char| digit.is_ascii_digit(), "F"));
    guess("with more behind it", &format!("{session}0"));
    guess("twice", &format!("{session}{session}"));
    guess("a list", &format!("{session},{session}"));
    guess("a part", &session[..16]);
    guess("nothing", "");
    guess("a path", "../../etc/passwd");
    guess("a long one", &"a".repeat(20_000));
    // A client that brings an id chosen by another client gets one of the server's own.
    for chosen in ["chosen", &"0".repeat(32), &session] {
        let reply = host.ask(&Ask::initialize("2025-11-25").of_session(chosen));
        assert_eq!(reply.status(), 200, "{chosen}: {reply:?}");
        assert_ne!(reply.field("mcp-session-id"), Some(chosen), "{chosen}");
    }
    assert_eq!(host.ask(&ping("chosen")).status(), 404);
    assert_eq!(host.ask(&ping(&session)).status(), 200);
    host.still_works();
}
