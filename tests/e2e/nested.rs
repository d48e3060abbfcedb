//! Tools that call tools: each call meets what a client's call meets, and leaves the same records.
//!
//! Promise: a nested call is a call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, Saving, TestHost, manifest_of};

/// `good` and `calls`, whose table has these lines as well.
fn manifest(calls: &str) -> String {
    format!("{}{calls}\n", manifest_of(&["good", "calls"]))
}

fn host(calls: &str) -> TestHost {
    TestHost::recording(&manifest(calls))
}

/// A call of `relay`, which calls this tool.
fn relayed(host: &mut TestHost, tool: &str, arguments: &Value) -> Value {
    host.call("relay", json!({"tool": tool, "arguments": arguments})).structured().clone()
}

fn refused(reason: &str, text: &str) -> Value {
    json!({"refused": reason, "text": text})
}

/// The records of this event.
fn of(records: &[Value], event: &str) -> Vec<Value> {
    records.iter().filter(|record| record["event"] == event).cloned().collect()
}

/// The outcome of each finished call, by its tool.
fn outcomes(records: &[Value]) -> Vec<[String; 2]> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    of(records, "call.finished").iter().map(|record| [text(record, "tool"), text(record, "outcome")]).collect()
}

/// Waits until every call that began has its end in the audit, and gives the records.
pub(crate) fn whole(host: &TestHost) -> Vec<Value> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let records = host.audit();
        let ids = |event: &str| {
            let mut ids: Vec<u64> = of(&records, event).iter().map(|record| record["id"].as_u64().unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        if ids("call.started") == ids("call.finished") {
            return records;
        }
        assert!(Instant::now() < end, "calls without an end: {records:#?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_tool_calls_another_and_both_are_recorded_as_calls_of_one_caller() {
    let mut host = host("calls = ['echo', 'add']");
    let said = relayed(&mut host, "echo", &json!({"text": "hello"}));
    assert_eq!(said, json!({"ok": {"texts": ["hello"], "structured": null}}));
    let said = relayed(&mut host, "add", &json!({"a": 2, "b": 3}));
    assert_eq!(said["ok"]["structured"], json!({"sum": 5}), "{said}");
    let records = whole(&host);
    let started = of(&records, "call.started");
    let tools: Vec<&Value> = started.iter().map(|record| &record["tool"]).collect();
    assert_eq!(tools, ["relay", "echo", "relay", "add"]);
    for pair in started.chunks(2) {
        let [outer, inner] = pair else { panic!("{started:#?}") };
        assert_eq!(outer.get("parent"), None);
        assert_eq!((&inner["parent"], &inner["root"], &inner["depth"]), (&outer["id"], &outer["id"], &json!(1)));
        for same in ["caller", "request", "revision", "generation"] {
            assert_eq!(inner[same], outer[same], "{same}");
        }
    }
    assert!(outcomes(&records).iter().all(|[_, outcome]| outcome == "ok"), "{records:#?}");
}

#[test]
fn a_result_that_is_an_error_is_no_success_and_a_refusal_is_a_value() {
    let mut host = host("calls = ['echo', 'says_error', 'add']");
    assert_eq!(relayed(&mut host, "says_error", &json!({}))["failed"]["texts"], json!(["the shop is closed"]));
    let unfit = relayed(&mut host, "echo", &json!({"text": 1}));
    assert_eq!(unfit["refused"], "InvalidArguments", "{unfit}");
    assert!(unfit["text"].as_str().unwrap().contains("/text"), "{unfit}");
    for (arguments, refusal) in [
        ("[1", "the arguments are not valid JSON at byte 2"),
        ("[1]", "the arguments are not a JSON object"),
        // One reader takes the first value, another the last.
        (r#"{"text":"a","text":"b"}"#, "the arguments have the key \"text\" twice in one object"),
    ] {
        let said = host.call("relay_text", json!({"tool": "echo", "arguments": arguments})).structured().clone();
        assert_eq!(said, refused("InvalidArguments", refusal));
    }
    let denied = refused("Denied", "denied: call clocks — no rule of tool \"relay\" allows it");
    assert_eq!(relayed(&mut host, "clocks", &json!({})), denied);
    let records = whole(&host);
    let denials = of(&records, "call.denied");
    assert_eq!(denials.len(), 1);
    assert_eq!((&denials[0]["capability"], &denials[0]["asked"]), (&json!("call"), &json!("call clocks")));
    assert_eq!(
        (&denials[0]["section"], &denials[0]["allow"]),
        (&json!("components.calls"), &json!("calls = [\"clocks\"]"))
    );
    host.still_works();
}

#[test]
fn without_the_right_nothing_is_called_and_a_tool_narrows_it() {
    let mut host = host("");
    assert_eq!(relayed(&mut host, "echo", &json!({"text": "x"}))["refused"], "Denied");
    let mut host = self::host("calls = ['echo', 'add']\n[components.calls.tools.relay]\ncalls = ['add']");
    assert_eq!(relayed(&mut host, "echo", &json!({"text": "x"}))["refused"], "Denied");
    assert_eq!(relayed(&mut host, "add", &json!({"a": 1, "b": 1}))["ok"]["structured"], json!({"sum": 2}));
    let storm = host.call("storm", json!({"tool": "echo", "arguments": {"text": "x"}, "times": 2}));
    assert_eq!(storm.structured(), &json!({"ok": 2, "refused": {}}), "the other tool keeps what the component has");
}

#[test]
fn a_list_of_calls_gives_its_results_in_order_whatever_runs_at_once() {
    for at_once in [1, 8] {
        let mut host = host(&format!("calls = ['echo']\n[components.calls.limits]\ncalls_at_once = {at_once}"));
        let calls: Vec<Value> =
            (0..20).map(|number| json!({"tool": "echo", "arguments": {"text": number.to_string()}})).collect();
        let said = host.call("relay_all", json!({"calls": calls})).structured().clone();
        let texts: Vec<&Value> = said.as_array().unwrap().iter().map(|end| &end["ok"]["texts"][0]).collect();
        let expected: Vec<Value> = (0..20).map(|number| json!(number.to_string())).collect();
        assert_eq!(texts, expected.iter().collect::<Vec<_>>());
        assert_eq!(of(&whole(&host), "call.started").len(), 21);
    }
}

#[test]
fn a_storm_ends_at_its_limit_and_each_call_of_it_is_recorded() {
    let mut host = host("calls = ['echo']\n[components.calls.limits]\ncalls_max = 30\nfuel = 1_000_000_000");
    let storm = json!({"tool": "echo", "arguments": {"text": "x"}, "times": 500});
    let said = host.call("storm", storm).structured().clone();
    let over = "too many calls of other tools: more than 30, with those that they make (limit \"calls_max\")";
    assert_eq!(said, json!({"ok": 30, "refused": {over: 470}}));
    assert_eq!(of(&whole(&host), "call.started").len(), 31);
    host.still_works();
}

#[test]
fn calls_beneath_calls_are_as_deep_as_the_first_of_them_may_and_share_its_budget() {
    let mut manifest = manifest_of(&["good"]);
    for (name, calls) in [("a", "b_*"), ("b", "c_*"), ("c", "d_*"), ("d", "e_*"), ("e", "echo")] {
        let table = "source = \"components/calls.wasm\"";
        manifest.push_str(&format!("[components.{name}]\n{table}\nprefix = \"{name}_\"\ncalls = ['{calls}']\n"));
    }
    let beneath = |tools: &[&str]| {
        let leaf = json!({"tool": "echo", "arguments": {"text": "deep"}});
        tools.iter().rev().fold(leaf, |inner, tool| json!({"tool": tool, "arguments": inner}))
    };
    let mut host = TestHost::recording(&manifest);
    let said = host.call("d_relay", beneath(&["e_relay"])).structured().clone();
    assert_eq!(said["ok"]["structured"]["ok"]["texts"][0], "deep", "{said}");
    let said = host.call("a_relay", beneath(&["b_relay", "c_relay", "d_relay", "e_relay"])).structured().clone();
    let deepest = &said["ok"]["structured"]["ok"]["structured"]["ok"]["structured"];
    let text = "this call is 3 beneath its client's, and may make none (limit \"call_depth\")";
    assert_eq!(deepest, &refused("OverLimit", text), "{said}");
    let depths: Vec<Value> =
        of(&whole(&host), "call.started").iter().skip(3).map(|record| record["depth"].clone()).collect();
    assert_eq!(depths, [json!(null), json!(1), json!(2), json!(3)]);
    // Those beneath count against each call above.
    let limits = "[components.d.limits]\ncalls_max = 5\n";
    let mut host = TestHost::recording(&format!("{manifest}{limits}"));
    let storm = json!({"tool": "echo", "arguments": {"text": "x"}, "times": 10});
    let said = host.call("d_relay", json!({"tool": "e_storm", "arguments": storm})).structured().clone();
    assert_eq!(said["ok"]["structured"]["ok"], 4, "{said}");
}

#[test]
fn a_caller_calls_nothing_by_a_tool_that_it_may_not_call_itself() {
    let rules = "[callers.default]\ntools = ['calls/*', 'add']\n[callers.local]\ntools = ['calls/*', 'add']\n";
    let mut host =
        TestHost::recording(&format!("{rules_first}{rules}", rules_first = manifest("calls = ['echo', 'add']")));
    let unknown = refused("Unknown", "there is no tool \"echo\" that this caller may call");
    assert_eq!(relayed(&mut host, "echo", &json!({"text": "x"})), unknown);
    assert_eq!(relayed(&mut host, "add", &json!({"a": 1, "b": 1}))["ok"]["structured"], json!({"sum": 2}));
    assert_eq!(host.call("find", json!({"words": "", "limit": 9})).structured(), &json!(["add"]));
    assert_eq!(host.call("describe", json!({"tool": "echo"})).structured(), &Value::Null);
}

#[test]
fn a_tool_finds_and_describes_what_it_may_call() {
    let mut host = host("calls = ['echo', 'add', 'clocks']");
    let found = host.call("find", json!({"words": "adds two small numbers", "limit": 1})).structured().clone();
    assert_eq!(found, json!(["add"]));
    let all = host.call("find", json!({"words": " ", "limit": 9})).structured().clone();
    assert_eq!(all, json!(["echo", "add", "clocks"]));
    let described = host.call("describe", json!({"tool": "add"})).structured().clone();
    assert_eq!(described["name"], "add");
    assert!(described["input"].as_str().unwrap().contains("\"a\""), "{described}");
    assert_eq!(host.call("describe", json!({"tool": "every_kind"})).structured(), &Value::Null);
}

#[test]
fn rules_that_take_nothing_and_circles_are_found_at_load() {
    let check = |calls: &str| {
        let folder = Folder::with_manifest(&manifest(calls));
        let checked = toolcell_tests::Command::in_folder(&folder, &["check"]).run();
        checked.failed_with(1).to_owned()
    };
    for (calls, problem) in [
        ("calls = ['ecko']", "there is no tool \"ecko\""),
        ("calls = ['ecko*']", "there is no tool \"ecko*\""),
        ("calls = ['*']", "may call itself"),
        ("calls = ['relay']", "the tool \"relay\" may call itself"),
        ("calls = ['e cho']", "\"e cho\" names no tools"),
        ("calls = ['echo']\n[components.calls.tools.relay]\ncalls = ['add']", "the component may not call \"add\""),
    ] {
        let said = check(calls);
        assert!(said.contains(problem), "{calls}: {said}");
    }
}

#[test]
fn one_process_with_one_place_for_each_tool_and_one_worker_stands_still_for_nobody() {
    let one = "concurrency = 1\nqueue = 64\nqueue_wait = \"60s\"\ndeadline = \"60s\"\nfuel = 1_000_000_000\n";
    let mut manifest = format!("version = 1\n[server]\ncalls = 3\n[defaults.limits]\nrate = \"1000000/s\"\n{one}");
    manifest.push_str("[components.good]\nsource = \"components/good.wasm\"\nwall = \"w\"\n");
    for (name, calls) in [("a", "'b_relay', 'echo'"), ("b", "'echo'")] {
        let table = "source = \"components/calls.wasm\"\nwall = \"w\"";
        manifest.push_str(&format!("[components.{name}]\n{table}\nprefix = \"{name}_\"\ncalls = [{calls}]\n"));
    }
    let mut host = TestHost::recording(&manifest);
    let leaf = json!({"tool": "echo", "arguments": {"text": "x"}});
    let deep = json!({"tool": "b_relay", "arguments": leaf.clone()});
    let calls = [("a_relay", &deep), ("b_relay", &leaf), ("a_relay", &leaf), ("echo", &json!({"text": "x"}))];
    let ids: Vec<Value> =
        (0..10).flat_map(|_| calls).map(|(tool, arguments)| host.start_call(tool, arguments.clone())).collect();
    for id in ids {
        let answer = host.answer_to(&id);
        assert!(!answer.is_error(), "{}", answer.everything());
        assert!(!answer.everything().contains("refused"), "{}", answer.everything());
    }
    assert!(outcomes(&whole(&host)).iter().all(|[_, outcome]| outcome == "ok"));
}

#[test]
fn with_one_call_at_once_in_a_process_a_call_beneath_is_refused_and_nothing_waits() {
    let mut host = TestHost::recording(&format!("{}\n[server]\ncalls = 1\n", manifest("calls = ['echo']")));
    let text = "the host has no place for a call beneath this one (\"calls\" in [server])";
    assert_eq!(relayed(&mut host, "echo", &json!({"text": "x"})), refused("OverLimit", text));
}

#[test]
fn arguments_and_results_count_as_bytes_that_go_out_and_come_in() {
    let limits = "[components.calls.limits]\negress = \"3MiB\"\nfuel = 1_000_000_000\nmemory = \"64MiB\"\noutput = \"1MiB\"\n\
                  [components.good.limits]\nmemory = \"64MiB\"\noutput = \"2MiB\"\narguments = \"2MiB\"\nfuel = 1_000_000_000";
    let mut host = host(&format!("calls = ['echo']\n{limits}"));
    let said = host.call("large", json!({"tool": "echo", "bytes": 1 << 20, "times": 2})).structured().clone();
    assert_eq!(said, json!([1 << 20, 1 << 20]));
    let said = host.call("large", json!({"tool": "echo", "bytes": 1 << 20, "times": 5})).structured().clone();
    let refusals = said.as_array().unwrap().iter().filter(|end| end["refused"] == "OverLimit").count();
    assert_eq!(refusals, 3, "{said}");
    let records = whole(&host);
    let finished = of(&records, "call.finished");
    let of_large = finished.iter().find(|record| record["tool"] == "large").unwrap();
    assert!(of_large["usage"]["egress_bytes"].as_u64().unwrap() > 2 << 20, "{of_large}");
    assert!(of_large["usage"]["ingress_bytes"].as_u64().unwrap() > 2 << 20, "{of_large}");
    host.still_works();
}

/// `calls`, and `loops`, whose tools never end. Only these deadlines end a call.
fn endless(outer: &str, inner: &str) -> String {
    let manifest = manifest_of(&["good", "loops", "calls"]).replace("fuel = 20_000_000", "fuel = 1_000_000_000_000");
    format!(
        "{manifest}calls = ['sleep_hour', 'spin']\n[components.calls.limits]\ndeadline = \"{outer}\"\n\
         [components.loops.limits]\ndeadline = \"{inner}\"\n"
    )
}

/// Waits until this tool runs.
fn runs(host: &TestHost, tool: &str) {
    let _ = host.recorded("the inner call", |record| record["event"] == "call.started" && record["tool"] == tool);
}

#[test]
fn what_ends_a_call_ends_those_beneath_it() {
    for tool in ["sleep_hour", "spin"] {
        let mut host = TestHost::recording(&endless("1h", "1h"));
        host.still_works();
        let id = host.start_call("relay", json!({"tool": tool}));
        runs(&host, tool);
        host.cancel(&id);
        let ended = outcomes(&whole(&host));
        let expected = [["echo", "ok"], [tool, "cancelled"], ["relay", "cancelled"]];
        assert_eq!(ended.len(), expected.len(), "{ended:?}");
        assert!(expected.iter().all(|pair| ended.contains(&pair.map(str::to_owned))), "{ended:?}");
        host.still_works();
    }
}

#[test]
fn a_call_beneath_has_the_time_that_is_left_and_no_more() {
    // The inner deadline is the shorter one: the outer call goes on with a refusal.
    let mut host = TestHost::recording(&endless("1h", "200ms"));
    let said = relayed(&mut host, "sleep_hour", &json!({}));
    let late = "deadline exceeded: the call took longer than 200ms (limit \"deadline\")";
    assert_eq!(said, refused("OverLimit", late));
    // The outer one is: it ends, and so does the inner call.
    let mut host = TestHost::recording(&endless("300ms", "1h"));
    let answer = host.call("relay", json!({"tool": "sleep_hour"}));
    assert!(answer.is_error() || answer.structured()["refused"] == "OverLimit", "{}", answer.everything());
    let ended = outcomes(&whole(&host));
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended.iter().any(|[tool, outcome]| tool == "sleep_hour" && outcome != "ok"), "{ended:?}");
}

#[test]
fn a_sandbox_that_dies_in_the_middle_ends_what_it_called() {
    let manifest = endless("1h", "1h")
        .replace("source = \"components/loops.wasm\"", "source = \"components/loops.wasm\"\nwall = \"inner\"");
    let mut host = TestHost::recording(
        &manifest.replace("source = \"components/calls.wasm\"", "source = \"components/calls.wasm\"\nwall = \"outer\""),
    );
    host.still_works();
    let id = host.start_call("relay", json!({"tool": "spin"}));
    runs(&host, "spin");
    let inner = crate::walls::busy(host.process_id());
    let outer = crate::walls::sealed(host.process_id()).into_iter().filter(|process| *process != inner);
    outer.for_each(crate::walls::kill);
    let answer = host.answer_to(&id);
    assert!(answer.error_text().contains("the sandbox was ended"), "{}", answer.everything());
    let ended = outcomes(&whole(&host));
    assert!(ended.contains(&["spin".to_owned(), "cancelled".to_owned()]), "{ended:?}");
    crate::walls::recovers(&mut host, "relay", &json!({"tool": "a tool that is not there"}));
    // The other way round it is a refusal that the caller goes on with.
    let id = host.start_call("relay", json!({"tool": "spin"}));
    let _ = host.recorded("the second inner call", |record| {
        record["event"] == "call.started" && record["tool"] == "spin" && record["id"].as_u64().unwrap() > 2
    });
    crate::walls::kill(crate::walls::busy(host.process_id()));
    let said = host.answer_to(&id).structured().clone();
    assert_eq!(said["refused"], "Failed", "{said}");
    let _ = whole(&host);
}

#[test]
fn a_tool_that_dies_after_its_calls_leaves_whole_records() {
    let mut host = host("calls = ['echo']");
    let answer = host.call("relay_then_trap", json!({"tool": "echo", "arguments": {"text": "x"}}));
    assert!(answer.error_text().contains("trapped"), "{}", answer.everything());
    let ended = outcomes(&whole(&host));
    assert_eq!(ended, [["echo", "ok"], ["relay_then_trap", "trap"]].map(|pair| pair.map(str::to_owned)));
}

#[test]
fn progress_is_that_of_the_outer_call() {
    let mut host = host("calls = ['relay_all']\n[components.calls.tools.relay_all]\ncalls = []");
    host.initialize("2025-11-25");
    let arguments = json!({"tool": "relay_all", "arguments": {"calls": []}});
    let call = json!({"name": "relay_and_report", "arguments": arguments, "_meta": {"progressToken": 7}});
    let id = host.start("tools/call", call);
    let _ = host.answer_to(&id);
    let kept = host.kept();
    let steps: Vec<&Value> = kept.iter().map(|frame| &frame["params"]["message"]).collect();
    assert_eq!(steps, ["before", "after"]);
}

#[test]
fn secrets_go_neither_into_a_call_nor_out_of_it() {
    let tables = "[components.calls.secrets]\nKEY = { from = \"env:OUTER_KEY\", expose = true }\n\
                  [components.reach_settings.secrets]\nINNER = { from = \"env:INNER_KEY\", expose = true }\n";
    let manifest =
        format!("{}calls = ['echo', 'settings']\n{tables}", manifest_of(&["good", "reach_settings", "calls"]));
    let variables = [("OUTER_KEY", "outer-0123456789"), ("INNER_KEY", "inner-9876543210")];
    let mut host = TestHost::recording_in(Folder::with_manifest(&manifest), &variables);
    let said = host.call("relay_variable", json!({"tool": "echo"})).structured().clone();
    assert!(said["ok"]["texts"][0].as_str().unwrap().contains("redacted:KEY"), "{said}");
    let said = relayed(&mut host, "settings", &json!({})).to_string();
    assert!(said.contains("redacted:INNER"), "{said}");
    let records = std::fs::read_to_string(host.folder().path().join("audit.jsonl")).unwrap();
    for (_, value) in variables {
        assert!(!said.contains(value) && !records.contains(value), "{value}");
    }
}

#[test]
fn a_reload_that_takes_the_right_away_ends_both_calls() {
    let mut host = TestHost::recording(&endless("1h", "1h"));
    host.still_works();
    let id = host.start_call("relay", json!({"tool": "sleep_hour"}));
    runs(&host, "sleep_hour");
    let less = endless("1h", "1h").replace("calls = ['sleep_hour', 'spin']", "calls = ['spin']");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", less);
    let narrowed = "the call was ended: what this tool may reach has been narrowed meanwhile. The call that it made is not \
                    undone";
    assert_eq!(host.answer_to(&id).error_text(), narrowed);
    let ended = outcomes(&whole(&host));
    for tool in ["relay", "sleep_hour"] {
        assert!(ended.contains(&[tool, "cancelled"].map(str::to_owned)), "{ended:?}");
    }
    assert_eq!(relayed(&mut host, "sleep_hour", &json!({}))["refused"], "Denied");
}

#[test]
fn a_reload_that_gives_a_wider_right_ends_no_call() {
    let manifest = endless("1h", "3s");
    let mut host = TestHost::recording(&manifest);
    host.still_works();
    let id = host.start_call("relay", json!({"tool": "sleep_hour"}));
    runs(&host, "sleep_hour");
    let more = manifest.replace("calls = ['sleep_hour', 'spin']", "calls = ['sleep_*', 'spin', 'echo']");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", more);
    host.serves_generation(2);
    let late = "deadline exceeded: the call took longer than 3s (limit \"deadline\")";
    assert_eq!(host.answer_to(&id).structured(), &refused("OverLimit", late));
}

#[test]
fn a_client_that_goes_away_ends_both_calls() {
    let folder = Folder::with_manifest(&endless("1h", "1h"));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let mut wire = host.connect();
    wire.send(&Ask::call("relay", json!({"tool": "sleep_hour"})).bytes());
    host.begins("sleep_hour");
    drop(wire);
    let ended = outcomes(&whole(host.process()));
    for tool in ["sleep_hour", "relay"] {
        assert!(ended.contains(&[tool, "cancelled"].map(str::to_owned)), "{ended:?}");
    }
}

#[test]
fn what_only_a_view_may_call_no_tool_calls() {
    let good = "source = \"components/good.wasm\"";
    let manifest = manifest("calls = ['echo', 'add']")
        .replace(good, &format!("{good}\n[components.good.tools.echo]\nvisibility = ['app']"));
    let mut host = TestHost::recording(&manifest);
    let unknown = refused("Unknown", "there is no tool \"echo\" that this caller may call");
    assert_eq!(relayed(&mut host, "echo", &json!({"text": "x"})), unknown);
    assert_eq!(host.call("find", json!({"words": "", "limit": 9})).structured(), &json!(["add"]));
}

fn decide(host: &mut TestHost, action: &str) -> Value {
    let asked = host.next_of("elicitation/create");
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}}));
    asked
}

/// The tools of `good` need approval, and calls have little time.
fn approved() -> String {
    let good = "source = \"components/good.wasm\"";
    manifest("calls = ['echo']\n[components.calls.limits]\ndeadline = \"1s\"")
        .replace(good, &format!("{good}\napproval = \"always\""))
}

#[test]
fn a_person_confirms_a_call_beneath_another_while_all_clocks_stand_still() {
    let mut host = TestHost::recording(&approved());
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    for (action, expected) in [
        ("accept", json!({"ok": {"texts": ["hello"], "structured": null}})),
        ("decline", refused("NotApproved", "the person declined: \"echo\" was not run")),
    ] {
        let id = host.start_call("relay", json!({"tool": "echo", "arguments": {"text": "hello"}}));
        let asked = host.next_of("elicitation/create");
        // Longer than the outer call may run.
        std::thread::sleep(Duration::from_millis(1_500));
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}}));
        let message = asked["params"]["message"].as_str().unwrap();
        let question = "Allow the tool \"relay\" to call the tool \"echo\" of the component \"good\"?";
        assert!(message.starts_with(question), "{message}");
        let said: Value = serde_json::from_str(host.answer_to(&id).text()).unwrap();
        assert_eq!(said, expected);
    }
    // Two in one call are two questions.
    let call = json!({"tool": "echo", "arguments": {"text": "x"}});
    let id = host.start_call("relay_all", json!({"calls": [call, call]}));
    decide(&mut host, "accept");
    decide(&mut host, "accept");
    assert!(!host.answer_to(&id).everything().contains("refused"));
}
