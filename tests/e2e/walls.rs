//! Calls in sandbox processes: they answer as elsewhere, with what rights the kernel leaves them.
//! A process that ends takes its own calls along and nothing else. The walls themselves are tried
//! in `host/walls/tests`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost};

/// Serves `good` and `loops` in sandbox processes, and records.
fn walled(lines: &str) -> TestHost {
    TestHost::recording(&manifest(lines))
}

fn manifest(lines: &str) -> String {
    format!(
        "version = 1\n[server]\nwalls = \"best\"\n[components.good]\nsource = \"components/good.wasm\"\n\
         [components.loops]\nsource = \"components/loops.wasm\"\n{lines}\n"
    )
}

/// The sandbox processes of a host.
fn sandboxes(host: &TestHost) -> Vec<u32> {
    let of_parent = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        parent == Some(host.process_id())
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    all.filter(|id| of_parent(*id)).collect()
}

/// True if the process computes.
fn is_busy(id: u32) -> bool {
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    let (before, began) = (ticks(), std::time::Instant::now());
    while began.elapsed().as_millis() < 500 {
        if ticks().zip(before).is_some_and(|(now, before)| now >= before + 3) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn kill(id: u32) {
    let id = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

/// Waits until the process is gone: its file in `/proc` reads as nothing then.
fn is_gone(id: u32) {
    let path = PathBuf::from(format!("/proc/{id}/stat"));
    let began = std::time::Instant::now();
    while fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z")) {
        assert!(began.elapsed().as_secs() < 20, "the process {id} lives on");
        std::thread::yield_now();
    }
}

#[test]
fn calls_run_in_a_process_without_rights_of_its_own() {
    let mut host = walled("");
    assert_eq!(host.call("echo", json!({"text": "through the wall"})).text(), "through the wall");
    let sandboxes = sandboxes(&host);
    assert!(!sandboxes.is_empty(), "no process beside the host's");
    for id in sandboxes {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        for right in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
            assert!(status.contains(right), "no {right:?} in\n{status}");
        }
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        assert!(environment.is_empty(), "its environment is empty");
    }
}

#[test]
fn a_sandbox_that_is_killed_takes_its_calls_along_and_nothing_else() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"");
    assert_eq!(host.call("echo", json!({"text": "one"})).text(), "one");
    let running = host.start_call("spin", json!({}));
    let _ = host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == "spin");
    sandboxes(&host).into_iter().for_each(kill);
    let text = host.answer_to(&running).error_text().to_owned();
    assert!(text.starts_with("the sandbox was ended: "), "{text}");
    let ended = host.recorded("the end", |record| record["outcome"] == "sandbox_ended");
    assert_eq!(ended["event"], "call.finished");
    assert_eq!(host.call("echo", json!({"text": "two"})).text(), "two", "another process serves");
    host.still_answers();
}

#[test]
fn a_component_that_ends_its_sandbox_again_and_again_is_held_back_and_others_are_not() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"");
    host.still_works();
    for round in 0..5 {
        let running = host.start_call("spin", json!({}));
        let spins = |record: &Value| record["event"] == "call.started" && record["tool"] == "spin";
        let started = || host.audit().iter().filter(|record| spins(record)).count();
        let began = std::time::Instant::now();
        while started() <= round {
            assert!(began.elapsed().as_secs() < 20, "call {round} does not begin");
            std::thread::yield_now();
        }
        // Where it runs apart, its process starts with its call.
        let spinning = || sandboxes(&host).into_iter().find(|id| is_busy(*id));
        let busy = std::iter::repeat_with(spinning).find_map(|found| found).unwrap();
        kill(busy);
        assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
        assert_eq!(host.call("echo", json!({"text": "beside"})).text(), "beside");
    }
    let text = host.call("spin", json!({})).error_text().to_owned();
    assert!(text.contains("ended its sandbox 5 times within 10 minutes"), "{text}");
    host.still_works();
}

#[test]
fn a_guest_that_never_ends_meets_its_deadline_behind_the_wall() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"200ms\"");
    let text = host.call("spin", json!({})).error_text().to_owned();
    assert_eq!(text, "deadline exceeded: the call took longer than 200ms (limit \"deadline\")");
    let id = host.start_call("sleep_hour", json!({}));
    assert_eq!(host.call("echo", json!({"text": "beside"})).text(), "beside");
    assert!(host.answer_to(&id).error_text().starts_with("deadline exceeded"));
}

#[test]
fn a_cancelled_call_ends_behind_the_wall_and_its_process_lives() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"");
    host.still_works();
    let before = sandboxes(&host);
    for tool in ["spin", "sleep_hour", "wait_forever"] {
        let id = host.start_call(tool, json!({}));
        let _ = host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == tool);
        host.cancel(&id);
        let number = |record: &Value| record["tool"] == tool && record["event"] == "call.started";
        let started = host.recorded("the start", number)["id"].clone();
        let ended = |record: &Value| record["event"] == "call.finished" && record["id"] == started;
        assert_eq!(host.recorded("the end", ended)["outcome"], "cancelled", "{tool}");
    }
    host.still_works();
    assert!(before.iter().all(|id| sandboxes(&host).contains(id)), "a call that stops keeps its process");
}

#[test]
fn a_host_that_dies_takes_its_sandboxes_along() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"");
    host.still_works();
    let _ = host.start_call("spin", json!({}));
    let _ = host.recorded("the start", |record| record["tool"] == "spin");
    let sandboxes = sandboxes(&host);
    assert!(!sandboxes.is_empty());
    drop(host.is_killed_leaving_its_folder());
    sandboxes.into_iter().for_each(is_gone);
}

#[test]
fn a_host_that_ends_leaves_no_sandbox() {
    let mut host = walled("");
    host.still_works();
    let sandboxes = sandboxes(&host);
    assert!(!sandboxes.is_empty());
    host.close_input();
    assert!(host.ends().status.success());
    sandboxes.into_iter().for_each(is_gone);
}

#[test]
fn what_needs_the_host_s_own_process_is_said_and_refused_where_walls_are_required() {
    let kept = "[components.remembers]\nsource = \"components/remembers.wasm\"\ninstance = \"per-caller\"";
    let mut host = walled(kept);
    host.will_say("these run in the host's own process: remembers");
    host.still_works();
    let text = manifest(kept).replace("\"best\"", "\"required\"");
    let refused = TestHost::in_folder(Folder::with_manifest(&text)).ends();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("no sandbox process for: remembers"), "{}", refused.stderr);
}
