//! Every budget has a key, ends a call that exceeds it with a message of its own, and leaves the
//! next call working. Budgets of a call that `bounded` and `hostile` test are not tested again.
//!
//! Promise: computing ends.
//! Promise: others go on.
//! Promise: calls in a loop are slowed down.
//! Promise: loading is bounded.

use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, is_told_to_wait, modern_meta};

/// A manifest that serves `good` with these lines, which may open tables of their own.
fn good_under(lines: &str) -> String {
    format!("version = 1\n[components.good]\nsource = \"components/good.wasm\"\n{lines}\n")
}

/// Serves this fixture under these limits, and `good` under the default ones.
fn serving(fixture: &str, limits: &str) -> TestHost {
    TestHost::with_manifest(&good_under(&format!(
        "[components.{fixture}]\nsource = \"components/{fixture}.wasm\"\n[components.{fixture}.limits]\n{limits}"
    )))
}

/// The output of `check` for a manifest that it refuses.
fn refused(folder: &Folder) -> String {
    Command::in_folder(folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned()
}

/// Asserts that the manifest is refused with this message and this hint. With `instead` in place of
/// `lines` it is served.
fn is_refused_with(lines: &str, message: &str, hint: &str, instead: &str) {
    let text = refused(&Folder::with_manifest(&good_under(lines)));
    for part in [message, hint, "components/good.wasm"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    TestHost::with_manifest(&good_under(instead)).still_works();
}

/// Calls `tool` with a progress token and returns the progress that came for it.
fn call_with_progress(host: &mut TestHost, tool: &str, arguments: Value) -> Vec<f64> {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
    assert_eq!(host.request("tools/call", params)["result"]["content"][0]["text"], "reported");
    let frames = host.kept();
    let progress = frames.iter().filter(|frame| frame["method"] == "notifications/progress");
    progress.map(|frame| frame["params"]["progress"].as_f64().unwrap()).collect()
}

#[test]
fn a_tool_that_is_called_too_often_says_when_to_try_again() {
    let mut host = TestHost::with_manifest(&good_under("[components.good.tools.echo.limits]\nrate = \"5/h\""));
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(host.call("echo", json!({"text": "one"})).text(), "one");
    }
    for _ in 0..2 {
        let refused = host.call("echo", json!({"text": "one more"}));
        let text = "too many calls: more than 5/h of this tool (limit \"rate\"); try again in ";
        assert!(is_told_to_wait(refused.error_text(), text, 12 * 60, began), "{refused:?}");
        assert_eq!(host.call("add", json!({"a": 1, "b": 2})).structured(), &json!({"sum": 3}));
    }
    host.still_answers();
}

#[test]
fn the_allowance_of_calls_comes_back() {
    let mut host = TestHost::with_manifest(&good_under("[components.good.tools.echo.limits]\nrate = \"5/s\""));
    // More than five would be let through only if two hundred calls in a row took a fifth of a
    // second each.
    let refused = (0..200).map(|_| host.call("echo", json!({"text": "again"}))).find(|answer| answer.is_error());
    let text = "too many calls: more than 5/s of this tool (limit \"rate\"); try again in 1s";
    assert_eq!(refused.unwrap().error_text(), text);
    assert_eq!(host.call("slow", json!({"steps": 1, "step_ms": 1000})).text(), "1 steps done");
    host.still_works();
}

#[test]
fn calls_are_counted_before_they_take_a_place() {
    let limits = "rate = \"1/h\"\nconcurrency = 1\nqueue = 0\ndeadline = \"1s\"";
    let mut host = serving("loops", limits);
    let began = Instant::now();
    let running = host.start_call("sleep_hour", json!({}));
    let refused = host.start_call("sleep_hour", json!({}));
    // Either of the two may come first.
    let texts = [&running, &refused].map(|id| host.answer_to(id).error_text().to_owned());
    let late = "deadline exceeded: the call took longer than 1s (limit \"deadline\")";
    let often = "too many calls: more than 1/h of this tool (limit \"rate\"); try again in ";
    assert!(texts.iter().any(|text| text == late), "{texts:?}");
    assert!(texts.iter().any(|text| is_told_to_wait(text, often, 3_600, began)), "{texts:?}");
    host.still_works();
}

#[test]
fn a_call_that_came_too_often_is_recorded_so() {
    let folder = Folder::with_manifest(&good_under("[components.good.tools.echo.limits]\nrate = \"1/h\""));
    let line = |id: u64| {
        let params = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": modern_meta()});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    };
    let arguments = ["serve", "--manifest", "toolcell.toml", "--audit", "audit.jsonl"];
    let served = Command::in_folder(&folder, &arguments).with_input(line(1) + &line(2)).run();
    assert_eq!(served.frames().len(), 2);
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let mut outcomes: Vec<&str> =
        audit.split("\"outcome\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["ok", "rate_limited"]);
}

#[test]
fn calls_past_the_queue_and_past_its_wait_are_told_so() {
    let limits = "concurrency = 1\nqueue = 1\nqueue_wait = \"1s\"\ndeadline = \"4s\"";
    let mut host = serving("loops", limits);
    let calls: Vec<Value> = (0..3).map(|_| host.start_call("sleep_hour", json!({}))).collect();
    let mut texts: Vec<String> = calls.iter().map(|id| host.answer_to(id).error_text().to_owned()).collect();
    texts.sort_unstable();
    assert_eq!(
        texts,
        [
            "busy: 1 calls of this tool run and 1 wait; try again (limit \"queue\")",
            "busy: no place came free for this call within 1s; try again (limit \"queue_wait\")",
            "deadline exceeded: the call took longer than 4s (limit \"deadline\")",
        ]
    );
    host.still_works();
}

#[test]
fn progress_past_its_rate_is_dropped_and_the_tool_goes_on() {
    let mut host = serving("hungry", "progress = \"5/h\"");
    for _ in 0..2 {
        // Each call has its own allowance.
        let reports = call_with_progress(&mut host, "progress_reports", json!({"reports": 5_000}));
        assert_eq!(reports, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }
    host.still_works();
}

#[test]
fn twenty_progress_reports_a_second_reach_the_caller_by_default() {
    let mut host = serving("hungry", "");
    let began = Instant::now();
    let reports = call_with_progress(&mut host, "progress_reports", json!({"reports": 5_000}));
    let may_have_come = 20.0 + 20.0 * began.elapsed().as_secs_f64();
    assert!(reports.len() >= 20 && reports.len() as f64 <= may_have_come, "{} of {may_have_come}", reports.len());
    host.still_works();
}

#[test]
fn calls_of_the_host_cost_fuel() {
    let mut host = serving("hungry", "fuel = 50_000_000\n[server]\nusage = true");
    let mut fuel = |reports: u32| {
        let answer = host.call("progress_reports", json!({"reports": reports}));
        assert_eq!(answer.text(), "reported");
        answer.used("fuel")
    };
    let few = fuel(10);
    let many = fuel(1_010);
    assert!((1_000_000..1_200_000).contains(&(many - few)), "a thousand calls cost {}", many - few);
    assert_eq!(fuel(1_010), many, "the same calls cost the same");
    let text = "out of fuel: the call used its whole budget of 50_000_000 units (limit \"fuel\")";
    assert_eq!(host.call("progress_reports", json!({"reports": 60_000})).error_text(), text);
    host.still_works();
}

#[test]
fn pollables_are_handles() {
    // The timer of a pollable takes a handle of its own.
    let mut host = serving("hungry", "handles = 50");
    for _ in 0..2 {
        assert_eq!(host.call("pollables", json!({"pollables": 25})).text(), "25 pollables kept");
        let text = "too many handles: the tool held more than 50 at once (limit \"handles\")";
        assert_eq!(host.call("pollables", json!({"pollables": 26})).error_text(), text);
    }
    host.still_works();
}

#[test]
fn a_tool_recurses_as_deep_as_the_stack_lets_it() {
    let fuel_with = |stack: &str| {
        let server = format!("[server]\nusage = true\nstack = \"{stack}\"");
        let lines = format!("[components.loops]\nsource = \"components/loops.wasm\"\n{server}");
        let mut host = TestHost::with_manifest(&good_under(&lines));
        let answer = host.call("recurse", json!({}));
        assert_eq!(answer.error_text(), "stack overflow: the tool recursed too deep");
        host.still_works();
        answer.used("fuel")
    };
    let shallow = fuel_with("64KiB");
    let deep = fuel_with("512KiB");
    assert!(deep > 4 * shallow, "{deep} units of fuel on eight times the stack, {shallow} without");
}

#[test]
fn calls_of_all_tools_past_those_of_the_process_are_told_to_try_again() {
    let lines = "[components.loops]\nsource = \"components/loops.wasm\"\n[server]\ncalls = 2\n\
                 [defaults.limits]\nqueue_wait = \"100ms\"\ndeadline = \"1500ms\"";
    let mut host = TestHost::with_manifest(&good_under(lines));
    let tools = ["sleep_hour", "nap_forever", "wait_forever"];
    let calls = tools.map(|tool| host.start_call(tool, json!({})));
    let mut texts = calls.map(|id| host.answer_to(&id).error_text().to_owned());
    texts.sort_unstable();
    let late = "deadline exceeded: the call took longer than 1s500ms (limit \"deadline\")";
    assert_eq!(texts, ["busy: the host is running as many calls as it can; try again", late, late]);
    host.still_works();
}

#[test]
fn log_past_its_limit_is_dropped_and_counted_for_the_operator() {
    let mut host = serving("hungry", "log = \"1KiB\"");
    assert_eq!(host.call("log_line", json!({"bytes": 2_000})).text(), "logged");
    // A line counts for 32 bytes besides its text.
    host.will_say("printed or logged 2032 bytes past the limit \"log\"");
    host.still_works();
}

#[test]
fn arguments_past_their_limit_are_refused_before_the_guest_runs() {
    let lines = "[components.good.limits]\narguments = \"100B\"\n[server]\nusage = true";
    let mut host = TestHost::with_manifest(&good_under(lines));
    let refused = host.call("echo", json!({"text": "x".repeat(100)}));
    assert_eq!(refused.error_text(), "the arguments are larger than 100B (limit \"arguments\")");
    assert!(refused.result()["_meta"].get("toolcell/usage").is_none(), "no guest has run: {}", refused.reply());
    host.still_works();
}

#[test]
fn instances_past_what_a_call_may_have_are_refused_at_load() {
    let lines = "[components.many]\nsource = \"components/many_instances.wasm\"";
    let text = refused(&Folder::with_manifest(&good_under(lines)));
    let parts = "too many parts: the tool is made of more instances, memories or tables than one call may have";
    assert!(text.contains(parts), "no {parts:?} in\n{text}");
    TestHost::with_manifest(&good_under("")).still_works();
}

#[test]
fn a_component_larger_than_it_may_be_is_not_read() {
    is_refused_with(
        "[components.good.load]\ncomponent_size = \"1KiB\"",
        "component \"good\": components/good.wasm is larger than 1KiB (limit \"component_size\")",
        "raise component_size in [components.good.load]",
        "[components.good.load]\ncomponent_size = \"8MiB\"",
    );
}

#[test]
fn a_component_that_compiles_longer_than_it_may_is_refused() {
    let folder = Folder::with_manifest(&good_under("[components.good.load]\ncompile_time = \"1ms\""));
    // No cache of compiled code has seen these bytes: a custom section of their own is appended.
    let mut bytes = std::fs::read(folder.path().join("components/good.wasm")).unwrap();
    let label = format!("{:032}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    bytes.extend_from_slice(&[0, 34, 1, b'n']);
    bytes.extend_from_slice(label.as_bytes());
    folder.write("components/good.wasm", bytes);
    let text = refused(&folder);
    for part in [
        "component \"good\": compiling it takes longer than 1ms (limit \"compile_time\")",
        "raise compile_time in [components.good.load]",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    folder.write("toolcell.toml", good_under("[components.good.load]\ncompile_time = \"1h\""));
    TestHost::in_folder(folder).still_works();
}

#[test]
fn a_component_that_lists_more_tools_than_it_may_is_refused() {
    is_refused_with(
        "[components.good.load]\ntools = 8",
        "component \"good\" lists 9 tools; a component may list 8 (limit \"tools\")",
        "raise tools in [components.good.load]",
        "[components.good.load]\ntools = 9",
    );
}

#[test]
fn a_definition_larger_than_it_may_be_is_refused() {
    is_refused_with(
        "[defaults.load]\ndefinition = \"256B\"",
        "component \"good\", tool \"slow\": definition is larger than 256B (limit \"definition\")",
        "raise definition in the component's `load` table",
        "[defaults.load]\ndefinition = \"1KiB\"",
    );
}
