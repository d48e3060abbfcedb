//! Guests that never end delay nothing else: neither the protocol nor another tool.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{TestHost, manifest_of};

/// Time that an answer may take next to endless calls. An idle machine needs a tiny part of it.
const SOON: Duration = Duration::from_secs(5);

/// Serves `good` and `loops`. No limit ends a call of `loops`.
fn endless() -> TestHost {
    let manifest = manifest_of(&["good", "loops"])
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("memory = \"16MiB\"", "memory = \"64MiB\"")
        .replace("deadline = \"5s\"", "deadline = \"1h\"");
    TestHost::with_manifest(&manifest)
}

/// Runs `ask` that many times, each within [`SOON`].
fn soon(what: &str, rounds: usize, mut ask: impl FnMut()) {
    for round in 0..rounds {
        let asked = Instant::now();
        ask();
        let took = asked.elapsed();
        assert!(took < SOON, "{what} took {took:?} in round {round}");
    }
}

#[test]
fn beside_eight_endless_calls_everything_else_is_answered() {
    for tools in [
        ["spin"; 8],
        ["spin", "fill", "call_host", "ignore_cancel", "nap_forever", "progress_forever", "log_forever", "spin"],
    ] {
        let mut host = endless();
        let listed = host.list();
        host.still_works();
        let loops = tools.map(|tool| host.start_call(tool, json!({})));
        soon("a ping", 200, || host.still_answers());
        soon("the list of tools", 50, || assert_eq!(host.list(), listed));
        soon("a short call", 50, || assert_eq!(host.call("echo", json!({"text": "short"})).text(), "short"));
        assert_eq!(host.kept(), [json!(null); 0], "no endless call has ended: {tools:?}");
        loops.iter().for_each(|id| host.cancel(id));
        host.still_works();
    }
}

#[test]
fn a_call_that_comes_alone_and_never_ends_does_not_delay_the_next_ping() {
    let mut host = endless();
    for tool in ["spin", "fill", "call_host", "spin", "fill", "call_host"] {
        // This is long enough for the host to trust calls again, after one that was not short.
        assert_eq!(host.call("slow", json!({"steps": 1, "step_ms": 200})).text(), "1 steps done");
        let id = host.start_call(tool, json!({}));
        soon(&format!("the first pings beside {tool}"), 10, || host.still_answers());
        host.cancel(&id);
    }
    assert_eq!(host.kept(), [json!(null); 0]);
}

#[test]
fn calls_that_wait_for_a_busy_tool_do_not_keep_others_waiting() {
    let manifest = manifest_of(&["good", "loops"])
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("deadline = \"5s\"", "deadline = \"1h\"");
    let one = "\n[components.loops.limits]\nconcurrency = 1\nqueue_wait = \"10m\"\n";
    let mut host = TestHost::with_manifest(&format!("{manifest}{one}"));
    let calls: Vec<Value> = (0..20).map(|_| host.start_call("spin", json!({}))).collect();
    soon("a ping", 50, || host.still_answers());
    soon("a short call", 50, || assert_eq!(host.call("echo", json!({"text": "short"})).text(), "short"));
    // When the running call is cancelled, the next one takes its place: none is lost, and none is
    // answered.
    calls.iter().for_each(|id| host.cancel(id));
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0]);
}
