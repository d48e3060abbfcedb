//! Three replicas that share state on one server: rates, approvals, and the server's loss.
//!
//! Promise: a person decides a question once.
//! Promise: an answer counts for what was asked.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::{Cluster, Engine, MAIN, Watched};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Folder, fixture_bytes, manifest_of, modern_meta, patience};

use super::known::{bearer, with_tokens};

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

const AWAY: &str = "the state that replicas share cannot be reached; try again";

/// A replica with state on this server. `state` holds lines of `[state]`, `component` those of the
/// component's table.
fn replica(engine: &Engine, state: &str, component: &str) -> WebHost {
    // A busy machine may take longer than the second of the default.
    let within = if state.contains("within") { "" } else { "within = \"10s\"" };
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\n{within}\n{state}\n",
        engine.port()
    );
    let manifest = manifest_of(&["loops", "good"]).replacen("version = 1\n", &shared, 1);
    let folder = Folder::with_manifest(&format!("{manifest}{component}\n"));
    folder.write("state.key", KEY);
    std::fs::set_permissions(folder.path().join("state.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

fn replicas(engine: &Engine, state: &str, component: &str) -> [WebHost; 3] {
    [(); 3].map(|()| replica(engine, state, component))
}

/// The text of a call's result, and true if it is an error.
fn said(reply: &Value) -> (String, bool) {
    let result = &reply["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
    (text.to_owned(), result["isError"] == true)
}

fn echo(wire: &mut Wire) -> (String, bool) {
    said(&wire.ask(&Ask::call("echo", json!({"text": "hello"}))).frame())
}

/// A call that may ask, with this state and its approval if it is a further round.
fn asking(state: Option<&Value>) -> Ask {
    let mut params = json!({"name": "echo", "arguments": {"text": "hello"}, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    if let Some(state) = state {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"toolcell.approval": {"action": "accept"}});
    }
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    Ask::call("echo", json!({})).saying(&body)
}

/// The outcomes of calls, as this replica recorded them.
fn outcomes(replica: &WebHost) -> Vec<String> {
    let records = replica.process().audit();
    let finished = records.iter().filter(|record| record["event"] == "call.finished");
    finished.map(|record| record["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Asks until this holds of the answer.
fn in_time(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_rate_is_one_over_three_replicas() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine, "", "[components.good.limits]\nrate = \"600/min\"");
    let began = Instant::now();
    let passed: u32 = std::thread::scope(|scope| {
        let clients = replicas.each_ref().map(|replica| {
            let mut wire = replica.connect();
            scope.spawn(move || {
                let mut passed = 0;
                for _ in 0..400 {
                    match echo(&mut wire) {
                        (text, false) => {
                            assert_eq!(text, "hello");
                            passed += 1;
                        }
                        (text, true) => {
                            let says = "too many calls: more than 600/min of this tool (limit \"rate\"); try again in ";
                            assert!(text.starts_with(says), "{text}");
                        }
                    }
                }
                passed
            })
        });
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    // All 600 may come at once; then one comes back every tenth of a second.
    let came_back = u32::try_from(began.elapsed().as_millis() / 100).unwrap() + 1;
    assert!(came_back < 600, "the machine is too slow to tell");
    assert!((600..=(600 + came_back) * 101 / 100).contains(&passed), "{passed} calls, {came_back} came back");
    assert!(replicas.iter().all(|replica| outcomes(replica).contains(&"rate_limited".to_owned())));
}

#[test]
fn so_many_calls_of_a_tool_and_of_a_caller_run_at_once_over_three_replicas() {
    let of_tool = "[components.loops.limits]\nconcurrency_shared = 1\nqueue_wait = \"200ms\"\ndeadline = \"60s\"";
    let of_caller = "[components.loops.limits]\nqueue_wait = \"200ms\"\ndeadline = \"60s\"\n\
                     concurrency_shared = 1000\n[callers.default]\ntools = [\"*\"]\nconcurrency_shared = 1";
    for (limits, busy) in [
        (of_tool, "busy: no place came free for this call within 200ms; try again (limit \"queue_wait\")"),
        (
            of_caller,
            "busy: no call of this caller ended within 200ms; try again (\"concurrency\" or \"concurrency_shared\" in [callers])",
        ),
    ] {
        let engine = Engine::start(&[]);
        let [one, two, three] = replicas(&engine, "", limits);
        let sleeps = Ask::call("sleep_hour", json!({}));
        let mut wire = one.connect();
        wire.send(&sleeps.bytes());
        in_time("it has a place", || runs(&engine));
        for replica in [&two, &three] {
            assert_eq!(said(&replica.ask(&sleeps).frame()), (busy.to_owned(), true));
        }
        // A client that closes its connection gives the call up.
        drop(wire);
        in_time("the place comes free", || !runs(&engine));
        assert_eq!(outcomes(&three), ["busy"]);
    }
}

#[test]
fn each_replica_runs_as_many_calls_as_its_concurrency_and_asks_nobody_for_a_place() {
    let engine = Engine::start(&[]);
    let limits = "[components.loops.limits]\nconcurrency = 1\nqueue = 0\ndeadline = \"5s\"";
    let replicas = replicas(&engine, "", limits);
    let sleeps = Ask::call("sleep_hour", json!({}));
    let answers: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|client| {
                let mut wire = replicas[client % 3].connect();
                let sleeps = &sleeps;
                scope.spawn(move || said(&wire.ask(sleeps).frame()).0)
            })
            .collect();
        in_time("three run at once", || {
            let running =
                |replica: &WebHost| replica.process().audit().iter().any(|line| line["event"] == "call.started");
            replicas.iter().all(running)
        });
        assert!(!runs(&engine), "no place is asked for");
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let busy = "busy: 1 calls of this tool run and 0 wait; try again (limit \"queue\")";
    assert_eq!(answers.iter().filter(|answer| *answer == busy).count(), 3, "{answers:?}");
    let over = |answer: &&String| answer.contains("\"deadline\"");
    assert_eq!(answers.iter().filter(over).count(), 3, "one at each: {answers:?}");
}

#[test]
fn more_calls_than_places_all_run_in_turn_over_three_replicas() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine, "", "[components.good.limits]\nconcurrency_shared = 2\nrate = \"100000/s\"");
    std::thread::scope(|scope| {
        for client in 0..24 {
            let mut wire = replicas[client % 3].connect();
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(echo(&mut wire), ("hello".to_owned(), false));
                }
            });
        }
    });
    in_time("all places are left", || !runs(&engine));
}

/// True while a call has a place.
fn runs(engine: &Engine) -> bool {
    engine.ask(&["KEYS", "toolcell:1:run:*"]) != "*0"
}

/// A call of `echo` under a key of the client's.
fn keyed(key: &Value, text: &str) -> Ask {
    let mut params = json!({"name": "echo", "arguments": {"text": text}, "_meta": modern_meta()});
    params["_meta"]["toolcell/requestKey"] = key.clone();
    Ask::call("echo", json!({}))
        .saying(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string())
}

#[test]
fn a_request_with_a_key_runs_once_over_three_replicas() {
    let engine = Engine::start(&[]);
    let places = "concurrency_shared = 1000\n";
    let limits = format!("[components.loops.limits]\n{places}deadline = \"60s\"\n[components.good.limits]\n{places}");
    let replicas = replicas(&engine, "", &limits);
    for number in 0..3 {
        let key = json!(format!("key {number}"));
        for replica in &replicas {
            assert_eq!(said(&replica.ask(&keyed(&key, "hello")).frame()), ("hello".to_owned(), false));
        }
        let other = "this toolcell/requestKey was used with other arguments; take a new one";
        assert_eq!(said(&replicas[2].ask(&keyed(&key, "else")).frame()), (other.to_owned(), true));
    }
    let all: Vec<String> = replicas.iter().flat_map(outcomes).collect();
    let count = |wanted: &str| all.iter().filter(|outcome| *outcome == wanted).count();
    assert_eq!((count("ok"), count("repeated"), count("invalid_input")), (3, 6, 3), "{all:?}");
    let wrong = "toolcell/requestKey must be a text of 1 to 128 bytes";
    assert_eq!(said(&replicas[0].ask(&keyed(&json!(7), "hello")).frame()), (wrong.to_owned(), true));
    // While it runs, and after it ended without an answer of its tool.
    let sleeps = json!({"name": "sleep_hour", "arguments": {}, "_meta": modern_meta()});
    let sleeps = |id: u64| {
        let mut params = sleeps.clone();
        params["_meta"]["toolcell/requestKey"] = json!("sleeps");
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
        Ask::call("sleep_hour", json!({})).saying(&body)
    };
    let [one, two, _] = &replicas;
    in_time("the others have ended", || !runs(&engine));
    let mut wire = one.connect();
    wire.send(&sleeps(1).bytes());
    in_time("it runs", || runs(&engine));
    assert_eq!(said(&two.ask(&sleeps(2)).frame()), ("this request runs already; try again".to_owned(), true));
    drop(wire);
    // The three that ended, and the bytes of their answers.
    let of_requests = ["KEYS", "toolcell:1:asked:*}:*"];
    in_time("it is given up", || !runs(&engine) && engine.ask(&of_requests) == "*4");
    let mut wire = two.connect();
    wire.send(&sleeps(3).bytes());
    in_time("it may run again", || runs(&engine));
}

#[test]
fn an_approval_is_used_once_over_three_replicas() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine, "", "approval = \"always\"");
    for round in 0..5 {
        let asked = replicas[round % 3].ask(&asking(None)).frame();
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let again = asking(Some(&asked["result"]["requestState"]));
        let answers: Vec<_> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..24)
                .map(|client| {
                    let mut wire = replicas[client % 3].connect();
                    let again = &again;
                    scope.spawn(move || said(&wire.ask(again).frame()))
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let used = "the approval of \"echo\" was used already: it was for one call";
        let count = |wanted: &str| answers.iter().filter(|(text, _)| text == wanted).count();
        assert_eq!((count("hello"), count(used)), (1, 23), "round {round}: {answers:?}");
    }
    let ran: usize =
        replicas.iter().map(|replica| outcomes(replica).iter().filter(|outcome| *outcome == "ok").count()).sum();
    assert_eq!(ran, 5, "as often as a person said yes");
}

/// A replica that serves this version of a component, whose calls are approved.
fn versioned(engine: &Engine, version: &str, lines: &str) -> WebHost {
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"10s\"\n",
        engine.port()
    );
    let component = "[components.versioned]\nsource = \"components/versioned.wasm\"\napproval = \"always\"";
    let folder = Folder::with_manifest(&format!("{shared}{component}\n{lines}\n"));
    folder.write("components/versioned.wasm", fixture_bytes(&format!("versioned_{version}")));
    folder.write("state.key", KEY);
    std::fs::set_permissions(folder.path().join("state.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

#[test]
fn a_question_of_one_version_is_answered_at_another_unless_it_may_reach_or_ask_otherwise() {
    let engine = Engine::start(&[]);
    let call = |state: Option<&Value>| {
        let mut params = json!({"name": "version", "arguments": {}, "_meta": modern_meta()});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
        if let Some(state) = state {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({"toolcell.approval": {"action": "accept"}});
        }
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
        Ask::call("version", json!({})).saying(&body)
    };
    let old = versioned(&engine, "a", "");
    let other_call =
        "params.requestState belongs to another call: the tool, what it may reach, or its arguments differ";
    for (version, lines, keeps) in [
        ("b", "", true),
        ("b", "[components.versioned.limits]\ndeadline = \"7s\"", true),
        ("a", "", true),
        ("b", "[components.versioned.tools.version]\ntitle = \"Another\"", true),
        ("a", "[components.versioned.env]\nUNITS = \"metric\"", false),
        ("a", "remember = \"10m\"", false),
    ] {
        let asked = old.ask(&call(None)).frame();
        let new = versioned(&engine, version, lines);
        let answered = new.ask(&call(Some(&asked["result"]["requestState"]))).frame();
        if keeps {
            assert_eq!(said(&answered), (version.to_owned(), false), "{lines}");
        } else {
            assert_eq!(answered["error"]["message"], other_call, "{lines}: {answered}");
        }
    }
}

#[test]
fn an_approval_is_remembered_by_all_replicas_for_its_caller() {
    let engine = Engine::start(&[]);
    let manifest = format!("{}approval = \"always\"\nremember = \"10m\"\n", manifest_of(&["loops", "good"]));
    let (replicas, [ann, bob]) = with_tokens(&engine, &manifest);
    let asking = |state: Option<&Value>, token: &str| bearer(asking(state), token);
    let asked = replicas[0].ask(&asking(None, &ann)).frame();
    let approved = replicas[1].ask(&asking(Some(&asked["result"]["requestState"]), &ann)).frame();
    assert_eq!(said(&approved), ("hello".to_owned(), false));
    for replica in &replicas {
        assert_eq!(said(&replica.ask(&asking(None, &ann)).frame()), ("hello".to_owned(), false));
    }
    assert_eq!(outcomes(&replicas[2]), ["ok"]);
    let other = replicas[2].ask(&asking(None, &bob)).frame();
    assert_eq!(other["result"]["resultType"], "input_required", "another caller is asked: {other}");
}

#[test]
fn without_its_server_calls_are_refused_and_audited_and_go_on_once_it_is_back() {
    let engine = Engine::start(&[]);
    let replicas = replicas(&engine, "within = \"2s\"", "approval = \"always\"");
    let asked = replicas[0].ask(&asking(None)).frame();
    let again = asking(Some(&asked["result"]["requestState"]));
    engine.kill();
    for replica in &replicas {
        let began = Instant::now();
        assert_eq!(said(&replica.ask(&again).frame()), (AWAY.to_owned(), true));
        assert!(began.elapsed() < patience(), "it is not waited for without end");
        assert_eq!(outcomes(replica).last().map(String::as_str), Some("state_away"));
        let list = replica.ask(&Ask::modern(7, "tools/list", json!({}))).frame();
        assert!(list["result"]["tools"].is_array(), "what needs no state goes on: {list}");
    }
    engine.start_again();
    in_time("it is back", || said(&replicas[2].ask(&again).frame()).0 != AWAY);
    in_time("it is back everywhere", || said(&replicas[1].ask(&again).frame()).0 != AWAY);
    let ran: usize =
        replicas.iter().map(|replica| outcomes(replica).iter().filter(|outcome| *outcome == "ok").count()).sum();
    assert_eq!(ran, 1, "the approval was not used before, and is now");
}

#[test]
fn a_server_that_stands_still_holds_up_nobody_for_long() {
    let engine = Engine::start(&[]);
    let replica = replica(&engine, "within = \"2s\"", "");
    let mut wire = replica.connect();
    assert_eq!(echo(&mut wire), ("hello".to_owned(), false));
    engine.pause();
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(echo(&mut wire), (AWAY.to_owned(), true));
    }
    let took = began.elapsed();
    engine.go_on();
    assert!(took < Duration::from_secs(20), "20 calls took {took:?}: each waits for a server that stands still");
    in_time("it goes on", || echo(&mut wire) == ("hello".to_owned(), false));
}

#[test]
fn rates_are_counted_by_each_replica_meanwhile_where_the_manifest_says_so() {
    let engine = Engine::start(&[]);
    let limits = "[components.good.limits]\nrate = \"5/h\"";
    let [one, other, _] = replicas(&engine, "rates_while_away = \"local\"\nwithin = \"2s\"", limits);
    let mut first = one.connect();
    let mut second = other.connect();
    let passed = |wire: &mut Wire| (0..10).filter(|_| !echo(wire).1).count();
    assert_eq!((passed(&mut first), passed(&mut second)), (5, 0), "together");
    engine.kill();
    assert_eq!((passed(&mut first), passed(&mut second)), (5, 5), "each by itself");
}

/// Calls that pass, of four on each of these replicas one after another.
fn passed_of_four(replicas: &[WebHost]) -> Vec<usize> {
    let passed = |replica: &WebHost| {
        let mut wire = replica.connect();
        (0..4).filter(|_| !echo(&mut wire).1).count()
    };
    replicas.iter().map(passed).collect()
}

#[test]
fn a_rate_is_one_over_three_replicas_whose_state_is_a_cluster() {
    let cluster = Cluster::start(&[]);
    let replicas = replicas(&cluster.nodes[1], "cluster = true", "[components.good.limits]\nrate = \"5/h\"");
    assert_eq!(passed_of_four(&replicas), [4, 1, 0]);
    let kept: Vec<_> = cluster.nodes.iter().map(|node| node.ask(&["KEYS", "toolcell:1:rate:*"])).collect();
    assert_eq!(kept.iter().filter(|kept| *kept == "*1").count(), 1, "one node has the allowance: {kept:?}");
}

#[test]
fn a_rate_stays_one_when_sentinels_name_another_main_server() {
    let watched = Watched::start(&[]);
    let state = format!("sentinel = \"{MAIN}\"\nwithin = \"250ms\"");
    let replicas = replicas(&watched.sentinels[2], &state, "[components.good.limits]\nrate = \"5/h\"");
    assert_eq!(passed_of_four(&replicas[..1]), [4]);
    assert_eq!(watched.main.ask(&["WAIT", "1", "5000"]), ":1");
    watched.main.kill();
    let mut wire = replicas[1].connect();
    assert_eq!(echo(&mut wire), (AWAY.to_owned(), true));
    let mut passed = 0;
    let mut answers = |replica: &WebHost| {
        let (text, _) = echo(&mut replica.connect());
        passed += usize::from(text == "hello");
        text != AWAY
    };
    for replica in &replicas {
        in_time("another main server answers", || answers(replica));
    }
    passed += passed_of_four(&replicas).iter().sum::<usize>();
    // One whose answer came too late on a busy machine counted all the same.
    assert!(passed <= 1, "{passed} calls, though the first four counted too");
}
