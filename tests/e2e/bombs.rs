//! Components of a few bytes that stand for gigabytes. Each is refused before it costs anything,
//! wherever it comes in, and the host goes on serving.
//!
//! Promise: memory is bounded in sum.
//! Promise: few bytes do not stand for gigabytes.
//! Promise: unapproved bytes are not parsed.

#[allow(dead_code, reason = "what the other users of this file need")]
#[path = "../../host/guest/src/load/survey/tests/encode.rs"]
mod encode;

use std::time::{Duration, Instant};

use encode::{
    component, costly, function, globals, inner_module, levels, list, module, number, resources, section, signed, times,
};
use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, Saving, TestHost, fixture_bytes, manifest_of, telling_usage};

/// Time in which each bomb must be refused. Longer than a busy machine needs, and far shorter than
/// any of them took.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Bytes by which a host's memory may grow after all of them. Each alone took more.
const MORE_BYTES_MAX: u64 = 96 << 20;

const TOO_MUCH: &str = " are allowed (at byte ";
const TOO_MANY: &str =
    "too many parts: the tool is made of more instances, memories or tables than one call may have: too many ";

/// The file that is saved again.
const TOOL: &str = "components/tool.wasm";

/// A bomb: its name, its bytes, and words of the error.
struct Bomb(&'static str, Vec<u8>, [&'static str; 2]);

fn nested(opened: &[u8], count: usize) -> Vec<u8> {
    component(&[section(7, &[number(1), opened.repeat(count), vec![0x42, 0]].concat())])
}

fn made(module: Vec<u8>, count: usize) -> Vec<u8> {
    component(&[section(1, &module), times(2, count, &[0x00, 0x00, 0x00])])
}

/// A component that exports the function of a core module, as a tool does.
fn tool(mut function: Vec<Vec<u8>>) -> Vec<u8> {
    let name = encode::extern_name("f");
    // The module's export lies before elements and code.
    let place = function.iter().position(|section| section[0] > 7).unwrap_or(function.len());
    function.insert(place, section(7, &[1, 1, b'f', 0, 0]));
    component(&[
        section(1, &module(&function)),
        times(2, 1, &[0x00, 0x00, 0x00]),
        list(6, &[[0x00, 0x00, 0x01, 0x00, 1, b'f']]),
        list(7, &[[0x40, 0, 0x01, 0x00]]),
        list(8, &[[0x00, 0x00, 0x00, 0, 0]]),
        list(11, &[[name, vec![0x01, 0x00, 0x00]].concat()]),
    ])
}

/// A chain of types, each of which holds the one before it `width` times.
fn chain(shape: u8, width: usize, count: usize) -> Vec<u8> {
    let of = |at: usize| match shape {
        0x70 => signed(at),
        _ => [number(width), signed(at).repeat(width)].concat(),
    };
    let types: Vec<_> =
        [vec![0x70, 0x7f]].into_iter().chain((0..count).map(|at| [vec![shape], of(at)].concat())).collect();
    component(&[list(7, &types)])
}

/// A chain of instances, each of which holds the one before it twice.
fn bundles(count: usize) -> Vec<u8> {
    let twice = |at: usize| {
        let exports = ["a", "b"].map(|name| [encode::extern_name(name), vec![0x05], number(at)].concat());
        [vec![0x01, 0x02], exports.concat()].concat()
    };
    let instances: Vec<_> = [vec![0x01, 0x00]].into_iter().chain((0..count).map(twice)).collect();
    component(&[list(5, &instances)])
}

/// Nested blocks.
fn blocks(opened: &[u8], count: usize) -> Vec<u8> {
    let code = [opened.repeat(count), vec![0x0b; count]].concat();
    tool(function(0, &code))
}

/// Loops one after another, with many locals that live through all of them.
fn loops(locals: usize, count: usize) -> Vec<u8> {
    let write = |local: usize| [vec![0x41, 0x00, 0x21], number(local)].concat();
    let code = [(0..locals).flat_map(write).collect(), [0x03, 0x40, 0x0b].repeat(count)].concat();
    tool(function(locals, &code))
}

fn bombs() -> Vec<Bomb> {
    let core = [inner_module(&[]), list(2, &[[0x00, 0x00, 0x00]])];
    let inside = [TOO_MUCH, "too many components and types inside each other: at least 33, at most 32"];
    let hosted = [TOO_MUCH, "bytes of the host's memory for one instance"];
    let code = costly().into_iter();
    let code = code.map(|(what, sections)| Bomb(what, tool(sections), [TOO_MUCH, "units of work for the compiler"]));
    let mut bombs = vec![
        Bomb("types of components inside each other", nested(&[0x41, 1, 1], 5_000), inside),
        Bomb("types of instances inside each other", nested(&[0x42, 1, 1], 5_000), inside),
        Bomb("both, and more of them", nested(&[0x41, 1, 1, 0x42, 1, 1], 400_000), inside),
        Bomb(
            "core instances that double",
            levels(20, 2, &core),
            [TOO_MANY, "too many core instances: at least 65, at most 64 are allowed"],
        ),
        Bomb("more of them", levels(30, 2, &core), [TOO_MANY, "core instances"]),
        Bomb(
            "component instances that double",
            levels(20, 2, &[]),
            [TOO_MUCH, "too many component instances: at least 501, at most 500"],
        ),
        Bomb(
            "component instances inside each other",
            levels(900, 1, &[]),
            [TOO_MUCH, "too many types inside each other: at least 101, at most 100"],
        ),
        Bomb(
            "a million globals in each of sixty instances",
            made(module(&[globals(1_000_000)]), 60),
            [TOO_MUCH, "globals"],
        ),
        Bomb("4,000 globals in each of sixty instances", made(module(&[globals(4_000)]), 60), hosted),
        Bomb("instances that hold each other", bundles(40), [TOO_MUCH, "parts of types and instances"]),
        Bomb("types that hold each other", chain(0x6f, 2, 40), [TOO_MUCH, "parts of types and instances"]),
        Bomb(
            "lists of lists",
            chain(0x70, 1, 50_000),
            [TOO_MUCH, "too many types inside each other: at least 101, at most 100"],
        ),
        Bomb("ifs inside each other", blocks(&[0x41, 0x00, 0x04, 0x40], 50_000), [TOO_MUCH, "in one function"]),
        Bomb("loops inside each other", blocks(&[0x03, 0x40], 50_000), [TOO_MUCH, "in one function"]),
        Bomb("locals that live through loops", loops(40_000, 40_000), [TOO_MUCH, "units of work for the compiler"]),
        Bomb(
            "imports of resources",
            resources(80_000),
            [TOO_MUCH, "too many imports and exports: at least 10001, at most 10000"],
        ),
    ];
    bombs.extend(code);
    bombs
}

#[test]
fn bombs_are_refused_by_what_they_are_made_of() {
    for Bomb(what, bytes, words) in bombs() {
        let folder = Folder::with_manifest(&format!("version = 1\n[components.tool]\nsource = \"{TOOL}\"\n"));
        folder.write(TOOL, bytes);
        for arguments in [["check", "toolcell.toml"], ["inspect", TOOL]] {
            let began = Instant::now();
            let finished = Command::in_folder(&folder, &arguments).run();
            let said = finished.failed_with(1);
            words.iter().for_each(|words| assert!(said.contains(words), "{what}: no {words:?} in\n{said}"));
            assert!(began.elapsed() < AT_ONCE, "{what}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn bombs_that_are_saved_leave_the_old_version_serving() {
    let manifest = manifest_of(&["good"]);
    let folder = Folder::with_manifest(&format!("{manifest}\n[components.tool]\nsource = \"{TOOL}\"\n"));
    folder.write(TOOL, fixture_bytes("versioned_a"));
    let mut host = TestHost::with_options(folder, &["--watch", "off"]);
    host.still_works();
    let before = host.resident_bytes();
    for Bomb(what, bytes, words) in bombs() {
        host.folder().save(Saving::RenamedOver, TOOL, bytes);
        let began = Instant::now();
        let answer = host.reload().to_string();
        assert!(answer.contains(words[1]), "{what}: {answer}");
        assert!(began.elapsed() < AT_ONCE, "{what}: {:?}", began.elapsed());
        assert_eq!(host.call("version", json!({})).text(), "a", "{what}");
        host.still_works();
    }
    let more = host.resident_bytes().saturating_sub(before);
    assert!(more < MORE_BYTES_MAX, "{more} bytes more than before");
}

#[test]
fn under_a_lock_what_is_not_pinned_is_not_looked_into() {
    let folder = Folder::with_manifest(&format!("version = 1\n[components.tool]\nsource = \"{TOOL}\"\n"));
    folder.write(TOOL, fixture_bytes("versioned_a"));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let mut host = TestHost::with_options(folder, &["--locked"]);
    assert_eq!(host.call("version", json!({})).text(), "a");
    // The first would overwhelm a parser, and the second is not WebAssembly at all. Neither is
    // parsed.
    for bytes in [nested(&[0x41, 1, 1], 5_000), b"anything else".to_vec()] {
        let size = format!("and {} bytes)", bytes.len());
        host.folder().save(Saving::RenamedOver, TOOL, bytes);
        let held = host.status_when("quarantined", |status| status["quarantined"].to_string().contains(&size));
        let said = held["quarantined"].to_string();
        assert!(said.contains("other bytes: ") && said.contains("none of it was read"), "{said}");
        assert!(held["failed"].is_null(), "{held:#}");
        assert_eq!(host.call("version", json!({})).text(), "a");
        // Approving it has it read.
        let approved = Command::in_folder(host.folder(), &["approve", "tool"]).run();
        let refused = approved.failed_with(1);
        assert!(refused.contains(TOO_MUCH) || refused.contains("not a WebAssembly component"), "{refused}");
        assert_eq!(host.call("version", json!({})).text(), "a");
    }
    let folder = host.ends_leaving_its_folder();
    folder.save(Saving::RenamedOver, TOOL, nested(&[0x42, 1, 1], 5_000));
    let started = Command::in_folder(&folder, &["serve", "--locked", "--control", "off"]).run();
    let said = started.failed_with(1);
    assert!(said.contains("other bytes: ") && !said.contains(TOO_MUCH), "{said}");
}

#[test]
fn what_the_host_keeps_of_instances_counts_as_memory() {
    let manifest = |memory: &str| {
        let manifest = manifest_of(&["good", "many_globals"]);
        format!("{manifest}\n[components.many_globals.limits]\nmemory = \"{memory}\"\n")
    };
    // Ten instances of 4,000 globals, 16 bytes each, next to one page of memory.
    let folder = Folder::with_manifest(&manifest("512KiB"));
    let refused = Command::in_folder(&folder, &["check", "toolcell.toml"]).run();
    let words = "out of memory: the call needed more than 512KiB (limit \"memory\")";
    assert!(refused.failed_with(1).contains(words), "{refused:?}");
    let mut host = TestHost::with_manifest(&telling_usage(&manifest("1MiB")));
    let answer = host.call("run", json!({}));
    assert_eq!(answer.text(), "survived");
    let peak = answer.used("memory_peak_bytes");
    assert!((640_000..900_000).contains(&peak), "{peak} bytes");
    host.still_works();
}

#[test]
fn a_ping_does_not_wait_for_instances_that_take_long_to_make() {
    let manifest = manifest_of(&["good", "many_globals"]).replace("deadline = \"5s\"", "deadline = \"60s\"");
    // More calls at once than there are guest threads, and no instances made ahead.
    let limits = "concurrency = 64\nqueue = 256\n";
    let manifest = format!("{manifest}prewarm = 0\n\n[components.many_globals.limits]\nqueue_wait = \"10m\"\n{limits}");
    let mut host = TestHost::with_manifest(&manifest);
    host.still_works();
    for round in 0..5 {
        let calls: Vec<_> = (0..200).map(|_| host.start_call("run", json!({}))).collect();
        let ping = host.start("ping", json!({}));
        let _ = host.reply_to(&ping);
        let before = host.kept();
        assert!(before.len() < calls.len(), "round {round}: the ping was answered after all calls before it");
        let answered = |call: &&Value| !before.iter().any(|frame| frame["id"] == **call);
        for call in calls.iter().filter(answered) {
            assert_eq!(host.answer_to(call).text(), "survived");
        }
    }
    host.still_works();
}
