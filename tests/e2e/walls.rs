//! Calls in sandbox processes: they answer as elsewhere, with what rights the kernel leaves them.
//! A process that ends takes its own calls along and nothing else. The walls themselves are tried
//! in `host/walls/tests`.
//!
//! Promise: checks of values end.
//! Promise: a sandbox process has its own guests' secrets only.
//! Promise: native code has the rights of its group only.
//! Promise: a process takes only its own calls along.
//! Promise: an answer ends only its own call.
//! Promise: a component answers for its own process.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, manifest_of, patience};

/// Serves `good` and `loops` in sandbox processes, and records.
pub(crate) fn walled(lines: &str) -> TestHost {
    TestHost::recording(&manifest(lines))
}

pub(crate) fn manifest(lines: &str) -> String {
    format!(
        "version = 1\n[server]\nwalls = \"best\"\n[components.good]\nsource = \"components/good.wasm\"\n\
         [components.loops]\nsource = \"components/loops.wasm\"\n{lines}\n"
    )
}

/// The sandbox processes of a host.
pub(crate) fn sandboxes(host: &TestHost) -> Vec<u32> {
    children(host.process_id())
}

/// The processes that a process started.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let of_parent = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        parent == Some(process)
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    all.filter(|id| of_parent(*id)).collect()
}

/// The processes that serve components, of the host with this number. One that waits for its group
/// has no walls yet.
pub(crate) fn sealed(host: u32) -> Vec<u32> {
    // A container may have put filters around the host.
    let own = filters(host);
    children(host).into_iter().filter(|id| filters(*id) > own).collect()
}

/// The filters of system calls around a process; `None` where it is gone.
fn filters(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok())
}

/// Waits until a process of this host computes that serves components. One that starts computes as
/// well, but runs no call.
pub(crate) fn busy(host: u32) -> u32 {
    let began = Instant::now();
    loop {
        if let Some(id) = sealed(host).into_iter().find(|id| is_busy(*id)) {
            return id;
        }
        assert!(began.elapsed() < patience(), "no process computes");
    }
}

/// Bytes of memory of its own that a host has, together with the processes that serve components.
pub(crate) fn own_bytes(host: &TestHost) -> u64 {
    let own = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
    };
    sealed(host.process_id()).into_iter().chain([host.process_id()]).map(own).sum()
}

/// True if the process computes.
fn is_busy(id: u32) -> bool {
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    let before = ticks();
    let began = Instant::now();
    while began.elapsed().as_millis() < 500 {
        if ticks().zip(before).is_some_and(|(now, before)| now >= before + 3) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Kills a process.
pub(crate) fn kill(id: u32) {
    signal(id, Signal::KILL);
}

/// Makes a process end as it does where it aborts by itself.
pub(crate) fn abort(id: u32) {
    signal(id, Signal::ABORT);
}

/// Sends a signal. A process that is gone already is not an error: the host ends some that rest, or
/// are late.
pub(crate) fn signal(id: u32, signal: Signal) {
    let sent = kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal);
    assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
}

/// Makes a call until it is answered, after processes of its component were killed. The host may
/// hear of an end after the next call was sent there, and that call says so.
pub(crate) fn recovers(host: &mut TestHost, tool: &str, arguments: &Value) {
    let began = Instant::now();
    while host.call(tool, arguments.clone()).is_error() {
        assert!(began.elapsed() < patience(), "{tool} does not come back");
    }
}

/// Waits until the process is gone: its file in `/proc` reads as nothing then.
pub(crate) fn is_gone(id: u32) {
    let path = PathBuf::from(format!("/proc/{id}/stat"));
    let began = Instant::now();
    while fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z")) {
        assert!(began.elapsed() < patience(), "the process {id} lives on");
        std::thread::yield_now();
    }
}

#[test]
fn calls_run_in_a_process_without_rights_of_its_own() {
    let mut host = walled("");
    assert_eq!(host.call("echo", json!({"text": "through the wall"})).text(), "through the wall");
    let status = |id: u32| Some((id, fs::read_to_string(format!("/proc/{id}/status")).ok()?));
    // Another may wait for its group. It has no walls yet.
    let sealed: Vec<_> = sealed(host.process_id()).into_iter().filter_map(status).collect();
    let sandboxes: Vec<_> = sandboxes(&host).into_iter().filter_map(status).collect();
    assert!(!sealed.is_empty(), "no process beside the host's");
    for (id, status) in &sandboxes {
        assert_eq!(ids(status).first(), Some(id));
        assert_eq!(ids(status).last() == Some(&1), has_ids_of_its_own(), "{status}");
    }
    for (id, status) in sealed {
        for right in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
            assert!(status.contains(right), "no {right:?} in\n{status}");
        }
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        assert!(environment.is_empty(), "its environment is empty");
    }
}

/// The ids of a process: the one that this process knows it by, and those in its own namespaces.
fn ids(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    line.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// True if `toolcell walls` tells that this machine gives sandbox processes ids of their own.
fn has_ids_of_its_own() -> bool {
    let report = Command::toolcell(&["walls", "--json"]).run().json();
    let walls = report["walls"].as_array().unwrap();
    walls.iter().any(|wall| wall["wall"] == "pid-namespace" && wall["state"] == "stands")
}

#[test]
fn a_sandbox_that_is_killed_takes_its_calls_along_and_nothing_else() {
    let mut host = walled("[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"");
    assert_eq!(host.call("echo", json!({"text": "one"})).text(), "one");
    let running = host.start_call("spin", json!({}));
    // Once it computes its process has the call. The record of its start comes earlier.
    let _ = busy(host.process_id());
    sandboxes(&host).into_iter().for_each(kill);
    let text = host.answer_to(&running).error_text().to_owned();
    assert!(text.starts_with("the sandbox was ended: "), "{text}");
    let ended = host.recorded("the end", |record| record["outcome"] == "sandbox_ended");
    assert_eq!(ended["event"], "call.finished");
    assert_eq!(host.call("echo", json!({"text": "two"})).text(), "two", "another process serves");
    host.still_answers();
}

/// Limits with which `spin` runs until its sandbox is killed.
const ENDLESS: &str = "[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"\n";

/// Calls `spin` and has the process that runs it abort, as often as a component may end its
/// sandboxes.
fn its_sandboxes_abort(host: &mut TestHost) {
    its_sandboxes_end(host, 5, abort);
}

/// Calls `spin` and ends the process that runs it, that many times.
fn its_sandboxes_end(host: &mut TestHost, rounds: usize, end: fn(u32)) {
    for round in 0..rounds {
        let running = host.start_call("spin", json!({}));
        let spins = |record: &Value| record["event"] == "call.started" && record["tool"] == "spin";
        let started = || host.audit().iter().filter(|record| spins(record)).count();
        let began = Instant::now();
        while started() <= round {
            assert!(began.elapsed() < patience(), "call {round} does not begin");
            std::thread::yield_now();
        }
        // Where it runs apart, its process starts with its call.
        end(busy(host.process_id()));
        assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
        assert_eq!(host.call("echo", json!({"text": "beside"})).text(), "beside");
    }
}

#[test]
fn a_process_that_somebody_else_ended_counts_against_no_component() {
    let mut host = walled(ENDLESS);
    host.still_works();
    its_sandboxes_end(&mut host, 7, kill);
    host.will_say("sent from outside: by a person, or by the kernel for want of memory");
    assert!(!host.said().contains("component loops:"), "{}", host.said());
    let status = Command::in_folder(host.folder(), &["status", "--json"]).run().json();
    let standings: Vec<_> = status[0]["components"].as_array().unwrap().iter().map(standing).collect();
    assert_eq!(standings, [("good", "good"), ("loops", "good")]);
}

#[test]
fn a_component_that_is_held_back_runs_again_once_an_operator_says_so() {
    let mut host = walled(ENDLESS);
    host.still_works();
    its_sandboxes_abort(&mut host);
    let text = host.call("spin", json!({})).error_text().to_owned();
    assert!(text.ends_with("have it run again by `toolcell reload`"), "{text}");
    let _ = Command::in_folder(host.folder(), &["reload"]).run().succeeded();
    let running = host.start_call("spin", json!({}));
    let _ = busy(host.process_id());
    host.cancel(&running);
    host.still_works();
}

#[test]
fn a_component_that_ends_its_sandbox_again_and_again_is_held_back_and_others_are_not() {
    let mut host = walled(ENDLESS);
    host.still_works();
    its_sandboxes_abort(&mut host);
    let text = host.call("spin", json!({})).error_text().to_owned();
    assert!(text.contains("ended its sandbox 5 times within 10 minutes"), "{text}");
    host.still_works();
    host.will_say("component loops: calls of this component ended its sandbox 2 times within 10 minutes");
    host.will_say("component loops: calls of this component ended its sandbox 5 times within 10 minutes");
    assert_eq!(host.said().matches("component loops:").count(), 2, "each change is told once");
    let status = Command::in_folder(host.folder(), &["status"]).run();
    assert!(!status.status.success(), "{status:?}");
    assert!(status.stdout.contains("component loops: held back, "), "{}", status.stdout);
    let status = Command::in_folder(host.folder(), &["status", "--json"]).run().json();
    let standings: Vec<_> = status[0]["components"].as_array().unwrap().iter().map(standing).collect();
    assert_eq!(standings, [("good", "good"), ("loops", "held_back")]);
}

fn standing(component: &Value) -> (&str, &str) {
    (component["name"].as_str().unwrap(), component["standing"].as_str().unwrap())
}

#[test]
fn a_component_stays_held_back_when_a_neighbour_changes_and_runs_when_it_changes_itself() {
    let mut host = walled(ENDLESS);
    host.still_works();
    its_sandboxes_abort(&mut host);
    let beside = "[components.again]\nsource = \"components/good.wasm\"\nprefix = \"again_\"\n";
    let mut change = |text: &str, generation| {
        host.folder().write("toolcell.toml", text);
        host.serves_generation(generation);
        host.call("spin", json!({})).error_text().to_owned()
    };
    let held_back = change(&manifest(&format!("{ENDLESS}{beside}")), 2);
    assert!(held_back.contains("ended its sandbox 5 times within 10 minutes"), "{held_back}");
    let runs = change(&manifest(&format!("{}{beside}", ENDLESS.replace("1h", "50ms"))), 3);
    assert!(runs.starts_with("deadline exceeded: "), "{runs}");
}

#[test]
fn an_answer_that_no_message_takes_ends_its_own_call_and_no_process() {
    let limits = "limits = { output = \"64MiB\", memory = \"256MiB\", host_data = \"256MiB\", deadline = \"1h\", fuel = 1_000_000_000_000 }";
    let hungry = format!("[components.hungry]\nsource = \"components/hungry.wasm\"\n{limits}\n{ALONE}");
    let folder = Folder::with_manifest(&manifest(&hungry));
    folder.make("out");
    let mut host = TestHost::recording_in(folder, &[]);
    let witness = Witness::starts(&mut host);
    let text = host.call("long_text", json!({"bytes": 15 << 20}));
    assert!(!text.is_error() && text.text().len() == 15 << 20, "what fits is given");
    let refused = host.call("long_text", json!({"bytes": 20 << 20}));
    assert_eq!(refused.error_text(), "the result is larger than 16MiB (limit \"output\")");
    assert!(!host.call("long_text", json!({"bytes": 10})).is_error());
    host.still_works();
    witness.has_seen_no_end(&mut host);
}

/// Further keys of a component whose group has one process and no more: files are written by one.
/// The component next to it writes to the folder `out`.
pub(crate) const ALONE: &str = "wall = \"alone\"\n\
    [components.writes]\nsource = \"components/reach_files.wasm\"\nprefix = \"writes_\"\nwall = \"alone\"\n\
    [components.writes.filesystem]\n\"/out\" = { path = \"out\", access = \"write\" }\n";

/// A call that runs in the process of `hungry` until it is cancelled. With it the process does not
/// rest: one that rests is ended where it holds much memory.
struct Witness(Value);

impl Witness {
    /// Begins such a call.
    fn starts(host: &mut TestHost) -> Self {
        host.still_works();
        let call = host.start_call("fill_and_hold", json!({"mib": 1}));
        let _ = host.recorded("its start", Self::began);
        Self(call)
    }

    fn began(record: &Value) -> bool {
        record["event"] == "call.started" && record["tool"] == "fill_and_hold"
    }

    /// No process was ended with a call, and that of the witness lives.
    fn has_seen_no_end(self, host: &mut TestHost) {
        let id = host.recorded("its start", Self::began)["id"].clone();
        assert!(host.audit().iter().all(|record| record["outcome"] != "sandbox_ended"));
        assert!(host.audit().iter().all(|record| record["event"] != "call.finished" || record["id"] != id));
        host.cancel(&self.0);
        let end = host.recorded("its end", |record| record["event"] == "call.finished" && record["id"] == id);
        assert_eq!(end["outcome"], "cancelled", "{}", host.said());
    }
}

#[test]
fn one_line_at_the_start_says_which_walls_stand() {
    let report = Command::toolcell(&["walls", "--json"]).run().json();
    let missing = |wall: &&Value| wall["state"] == "missing";
    let missing: Vec<&str> =
        report["walls"].as_array().unwrap().iter().filter(missing).map(|wall| wall["wall"].as_str().unwrap()).collect();
    let begins = match missing.first() {
        None => "walls: every wall stands".to_owned(),
        Some(first) => format!("walls: without {first} ("),
    };
    let without = "walls: none, as the manifest says: calls run in threads of the host";
    for (walls, line) in [("best", begins.as_str()), ("none", without)] {
        let host = TestHost::with_manifest(&manifest("").replace("\"best\"", &format!("\"{walls}\"")));
        host.will_say(line);
        let lines = host.said().lines().filter(|line| line.starts_with("walls: ")).count();
        assert_eq!(lines, 1, "{}", host.said());
    }
    let required = TestHost::with_manifest(&manifest("").replace("best", "required"));
    if missing.is_empty() {
        required.will_say(&begins);
        return;
    }
    let refused = required.ends();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("not every wall stands: "), "{}", refused.stderr);
    assert!(missing.iter().all(|wall| refused.stderr.contains(wall)), "{}", refused.stderr);
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
fn a_check_that_is_not_done_at_the_deadline_of_its_call_is_told_as_any_deadline() {
    // Other calls of the component, which list its tools, have the time that they need.
    let brief = "\n[components.slow_checks.tools.takes_bits.limits]\ndeadline = \"1ms\"\n";
    let mut host = TestHost::recording(&format!("{}{brief}", manifest_of(&["good", "slow_checks"])));
    let bits = json!({"bits": "01".repeat(20_000)});
    // The first call needs the schemas compiled, which takes many times its deadline. Later ones
    // may find them compiled, and be told in time that their check would take too long.
    let text = host.call("takes_bits", bits).error_text().to_owned();
    assert_eq!(text, "deadline exceeded: the call took longer than 1ms (limit \"deadline\")");
    let ended = host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!(ended["outcome"], "deadline");
    host.still_works();
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
fn a_group_has_more_components_than_a_link_holds_at_once() {
    let component = |number: usize| {
        format!("[components.more{number}]\nsource = \"components/good.wasm\"\nprefix = \"more{number}_\"\n")
    };
    // Each comes with a descriptor, and a link holds those of 64.
    let mut host = walled(&(0..100).map(component).collect::<String>());
    for tool in ["echo", "more0_echo", "more99_echo"] {
        assert_eq!(host.call(tool, json!({"text": tool})).text(), tool);
    }
    let sandboxes = sandboxes(&host).len();
    assert!(sandboxes > 0, "no process beside the host's");
}

#[test]
fn no_program_but_that_of_the_drill_gives_a_guest_its_power() {
    let manifest = "version = 1\n[server]\nwalls = \"best\"\n[components.drill]\nsource = \"components/drill.wasm\"\n";
    let refused = TestHost::in_folder(Folder::with_manifest(manifest)).ends();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("toolcell:drill/native@1.0.0"), "{}", refused.stderr);
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

/// Answers to these calls by a host with these walls, with the outcomes that it records.
fn answers(walls: &str, revision: Option<&str>, calls: &[(&str, Value)]) -> Vec<(Value, Value)> {
    let manifest = manifest_of(&["good", "liar", "slow_checks"]);
    let mut host = TestHost::recording(&format!("{manifest}\n[server]\nwalls = \"{walls}\"\n"));
    revision.into_iter().for_each(|revision| drop(host.initialize(revision)));
    host.still_works();
    assert_eq!(sandboxes(&host).is_empty(), walls == "none", "the calls run where they should");
    let answered = calls.iter().map(|(tool, arguments)| {
        let id = host.start_call(tool, arguments.clone());
        let mut answer = host.answer_to(&id).result().clone();
        // Time and fuel differ from one call to the next, also in one process.
        let usage = answer.pointer_mut("/_meta/toolcell~1usage");
        usage.into_iter().for_each(|usage| *usage = usage.as_object().map(|usage| json!(usage.len())).unwrap());
        let request = id.to_string();
        let begun = host.recorded("the start", |record| record["request"] == request.as_str())["id"].clone();
        let outcome = host.recorded("the end", |record| record["id"] == begun && record["outcome"].is_string());
        (answer, outcome["outcome"].clone())
    });
    answered.collect()
}

#[test]
fn values_that_do_not_fit_their_schemas_are_answered_alike_with_and_without_walls() {
    let calls = [
        ("echo", json!({"text": "fits"})),
        ("echo", json!({})),
        ("echo", json!({"text": 7})),
        ("echo", json!({"text": "a", "more\u{202e}": 1})),
        ("non_conforming", json!({})),
        ("wrong_type", json!({})),
        ("nothing_structured", json!({})),
        ("twice_the_key", json!({})),
        ("not_json", json!({})),
        ("error_without", json!({})),
        ("takes_bits", json!({"bits": "01"})),
        ("takes_bits", json!({"bits": "01".repeat(20_000)})),
        ("takes_names", json!({"a": 1})),
    ];
    for revision in [None, Some("2025-06-18")] {
        let none = answers("none", revision, &calls);
        let walled = answers("best", revision, &calls);
        for (((tool, arguments), none), walled) in calls.iter().zip(none).zip(walled) {
            let arguments = arguments.to_string();
            assert_eq!(none, walled, "{tool} {}", arguments.get(..100).unwrap_or(&arguments));
        }
    }
}

#[test]
fn messages_longer_than_any_answer_are_cut_with_and_without_walls_and_end_no_process() {
    for walls in ["best", "none"] {
        let manifest = manifest_of(&["good", "hungry"]).replace("fuel = 20_000_000", "fuel = 2_000_000_000");
        let manifest = manifest.replace("deadline = \"5s\"", "deadline = \"1h\"");
        let folder = Folder::with_manifest(&format!("{manifest}{ALONE}\n[server]\nwalls = \"{walls}\"\n"));
        folder.make("out");
        let mut host = TestHost::recording_in(folder, &[]);
        host.still_works();
        assert_eq!(sandboxes(&host).is_empty(), walls == "none", "the calls run where they should");
        let witness = Witness::starts(&mut host);
        let mut shown = |tool: &str, arguments: Value, answer: &str| {
            let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
            assert_eq!(host.request("tools/call", params)["result"]["content"][0]["text"], answer, "{walls}: {tool}");
            let frames = host.kept();
            let messages = frames.iter().filter_map(|frame| frame["params"]["message"].as_str());
            messages.map(str::len).collect::<Vec<_>>()
        };
        // More often than a component may end its process.
        for _ in 0..6 {
            assert_eq!(shown("progress_message", json!({"bytes": 1_000_000}), "reported"), [3_072], "{walls}");
            assert_eq!(shown("log_line", json!({"bytes": 1_000_000}), "logged"), [0; 0], "{walls}");
        }
        assert_eq!(shown("progress_message", json!({"bytes": 3_000}), "reported"), [3_000], "{walls}");
        let many = shown("progress_message", json!({"bytes": 20_000, "reports": 3_000}), "reported");
        assert!(!many.is_empty() && many.iter().all(|bytes| *bytes == 3_072), "{walls}: {many:?}");
        host.still_works();
        witness.has_seen_no_end(&mut host);
    }
}

#[test]
fn a_call_whose_arguments_do_not_fit_has_begun_behind_the_wall() {
    let mut host = walled("");
    let _ = host.call("echo", json!({"text": 5})).error_text();
    let finished = host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!((&finished["outcome"], &finished["tool"]), (&json!("invalid_input"), &json!("echo")));
    assert_eq!(finished["detail"], "- /text: must be of type string");
    let started = host.recorded("the start", |record| record["event"] == "call.started");
    assert_eq!(started["id"], finished["id"]);
    assert!(host.audit().iter().all(|record| record["event"] != "call.refused"));
}

#[test]
fn checks_that_take_long_end_their_own_calls_and_delay_no_other() {
    let manifest = manifest_of(&["good", "slow_checks"]).replace("output = \"64KiB\"", "output = \"1MiB\"");
    let manifest = manifest.replace("deadline = \"5s\"", "deadline = \"1m\"");
    let mut host = TestHost::recording(&format!("{manifest}\n[server]\nwalls = \"best\"\n"));
    host.still_works();
    let slow = json!({"bits": "01".repeat(20_000)});
    let running: Vec<Value> = (0..6)
        .flat_map(|_| [("takes_bits", slow.clone()), ("gives_bits", json!({}))])
        .map(|(tool, arguments)| host.start_call(tool, arguments))
        .collect();
    for number in 0..20 {
        let began = Instant::now();
        host.request("ping", json!({}));
        assert_eq!(host.call("echo", json!({"text": format!("{number}")})).text(), number.to_string());
        // Checks without a bound would take minutes.
        assert!(began.elapsed() < patience(), "{:?}", began.elapsed());
    }
    for id in running {
        let text = host.answer_to(&id).error_text().to_owned();
        assert!(text.ends_with("it is too large for what its schema asks of it"), "{text}");
    }
    host.still_works();
    assert!(host.audit().iter().all(|record| record["outcome"] != "sandbox_ended"), "their processes were not ended");
    assert!(!host.said().contains("ended its sandbox"), "{}", host.said());
}
