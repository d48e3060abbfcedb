//! Legacy sessions over three replicas without affinity: any of them answers, answers and
//! cancellations find the one that waits, one stream tells, and an end is an end everywhere.
//!
//! Promise: a session of replicas is what one of them sealed.
//! Promise: neither clients nor components speak to replicas.
//! Promise: an answer is taken or refused aloud.
//! Promise: an answer counts in its session.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::nginx::{self, Nginx};
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, fixture_bytes, manifest_of, patience};

use crate::clients::{folder_that_asks, node_client, python_client, talk};

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A replica with state on this server, and with this key.
fn replica(engine: &Engine, key: &str) -> WebHost {
    serving(folder(engine, key, ""))
}

fn serving(folder: Folder) -> WebHost {
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

/// The folder of a replica. `lines` are further lines of its manifest.
fn folder(engine: &Engine, key: &str, lines: &str) -> Folder {
    let manifest = manifest_of(&["asks", "good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\"");
    folder_of(engine, key, &format!("{manifest}{lines}"))
}

/// The folder of a replica with this manifest, and with state on this server.
fn folder_of(engine: &Engine, key: &str, manifest: &str) -> Folder {
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"2s\"\n",
        engine.port()
    );
    let folder = Folder::with_manifest(&manifest.replacen("version = 1\n", &shared, 1));
    folder.write("state.key", key);
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
    folder
}

fn replicas(engine: &Engine) -> [WebHost; 3] {
    [(); 3].map(|()| replica(engine, KEY))
}

/// A session whose client answers every kind of question. It is begun at one replica and made ready
/// at another.
fn session([one, other, _]: &[WebHost; 3]) -> String {
    let client = json!({"name": "toolcell-tests", "version": "1"});
    let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
    let reply = one.ask(&Ask::request(0, "initialize", params));
    let id = reply.field("mcp-session-id").unwrap_or_else(|| panic!("no session: {reply:?}")).to_owned();
    let ready = Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(other.ask(&ready.of_session(&id)).status(), 202);
    id
}

fn call(id: u64, tool: &str, arguments: Value) -> Ask {
    Ask::request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn ping(replica: &WebHost, session: &str) -> u16 {
    replica.ask(&Ask::request(1, "ping", json!({})).of_session(session)).status()
}

/// A call that asks for a name, at this replica. Returns its stream and the question.
fn asked(replica: &WebHost, session: &str) -> (Wire, Value) {
    let who = json!({"form": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
    let mut wire = replica.connect();
    wire.send(&call(1, "ask", json!({"rounds": [{"who": who}]})).of_session(session).bytes());
    assert_eq!(wire.head().status(), 200);
    let question = wire.event().expect("a question");
    assert_eq!(question["method"], "elicitation/create");
    (wire, question)
}

fn answer(replica: &WebHost, session: &str, id: &Value, name: &str) -> Reply {
    let result = json!({"action": "accept", "content": {"name": name}});
    replica.ask(&Ask::post(&json!({"jsonrpc": "2.0", "id": id, "result": result})).of_session(session))
}

/// The text of the result at the end of this stream.
fn text(wire: &mut Wire) -> String {
    let last = wire.event().expect("an answer");
    assert_eq!(wire.event(), None, "the stream ends with the answer");
    last["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {last}")).to_owned()
}

fn stream(replica: &WebHost, session: &str) -> Wire {
    let mut stream = replica.connect();
    stream.send(&Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(session).bytes());
    assert_eq!(stream.head().status(), 200);
    stream
}

fn delete(replica: &WebHost, session: &str) -> u16 {
    replica.ask(&Ask::bare("DELETE", "/mcp").of_session(session)).status()
}

/// Asks until this holds of the answer.
fn in_time(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Gives the tools of each replica another prefix, and waits until each lists them so.
fn change(replicas: &[WebHost], session: &str, prefix: &str) {
    for replica in replicas {
        let folder = replica.process().folder();
        let manifest: Vec<String> = folder
            .read("toolcell.toml")
            .lines()
            .filter(|line| !line.starts_with("prefix = "))
            .map(|line| match line {
                "[components.good]" => format!("{line}\nprefix = \"{prefix}\""),
                line => line.to_owned(),
            })
            .collect();
        folder.write("toolcell.toml", manifest.join("\n"));
    }
    let list = Ask::request(5, "tools/list", json!({})).of_session(session);
    for replica in replicas {
        in_time("the list changes", || {
            String::from_utf8_lossy(replica.ask(&list).body()).contains(&format!("{prefix}echo"))
        });
    }
}

#[test]
fn any_replica_answers_a_session() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    for revision in LEGACY_REVISIONS {
        let session = replicas[0].session(revision);
        assert!(session.len() <= 1_024 && session.bytes().all(|byte| byte.is_ascii_graphic()), "{session}");
        for number in 0..12 {
            let replica = &replicas[number % 3];
            let reply = replica.ask(&call(1, "echo", json!({"text": revision})).of_session(&session));
            assert_eq!(reply.frame()["result"]["content"][0]["text"], revision, "{number}");
            let ping = Ask::request(2, "ping", json!({})).of_session(&session).with("mcp-protocol-version", revision);
            assert_eq!(replica.ask(&ping).frame()["result"], json!({}));
        }
        let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
        let takes_batches = replicas[2].ask(&Ask::post(&batch).of_session(&session)).status() == 200;
        assert_eq!(takes_batches, revision == "2025-03-26", "the revision travels with the id");
    }
}

#[test]
fn a_session_goes_on_over_a_replica_that_was_started_anew() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    drop(replicas);
    assert_eq!(ping(&replica(&engine, KEY), &session), 200);
}

#[test]
fn only_the_id_that_was_given_is_a_session() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    let mut changed = session.clone().into_bytes();
    changed[60] = if changed[60] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for (what, id) in [
        ("another", "0123456789abcdef0123456789abcdef"),
        ("a changed one", &changed),
        ("a part", &session[..session.len() - 4]),
        ("twice", &format!("{session}{session}")),
        ("a long one", &"A".repeat(8_192)),
    ] {
        assert!(replicas.iter().all(|replica| ping(replica, id) == 404), "{what}");
    }
    let other_key = replica(&engine, "another key of at least thirty-two bytes");
    assert_eq!(ping(&other_key, &session), 404, "a replica with another key");
    assert!(replicas.iter().all(|replica| ping(replica, &session) == 200));
}

#[test]
fn a_session_belongs_to_its_caller_on_every_replica() {
    let engine = Engine::start(&[]);
    let tokens = "\n[http]\ntokens = \"tokens.jsonl\"\n";
    let first = folder(&engine, KEY, tokens);
    let [ann, ben] = ["ann", "ben"]
        .map(|name| format!("Bearer {}", Command::in_folder(&first, &["token", "new", name]).run().succeeded().trim()));
    let others = [(); 2].map(|()| folder(&engine, KEY, tokens));
    for other in &others {
        other.write("tokens.jsonl", first.read("tokens.jsonl"));
    }
    let [second, third] = others;
    let replicas = [first, second, third].map(serving);
    let id = {
        let reply = replicas[0].ask(&Ask::initialize("2025-11-25").with("authorization", &ann));
        reply.field("mcp-session-id").unwrap().to_owned()
    };
    let ping = |replica: &WebHost, token: &str| {
        replica.ask(&Ask::request(1, "ping", json!({})).of_session(&id).with("authorization", token)).status()
    };
    for _ in 0..2 {
        for replica in &replicas {
            assert_eq!([&ben, &ann].map(|token| ping(replica, token)), [404, 200]);
        }
    }
    let end = |token: &str| Ask::bare("DELETE", "/mcp").of_session(&id).with("authorization", token);
    assert_eq!(replicas[1].ask(&end(&ben)).status(), 404);
    assert_eq!(ping(&replicas[2], &ann), 200, "others do not end it");
    assert_eq!(replicas[1].ask(&end(&ann)).status(), 204);
}

#[test]
fn an_answer_in_another_session_does_nothing() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let one = session(&replicas);
    let other = session(&replicas);
    assert_ne!(one, other);
    let (mut wire, question) = asked(&replicas[0], &one);
    for replica in &replicas {
        assert_eq!(answer(replica, &other, &question["id"], "Eve").status(), 202);
    }
    assert_eq!(answer(&replicas[2], &one, &question["id"], "Ada").status(), 202);
    assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}");
}

#[test]
fn a_session_that_is_ended_anywhere_is_ended_everywhere() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    let mut stream = stream(&replicas[0], &session);
    let mut running = replicas[1].connect();
    running.send(&call(2, "sleep_hour", json!({})).of_session(&session).bytes());
    replicas[1].begins("sleep_hour");
    assert_eq!(delete(&replicas[2], &session), 204, "a replica that has not seen it yet");
    assert_eq!(stream.event(), None, "its stream ends");
    let reply = running.reply();
    assert_eq!((reply.status(), reply.frames()), (200, vec![]), "its response ends without an answer");
    assert_eq!(replicas[1].outcome("sleep_hour"), "cancelled");
    for replica in &replicas {
        in_time("it is gone", || ping(replica, &session) == 404);
        assert_eq!(delete(replica, &session), 404);
    }
    let new = replica(&engine, KEY);
    assert_eq!(ping(&new, &session), 404, "a replica that comes later knows it too");
}

#[test]
fn an_end_that_was_not_heard_is_found_out() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    for _ in 0..5 {
        let session = session(&replicas);
        assert_eq!(ping(&replicas[2], &session), 200);
        assert!(engine.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).starts_with(':'));
        assert_eq!(delete(&replicas[0], &session), 204);
        for replica in &replicas {
            in_time("it is gone", || ping(replica, &session) == 404);
        }
    }
}

#[test]
fn an_answer_finds_the_replica_that_waits_and_others_do_nothing() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    for number in 0..6 {
        let (mut wire, question) = asked(&replicas[number % 3], &session);
        let id = question["id"].as_str().unwrap();
        let (address, last) = id.rsplit_once('/').unwrap();
        let other = &replicas[(number + 1) % 3];
        for forged in [
            format!("{address}/999"),
            format!("{address}0/{last}"),
            format!("toolcell/ask/{last}"),
            format!("toolcell/ask/sessions.1/{last}"),
            format!("toolcell/ask/*.1/{last}"),
            "1".to_owned(),
        ] {
            assert_eq!(answer(other, &session, &json!(forged), "Eve").status(), 202, "{forged}");
        }
        let of_nobody = json!(format!("toolcell/ask/{}.1/{last}", "0".repeat(32)));
        assert_eq!(answer(other, &session, &of_nobody, "Eve").status(), 503, "no replica has heard it");
        assert_eq!(answer(other, &session, &question["id"], "Ada").status(), 202);
        assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}", "{number}");
        assert_eq!(answer(other, &session, &question["id"], "Eve").status(), 202, "a repeated one does nothing");
    }
}

#[test]
fn an_answer_and_a_cancellation_that_reach_nobody_are_not_taken_and_count_once_sent_again() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    let (mut wire, question) = asked(&replicas[0], &session);
    let mut running = replicas[0].connect();
    running.send(&call(2, "sleep_hour", json!({})).of_session(&session).bytes());
    replicas[0].begins("sleep_hour");
    // The server answers in turn: what that call asked of it is answered before what this one asks.
    let behind = call(3, "echo", json!({"text": "x"})).of_session(&session);
    assert_eq!(replicas[0].ask(&behind).status(), 200);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    let cancel = || replicas[1].ask(&Ask::post(&cancel).of_session(&session)).status();
    engine.pause();
    let refused = answer(&replicas[1], &session, &question["id"], "Ada");
    assert_eq!((refused.status(), refused.field("retry-after").is_some()), (503, true), "{refused:?}");
    assert_eq!(cancel(), 503);
    engine.go_on();
    in_time("it is taken", || answer(&replicas[1], &session, &question["id"], "Ada").status() == 202);
    assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}");
    in_time("it is taken", || cancel() == 202);
    assert_eq!(replicas[0].outcome("sleep_hour"), "cancelled");
}

#[test]
fn an_answer_outlives_the_connection_that_would_have_heard_it() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    for number in 0..5 {
        let (mut wire, question) = asked(&replicas[0], &session);
        assert!(engine.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).starts_with(':'));
        in_time("it is taken", || answer(&replicas[1], &session, &question["id"], "Ada").status() == 202);
        assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}", "{number}");
    }
}

#[test]
fn an_answer_that_is_too_long_says_so_wherever_it_lands() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    let said = [&replicas[0], &replicas[1]].map(|lands| {
        let (mut wire, question) = asked(&replicas[0], &session);
        assert_eq!(answer(lands, &session, &question["id"], &"a".repeat(100_000)).status(), 202);
        text(&mut wire)
    });
    assert!(said[0].contains("more than 65536"), "{said:?}");
    assert_eq!(said[0], said[1]);
    // It is longer than anything that a tool takes, so it is not read. The question stays open.
    for lands in [&replicas[0], &replicas[1]] {
        let (mut wire, question) = asked(&replicas[0], &session);
        assert_eq!(answer(lands, &session, &question["id"], &"a".repeat(3_000_000)).status(), 413);
        assert_eq!(answer(lands, &session, &question["id"], "Ada").status(), 202);
        assert_eq!(text(&mut wire), "accepted {\"name\":\"Ada\"}");
    }
}

#[test]
fn a_cancellation_finds_the_replica_that_runs_the_call() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let [mine, other] = [session(&replicas), session(&replicas)];
    let mut running = replicas[0].connect();
    running.send(&call(2, "sleep_hour", json!({})).of_session(&mine).bytes());
    replicas[0].begins("sleep_hour");
    let cancel = |session: &str, id: Value| {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        assert_eq!(replicas[1].ask(&Ask::post(&cancel).of_session(session)).status(), 202);
    };
    cancel(&other, json!(2));
    cancel(&mine, json!("2"));
    cancel(&mine, json!("x".repeat(100_000)));
    // A call in between shows that the replica still answers, and that the call still runs.
    assert_eq!(ping(&replicas[0], &mine), 200);
    cancel(&mine, json!(2));
    let reply = running.reply();
    assert_eq!((reply.status(), reply.frames()), (200, vec![]), "a cancelled request has no answer");
    assert_eq!(replicas[0].outcome("sleep_hour"), "cancelled");
}

/// The addresses that this replica lists in a session.
fn listed(replica: &WebHost, session: &str) -> Vec<String> {
    let list = replica.ask(&Ask::request(4, "resources/list", json!({})).of_session(session)).frame();
    let resources = list["result"]["resources"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_a_result_embedded_is_read_from_any_replica_and_gone_with_its_session() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let [mine, other] = [session(&replicas), session(&replicas)];
    let read = |replica: &WebHost, session: &str| {
        replica.ask(&Ask::request(3, "resources/read", json!({"uri": "note://one"})).of_session(session)).frame()
    };
    for (number, replica) in replicas.iter().enumerate() {
        let embeds = replica.ask(&call(1, "every_kind", json!({})).of_session(&mine)).frame();
        assert_eq!(embeds["result"]["isError"], false, "{embeds}");
        for replica in &replicas {
            assert_eq!(listed(replica, &mine), ["note://one"], "{number}: each replaces the one before");
            let found = read(replica, &mine);
            assert_eq!(found["result"]["contents"][0]["text"], "first note", "{found}");
            assert_eq!(found["result"]["contents"][1]["blob"], "AP9/", "{found}");
            assert_eq!((listed(replica, &other).len(), &read(replica, &other)["error"]["code"]), (0, &json!(-32002)));
        }
    }
    assert_eq!(delete(&replicas[2], &mine), 204);
    in_time("it is gone", || engine.ask(&["KEYS", "toolcell:1:res:*:one:*"]) == "*0");
    let _ = replicas[0].ask(&call(1, "every_kind", json!({})).of_session(&other));
    engine.kill();
    for replica in &replicas[..2] {
        let list = replica.ask(&Ask::request(4, "resources/list", json!({})).of_session(&other)).frame();
        for away in [list, read(replica, &other)] {
            let message = "The state that replicas share cannot be reached: try again";
            assert_eq!((&away["error"]["code"], &away["error"]["message"]), (&json!(-32603), &json!(message)));
        }
    }
}

#[test]
fn a_caller_without_a_session_reads_what_it_got_from_any_replica() {
    let engine = Engine::start(&[]);
    let tokens = "\n[http]\ntokens = \"tokens.jsonl\"\n";
    let first = folder(&engine, KEY, tokens);
    let [ann, ben] = ["ann", "ben"]
        .map(|name| format!("Bearer {}", Command::in_folder(&first, &["token", "new", name]).run().succeeded().trim()));
    let second = folder(&engine, KEY, tokens);
    second.write("tokens.jsonl", first.read("tokens.jsonl"));
    let [one, two] = [first, second].map(serving);
    let by = |token: &str, ask: Ask| ask.with("authorization", token);
    assert_eq!(one.ask(&by(&ann, Ask::call("every_kind", json!({})))).status(), 200);
    let read = Ask::modern(3, "resources/read", json!({"uri": "note://one"})).with("mcp-name", "note://one");
    for replica in [&one, &two] {
        let hers = replica.ask(&by(&ann, read.clone())).frame();
        assert_eq!(hers["result"]["contents"][0]["text"], "first note", "{hers}");
        assert_eq!(replica.ask(&by(&ben, read.clone())).error(), (200, -32602));
    }
}

#[test]
fn the_log_level_of_a_session_holds_on_the_replicas_that_know_it() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    assert!(replicas.iter().all(|replica| ping(replica, &session) == 200));
    let level = Ask::request(3, "logging/setLevel", json!({"level": "emergency"})).of_session(&session);
    assert_eq!(replicas[1].ask(&level).frame()["result"], json!({}));
    for replica in &replicas {
        in_time("no log message comes", || {
            let reply = replica.ask(&call(1, "slow", json!({"steps": 1, "step_ms": 1})).of_session(&session));
            reply.frames().iter().all(|frame| frame["method"] != "notifications/message")
        });
    }
}

#[test]
fn a_client_has_one_stream_and_is_told_once() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    assert!(replicas.iter().all(|replica| ping(replica, &session) == 200));
    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let mut listeners = replicas.each_ref().map(|replica| {
        let mut listener = replica.connect();
        listener.send(&Ask::listen(5).bytes());
        assert_eq!(listener.head().status(), 200);
        assert_eq!(listener.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
        listener
    });
    let mut change = |prefix: &str| {
        change(&replicas, &session, prefix);
        for listener in &mut listeners {
            assert_eq!(listener.event().unwrap()["method"], told["method"]);
        }
    };
    change("one_");
    let mut first = stream(&replicas[0], &session);
    assert_eq!(first.event(), Some(told.clone()));
    // By the next change every replica has heard of the first stream. One that opened another
    // before that would send what it kept.
    change("two_");
    assert_eq!(first.event(), Some(told.clone()));
    let mut second = stream(&replicas[1], &session);
    assert_eq!(first.event(), None, "the newer stream takes over, and nothing was told twice");
    change("three_");
    assert_eq!(second.event(), Some(told.clone()));
    let mut third = stream(&replicas[2], &session);
    assert_eq!(second.event(), None);
    assert_eq!(delete(&replicas[0], &session), 204);
    assert_eq!(third.event(), None, "nothing was left to be told");
}

#[test]
fn messages_that_another_replica_kept_come_on_the_stream_wherever_it_opens() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    // The third replica has not seen the session when the list changes.
    change_unseen(&replicas, &session);
    let mut stream = stream(&replicas[2], &session);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(stream.event(), Some(told));
    assert_eq!(delete(&replicas[0], &session), 204);
    assert_eq!(stream.event(), None, "two replicas kept it, and it came once");
}

/// Changes the list of each replica, and waits for it with another session.
fn change_unseen(replicas: &[WebHost; 3], session: &str) {
    assert!(replicas[..2].iter().all(|replica| ping(replica, session) == 200));
    let other = self::session(replicas);
    change(replicas, &other, "new_");
}

#[test]
fn listeners_of_both_eras_hear_once_of_a_change_and_again_of_a_replica_that_comes_later() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    let mut legacy = stream(&replicas[0], &session);
    let mut modern = [&replicas[1], &replicas[2]].map(|replica| {
        let mut wire = replica.connect();
        wire.send(&Ask::listen(5).bytes());
        assert_eq!(wire.head().status(), 200);
        assert_eq!(wire.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
        wire
    });
    let told = "notifications/tools/list_changed";
    let mut hears = |times: usize| {
        for _ in 0..times {
            assert_eq!(legacy.event().unwrap()["method"], told);
            for wire in &mut modern {
                assert_eq!(wire.event().unwrap()["method"], told);
            }
        }
    };
    change(&replicas, &session, "all_");
    hears(1);
    let began = Instant::now();
    change(&replicas[..1], &session, "later_");
    hears(1);
    assert!(began.elapsed() > Duration::from_secs(4), "the others are waited for");
    change(&replicas[1..2], &session, "later_");
    hears(1);
    let began = Instant::now();
    change(&replicas[2..], &session, "later_");
    hears(1);
    assert!(began.elapsed() < patience());
    assert_eq!(delete(&replicas[2], &session), 204);
    assert_eq!(legacy.event(), None, "nothing was told twice");
}

/// A component whose secret this program prints.
fn with_program(manifest: &str, program: &Path) -> String {
    let exec = program.display();
    format!(
        "{manifest}\n[components.reach_http]\nsource = \"components/reach_http.wasm\"\n\
         network = {{ http = [\"https://a.example\"] }}\n[components.reach_http.secrets.KEY]\n\
         from = {{ exec = [\"{exec}\"], timeout = \"60s\" }}\nheader = \"x-key\"\nfor = \"https://a.example\"\n"
    )
}

#[test]
fn a_replica_that_loads_for_long_is_waited_for() {
    let engine = Engine::start(&[]);
    let manifest = manifest_of(&["good"]);
    let [quick, slow] = ["echo key", "touch began; until [ -e go ]; do sleep 0.1; done; echo key"].map(|script| {
        let folder = folder_of(&engine, KEY, &manifest);
        folder.write("components/reach_http.wasm", fixture_bytes("reach_http"));
        let text = format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display());
        folder.write("program", text);
        std::fs::set_permissions(folder.path().join("program"), Permissions::from_mode(0o700)).unwrap();
        serving(folder)
    });
    let mut wire = quick.connect();
    wire.send(&Ask::listen(5).bytes());
    assert_eq!(wire.head().status(), 200);
    assert_eq!(wire.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    for replica in [&quick, &slow] {
        let folder = replica.process().folder();
        let manifest = with_program(&folder.read("toolcell.toml"), &folder.path().join("program"));
        folder.write("toolcell.toml", manifest);
    }
    let lists = |replica: &WebHost| {
        let ask = Ask::modern(6, "tools/list", json!({}));
        String::from_utf8_lossy(replica.ask(&ask).body()).contains("\"http\"")
    };
    let folder = slow.process().folder().path().to_owned();
    in_time("both have begun", || folder.join("began").exists() && lists(&quick));
    let heard = std::thread::spawn(move || wire.event());
    // Longer than a replica that says nothing is waited for.
    std::thread::sleep(Duration::from_secs(7));
    assert!(!heard.is_finished() && !lists(&slow), "the other one still loads");
    std::fs::write(folder.join("go"), "").unwrap();
    assert_eq!(heard.join().unwrap().unwrap()["method"], "notifications/tools/list_changed");
    assert!(lists(&slow), "whoever hears of it may ask any replica");
}

#[test]
fn known_sessions_go_on_while_the_server_is_away_and_unknown_ones_once_it_is_back() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine);
    let session = session(&replicas);
    engine.kill();
    assert_eq!(ping(&replicas[0], &session), 200);
    assert_eq!(ping(&replicas[1], &session), 200);
    let unknown = replicas[2].ask(&Ask::request(1, "ping", json!({})).of_session(&session));
    assert_eq!((unknown.status(), unknown.field("retry-after")), (503, Some("1")));
    let message = unknown.frame()["error"]["message"].clone();
    assert_eq!(message, "The state that replicas share cannot be reached: try again in a second");
    assert_eq!(delete(&replicas[0], &session), 503, "an end that cannot be noted is none");
    engine.start_again();
    in_time("it is back", || ping(&replicas[2], &session) == 200);
    in_time("it can be ended", || delete(&replicas[0], &session) == 204);
    in_time("it is ended", || replicas.iter().all(|replica| ping(replica, &session) == 404));
    // What was asked while nothing was heard is answered again afterwards.
    let new = self::session(&replicas);
    let (mut wire, question) = asked(&replicas[0], &new);
    // Until replicas hear each other again, answers are lost. Repeated ones do nothing.
    let call = std::thread::spawn(move || text(&mut wire));
    in_time("an answer reaches the call", || {
        assert_eq!(answer(&replicas[1], &new, &question["id"], "Ada").status(), 202);
        call.is_finished()
    });
    assert_eq!(call.join().unwrap(), "accepted {\"name\":\"Ada\"}");
}

/// Makes a legacy client of an SDK answer what tools ask, through an nginx before three replicas.
fn answers_without_affinity(mut client: tokio::process::Command) {
    let Some(program) = nginx::installed() else { return };
    let engine = Engine::start(&[]);
    let asks = folder_that_asks();
    let replicas = [(); 3].map(|()| serving(folder_of(&engine, KEY, &asks.read("toolcell.toml"))));
    let nginx = Nginx::before(&program, &replicas.each_ref().map(WebHost::address), |shown| shown);
    client.arg("--at").arg(format!("asking=http://{}/mcp", nginx.address()));
    talk(client.arg("--asking").arg(asks.path()), "legacy");
    let has_called =
        |replica: &&WebHost| replica.process().audit().iter().any(|record| record["event"] == "call.finished");
    assert!(replicas.iter().filter(has_called).count() > 1, "calls of one session go to several replicas");
}

#[test]
fn the_python_sdk_needs_no_affinity_for_a_session() {
    answers_without_affinity(python_client("client.py"));
}

#[test]
fn the_typescript_sdk_needs_no_affinity_for_a_session() {
    answers_without_affinity(node_client("typescript.mjs"));
}
