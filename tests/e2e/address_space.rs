//! A small address space: a limit of the shell, a kernel of 39 bits. The pool of instances follows
//! what the process gets, calls work, and too little is said before anything serves.

use std::fs;

use serde_json::json;
use toolcell_tests::{Command, Folder, TestHost, alone};

use crate::walls::sandboxes;

/// KiB of a GiB, the unit of `ulimit -v`.
const GIB: u64 = 1 << 20;

fn manifest(server: &str) -> String {
    format!("version = 1\n[server]\n{server}\n[components.good]\nsource = \"components/good.wasm\"\n")
}

/// Bytes of address space that a process has.
fn reserved_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn calls_work_in_a_small_address_space() {
    let _alone = alone("the address space of one process");
    for walls in ["best", "none"] {
        for (kib, calls) in [(450_000_000, 4), (450_000_000, 26), (100 * GIB, 4), (24 * GIB, 1)] {
            let folder = Folder::with_manifest(&manifest(&format!("walls = \"{walls}\"\ncalls = {calls}")));
            let mut host = TestHost::within_address_space(folder, kib);
            let beside: Vec<_> = (0..6).map(|n| host.start_call("echo", json!({"text": n.to_string()}))).collect();
            for (n, call) in beside.iter().enumerate() {
                assert_eq!(host.answer_to(call).text(), n.to_string(), "{walls} {calls} in {kib} KiB");
            }
            host.still_works();
        }
    }
}

#[test]
fn a_sandbox_process_reserves_what_the_calls_need() {
    let _alone = alone("the address space of one process");
    let mut host = TestHost::with_manifest(&manifest("walls = \"best\"\ncalls = 4"));
    host.still_works();
    let processes = sandboxes(&host);
    assert!(!processes.is_empty(), "{}", host.said());
    for process in processes {
        let gib = reserved_bytes(process) >> 30;
        assert!(gib < 290, "{gib} GiB: 64 memories, which one call may have, and little more");
    }
}

#[test]
fn a_component_of_many_memories_runs_where_they_are_there_and_is_named_where_they_are_not() {
    let _alone = alone("the address space of one process");
    let many = "\n[components.many_memories]\nsource = \"components/many_memories.wasm\"\n";
    let folder = Folder::with_manifest(&format!("{}{many}", manifest("walls = \"best\"\ncalls = 4")));
    // A cache of its own: where a start has kept the list, `check` runs nothing of the component.
    let cache = folder.path().join("cache").display().to_string();
    let check = Command::in_folder(&folder, &["check"]).with_variable("XDG_CACHE_HOME", &cache);
    let checked = check.within_address_space(100 * GIB).run();
    let says = "component \"many_memories\" could not list its tools: the tool trapped: Cannot allocate memory";
    assert!(checked.failed_with(1).contains(says), "its sixty memories take 240 GiB: {checked:?}");
    let mut host = TestHost::within_address_space(folder, 450_000_000);
    assert!(host.call("run", json!({})).error_text().contains("memory"), "its own limit ends it");
    host.still_works();
}

#[test]
fn too_small_a_one_is_said_with_the_calls_that_fit() {
    let call = ["call", "echo", "{\"text\": \"a\"}"];
    for (kib, server, says) in [
        (450_000_000, "walls = \"best\"", "calls = 256 in [server] reserves 4131 GiB of address space"),
        (
            450_000_000,
            "walls = \"none\"",
            "this process gets less (ulimit -v, or what the kernel has); calls = 26 fits",
        ),
        (30 * GIB, "calls = 4", "calls = 4 in [server] reserves 65 GiB of address space"),
        (12 * GIB, "calls = 1", "not even calls = 1 fits"),
    ] {
        let folder = Folder::with_manifest(&manifest(server));
        for arguments in [&call[..], &["serve"]] {
            let ended = Command::in_folder(&folder, arguments).within_address_space(kib).run();
            assert!(ended.failed_with(3).contains(says), "{arguments:?} {server} in {kib} KiB: {ended:?}");
            assert_eq!(ended.stdout, "");
        }
    }
}
