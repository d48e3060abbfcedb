//! Components that cost far more than their bytes, where the bounds of what is loaded are taken
//! away. Then only the process that loads them holds: its time, its memory, and that it can be
//! killed.

#[allow(dead_code, reason = "what the other users of this file need")]
#[path = "../../host/guest/src/load/survey/tests/encode.rs"]
mod encode;

use std::time::{Duration, Instant};

use encode::{component, function, globals, inner_module, levels, list, module, number, section, signed, times};
use serde_json::json;
use toolcell_tests::{Folder, Saving, TestHost, fixture_bytes};

/// The file that is saved again.
const TOOL: &str = "components/tool.wasm";

/// Time that a load may take: its `compile_time`, what its process has to end, and room for a busy
/// machine.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// Bytes by which the host may have grown after all of them.
const MORE_BYTES_MAX: u64 = 96 << 20;

fn nested(opened: &[u8], count: usize) -> Vec<u8> {
    component(&[section(7, &[number(1), opened.repeat(count), vec![0x42, 0]].concat())])
}

fn made(module: Vec<u8>, count: usize) -> Vec<u8> {
    component(&[section(1, &module), times(2, count, &[0x00, 0x00, 0x00])])
}

fn chain(width: usize, count: usize) -> Vec<u8> {
    let of = |at: usize| [vec![0x6f], number(width), signed(at).repeat(width)].concat();
    let types: Vec<_> = [vec![0x70, 0x7f]].into_iter().chain((0..count).map(of)).collect();
    component(&[list(7, &types)])
}

fn blocks(opened: &[u8], count: usize) -> Vec<u8> {
    let code = [opened.repeat(count), vec![0x0b; count]].concat();
    made(module(&function(0, &code)), 1)
}

fn loops(locals: usize, count: usize) -> Vec<u8> {
    let write = |local: usize| [vec![0x41, 0x00, 0x21], number(local)].concat();
    let code = [(0..locals).flat_map(write).collect(), [0x03, 0x40, 0x0b].repeat(count)].concat();
    made(module(&function(locals, &code)), 1)
}

fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let core = [inner_module(&[]), list(2, &[[0x00, 0x00, 0x00]])];
    vec![
        ("types of components inside each other", nested(&[0x41, 1, 1], 5_000)),
        ("both kinds, and more of them", nested(&[0x41, 1, 1, 0x42, 1, 1], 400_000)),
        ("core instances that double", levels(20, 2, &core)),
        ("more of them", levels(30, 2, &core)),
        ("a million globals in each of sixty instances", made(module(&[globals(1_000_000)]), 60)),
        ("types that hold each other", chain(2, 40)),
        ("ifs inside each other", blocks(&[0x41, 0x00, 0x04, 0x40], 50_000)),
        ("loops inside each other", blocks(&[0x03, 0x40], 50_000)),
        ("locals that live through loops", loops(40_000, 40_000)),
    ]
}

#[test]
fn loads_without_their_bounds_are_held_by_the_process_that_loads() {
    let manifest = format!(
        "version = 1\n[server]\nwalls = \"best\"\n[components.good]\nsource = \"components/good.wasm\"\n\
         [components.tool]\nsource = \"{TOOL}\"\n[components.tool.load]\ncompile_time = \"5s\"\n"
    );
    let folder = Folder::with_manifest(&manifest);
    folder.write(TOOL, fixture_bytes("versioned_a"));
    let mut host = TestHost::drilling(folder, &[("TOOLCELL_DRILL_LOADS", "open")]);
    host.still_works();
    let before = host.resident_bytes();
    for (what, bytes) in bombs() {
        host.folder().save(Saving::RenamedOver, TOOL, bytes);
        let began = Instant::now();
        let answer = host.reload().to_string();
        assert!(!answer.contains(" are allowed (at byte "), "{what}: the bound holds still: {answer}");
        assert!(answer.contains("failed") || answer.contains("refused"), "{what}: {answer}");
        assert!(began.elapsed() < ENDED_WITHIN, "{what}: {:?}", began.elapsed());
        assert_eq!(host.call("version", json!({})).text(), "a", "{what}");
        host.still_works();
    }
    let more = host.resident_bytes().saturating_sub(before);
    assert!(more < MORE_BYTES_MAX, "{more} bytes more than before");
}
