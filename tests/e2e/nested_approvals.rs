//! Approvals of calls that a tool makes: who is asked what, and that no call runs twice however
//! the client answers.
//!
//! Promise: a nested call is a call.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{Answer, Folder, Saving, TestHost, alone, manifest_of, patience};

/// A person must approve `add`. `keyvalue` counts: its state is the proof of how often a call ran.
fn manifest(lines: &str) -> String {
    let manifest = manifest_of(&["good", "reach_state", "loops", "asks", "calls"]);
    format!(
        "{manifest}calls = ['echo', 'add', 'keyvalue', 'sleep_hour', 'ask']\n\
         [components.good.tools.add]\napproval = \"always\"\n\
         [components.reach_state.keyvalue]\n\
         [server]\nstate_key = \"file:state.key\"\n{lines}"
    )
}

fn folder(lines: &str) -> Folder {
    let folder = Folder::with_manifest(&manifest(lines));
    key_in(&folder);
    folder
}

/// Writes the key that seals what clients return.
fn key_in(folder: &Folder) {
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
}

fn host(lines: &str) -> TestHost {
    TestHost::recording_in(folder(lines), &[])
}

fn count() -> Value {
    json!({"tool": "keyvalue", "arguments": {"op": "increment", "key": "n"}})
}

fn add(number: u64) -> Value {
    json!({"tool": "add", "arguments": {"a": number, "b": 0}})
}

/// How often `count` ran.
fn counted(host: &mut TestHost) -> u64 {
    let call = json!({"name": "keyvalue", "arguments": {"op": "get", "key": "n"}});
    let reply = host.request("tools/call", call);
    let found = &reply["result"]["structuredContent"]["ok"];
    found.as_str().map_or(0, |count| count.parse().unwrap_or_else(|_| panic!("{reply}")))
}

/// The params of a call of a modern client that can be asked. `more` brings answers.
fn params(tool: &str, arguments: &Value, more: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn modern(host: &mut TestHost, tool: &str, arguments: &Value, more: &Value) -> Value {
    host.request("tools/call", params(tool, arguments, more))
}

/// The keys of the questions of a round, with their messages.
fn questions(round: &Value) -> Vec<(String, String)> {
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let asked = round["result"]["inputRequests"].as_object().unwrap();
    let message = |question: &Value| question["params"]["message"].as_str().unwrap_or_default().to_owned();
    asked.iter().map(|(key, question)| (key.clone(), message(question))).collect()
}

/// Params that answer each question of a round so.
fn answering(round: &Value, response: &Value) -> Value {
    let responses: serde_json::Map<String, Value> =
        questions(round).into_iter().map(|(key, _)| (key, response.clone())).collect();
    json!({"requestState": round["result"]["requestState"], "inputResponses": responses})
}

fn accepting(round: &Value) -> Value {
    answering(round, &json!({"action": "accept", "content": {}}))
}

fn ends(reply: &Value) -> Value {
    let result = &reply["result"];
    assert_eq!(result["resultType"], "complete", "{reply}");
    assert_ne!(result["isError"], true, "{reply}");
    result["structuredContent"].clone()
}

fn sum(number: u64) -> Value {
    json!({"ok": {"texts": [json!({"sum": number}).to_string()], "structured": {"sum": number}}})
}

fn counts(ends: &Value) -> Vec<&Value> {
    ends.as_array().unwrap().iter().map(|end| &end["ok"]["structured"]["ok"]).filter(|count| !count.is_null()).collect()
}

fn refused(reason: &str, text: &str) -> Value {
    json!({"refused": reason, "text": text})
}

/// The tools of the calls that began, in order.
fn began(host: &TestHost) -> Vec<String> {
    let records = host.audit();
    let started = records.iter().filter(|record| record["event"] == "call.started");
    started.map(|record| record["tool"].as_str().unwrap().to_owned()).collect()
}

/// The answers to questions, in order.
fn answers(host: &TestHost) -> Vec<String> {
    let records = host.audit();
    let asked = records.iter().filter(|record| record["event"] == "call.asked");
    asked.map(|record| record["answer"].as_str().unwrap().to_owned()).collect()
}

const GONE: &str = "this run cannot go on: it went on already, its time is over, or the host that kept its log is gone. \
                    Call the tool again without requestState; calls that it made would then be made again";

fn error_text(reply: Value) -> String {
    Answer::new(reply).error_text().to_owned()
}

#[test]
fn a_run_goes_on_with_the_answer_and_no_call_of_it_runs_twice() {
    let mut host = host("");
    let calls = json!({"calls": [count(), add(1), count(), add(2), count()]});
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    let question = "Allow the tool \"relay_each\" to call the tool \"add\" of the component \"good\"? Calls that this run \
                    has made so far: 1.\nArguments: {\"a\":1,\"b\":0}";
    assert_eq!(questions(&first), [("2/toolcell.approval".to_owned(), question.to_owned())]);
    assert_eq!(counted(&mut host), 1);
    let second = modern(&mut host, "relay_each", &calls, &accepting(&first));
    let asked = questions(&second);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].0, "4/toolcell.approval");
    assert!(asked[0].1.contains("made so far: 3."), "{asked:?}");
    let done = ends(&modern(&mut host, "relay_each", &calls, &accepting(&second)));
    assert_eq!(counts(&done), [&json!(1), &json!(2), &json!(3)]);
    assert_eq!((&done[1], &done[3]), (&sum(1), &sum(2)));
    assert_eq!(counted(&mut host), 3);
    // What was answered is used up, in whichever round.
    for round in [&first, &second] {
        assert_eq!(error_text(modern(&mut host, "relay_each", &calls, &accepting(round))), GONE);
    }
    assert_eq!(counted(&mut host), 3);
    let records = host.audit();
    let resumed = records.iter().filter(|record| record["event"] == "call.resumed");
    assert_eq!(resumed.map(|record| &record["calls"]).collect::<Vec<_>>(), [&json!(1), &json!(3)]);
    let answers = records.iter().filter(|record| record["event"] == "call.asked").map(|record| &record["answer"]);
    assert_eq!(answers.collect::<Vec<_>>(), ["pending", "accepted", "pending", "accepted"]);
    assert_eq!(began(&host).iter().filter(|tool| *tool == "add").count(), 4, "two of them only asked");
}

#[test]
fn a_no_is_a_value_and_stays_a_no() {
    let mut host = host("");
    let calls = json!({"calls": [count(), add(1), count()]});
    let declined = refused("NotApproved", "the person declined: \"add\" was not run");
    let dismissed = refused("NotApproved", "the person did not decide: \"add\" was not run");
    for (response, said) in [
        (json!({"action": "decline"}), &declined),
        (json!({"action": "cancel"}), &dismissed),
        (json!({"action": "accept", "content": {"allow": "no"}}), &declined),
    ] {
        let first = modern(&mut host, "relay_each", &calls, &json!({}));
        let done = ends(&modern(&mut host, "relay_each", &calls, &answering(&first, &response)));
        assert_eq!(&done[1], said);
        assert_eq!(counts(&done).len(), 2);
        assert_eq!(error_text(modern(&mut host, "relay_each", &calls, &accepting(&first))), GONE);
    }
    assert_eq!(counted(&mut host), 6);
}

#[test]
fn of_a_list_what_ran_is_kept_and_all_questions_come_at_once() {
    for at_once in [1, 8] {
        let mut host = host(&format!("[components.calls.limits]\ncalls_at_once = {at_once}"));
        let calls = json!({"calls": [count(), add(1), count(), add(2), count()]});
        let mut round = modern(&mut host, "relay_all", &calls, &json!({}));
        // Those under way come to their ends, and no other begins once one waits.
        if at_once == 8 {
            assert_eq!(questions(&round).len(), 2, "{round}");
        }
        while round["result"]["resultType"] == "input_required" {
            round = modern(&mut host, "relay_all", &calls, &accepting(&round));
        }
        let done = ends(&round);
        assert_eq!((&done[1], &done[3]), (&sum(1), &sum(2)));
        assert_eq!(counts(&done).len(), 3);
        assert_eq!(counted(&mut host), 3, "at once: {at_once}");
    }
}

#[test]
fn a_call_under_way_at_a_question_ends_first_and_does_not_run_again() {
    let mut host = host("[components.loops.limits]\ndeadline = \"300ms\"");
    let calls = json!({"calls": [{"tool": "sleep_hour"}, add(1), count()]});
    let first = modern(&mut host, "relay_all", &calls, &json!({}));
    let done = ends(&modern(&mut host, "relay_all", &calls, &accepting(&first)));
    let late = "deadline exceeded: the call took longer than 300ms (limit \"deadline\")";
    assert_eq!((&done[0], &done[1]), (&refused("OverLimit", late), &sum(1)));
    assert_eq!(began(&host).iter().filter(|tool| *tool == "sleep_hour").count(), 1);
    assert_eq!(counted(&mut host), 1);
}

#[test]
fn a_tool_that_does_something_else_the_second_time_is_stopped() {
    let mut host = host("");
    let arguments = json!({"tool": "echo", "calls": [count(), add(1), count()]});
    let first = modern(&mut host, "relay_drifting", &arguments, &json!({}));
    let said = error_text(modern(&mut host, "relay_drifting", &arguments, &accepting(&first)));
    let expected = "the tool did not do the same again: call 1 was one of \"echo\" before a person was asked, and is now \
                    one with other arguments. It was stopped, and no call ran twice";
    assert_eq!(said, expected);
    assert_eq!(counted(&mut host), 1);
    assert_eq!(began(&host).iter().filter(|tool| *tool == "echo").count(), 1);
    assert_eq!(error_text(modern(&mut host, "relay_drifting", &arguments, &accepting(&first))), GONE);
    host.still_works();
}

/// `relay_variable` calls with the text of this variable, so that a reload changes what it does.
fn calling_with(text: &str) -> String {
    let more = format!(
        "[components.calls.env]\nKEY = \"{text}\"\n[components.good.tools.echo]\napproval = \"always\"\n\
         [components.b]\nsource = \"components/calls.wasm\"\nprefix = \"b_\"\napproval = \"always\"\n"
    );
    manifest(&more).replace("'ask']", "'ask', 'b_relay_and_ask']")
}

/// Replaces the manifest, and waits until it serves.
fn serves_next(host: &TestHost, manifest: &str) {
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest);
    host.serves_generation(2);
}

fn changed(tool: &str) -> String {
    format!(
        "the tool did not do the same again: call 1 was one of {tool:?} before a person was asked, and is now one with \
         other arguments. It was stopped, and no call ran twice"
    )
}

#[test]
fn a_person_who_has_allowed_a_call_has_allowed_no_other_in_its_place() {
    let folder = Folder::with_manifest(&calling_with("safe"));
    key_in(&folder);
    let mut host = TestHost::recording_in(folder, &[]);
    let call = json!({"tool": "b_relay_and_ask"});
    let first = modern(&mut host, "relay_variable", &call, &json!({}));
    assert_eq!(questions(&first)[0].0, "1/toolcell.approval");
    // The allowed call asks itself, and so waits again.
    let second = modern(&mut host, "relay_variable", &call, &accepting(&first));
    assert_eq!(questions(&second)[0].0, "1/who");
    serves_next(&host, &calling_with("other"));
    let before = began(&host).len();
    let name = answering(&second, &json!({"action": "accept", "content": {"name": "Ada"}}));
    for expected in [changed("b_relay_and_ask").as_str(), GONE] {
        assert_eq!(error_text(modern(&mut host, "relay_variable", &call, &name)), expected);
    }
    assert!(!began(&host)[before..].contains(&"b_relay_and_ask".to_owned()), "{:?}", began(&host));
}

#[test]
fn what_a_person_was_not_shown_of_long_arguments_does_not_change_after_the_answer() {
    let padded = |text: &str| format!("{}{text}{}", "x".repeat(1_000), "y".repeat(1_000));
    let folder = Folder::with_manifest(&calling_with(&padded("safe")));
    key_in(&folder);
    let mut host = TestHost::recording_in(folder, &[]);
    let call = json!({"tool": "echo"});
    let first = modern(&mut host, "relay_variable", &call, &json!({}));
    let message = &questions(&first)[0].1;
    assert!(message.contains("characters left out)") && message.ends_with("y\"}"), "{message}");
    serves_next(&host, &calling_with(&padded("evil")));
    let said = error_text(modern(&mut host, "relay_variable", &call, &accepting(&first)));
    assert_eq!(said, changed("echo"));
}

#[test]
fn a_person_is_asked_again_if_a_called_tool_has_other_rights_by_then() {
    let echo = "[components.good.tools.echo]\napproval = \"always\"\n";
    let mut host = host(echo);
    let calls = json!({"calls": [add(1), {"tool": "echo", "arguments": {"text": "x"}}, add(2)]});
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    let run = json!({"action": "accept", "content": {"allow": "run", "calls": 5}});
    let second = modern(&mut host, "relay_each", &calls, &answering(&first, &run));
    assert_eq!(questions(&second)[0].0, "2/toolcell.approval");
    serves_next(&host, &manifest(&format!("{echo}[components.good.env]\nMORE = \"1\"\n")));
    let third = modern(&mut host, "relay_each", &calls, &accepting(&second));
    assert_eq!(questions(&third)[0].0, "2/toolcell.approval", "the answer was about other rights");
    let fourth = modern(&mut host, "relay_each", &calls, &accepting(&third));
    assert_eq!(questions(&fourth)[0].0, "3/toolcell.approval", "so was that for calls of this run");
    let done = ends(&modern(&mut host, "relay_each", &calls, &accepting(&fourth)));
    assert_eq!((&done[0], &done[2]), (&sum(1), &sum(2)));
}

#[test]
fn blanks_and_escapes_hide_no_arguments_from_the_person() {
    let mut host = host("[components.good.tools.echo]\napproval = \"always\"\n");
    let blanks = " ".repeat(1_000);
    let arguments = format!("{{{blanks}\"\\u0074ext\":\n\"\u{2800}{blanks}\\u202ewire\"}}");
    let first = modern(&mut host, "relay_text", &json!({"tool": "echo", "arguments": arguments}), &json!({}));
    let shown = format!("{{\"text\":\"\\u{{2800}}{}\\u{{20}}{{984}}\\u{{202e}}wire\"}}", " ".repeat(16));
    let message = &questions(&first)[0].1;
    assert_eq!(message.split_once("\nArguments: ").map(|(_, arguments)| arguments), Some(shown.as_str()));
}

#[test]
fn a_run_goes_on_after_its_host_was_killed_while_it_waited() {
    let _alone = alone("it kills its host");
    let calls = json!({"calls": [count(), add(1), count(), add(2)]});
    let mut host = host("");
    let mut round = modern(&mut host, "relay_each", &calls, &json!({}));
    for _ in 0..2 {
        let folder = host.is_killed_leaving_its_folder();
        host = TestHost::recording_in(folder, &[]);
        round = modern(&mut host, "relay_each", &calls, &accepting(&round));
    }
    assert_eq!(counts(&ends(&round)), [&json!(1), &json!(2)]);
    assert_eq!(counted(&mut host), 2);
}

#[test]
fn a_host_that_is_killed_while_a_run_goes_on_loses_the_run_and_says_so() {
    let _alone = alone("it kills its host");
    let calls = json!({"calls": [count(), add(1), count(), {"tool": "sleep_hour"}]});
    let mut host = host("[components.loops.limits]\ndeadline = \"1h\"\n[components.calls.limits]\ndeadline = \"1h\"");
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    let _running = host.start("tools/call", params("relay_each", &calls, &accepting(&first)));
    let _ = host.recorded("it", |record| record["event"] == "call.started" && record["tool"] == "sleep_hour");
    let folder = host.is_killed_leaving_its_folder();
    let mut host = TestHost::recording_in(folder, &[]);
    assert_eq!(error_text(modern(&mut host, "relay_each", &calls, &accepting(&first))), GONE);
    assert_eq!(counted(&mut host), 2);
}

#[test]
fn a_run_whose_sandbox_was_killed_goes_on_where_it_was() {
    let _alone = alone("it kills sandbox processes of its host");
    let walls = "[components.loops.limits]\ndeadline = \"1h\"\n[components.calls.limits]\ndeadline = \"1h\"";
    let text = manifest(walls)
        .replace("source = \"components/loops.wasm\"", "source = \"components/loops.wasm\"\nwall = \"inner\"")
        .replace("source = \"components/calls.wasm\"", "source = \"components/calls.wasm\"\nwall = \"outer\"");
    let text = text.replace("'sleep_hour'", "'spin'").replace("fuel = 20_000_000", "fuel = 1_000_000_000_000");
    let folder = Folder::with_manifest(&text);
    key_in(&folder);
    let mut host = TestHost::recording_in(folder, &[]);
    let calls = json!({"calls": [count(), add(1), count(), {"tool": "spin"}, count()]});
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    // While it waits, nobody needs any sandbox.
    let idle = crate::walls::sealed(host.process_id());
    idle.iter().copied().for_each(crate::walls::kill);
    while crate::walls::sealed(host.process_id()).iter().any(|process| idle.contains(process)) {
        std::thread::yield_now();
    }
    crate::walls::recovers(&mut host, "echo", &json!({"text": "x"}));
    host.still_works();
    let id = host.start("tools/call", params("relay_each", &calls, &accepting(&first)));
    let _ = host.recorded("it", |record| record["event"] == "call.started" && record["tool"] == "spin");
    let inner = crate::walls::busy(host.process_id());
    crate::walls::sealed(host.process_id())
        .into_iter()
        .filter(|process| *process != inner)
        .for_each(crate::walls::kill);
    let said = error_text(host.reply_to(&id));
    assert!(said.contains("the sandbox was ended"), "{said}");
    // The same round again: what ran is not run again, nor what was cut short.
    let done = ends(&modern(&mut host, "relay_each", &calls, &accepting(&first)));
    assert_eq!(counts(&done), [&json!(1), &json!(2), &json!(3)]);
    assert_eq!((&done[1], &done[3]["refused"]), (&sum(1), &json!("Cancelled")), "{done}");
    assert_eq!(counted(&mut host), 3);
    assert_eq!(began(&host).iter().filter(|tool| *tool == "spin").count(), 1);
}

#[test]
fn an_answer_holds_for_the_calls_of_a_run_that_it_names_and_then_a_person_is_asked_again() {
    let mut host = host("");
    let storm = json!({"tool": "add", "arguments": {"a": 1, "b": 1}, "times": 6});
    let allows = |calls: u64| json!({"action": "accept", "content": {"allow": "run", "calls": calls}});
    let first = modern(&mut host, "storm", &storm, &json!({}));
    let schema = &first["result"]["inputRequests"]["1/toolcell.approval"]["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["allow"]["enum"], json!(["once", "run", "no"]), "{first}");
    assert_eq!(schema["properties"]["calls"]["maximum"], 100);
    let second = modern(&mut host, "storm", &storm, &answering(&first, &allows(2)));
    assert_eq!(questions(&second)[0].0, "3/toolcell.approval", "the first answer was for two calls");
    // Once is once.
    let third = modern(&mut host, "storm", &storm, &accepting(&second));
    assert_eq!(questions(&third)[0].0, "4/toolcell.approval");
    let done = ends(&modern(&mut host, "storm", &storm, &answering(&third, &allows(100))));
    assert_eq!(done, json!({"ok": 6, "refused": {}}));
    // More than may be allowed is nothing, and other tools are not meant.
    let again = modern(&mut host, "storm", &storm, &json!({}));
    let refusal = modern(&mut host, "storm", &storm, &answering(&again, &allows(101)));
    assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
    assert!(matches!(questions(&modern(&mut host, "storm", &storm, &json!({}))).as_slice(), [_]), "another run asks");
    let granted = host.audit().into_iter().filter(|record| record["answer"] == "granted").count();
    assert_eq!(granted, 1 + 2);
}

#[test]
fn a_legacy_client_is_asked_while_the_run_waits_and_may_allow_more_of_it() {
    let mut host = host("");
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let storm = json!({"tool": "add", "arguments": {"a": 1, "b": 1}, "times": 4});
    let id = host.start_call("storm", storm);
    for (made, content) in [(0, json!({"allow": "run", "calls": 2})), (2, json!({"allow": "once"})), (3, json!({}))] {
        let asked = host.next_of("elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("made so far: {made}.")), "{message}");
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}}));
    }
    assert_eq!(serde_json::from_str::<Value>(host.answer_to(&id).text()).unwrap(), json!({"ok": 4, "refused": {}}));
    // Calls at once are asked about one after the other, so that one answer may be enough.
    let calls: Vec<Value> = (0..5).map(add).collect();
    let id = host.start_call("relay_all", json!({"calls": calls}));
    let asked = host.next_of("elicitation/create");
    let content = json!({"allow": "run", "calls": 5});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}}));
    assert!(!host.answer_to(&id).everything().contains("refused"));
}

#[test]
fn an_answer_that_is_remembered_holds_for_the_calls_that_wait_to_be_asked_about() {
    let remembered = manifest("").replace("approval = \"always\"\n", "approval = \"always\"\nremember = \"10m\"\n");
    let folder = Folder::with_manifest(&remembered);
    key_in(&folder);
    let mut host = TestHost::recording_in(folder, &[]);
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let calls: Vec<Value> = (0..5).map(add).collect();
    let id = host.start_call("relay_all", json!({"calls": calls}));
    let asked = host.next_of("elicitation/create");
    let content = json!({"allow": "remember"});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}}));
    assert!(!host.answer_to(&id).everything().contains("refused"));
    let mut answers = answers(&host);
    answers.sort_unstable();
    assert_eq!(answers, ["accepted", "remembered", "remembered", "remembered", "remembered"]);
}

#[test]
fn a_run_that_is_cancelled_asks_nothing_more() {
    let mut host = host("");
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let calls: Vec<Value> = (0..5).map(add).collect();
    let id = host.start_call("relay_all", json!({"calls": calls}));
    let asked = host.next_of("elicitation/create");
    let until = Instant::now() + patience();
    while began(&host).iter().filter(|tool| *tool == "add").count() < 5 {
        assert!(Instant::now() < until, "{:?}", began(&host));
    }
    host.cancel(&id);
    assert_eq!(host.next_of("notifications/cancelled")["params"]["requestId"], asked["id"]);
    while answers(&host).len() < 5 {
        assert!(Instant::now() < until, "{:?}", answers(&host));
    }
    assert!(answers(&host).iter().all(|answer| answer == "cancelled"), "{:?}", answers(&host));
    host.still_works();
    let after = host.kept();
    assert!(after.iter().all(|frame| frame["method"] != "elicitation/create"), "{after:#?}");
}

#[test]
fn calls_beneath_calls_pause_with_all_above_them() {
    let more = "[components.b]\nsource = \"components/calls.wasm\"\nprefix = \"b_\"\ncalls = ['keyvalue', 'add']\n";
    let text = manifest(more).replace("'ask']", "'ask', 'b_relay_each']");
    let folder = Folder::with_manifest(&text);
    key_in(&folder);
    let mut host = TestHost::recording_in(folder, &[]);
    let inner = json!({"tool": "b_relay_each", "arguments": {"calls": [count(), add(1), count()]}});
    let calls = json!({"calls": [count(), inner.clone(), inner, add(2)]});
    let mut round = modern(&mut host, "relay_each", &calls, &json!({}));
    let mut asked = Vec::new();
    while round["result"]["resultType"] == "input_required" {
        asked.extend(questions(&round).into_iter().map(|(key, message)| (key, message.contains("made so far: 2."))));
        round = modern(&mut host, "relay_each", &calls, &accepting(&round));
    }
    let keys: Vec<&str> = asked.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["2.2/toolcell.approval", "3.2/toolcell.approval", "4/toolcell.approval"]);
    assert!(asked[0].1, "{asked:?}");
    assert_eq!(ends(&round)[3], sum(2));
    assert_eq!(counted(&mut host), 5);
}

#[test]
fn what_a_tool_and_a_called_tool_ask_themselves_comes_in_rounds_too() {
    let mut host = host("");
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    let arguments = json!({"calls": [count()], "after": [count()]});
    let first = modern(&mut host, "relay_and_ask", &arguments, &json!({}));
    assert_eq!(questions(&first), [("who".to_owned(), "The tool \"relay_and_ask\" asks: Who?".to_owned())]);
    let done = ends(&modern(&mut host, "relay_and_ask", &arguments, &answering(&first, &name)));
    assert!(done["said"].as_str().unwrap().contains("Ada"), "{done}");
    assert_eq!(counted(&mut host), 2);
    let form = json!({"form": {"type": "object", "properties": {"name": {"type": "string"}}}});
    let ask = json!({"tool": "ask", "arguments": {"rounds": [{"who": form.clone()}, {"whom": form}]}});
    let calls = json!({"calls": [count(), ask, count()]});
    let mut round = modern(&mut host, "relay_each", &calls, &json!({}));
    for key in ["2/who", "2/whom"] {
        assert_eq!(questions(&round)[0].0, key);
        round = modern(&mut host, "relay_each", &calls, &answering(&round, &name));
    }
    let text = "accepted {\"name\":\"Ada\"}; accepted {\"name\":\"Ada\"}";
    assert_eq!(ends(&round)[1]["ok"]["texts"], json!([text]), "{round}");
    assert_eq!(counted(&mut host), 4);
}

#[test]
fn a_client_that_cannot_be_asked_gets_a_refusal_that_its_tool_can_catch() {
    let mut host = host("");
    let arguments = json!({"calls": [count(), add(1)]});
    let reply = host.request("tools/call", json!({"name": "relay_each", "arguments": arguments}));
    let text = "the tool \"add\" needs a person's approval, and this client cannot be asked for it: it does not declare \
                elicitation with forms";
    assert_eq!(ends(&reply)[1], refused("NotApproved", text));
}

#[test]
fn a_run_ends_with_its_time() {
    let _alone = alone("it counts the files of its host");
    let mut host = host("[components.good.limits]\nask_wait = \"1s\"");
    let calls = json!({"calls": [count(), add(1)]});
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    std::thread::sleep(Duration::from_millis(1_100));
    let late = modern(&mut host, "relay_each", &calls, &accepting(&first));
    assert_eq!(late["error"]["message"], "params.requestState has expired: call the tool again without it", "{late}");
    // The next one finds no log of it either.
    let _ = modern(&mut host, "relay_each", &calls, &json!({}));
    assert_eq!(logs(host.folder().path()), 1);
}

/// Logs of paused runs in the folder of a host.
fn logs(folder: &Path) -> usize {
    let Ok(all) = std::fs::read_dir(folder) else { return 0 };
    let all = all.map(|entry| entry.unwrap().path());
    all.map(|path| {
        let has_id = path.file_name().is_some_and(|name| name.len() == 32);
        let is_log = has_id && path.ancestors().any(|above| above.file_name().is_some_and(|name| name == "paused"));
        if path.is_dir() { logs(&path) } else { usize::from(is_log) }
    })
    .sum()
}

#[test]
fn paused_runs_of_a_caller_are_bounded_and_so_are_their_logs() {
    let mut host = host("[paused]\ncaller_max = 1\nlog = \"2KiB\"");
    let calls = json!({"calls": [add(1)]});
    let first = modern(&mut host, "relay_each", &calls, &json!({}));
    let full = "this run cannot wait for a person: this caller has as many paused runs as it may ([paused])";
    assert_eq!(error_text(modern(&mut host, "relay_each", &calls, &json!({}))), full);
    assert_eq!(ends(&modern(&mut host, "relay_each", &calls, &accepting(&first)))[0], sum(1));
    let echo = json!({"tool": "echo", "arguments": {"text": "x".repeat(3_000)}});
    let long = ends(&modern(&mut host, "relay_each", &json!({"calls": [echo, add(1)]}), &json!({})));
    let text = "the tool \"add\" needs a person's approval, and this run cannot wait for it: its calls gave more than a \
                log keeps (\"log\" in [paused])";
    assert_eq!(long[1], refused("NotApproved", text));
}
