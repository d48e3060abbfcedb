//! Everything around calls: progress, log, cancellation, subscriptions, and the ways in
//! which a host ends.
//!
//! Promise: waiting ends.
//! Promise: a hostile client cannot stop the process.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{TestHost, manifest_of};

/// Serves `good` and `loops` with an hour for each call, so that only the tested event ends one.
fn patient() -> TestHost {
    let manifest = manifest_of(&["good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\"");
    let manifest = manifest.replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000");
    TestHost::with_manifest(&format!("{manifest}\n[server]\ndrain = \"10s\"\n"))
}

fn of_method<'a>(frames: &'a [Value], method: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["method"] == method).collect()
}

#[test]
fn progress_grows_and_ends_with_its_call() {
    for (revision, token) in [(None, json!("a token")), (Some("2025-06-18"), json!(7)), (Some("2024-11-05"), json!(0))]
    {
        let mut host = patient();
        if let Some(revision) = revision {
            host.initialize(revision);
        }
        let params =
            json!({"name": "slow", "arguments": {"steps": 3, "step_ms": 1}, "_meta": {"progressToken": token}});
        assert_eq!(host.request("tools/call", params)["result"]["content"][0]["text"], "3 steps done");
        host.still_works();
        let frames = host.kept();
        let progress = of_method(&frames, "notifications/progress");
        assert_eq!(progress.len(), 3, "{revision:?}: {frames:?}");
        for (step, frame) in (1..).zip(progress) {
            assert_eq!(frame["params"]["progressToken"], token);
            assert_eq!(frame["params"]["progress"].as_f64(), Some(f64::from(step)));
            assert_eq!(frame["params"]["total"].as_f64(), Some(3.0));
            let message = (revision != Some("2024-11-05")).then(|| json!(format!("step {step}")));
            assert_eq!(frame["params"].get("message"), message.as_ref(), "`message` came with 2025-03-26");
        }
    }
}

#[test]
fn nobody_hears_of_progress_or_log_who_did_not_ask() {
    let mut host = patient();
    assert_eq!(host.call("slow", json!({"steps": 3, "step_ms": 0})).text(), "3 steps done");
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0]);
}

#[test]
fn a_legacy_client_sets_the_level_of_the_log() {
    let mut host = patient();
    host.initialize("2025-06-18");
    // The operator's log takes lines from `info` up, so those lines are always wanted.
    for (level, heard, reach_somebody) in [("warning", 5, 7), ("debug", 8, 8), ("emergency", 1, 7)] {
        assert_eq!(host.request("logging/setLevel", json!({"level": level}))["result"], json!({}));
        let enabled = host.call("levels", json!({})).text().to_owned();
        assert_eq!(enabled.split(' ').count(), reach_somebody, "{level}: {enabled}");
        let frames = host.kept();
        let messages = of_method(&frames, "notifications/message");
        assert_eq!(messages.len(), heard, "{level}: {frames:?}");
        for message in messages {
            let level = message["params"]["level"].as_str().unwrap();
            assert_eq!(message["params"]["data"], format!("a line of level {level}"));
        }
    }
    let reply = host.request("logging/setLevel", json!({"level": "loud"}));
    assert_eq!(reply["error"]["code"], -32602);
}

#[test]
fn a_modern_client_asks_for_the_log_with_each_request() {
    let mut host = patient();
    let params =
        |level: &str| json!({"name": "levels", "arguments": {}, "_meta": {"io.modelcontextprotocol/logLevel": level}});
    let reply = host.request("tools/call", params("error"));
    assert_eq!(reply["result"]["content"][0]["text"], "info notice warning error critical alert emergency");
    assert_eq!(of_method(&host.kept(), "notifications/message").len(), 4);
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0], "the level holds for one request");
    assert_eq!(host.request("tools/call", params("loud"))["error"]["code"], -32602);
}

#[test]
fn a_cancelled_call_stops_whatever_it_does_and_is_not_answered() {
    let endless = [
        ("spin", json!({})),
        ("ignore_cancel", json!({})),
        ("sleep_hour", json!({})),
        ("wait_forever", json!({})),
        ("nap_forever", json!({})),
        ("slow", json!({"steps": 100_000, "step_ms": 60_000})),
    ];
    for revision in [None, Some("2025-11-25")] {
        let mut host = patient();
        if let Some(revision) = revision {
            host.initialize(revision);
        }
        let ids: Vec<Value> =
            endless.iter().map(|(tool, arguments)| host.start_call(tool, arguments.clone())).collect();
        host.still_works();
        let told = Instant::now();
        for id in &ids {
            let params = json!({"requestId": id, "reason": "changed my mind"});
            host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
        host.still_works();
        host.close_input();
        let finished = host.ends();
        assert_eq!(finished.code(), 0, "{finished:?}");
        // A call that was not stopped would delay the end by ten seconds, until it is cancelled
        // anyway.
        assert!(told.elapsed() < Duration::from_secs(9), "{revision:?}: something was not stopped");
        let answered = |frame: &Value| ids.contains(&frame["id"]);
        assert!(!finished.frames().iter().any(answered), "{revision:?}: {finished:?}");
    }
}

#[test]
fn cancelling_what_does_not_run_changes_nothing() {
    let mut host = patient();
    for id in [json!(77), json!("77"), json!(null), json!({})] {
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0]);
}

#[test]
fn a_hundred_cancelled_calls_leave_room_for_the_next() {
    let mut host = patient();
    for round in 0..100 {
        let id = host.start_call(if round % 2 == 0 { "spin" } else { "sleep_hour" }, json!({}));
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    host.still_works();
}

#[test]
fn a_subscription_is_acknowledged_first_and_answered_at_the_end() {
    let mut host = patient();
    let id = host.start("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let first = host.receive();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    host.still_works();
    host.close_input();
    let frames = host.ends().frames();
    let last = frames.iter().position(|frame| frame["id"] == id);
    let last = last.unwrap_or_else(|| panic!("no final result: {frames:?}"));
    assert_eq!(frames[last]["result"]["resultType"], "complete", "{frames:?}");
    let cancelled = json!({"requestId": id, "reason": "The server ends"});
    assert_eq!(frames[last + 1]["method"], "notifications/cancelled", "{frames:?}");
    assert_eq!(frames[last + 1]["params"], cancelled);
}

#[test]
fn past_the_most_subscriptions_another_one_is_refused_as_one_too_many() {
    let manifest = format!("{}\n[server]\nsubscriptions_max = 2\n", manifest_of(&["good"]));
    let mut host = TestHost::with_manifest(&manifest);
    let listen = |host: &mut TestHost| host.start("subscriptions/listen", json!({"notifications": {}}));
    let first = listen(&mut host);
    host.next_of("notifications/subscriptions/acknowledged");
    listen(&mut host);
    host.next_of("notifications/subscriptions/acknowledged");
    let refused = host.request("subscriptions/listen", json!({"notifications": {}}));
    let text = "At most 2 subscriptions of one connection may be open: cancel one first";
    assert_eq!(refused["error"], json!({"code": -32603, "message": text}));
    host.cancel(&first);
    listen(&mut host);
    host.next_of("notifications/subscriptions/acknowledged");
}

#[test]
fn a_call_that_hangs_does_not_keep_the_process_once_the_input_has_ended() {
    let input_ends = format!("{}\n", manifest_of(&["good", "loops"]));
    let drain = "[server]\ndrain = \"0s\"\n";
    // Clients kill their child after two seconds. The rest is for a machine that is busy.
    for (manifest, within_s) in [(input_ends.clone(), 20), (input_ends + drain, 10)] {
        let mut host = TestHost::with_manifest(&manifest);
        host.still_works();
        let id = host.start_call("sleep_hour", json!({}));
        host.still_works();
        let told = Instant::now();
        host.close_input();
        let finished = host.ends();
        assert!(told.elapsed() < Duration::from_secs(within_s), "{manifest}: {:?}", told.elapsed());
        assert_eq!(finished.code(), 0, "{finished:?}");
        let answer = finished.frames().into_iter().find(|frame| frame["id"] == id).unwrap();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
}

#[test]
fn a_subscription_to_what_a_reload_may_add_is_honoured() {
    let mut host = patient();
    host.start("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
    let first = host.receive();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["notifications"], json!({"promptsListChanged": true}));
}

#[test]
fn the_end_of_input_lets_running_calls_finish() {
    let mut host = patient();
    let calls: Vec<Value> = (0..5).map(|_| host.start_call("slow", json!({"steps": 3, "step_ms": 30}))).collect();
    host.close_input();
    let finished = host.ends();
    assert_eq!(finished.code(), 0, "{finished:?}");
    let frames = finished.frames();
    for id in calls {
        let reply = frames.iter().find(|frame| frame["id"] == id).unwrap_or_else(|| panic!("lost {id}: {finished:?}"));
        assert_eq!(reply["result"]["content"][0]["text"], "3 steps done");
    }
}

#[test]
fn every_line_of_a_file_is_answered_before_the_end() {
    let mut host = patient();
    let mut lines = String::new();
    for id in 0..2000 {
        let params =
            json!({"name": "echo", "arguments": {"text": id.to_string()}, "_meta": toolcell_tests::modern_meta()});
        lines.push_str(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
        lines.push('\n');
    }
    let mut input = host.take_input();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let finished = host.ends();
    writer.join().unwrap();
    assert_eq!(finished.code(), 0);
    let mut ids: Vec<u64> = finished
        .frames()
        .iter()
        .map(|reply| {
            let id = reply["id"].as_u64().unwrap();
            assert_eq!(reply["result"]["content"][0]["text"], id.to_string());
            id
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..2000).collect::<Vec<u64>>());
}

#[test]
fn a_signal_to_end_ends_it_in_order() {
    for tool in [None, Some("spin"), Some("sleep_hour")] {
        let mut host = patient();
        host.still_works();
        if let Some(tool) = tool {
            host.start_call(tool, json!({}));
            host.still_works();
        }
        let told = Instant::now();
        host.terminate();
        let finished = host.ends();
        assert_eq!(finished.code(), 0, "{tool:?}: {finished:?}");
        assert!(told.elapsed() < Duration::from_secs(15), "{tool:?} held the end up");
    }
}

/// Sends lines until the host stops reading, checks its memory, then reads. Every line must be
/// answered once.
fn nothing_is_lost_and_little_is_held(fixtures: &[&str], count_max: usize, line: impl Fn(usize) -> String) {
    let mut host = TestHost::serving(fixtures);
    let (sent, rest) = host.send_until_it_blocks(line, count_max, Duration::from_secs(2));
    assert!(sent < count_max, "{count_max} lines were read from a client that reads no answer");
    assert!(host.resident_bytes() < 256 << 20, "it holds {} bytes", host.resident_bytes());
    host.read_from_now();
    host.send_bytes(&rest);
    host.close_input();
    let finished = host.ends();
    assert_eq!(finished.code(), 0);
    let mut ids: Vec<u64> = finished.frames().iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    let all = sent + usize::from(!rest.is_empty());
    assert_eq!(ids, (0..all as u64).collect::<Vec<u64>>());
}

#[test]
fn a_client_that_reads_no_pong_is_not_read_any_more() {
    nothing_is_lost_and_little_is_held(&["good"], 1_000_000, |id| {
        json!({"jsonrpc": "2.0", "method": "ping", "id": id}).to_string()
    });
}

#[test]
fn a_client_that_reads_no_result_is_not_read_any_more() {
    let meta = toolcell_tests::modern_meta();
    nothing_is_lost_and_little_is_held(&["good", "hungry"], 20_000, |id| {
        let params = json!({"name": "long_text", "arguments": {"bytes": 60_000}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    });
}
