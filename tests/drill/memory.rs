//! Memory and native code.
use serde_json::{Value, json};

use crate::row::End::{Answers, Ended, Fails, Killed, Works};
use crate::row::errors::{MFILE, NOMEM};
use crate::row::{Row, call, holds, of_own, often, only, results, row, sealed};

/// Rights of memory: reading and writing, and running.
const DATA: i32 = 3;
const RUN: i32 = 7;
/// Private memory without a file; more flags of `mmap`.
const PRIVATE: i32 = 0x22;
const SHARED: i32 = 0x21;
const GROWS: i32 = 0x100;
const HUGE: i32 = 0x4_0000;

const MIB: i64 = 1 << 20;
const TIB: i64 = 1 << 40;

/// A component whose process may take some hundred MiB.
const SMALL: &str = "limits = { memory = \"4MiB\", host_data = \"1MiB\", output = \"64KiB\", concurrency = 1 }\n\
                     wall = \"own\"\n";

/// Memory that is filled and then only read, so often. The kernel bounds what may be written to.
fn by_turns(count: usize) -> Value {
    let turn = |turn: usize| {
        let at = json!({"answer": turn * 3});
        let touches = json!({"touch": {"at": at, "bytes": 128 * MIB}});
        [map(128 * MIB, DATA, PRIVATE), touches, call("mprotect", json!([at, 128 * MIB, 1]))]
    };
    (0..count).flat_map(turn).chain([json!("spin")]).collect()
}

fn map(bytes: i64, rights: i32, flags: i32) -> Value {
    call("mmap", json!([0, bytes, rights, flags, -1, 0]))
}

/// The attacks.
pub const ROWS: &[Row] = &[
    row("map memory to run code in", |_| json!([map(4096, RUN, PRIVATE)]), Killed),
    sealed("map it without any grant", |_| json!([map(4096, RUN, PRIVATE)]), Killed),
    row(
        "make memory run",
        |_| json!([map(4096, DATA, PRIVATE), call("mprotect", json!([{"answer": 0}, 4096, 5]))]),
        Killed,
    ),
    row(
        // `ret`, by the code of either architecture.
        "run code that it wrote",
        |_| {
            json!([
                map(4096, DATA, PRIVATE),
                {"poke": {"at": {"answer": 0}, "bytes": [0xc3, 0x03, 0x5f, 0xd6]}},
                {"jump": {"at": {"answer": 0}}},
            ])
        },
        Ended("SIGSEGV"),
    ),
    row("run what lies at no address", |_| json!([{"jump": {"at": 0x1000}}]), Ended("SIGSEGV")),
    row("write to no address", |_| json!([{"poke": {"at": 8, "bytes": [1]}}]), Ended("SIGSEGV")),
    row("read the kernel's memory", |_| json!([{"peek": {"at": -4096, "bytes": 8}}]), Ended("SIGSEGV")),
    row("map its own code anew, to write", |_| only("mmap", json!([0, 4096, RUN, 2, 3, 0])), Killed),
    row("reserve a tebibyte", |_| json!([map(TIB, 0, PRIVATE)]), Works),
    row("map more memory than the machine has", |_| json!([map(TIB, DATA, PRIVATE)]), Fails(&[NOMEM])),
    row(
        "map it in pieces",
        |_| json!([often("mmap", json!([0, 64 * MIB, DATA, PRIVATE, -1, 0]), 100_000)]),
        Fails(&[NOMEM]),
    ),
    row(
        "open what was reserved",
        |_| json!([map(TIB, 0, PRIVATE), call("mprotect", json!([{"answer": 0}, TIB, DATA]))]),
        Fails(&[NOMEM]),
    ),
    row(
        "fill some memory, which is its own",
        |_| json!([map(256 * MIB, DATA, PRIVATE), {"touch": {"at": {"answer": 0}, "bytes": 256 * MIB}}]),
        Works,
    ),
    of_own("fill memory by turns", SMALL, |_| by_turns(8), Ended("its process took more memory than ")),
    row(
        "grow the heap without end",
        |_| json!([call("brk", json!([0])), call("brk", json!([1_i64 << 46]))]),
        // The kernel answers with the old end where it refuses.
        Answers(|_, answer| {
            results(answer).is_some_and(|answers| answers.len() == 2 && answers[0].is_ok() && answers[0] == answers[1])
        }),
    ),
    row(
        "stretch a mapping",
        |_| json!([map(4096, DATA, PRIVATE), call("mremap", json!([{"answer": 0}, 4096, TIB, 1]))]),
        Fails(&[NOMEM]),
    ),
    row("map memory that others could share", |_| json!([map(4096, DATA, SHARED)]), Killed),
    row("map a stack that grows", |_| json!([map(4096, DATA, PRIVATE | GROWS)]), Killed),
    row("map huge pages", |_| json!([map(2 * MIB, DATA, PRIVATE | HUGE)]), Killed),
    row("find equal pages of others", |_| only("madvise", json!([0, 0, 12])), Killed),
    row("open files without end", |_| json!([often("eventfd2", json!([0, 0]), 100_000)]), Fails(&[MFILE])),
];

#[test]
fn memory_is_bounded_and_no_more_of_it_runs() {
    holds(ROWS);
}
