//! The memory that a call sees. By default it is not another call's, made ahead or not. If the
//! manifest says so, it is its caller's, and then never that of a broken instance.
//!
//! Promise: calls see nothing of each other.

use serde_json::json;
use toolcell_tests::TestHost;

fn host(component: &str) -> TestHost {
    TestHost::with_manifest(&format!(
        "version = 1\n[defaults.limits]\nrate = \"1000000/s\"\n[components.remembers]\nsource = \"components/remembers.wasm\"\n{component}"
    ))
}

#[test]
fn no_call_sees_what_another_left_though_instances_are_made_ahead() {
    for prewarm in [0, 1, 4, 64] {
        let mut host = host(&format!("prewarm = {prewarm}\n"));
        for call in 0..200 {
            assert_eq!(host.call("count", json!({})).text(), "1", "prewarm = {prewarm}, call {call}");
        }
    }
}

#[test]
fn instances_made_ahead_stay_within_their_memory_and_calls_go_on() {
    let mut host = TestHost::with_manifest(
        "version = 1\n[server]\nprewarm_memory = \"1MiB\"\n[defaults.limits]\nrate = \"1000000/s\"\n\
         [components.remembers]\nsource = \"components/remembers.wasm\"\nprewarm = 64\n",
    );
    // One instance of this guest exceeds the whole budget, so every call makes its own.
    for _ in 0..50 {
        assert_eq!(host.call("count", json!({})).text(), "1");
    }
}

#[test]
fn instances_made_ahead_leave_room_for_calls() {
    let mut host = TestHost::with_manifest(
        "version = 1\n[server]\ncalls = 2\n[defaults.limits]\nrate = \"1000000/s\"\n\
         [components.remembers]\nsource = \"components/remembers.wasm\"\nprewarm = 64\n\
         [components.good]\nsource = \"components/good.wasm\"\n",
    );
    for _ in 0..50 {
        assert_eq!(host.call("count", json!({})).text(), "1");
        assert_eq!(host.call("echo", json!({"text": "hi"})).text(), "hi");
    }
}

#[test]
fn small_instances_made_ahead_for_many_tools_leave_room_for_calls_too() {
    let component = |at: usize| {
        format!("[components.c{at}]\nsource = \"components/numbered.wasm\"\nprefix = \"c{at}_\"\nprewarm = 64\n")
    };
    let components: String = (0..6).map(component).collect();
    let mut host = TestHost::with_manifest(&format!(
        "version = 1\n[server]\ncalls = 2\n[defaults.limits]\nrate = \"1000000/s\"\n{components}"
    ));
    for round in 0..20 {
        for at in 0..6 {
            let answer = host.call(&format!("c{at}_now"), json!({}));
            assert_eq!(answer.text(), "number 000000", "component {at}, round {round}");
        }
    }
}

#[test]
fn a_caller_s_own_instance_keeps_its_state_between_calls_and_tools() {
    let mut host = host("instance = \"per-caller\"\n");
    assert_eq!(host.call("count", json!({})).text(), "1");
    assert_eq!(host.call("count", json!({})).text(), "2");
    assert_eq!(host.call("count_and_print", json!({"bytes": 10})).text(), "3");
}

#[test]
fn each_call_of_a_kept_instance_has_its_whole_budgets() {
    let limits = "[components.remembers.limits]\nfuel = 1_000_000\nlog = \"1KiB\"\n[server]\nusage = true\n";
    let mut host = host(&format!("instance = \"per-caller\"\n{limits}"));
    let fuels: Vec<u64> = (1..=20)
        .map(|call| {
            let answer = host.call("count_and_print", json!({"bytes": 1000}));
            assert_eq!(answer.text(), call.to_string());
            answer.used("fuel")
        })
        .collect();
    assert!(fuels.iter().sum::<u64>() > 1_000_000 || fuels[19] <= fuels[1] * 2, "fuel is counted per call: {fuels:?}");
}

#[test]
fn an_instance_that_failed_in_any_way_is_not_used_again() {
    let ends = [
        ("count_and_trap", "the tool trapped: wasm `unreachable` instruction executed"),
        ("count_and_spin", "out of fuel: the call used its whole budget of 5_000_000 units (limit \"fuel\")"),
    ];
    for (tool, text) in ends {
        let mut host = host("instance = \"per-caller\"\n[components.remembers.limits]\nfuel = 5_000_000\n");
        assert_eq!(host.call("count", json!({})).text(), "1");
        assert_eq!(host.call(tool, json!({})).error_text(), text);
        assert_eq!(host.call("count", json!({})).text(), "1", "after {tool}");
    }
}

#[test]
fn an_error_that_the_tool_itself_reports_keeps_the_instance() {
    let mut host = host("instance = \"per-caller\"\n");
    assert_eq!(host.call("count", json!({})).text(), "1");
    assert_eq!(host.call("count_and_fail", json!({})).error_text(), "2");
    assert_eq!(host.call("count", json!({})).text(), "3");
}

#[test]
fn a_kept_instance_is_given_up_when_it_is_old() {
    let mut host = host("instance = \"per-caller\"\ninstance_lifetime = \"1s\"\n");
    let began = std::time::Instant::now();
    assert_eq!(host.call("count", json!({})).text(), "1");
    let mut last = 1;
    loop {
        let count: u32 = host.call("count", json!({})).text().parse().unwrap();
        if count == 1 {
            break;
        }
        assert_eq!(count, last + 1, "state is kept or given up whole");
        last = count;
        assert!(began.elapsed() < toolcell_tests::patience(), "it is never given up");
    }
    assert!(began.elapsed().as_millis() >= 900, "it was given up before its time");
}
