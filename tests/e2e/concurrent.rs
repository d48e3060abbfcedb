//! Components with async functions, in each of the three shapes: what they answer, every way in
//! which they do not end by themselves, and what they leave behind.
//!
//! Promise: calls see nothing of each other.

use serde_json::{Value, json};
use toolcell_tests::{Command, TestHost, manifest_of};

use crate::walls::{busy, kill, walled};

/// A host that serves these fixtures. Calls that do not end have no deadline but this.
fn endless(fixtures: &[&str], deadline: &str) -> TestHost {
    let manifest = manifest_of(fixtures)
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("deadline = \"5s\"", &format!("deadline = \"{deadline}\""));
    TestHost::recording(&manifest)
}

fn result(host: &mut TestHost, tool: &str, arguments: Value) -> Value {
    host.call(tool, arguments).structured()["result"].clone()
}

const OUT_OF_FUEL: &str = "out of fuel: the call used its whole budget of 20_000_000 units (limit \"fuel\")";
const DEADLOCK: &str = "the tool trapped: it waits for ever: each of its tasks waits for something that no other \
                        task and no host function will do";

#[test]
fn async_functions_are_tools_with_arguments_results_and_errors_of_their_own() {
    let mut host = TestHost::serving(&["good", "async"]);
    assert_eq!(result(&mut host, "plus", json!({"a": 40, "b": 2})), 42);
    assert_eq!(result(&mut host, "same", json!({"text": "zwölf 🦀"})), "zwölf 🦀");
    assert_eq!(result(&mut host, "check", json!({"text": "short"})), "short");
    let refused = host.call("check", json!({"text": "much too long"}));
    assert!(refused.is_error());
    assert_eq!(refused.result()["content"][0]["text"], r#"{"error":"much too long"}"#);
    assert_eq!(result(&mut host, "turns", json!({"count": 1000})), 0, "it yields, and goes on");
    assert_eq!(*host.call("sleeps", json!({"nanoseconds": 1000})).structured(), json!({}), "the host wakes it");
    assert_eq!(result(&mut host, "plain", json!({"a": 1})), 2, "a function that is not async");
    host.still_works();
}

#[test]
fn tasks_of_one_part_start_those_of_another_and_wait_for_them() {
    let mut host = TestHost::serving(&["async_tasks"]);
    // Each of three answers with the number after its own: 1, 11 and 21.
    assert_eq!(result(&mut host, "sums", json!({"a": 0})), 1 + 11 + 21);
    assert_eq!(result(&mut host, "calls_next", json!({"a": 41})), 42, "a part that waits on its stack");
}

#[test]
fn a_program_and_a_component_with_the_contract_may_be_async() {
    let manifest = manifest_of(&["async_contract", "async_program"])
        + "[components.async_program.tools.run_it]\ndescription = \"runs\"\n";
    let mut host = TestHost::with_manifest(&manifest);
    assert_eq!(host.call("run", json!({})).text(), "survived");
    assert!(!host.call("run_it", json!({})).is_error());
}

#[test]
fn a_call_that_cannot_go_on_ends_with_the_reason_and_harms_no_other() {
    let mut host = TestHost::serving(&["good", "async"]);
    for (tool, text) in [
        ("waits", DEADLOCK),
        ("forgets", "the tool trapped: its async function ended without a result (it did not call task.return)"),
        ("traps", "the tool trapped: wasm `unreachable` instruction executed"),
        ("spins", OUT_OF_FUEL),
        ("spins_on", OUT_OF_FUEL),
        ("yields", OUT_OF_FUEL),
    ] {
        assert_eq!(host.call(tool, json!({})).error_text(), text, "{tool}");
        assert_eq!(result(&mut host, "plus", json!({"a": 1, "b": 2})), 3, "after {tool}");
        host.still_works();
    }
    let memory = "out of memory: the call needed more than 16MiB (limit \"memory\")";
    assert_eq!(result(&mut host, "grows", json!({"pages": 100})), 101);
    assert_eq!(host.call("grows", json!({"pages": 300})).error_text(), memory);
    let mut host = TestHost::serving(&["good", "async_tasks"]);
    let handles = "too many handles: the tool held more than 1_000 at once (limit \"handles\")";
    for (tool, text) in [("waits", DEADLOCK), ("spins", OUT_OF_FUEL), ("floods", handles)] {
        assert_eq!(host.call(tool, json!({})).error_text(), text, "{tool}");
        assert_eq!(result(&mut host, "sums", json!({"a": 1})), 36, "after {tool}");
        host.still_works();
    }
}

#[test]
fn a_call_ends_at_its_deadline_and_when_it_is_cancelled() {
    let hour = json!({"nanoseconds": 3_600_000_000_000_u64});
    let calls = [("spins", json!({})), ("yields", json!({})), ("spins_on", json!({})), ("sleeps", hour)];
    let mut host = endless(&["good", "async"], "200ms");
    for (tool, arguments) in &calls {
        let text = "deadline exceeded: the call took longer than 200ms (limit \"deadline\")";
        assert_eq!(host.call(tool, arguments.clone()).error_text(), text, "{tool}");
        host.still_works();
    }
    let mut host = endless(&["good", "async"], "1h");
    host.still_works();
    for (tool, arguments) in calls {
        let running = host.start_call(tool, arguments);
        let started = host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == tool);
        host.cancel(&running);
        let ended =
            host.recorded("the end", |record| record["event"] == "call.finished" && record["id"] == started["id"]);
        assert_eq!(ended["outcome"], "cancelled", "{tool}");
        assert_eq!(result(&mut host, "plus", json!({"a": 1, "b": 2})), 3, "after {tool}");
    }
    assert!(!host.said().contains("ended its sandbox"), "each stopped by itself: {}", host.said());
}

#[test]
fn no_call_meets_the_tasks_of_another_and_stacks_are_given_back() {
    // The pool has 69 stacks, and the guest leaves one behind in every second call.
    for prewarm in [0, 4] {
        let mut host = TestHost::with_manifest(&format!(
            "version = 1\n[server]\ncalls = 1\n[defaults.limits]\nrate = \"1000000/s\"\n\
             [components.async_tasks]\nsource = \"components/async_tasks.wasm\"\nprewarm = {prewarm}\n"
        ));
        for _ in 0..200 {
            assert_eq!(result(&mut host, "leaves", json!({})), 1);
            assert_eq!(result(&mut host, "leaves_deep", json!({"levels": 5_000})), 1);
        }
        assert_eq!(result(&mut host, "sums", json!({"a": 0})), 33);
    }
}

#[test]
fn a_caller_s_instance_is_kept_unless_a_call_leaves_tasks_behind() {
    let kept = |fixture: &str| {
        let manifest = manifest_of(&[fixture]);
        TestHost::with_manifest(&format!("{manifest}instance = \"per-caller\"\n"))
    };
    let mut host = kept("async");
    for count in 1..4 {
        assert_eq!(result(&mut host, "counts", json!({})), count);
    }
    assert_eq!(result(&mut host, "lingers", json!({})), 4);
    assert_eq!(result(&mut host, "counts", json!({})), 1, "its task would have gone on");
    let mut host = kept("async_tasks");
    assert_eq!(result(&mut host, "counts", json!({})), 1);
    assert_eq!(result(&mut host, "counts", json!({})), 2);
    assert_eq!(result(&mut host, "leaves", json!({})), 3);
    assert_eq!(result(&mut host, "counts", json!({})), 1);
}

#[test]
fn the_stack_of_each_part_counts_as_memory() {
    // Two parts with a memory of one page each, and a second stack of 512 KiB.
    let within = |memory: &str| {
        let manifest = manifest_of(&["async_tasks"]);
        TestHost::with_manifest(&format!("{manifest}[components.async_tasks.limits]\nmemory = \"{memory}\"\n"))
    };
    assert_eq!(result(&mut within("1MiB"), "counts", json!({})), 1);
    let text = "out of memory: the call needed more than 512KiB (limit \"memory\")";
    assert_eq!(within("512KiB").call("counts", json!({})).error_text(), text);
}

#[test]
fn async_components_run_in_processes_apart_from_others() {
    let limits = "fuel = 1_000_000_000_000_000\ndeadline = \"1h\"\n";
    let lines = format!(
        "wall = \"one\"\n[components.loops.limits]\n{limits}\
         [components.async]\nsource = \"components/async.wasm\"\nwall = \"one\"\n[components.async.limits]\n{limits}"
    );
    let mut host = walled(&lines);
    host.still_works();
    let asleep = host.start_call("sleep_hour", json!({}));
    let started =
        host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == "sleep_hour");
    let running = host.start_call("spins", json!({}));
    kill(busy(host.process_id()));
    assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
    host.still_works();
    host.cancel(&asleep);
    let ended = host.recorded("the end", |record| record["event"] == "call.finished" && record["id"] == started["id"]);
    assert_eq!(ended["outcome"], "cancelled", "the manifest puts both behind one wall, but their engines differ");
}

#[test]
fn an_async_component_runs_in_a_thread_where_there_are_no_walls() {
    let manifest = format!("{}\n[server]\nwalls = \"none\"\n", manifest_of(&["good", "async"]));
    let mut host = TestHost::with_manifest(&manifest);
    assert_eq!(result(&mut host, "plus", json!({"a": 40, "b": 2})), 42);
    assert_eq!(host.call("waits", json!({})).error_text(), DEADLOCK);
    host.still_works();
}

#[test]
fn what_the_engine_of_async_components_lacks_is_named() {
    for (fixture, name) in
        [("feature_async_stackful", "async functions without a callback"), ("feature_error_context", "error contexts")]
    {
        let folder = toolcell_tests::Folder::with_manifest(&manifest_of(&[fixture]));
        let text = Command::in_folder(&folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned();
        assert!(text.contains(&format!("uses {name}, which the engine has off")), "{fixture}: {text}");
    }
}
