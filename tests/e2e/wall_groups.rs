//! Components and the sandbox processes that they share: instances kept for callers, secrets that
//! guests hold, groups that the manifest names, processes that end when nobody needs them.
//!
//! Promise: a sandbox process has its own guests' secrets only.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use memchr::memmem::Finder;
use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost, patience, toolchain};

use crate::walls::{busy, is_gone, kill, manifest, sandboxes, sealed, walled};

const REMEMBERS: &str = "[components.remembers]\nsource = \"components/remembers.wasm\"\ninstance = \"per-caller\"\n";

/// Limits with which a loop runs for an hour.
const ENDLESS: &str = "fuel = 1_000_000_000_000_000\ndeadline = \"1h\"\n";

/// Waits until this is so.
fn comes_true(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < patience(), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_caller_s_instance_is_kept_behind_the_wall_for_as_long_as_its_process_lives() {
    let mut host = walled(REMEMBERS);
    for count in ["1", "2", "3"] {
        assert_eq!(host.call("count", json!({})).text(), count);
    }
    let before = sandboxes(&host);
    before.iter().copied().for_each(kill);
    before.iter().copied().for_each(is_gone);
    // The host may hear of each end while it sends a call there.
    let mut counted = host.call("count", json!({}));
    for _ in before {
        if counted.result()["isError"] == true {
            assert!(counted.error_text().starts_with("the sandbox was ended: "));
            counted = host.call("count", json!({}));
        }
    }
    assert_eq!(counted.text(), "1", "another process, another instance");
    assert_eq!(host.call("count", json!({})).text(), "2");
}

#[test]
fn calls_of_one_kept_instance_run_one_after_the_other_behind_the_wall() {
    let mut host = walled(REMEMBERS);
    let calls: Vec<Value> = (0..50).map(|_| host.start_call("count", json!({}))).collect();
    let mut counts: Vec<u32> = calls.iter().map(|call| host.answer_to(call).text().parse().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=50).collect::<Vec<_>>());
}

#[test]
fn an_instance_behind_the_wall_is_given_up_when_it_is_broken_or_its_call_is_cancelled() {
    let mut host = walled(&format!("{REMEMBERS}[components.remembers.limits]\n{ENDLESS}"));
    assert_eq!(host.call("count", json!({})).text(), "1");
    assert_eq!(host.call("count_and_fail", json!({})).error_text(), "2", "an answer like any other");
    assert_eq!(host.call("count", json!({})).text(), "3");
    let before = sandboxes(&host);
    assert!(host.call("count_and_trap", json!({})).error_text().starts_with("the tool trapped"));
    assert_eq!(host.call("count", json!({})).text(), "1");
    let running = host.start_call("count_and_spin", json!({}));
    let _ =
        host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == "count_and_spin");
    host.cancel(&running);
    assert_eq!(host.call("count", json!({})).text(), "1");
    assert!(before.iter().all(|id| sandboxes(&host).contains(id)), "no process was ended for that");
}

#[test]
fn an_idle_sandbox_ends_and_one_that_keeps_an_instance_does_not() {
    let text = manifest(REMEMBERS).replace("walls = \"best\"", "walls = \"best\"\nwall_idle = \"1s\"");
    let mut host = TestHost::recording(&text);
    assert_eq!(host.call("count", json!({})).text(), "1");
    // The idle one may end before it is looked for. Another call starts one in its place.
    let before = loop {
        host.still_works();
        let both = sealed(host.process_id());
        if both.len() == 2 {
            break both;
        }
    };
    let gone = || before.iter().filter(|id| !sandboxes(&host).contains(id)).count();
    comes_true("the idle one ends", || gone() > 0);
    assert_eq!(gone(), 1);
    assert_eq!(host.call("count", json!({})).text(), "2", "what was kept is there");
    host.still_works();
    assert!(host.audit().iter().all(|record| record["outcome"] != "sandbox_ended"), "no call was lost");
}

#[test]
fn a_process_that_waits_takes_the_place_of_one_that_ended() {
    let mut host = walled(&format!("[components.loops.limits]\n{ENDLESS}"));
    let running = host.start_call("spin", json!({}));
    comes_true("a process waits ahead of its group", || sandboxes(&host).len() == 2);
    let of_group = busy(host.process_id());
    let waiting: Vec<u32> = sandboxes(&host).into_iter().filter(|id| *id != of_group).collect();
    kill(of_group);
    assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
    is_gone(of_group);
    let _ = host.start_call("spin", json!({}));
    assert_eq!([busy(host.process_id())], *waiting);
    comes_true("another waits in its place", || sandboxes(&host).len() == 2);
}

#[test]
fn a_wall_of_its_own_keeps_a_component_apart_and_a_name_brings_components_together() {
    let granted = "env.A = \"b\"\n";
    let table = [
        ("", "", true),
        ("wall = \"own\"\n", "", false),
        ("wall = \"own\"\n", "wall = \"own\"\n", false),
        ("wall = \"one\"\n", "wall = \"other\"\n", false),
        ("wall = \"one\"\n", "wall = \"one\"\n", true),
        (granted, granted, false),
        ("env.A = \"b\"\nwall = \"one\"\n", "wall = \"one\"\n", true),
    ];
    let limits = ENDLESS.trim().replace('\n', ", ");
    for (one, other, together) in table {
        let again = "[components.again]\nsource = \"components/loops.wasm\"\nprefix = \"again_\"\n";
        let mut host = walled(&format!("limits = {{ {limits} }}\n{one}{again}limits = {{ {limits} }}\n{other}"));
        let started = |host: &TestHost, tool: &'static str| {
            host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == tool)["id"]
                .clone()
        };
        host.still_works();
        let beside = host.start_call("again_sleep_hour", json!({}));
        let asleep = started(&host, "again_sleep_hour");
        let running = host.start_call("spin", json!({}));
        kill(busy(host.process_id()));
        assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
        if !together {
            // It was not ended with the other, so it runs until it is cancelled.
            host.still_works();
            host.cancel(&beside);
        }
        let end = host.recorded("the end", |record| record["event"] == "call.finished" && record["id"] == asleep);
        assert_eq!(end["outcome"] == "sandbox_ended", together, "{one:?} and {other:?}: {end}");
    }
}

/// True if memory of this process that can be written to has these bytes; an error where this
/// machine does not let it be read.
fn holds(id: u32, bytes: &[u8]) -> std::io::Result<bool> {
    let memory = std::fs::File::open(format!("/proc/{id}/mem"))?;
    let maps = BufReader::new(std::fs::File::open(format!("/proc/{id}/maps"))?);
    let mut read = vec![0; 1 << 20];
    let wanted = Finder::new(bytes);
    for line in maps.lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let (Some(range), Some(access)) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-').filter(|_| access.starts_with("rw")) else { continue };
        let parse = |text| u64::from_str_radix(text, 16).map_err(std::io::Error::other);
        let mut from = parse(from)?;
        let to = parse(to)?;
        while from < to {
            let some = usize::try_from((to - from).min(1 << 20)).map_err(std::io::Error::other)?;
            // Pages that are reserved and nothing more.
            let Ok(count) = memory.read_at(&mut read[..some], from) else { break };
            if wanted.find(&read[..count]).is_some() {
                return Ok(true);
            }
            from += (count as u64).max(1);
        }
    }
    Ok(false)
}

#[test]
fn a_secret_that_guests_hold_is_in_the_processes_of_its_group_and_in_no_others() {
    const VALUE: &str = "s3cr3t-8d1f7c2a94-behind-the-wall";
    let text = manifest(
        "[components.reach_settings]\nsource = \"components/reach_settings.wasm\"\n\
         secrets.TOKEN = { from = \"env:TEST_TOKEN\", expose = true }\n",
    );
    let mut host = TestHost::recording_in(Folder::with_manifest(&text), &[("TEST_TOKEN", VALUE)]);
    let held = host.call("settings", json!({}));
    let names: Vec<&Value> = held.structured()["ok"]["env"].as_array().unwrap().iter().map(|pair| &pair[0]).collect();
    assert_eq!(names, ["TOKEN"], "{}", held.everything());
    assert!(!held.everything().contains(VALUE), "and the client is not told its value");
    host.still_works();
    comes_true("a process waits ahead of its group", || sandboxes(&host).len() == 3);
    let found: Result<Vec<bool>, _> = sandboxes(&host).into_iter().map(|id| holds(id, VALUE.as_bytes())).collect();
    match found {
        Ok(found) => assert_eq!(found.iter().filter(|found| **found).count(), 1, "{found:?}"),
        Err(error) => toolchain::say(&format!("LEFT OUT: a look into the memory of sandbox processes: {error}")),
    }
}
