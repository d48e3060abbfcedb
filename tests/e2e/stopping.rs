//! Calls that are cancelled, late, or caught by the end of the process. Each stops soon whatever it
//! does and frees its resources, and the audit says why it ended.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{TestHost, manifest_of};

use crate::walls::own_bytes;

/// Time in which a call must stop when told to. An idle machine needs a hundredth of it. A busy one
/// may hold up any call, but not each of several.
const SOON: Duration = Duration::from_millis(500);

/// Calls of which the soonest counts.
const ROUNDS: usize = 5;

/// Time that the end of a process may take on a busy machine.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// Time that calls go on after SIGTERM before they are asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Tools that compute, that call the host, that sleep, and that block on a pollable. None ends by
/// itself.
const ENDLESS: [&str; 7] = ["spin", "fill", "ignore_cancel", "call_host", "nap_forever", "sleep_hour", "wait_forever"];

/// Serves `good` and `loops` and records. Only this deadline ends a call. One call runs at a time,
/// so the next begins when the one before it has ended.
fn one_at_a_time(deadline: &str) -> TestHost {
    let manifest = manifest_of(&["good", "loops"])
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("memory = \"16MiB\"", "memory = \"64MiB\"")
        .replace("deadline = \"5s\"", &format!("deadline = \"{deadline}\""));
    TestHost::recording(&format!("{manifest}\n[server]\nin_flight_max = 1\n"))
}

/// The `call.finished` records of this tool's calls.
fn finished(audit: &[Value], tool: &str) -> Vec<Value> {
    let of_event = |event: &'static str| audit.iter().filter(move |record| record["event"] == event);
    let calls: Vec<&Value> =
        of_event("call.started").filter(|record| record["tool"] == tool).map(|record| &record["id"]).collect();
    of_event("call.finished").filter(|record| calls.contains(&&record["id"])).cloned().collect()
}

fn outcomes(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["outcome"].as_str().unwrap()).collect()
}

/// Asserts that each call stopped by itself: a process that does not stop one soon is ended.
fn no_process_was_ended(host: &TestHost) {
    assert!(!host.said().contains("ended its sandbox"), "{}", host.said());
}

#[test]
fn a_cancelled_call_makes_room_for_the_next_soon() {
    let mut host = one_at_a_time("1h");
    host.still_works();
    for tool in ENDLESS {
        let times = (0..ROUNDS).map(|_| {
            let id = host.start_call(tool, json!({}));
            host.still_answers();
            host.cancel(&id);
            let told = Instant::now();
            assert_eq!(host.call("echo", json!({"text": "next"})).text(), "next");
            told.elapsed()
        });
        let soonest = times.min().unwrap();
        assert!(soonest < SOON, "{tool} held the next call up for {soonest:?}");
    }
    no_process_was_ended(&host);
    assert_eq!(host.kept(), [json!(null); 0], "a cancelled call is not answered");
    let audit = host.audit();
    for tool in ENDLESS {
        assert_eq!(outcomes(&finished(&audit, tool)), ["cancelled"; ROUNDS], "{tool}");
    }
}

#[test]
fn a_call_that_has_shown_progress_stops_as_soon() {
    let mut host = one_at_a_time("1h");
    for (tool, arguments) in [("progress_forever", json!({})), ("slow", json!({"steps": 100_000, "step_ms": 1}))] {
        let times = (0..ROUNDS).map(|_| {
            let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}});
            let id = host.start("tools/call", params);
            let first = host.receive();
            assert_eq!(first["method"], "notifications/progress", "{first}");
            host.cancel(&id);
            let told = Instant::now();
            host.still_works();
            host.kept();
            told.elapsed()
        });
        let soonest = times.min().unwrap();
        assert!(soonest < SOON, "{tool} held the next call up for {soonest:?}");
        // The guest may stop by itself once it sees the cancellation.
        let records = finished(&host.audit(), tool);
        assert_eq!(outcomes(&records), ["cancelled"; ROUNDS], "{tool}");
        let ran = records.iter().all(|record| record["usage"]["fuel"].as_u64().unwrap() > 0);
        assert!(ran, "they ran: {records:?}");
    }
    no_process_was_ended(&host);
}

#[test]
fn a_late_call_ends_at_its_deadline() {
    const DEADLINE: Duration = Duration::from_millis(200);
    let mut host = one_at_a_time("200ms");
    for tool in ENDLESS {
        let text = "deadline exceeded: the call took longer than 200ms (limit \"deadline\")";
        for _ in 0..ROUNDS {
            assert_eq!(host.call(tool, json!({})).error_text(), text, "{tool}");
        }
    }
    host.still_works();
    let audit = host.audit();
    for tool in ENDLESS {
        let records = finished(&audit, tool);
        assert_eq!(outcomes(&records), ["deadline"; ROUNDS], "{tool}");
        let ran = |record: &Value| Duration::from_micros(record["usage"]["duration_us"].as_u64().unwrap());
        let soonest = records.iter().map(ran).min().unwrap();
        assert!(soonest >= DEADLINE && soonest < DEADLINE + SOON, "{tool} ran for {soonest:?}");
    }
}

#[test]
fn the_end_of_the_process_stops_what_runs_and_records_it() {
    let manifest = manifest_of(&["good", "loops"])
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("memory = \"16MiB\"", "memory = \"64MiB\"")
        .replace("deadline = \"5s\"", "deadline = \"1h\"");
    let mut host = TestHost::recording(&manifest);
    host.still_works();
    let calls = ENDLESS.map(|tool| host.start_call(tool, json!({})));
    host.still_answers();
    let audit = host.folder().path().join("audit.jsonl");
    let kept = std::fs::File::open(audit).unwrap();
    let told = Instant::now();
    host.terminate();
    let ended = host.ends();
    let took = told.elapsed();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(took < GRACE + END_TIME_MAX, "the end took {took:?}");
    let audit: Vec<Value> = std::io::BufRead::lines(std::io::BufReader::new(kept))
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    for tool in ENDLESS {
        assert_eq!(outcomes(&finished(&audit, tool)), ["cancelled"], "{tool}");
    }
    assert_eq!(audit.last().unwrap()["event"], "host.stopped");
    let answered: Vec<Value> = ended.frames().iter().map(|frame| frame["id"].clone()).collect();
    assert!(calls.iter().all(|id| answered.contains(id)), "who waits is told: {answered:?}");
}

#[test]
fn a_thousand_cancelled_calls_leave_nothing_behind() {
    const CALLS: usize = 1_000;
    let tools = ["spin", "fill", "sleep_hour", "wait_forever"];
    let mut host = one_at_a_time("1h");
    let mut cancel_calls = |count: usize| {
        for tool in tools.iter().cycle().take(count) {
            let id = host.start_call(tool, json!({}));
            host.still_answers();
            host.cancel(&id);
            // This call begins when the cancelled one has ended.
            assert_eq!(host.call("echo", json!({"text": "next"})).text(), "next");
        }
        own_bytes(&host)
    };
    // The same number of calls first: every used slot of the pool keeps some pages, so all slots
    // must have been used.
    let before = cancel_calls(CALLS);
    let after = cancel_calls(CALLS);
    assert!(after < before + before / 10, "{CALLS} cancelled calls made {before} bytes {after}");
    let audit = host.audit();
    let cancelled: usize = tools
        .iter()
        .map(|tool| outcomes(&finished(&audit, tool)).iter().filter(|outcome| **outcome == "cancelled").count())
        .sum();
    assert_eq!(cancelled, 2 * CALLS);
}
