//! One script over its whole run: approvals within it, its time, what stays done when it is cut
//! short, and what a client that calls again gets.
//!
//! Promise: a nested call is a call.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of};

/// A person must approve `add`. `keyvalue` counts: its state is the proof of how often a call ran.
fn manifest(more: &str) -> String {
    let manifest = manifest_of(&["good", "reach_state", "loops"]);
    format!(
        "{manifest}[components.good.tools.add]\napproval = \"always\"\n[components.reach_state.keyvalue]\n\
         [code]\ncalls = ['echo', 'add', 'keyvalue', 'sleep_hour']\n\
         [code.limits]\nfuel = 2_000_000_000\nmemory = \"32MiB\"\ndeadline = \"1m\"\n{more}"
    )
}

fn folder(more: &str) -> Folder {
    let folder = Folder::with_manifest(&format!("{}\n[server]\nstate_key = \"file:state.key\"\n", manifest(more)));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
    folder
}

const COUNT: &str = "await tools.keyvalue({op: 'increment', key: 'n'});";

fn counted(host: &mut TestHost) -> u64 {
    let found = host.call("keyvalue", json!({"op": "get", "key": "n"})).structured()["ok"].clone();
    found.as_str().map_or(0, |count| count.parse().unwrap())
}

/// A call of a modern client that can be asked. `more` brings answers.
fn modern(host: &mut TestHost, code: &str, more: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let mut params = json!({"name": "run_code", "arguments": {"code": code}, "_meta": meta});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host.request("tools/call", params)
}

/// The one question of a round: its key and its message.
fn question(round: &Value) -> (String, String) {
    let asked = round["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("no question: {round}"));
    assert_eq!(asked.len(), 1, "{round}");
    let (key, question) = asked.iter().next().unwrap();
    (key.clone(), question["params"]["message"].as_str().unwrap().to_owned())
}

fn accepting(round: &Value) -> Value {
    let (key, _) = question(round);
    let responses = json!({ key: {"action": "accept", "content": {}}});
    json!({"requestState": round["result"]["requestState"], "inputResponses": responses})
}

#[test]
fn a_person_is_told_where_in_the_script_a_call_stands_and_the_run_stays_one() {
    let mut host = TestHost::recording_in(folder(""), &[]);
    // The time and a random number go into arguments: others in the next round would end the run.
    let code = format!(
        "const mark = `${{Date.now()}} ${{Math.random()}}`;\n{COUNT}\nconst said = await tools.echo({{text: mark}});\n  \
         const one = await tools.add({{a: 1, b: 1}});\nawait tools.echo({{text: String(new Date())}});\n\
         const two = await tools.add({{a: 2, b: 2}});\nreturn [one.sum, two.sum, said === mark, mark]"
    );
    let first = modern(&mut host, &code, &json!({}));
    let expected = "Allow the tool \"run_code\" to call the tool \"add\" of the component \"good\"? The call stands at line \
                    4, column 27 of its script. Calls that this run has made so far: 2.\nArguments: {\"a\":1,\"b\":1}";
    assert_eq!(question(&first), ("3/toolcell.approval".to_owned(), expected.to_owned()));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let second = modern(&mut host, &code, &accepting(&first));
    let (_, message) = question(&second);
    assert!(message.contains("line 6, column 25 of its script") && message.contains("so far: 4."), "{message}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let done = modern(&mut host, &code, &accepting(&second));
    let result = done["result"]["structuredContent"]["result"].clone();
    assert_eq!((&result[0], &result[1], &result[2]), (&json!(2), &json!(4), &json!(true)), "{done}");
    assert_eq!(counted(&mut host), 1);
    // Another run has another time.
    let next = "return `${Date.now()} `";
    let next = modern(&mut host, next, &json!({}))["result"]["structuredContent"]["result"].clone();
    assert!(!result[3].as_str().unwrap().starts_with(next.as_str().unwrap()));
}

#[test]
fn what_a_script_says_of_its_place_is_numbers_and_nothing_else() {
    let mut host = TestHost::recording(&manifest(""));
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    for (code, place) in [
        ("await tools.add({a: 1, b: 1})", Some("line 1, column ")),
        ("Error.prepareStackTrace = () => '<input>:4294967290:7 and it is safe'; await tools.add({a: 1, b: 1})", None),
        ("Error.stackTraceLimit = 0; await tools.add({a: 1, b: 1})", None),
    ] {
        let id = host.start_call("run_code", json!({"code": code}));
        let asked = host.next_of("elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        let said = message.split_once("stands at ").map(|(_, said)| said);
        let said = said.and_then(|said| said.split_once(" of its script.")).map(|(said, _)| said);
        match place {
            Some(place) => assert!(said.is_some_and(|said| said.starts_with(place)), "{message}"),
            None => assert!(said.is_none_or(|said| said.starts_with("line ") && said.len() < 40), "{message}"),
        }
        assert!(!message.contains("safe"), "{message}");
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
        let said = host.answer_to(&id).error_text().to_owned();
        assert!(said.starts_with("add: the person declined"), "{said}");
    }
}

#[test]
fn an_operator_at_a_terminal_sees_the_place_and_allows_some_calls_of_the_run() {
    let console = "approve_in = [\"console\"]\n[console]\ndecide = true\n";
    let text = manifest("").replace("version = 1\n", &format!("version = 1\n[server]\n{console}"));
    let mut host = TestHost::recording_with(Folder::with_manifest(&text), &["--console", "127.0.0.1:0"]);
    host.still_works();
    let code = "let sum = 0; for (let i = 0; i < 4; i++) sum += (await tools.add({a: i, b: 0})).sum; return sum";
    let id = host.start_call("run_code", json!({"code": code}));
    let activity = crate::top::activity_when(&host, |activity| activity["approvals"][0].is_object());
    let approval = &activity["approvals"][0];
    let question = approval["question"].as_str().unwrap();
    assert!(question.contains("stands at line 1, column ") && question.contains("so far: 0."), "{question}");
    assert_eq!(approval["run_calls"], 10);
    let done = crate::top::decide(&host, &activity["run"], &json!({"allow_run": approval["question_id"]}));
    assert_eq!(done["done"], true, "{done}");
    assert_eq!(host.answer_to(&id).structured()["result"], 6);
    let answers = host.audit().into_iter().filter(|record| record["event"] == "call.asked");
    let answers: Vec<Value> = answers.map(|record| record["answer"].clone()).collect();
    assert_eq!(answers, ["accepted", "granted", "granted", "granted"]);
}

/// Retries elsewhere repeat side effects without a word.
#[test]
fn a_script_that_is_cut_short_says_what_stays_done_and_a_key_keeps_it_from_running_twice() {
    let mut host = TestHost::recording(&manifest(""));
    let code = format!("{COUNT} {COUNT} while (true);");
    let said = host.call("run_code", json!({"code": code})).error_text().to_owned();
    let late = "out of fuel: the call used its whole budget of 2_000_000_000 units (limit \"fuel\"). The 2 calls that it \
                made are not undone";
    assert_eq!(said, late);
    assert_eq!(counted(&mut host), 2);
    // A script that ran to its end under a key is answered again, and runs no second time.
    let call = |key: &str| {
        json!({"name": "run_code", "arguments": {"code": format!("{COUNT} return 'counted'")},
               "_meta": {"toolcell/requestKey": key}})
    };
    for (key, count) in [("one", 3), ("one", 3), ("two", 4)] {
        let answer = Answer::new(host.request("tools/call", call(key)));
        assert_eq!(answer.structured()["result"], "counted");
        assert_eq!(counted(&mut host), count, "{key}");
    }
}

/// A time limit shorter than two calls.
#[test]
fn the_time_of_a_tool_can_be_caught_and_that_of_the_script_says_which_it_is() {
    let limits = "[components.loops.limits]\ndeadline = \"700ms\"\n";
    let text = manifest(limits).replace("deadline = \"1m\"", "deadline = \"1s\"");
    let mut host = TestHost::recording(&text);
    let caught = "try { await tools.sleep_hour({}) } catch (error) { return [error.reason, error.message] }";
    let answer = host.call("run_code", json!({"code": caught}));
    let late = "sleep_hour: deadline exceeded: the call took longer than 700ms (limit \"deadline\")";
    assert_eq!(answer.structured()["result"], json!(["over-limit", late]));
    let twice = "for (let i = 0; i < 2; i++) try { await tools.sleep_hour({}) } catch {} while (true);";
    let said = host.call("run_code", json!({"code": twice})).error_text().to_owned();
    assert!(said.contains("took longer than 1s (limit \"deadline\"). \"deadline\" in [code.limits]"), "{said}");
}

/// codex#41145: an empty list of tools instead of an error where the engine fails.
#[test]
fn an_engine_that_does_not_load_is_an_error_and_the_other_tools_are_served() {
    let text = manifest("").replace("[code]\n", "[code]\nengine = \"engine.wasm\"\n");
    let folder = Folder::with_manifest(&text);
    folder.write("engine.wasm", "no component");
    let said = Command::in_folder(&folder, &["check"]).run().failed_with(1).to_owned();
    assert!(said.contains("engine.wasm"), "{said}");
    let mut host = TestHost::in_folder(folder);
    host.will_say("left out: ");
    assert!(host.said().contains("\"code\""), "{}", host.said());
    let names: Vec<Value> = host.list().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("echo")) && !names.contains(&json!("run_code")), "{names:?}");
    let call = host.request("tools/call", json!({"name": "run_code", "arguments": {"code": "1"}}));
    assert_eq!(call["error"]["message"], "Unknown tool: run_code", "{call}");
}
