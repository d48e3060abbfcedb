//! Remnants of a call on a machine that is short of memory: no later call, and nobody who reads the
//! process that it ran in, may find any. That is a sandbox process, or without walls the host.
//!
//! Pages that are swapped out or being moved are not in memory when a slot of the pool is reset. An
//! engine that resets only pages in memory would leave them, and the next instance in that slot
//! would read them.
//!
//! Promise: calls see nothing of each other.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;

use serde_json::{Value, json};
use toolcell_tests::{Folder, Paging, TestHost, patience};

use crate::walls::{ALONE, sealed};

/// Calls that leave a pattern, four at a time.
const ROUNDS: u64 = 50;
const AT_ONCE: u64 = 4;

/// Steps that each call computes after it wrote. They take some tens of milliseconds, in which its
/// pages are paged out more than once.
const COMPUTES: u64 = 20_000_000;

/// The seed of a call that is looked for while it runs.
const CONTROL: u64 = 1_000_000;

/// A host whose calls run in one process, with that.
fn serving(component: &str, prewarm: u32) -> (TestHost, u32) {
    let folder = Folder::with_manifest(&format!(
        "version = 1\n\
         [defaults.limits]\nrate = \"1000000/s\"\ndeadline = \"1h\"\nfuel = 1_000_000_000_000_000\n\
         [components.{component}]\nsource = \"components/{component}.wasm\"\nprewarm = {prewarm}\n{ALONE}"
    ));
    folder.make("out");
    let host = TestHost::recording_in(folder, &[]);
    host.will_say("walls: ");
    let [process] = sealed(host.process_id()).try_into().unwrap();
    (host, process)
}

/// Pages the process out, if this machine lets a test do that. Otherwise says so, loudly.
fn paging(host: &TestHost, process: u32) -> Option<Paging> {
    match Paging::of(process, host.folder().path()) {
        Ok(paging) => Some(paging),
        Err(why) => {
            eprintln!("SKIPPED: nothing is swapped out on this machine, so this test shows nothing: {why}");
            None
        }
    }
}

/// Eight bytes that only the guest makes, by the fixture's formula.
fn pattern(seed: u64) -> u64 {
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) | 1
}

/// The number of such words in the process, in memory or in swap. Reading a page brings it back
/// from swap.
fn words_in(process_id: u32, word: u64) -> usize {
    let maps = BufReader::new(File::open(format!("/proc/{process_id}/maps")).unwrap());
    let memory = File::open(format!("/proc/{process_id}/mem")).unwrap();
    let mut found = 0;
    let mut page = [0; 4096];
    for line in maps.lines().map(Result::unwrap) {
        let mut parts = line.split_whitespace();
        let place = parts.next().unwrap();
        let rights = parts.next().unwrap();
        if rights != "rw-p" {
            continue;
        }
        let (start, end) = place.split_once('-').unwrap();
        let at = |text: &str| u64::from_str_radix(text, 16).unwrap();
        for address in (at(start)..at(end)).step_by(page.len()) {
            if memory.read_exact_at(&mut page, address).is_err() {
                break;
            }
            let words = page.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
            // Locals in the guest's frames hold the pattern with a small number in its lowest bits.
            found += words.filter(|found| found & !0xf == word & !0xf).count();
        }
    }
    found
}

/// A call that runs has its pattern in this process, so a search there finds what is left.
fn finds_what_is_there(host: &mut TestHost, process: u32) {
    let running = host.start_call("leave", json!({"seed": CONTROL, "rounds": u64::MAX}));
    let began = std::time::Instant::now();
    while words_in(process, pattern(CONTROL)) == 0 {
        assert!(began.elapsed() < patience(), "the pattern of a call that runs is not found");
    }
    host.cancel(&running);
    let end = host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!(end["outcome"], "cancelled");
}

/// Instances made for their call, and made ahead, each in a host of its own. Both run at once:
/// waiting for pages takes most of the time.
#[test]
fn no_call_sees_pages_of_another_that_were_swapped_out() {
    std::thread::scope(|scope| {
        for prewarm in [0, 4] {
            scope.spawn(move || sees_no_pages_of_another(prewarm));
        }
    });
}

fn sees_no_pages_of_another(prewarm: u32) {
    let (mut host, process) = serving("remnants", prewarm);
    let Some(mut paging) = paging(&host, process) else { return };
    finds_what_is_there(&mut host, process);
    for seed in 1..=ROUNDS {
        let leave = |host: &mut TestHost| host.start_call("leave", json!({"seed": seed, "rounds": COMPUTES}));
        let left: Vec<Value> = (0..AT_ONCE).map(|_| leave(&mut host)).collect();
        for id in &left {
            assert_eq!(host.answer_to(id).text(), "left 1");
        }
        let looks: Vec<Value> = (0..12).map(|_| host.start_call("look", json!({"seed": seed}))).collect();
        for id in &looks {
            let seen = host.answer_to(id);
            assert_eq!(seen.text(), "found 0 of 1024 pages", "prewarm {prewarm}, round {seed}");
        }
    }
    assert!(paging.goes_on(), "the pager ended early");
    drop(paging);
    // Neither memories nor the stacks of calls hold words of the last calls.
    for seed in [ROUNDS, CONTROL] {
        assert_eq!(words_in(process, pattern(seed)), 0, "prewarm {prewarm}, call {seed}");
    }
}

#[test]
fn no_call_sees_tables_of_another_that_were_swapped_out() {
    let (mut host, process) = serving("remnants_table", 0);
    let Some(mut paging) = paging(&host, process) else { return };
    for round in 0..ROUNDS {
        let calls: Vec<Value> = (0..AT_ONCE).map(|_| host.start_call("run", json!({}))).collect();
        for id in &calls {
            assert_eq!(host.answer_to(id).text(), "survived", "round {round}");
        }
    }
    assert!(paging.goes_on(), "the pager ended early");
}
