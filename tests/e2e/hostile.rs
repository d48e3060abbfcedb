//! Tools that misbehave in a call: the exact answer that the client gets, and a next call that
//! works.
//!
//! Promise: computing ends.
//! Promise: waiting ends.
//! Promise: code outside of tools is bounded.
//! Promise: memory is bounded in sum.
//! Promise: the host's memory is bounded.
//! Promise: recursion ends.
//! Promise: a broken canonical ABI is a trap.
//! Promise: others go on.
//! Promise: state and files hold nobody up.
//! Promise: only frames are on stdout.

use serde_json::{Value, json};
use toolcell_tests::{TestHost, manifest_of};

const OUT_OF_FUEL: &str = "out of fuel: the call used its whole budget of 20_000_000 units (limit \"fuel\")";
const OUT_OF_MEMORY: &str = "out of memory: the call needed more than 16MiB (limit \"memory\")";
const LATE: &str = "deadline exceeded: the call took longer than 300ms (limit \"deadline\")";
const UNREACHABLE: &str = "the tool trapped: wasm `unreachable` instruction executed";

/// A call, and the text of the error that answers it.
type Row = (&'static str, Value, &'static str);

/// Makes each call on this host. The answer must be this error, word for word, and the next call
/// must work.
fn are_answered(mut host: TestHost, rows: &[Row]) {
    for (tool, arguments, expected) in rows {
        assert_eq!(host.call(tool, arguments.clone()).error_text(), *expected, "{tool} {arguments}");
        host.still_works();
    }
}

/// Serves `good` and this fixture; the fixture has these limits.
fn serving_with(fixture: &str, limits: &str) -> TestHost {
    let manifest = manifest_of(&["good", fixture]);
    TestHost::with_manifest(&format!("{manifest}\n[components.{fixture}.limits]\n{limits}\n"))
}

#[test]
fn a_tool_that_computes_forever_runs_out_of_fuel() {
    are_answered(
        TestHost::serving(&["good", "loops"]),
        &[
            ("spin", json!({}), OUT_OF_FUEL),
            ("ignore_cancel", json!({}), OUT_OF_FUEL),
            ("call_host", json!({}), OUT_OF_FUEL),
            ("log_forever", json!({}), OUT_OF_FUEL),
            ("progress_forever", json!({}), OUT_OF_FUEL),
        ],
    );
}

#[test]
fn a_tool_that_computes_on_a_large_budget_meets_its_deadline() {
    are_answered(
        serving_with("loops", "fuel = 1_000_000_000_000\ndeadline = \"300ms\"\nmemory = \"64MiB\""),
        &[("spin", json!({}), LATE), ("fill", json!({}), LATE), ("call_host", json!({}), LATE)],
    );
}

#[test]
fn a_tool_that_recurses_forever_runs_over_its_stack() {
    are_answered(
        TestHost::serving(&["good", "loops"]),
        &[
            ("recurse", json!({}), "stack overflow: the tool recursed too deep"),
            // The data that a compiler keeps in linear memory for each turn runs out first: it
            // passes the lower end of the memory.
            ("recurse_with_frames", json!({}), "the tool trapped: out of bounds memory access"),
        ],
    );
}

#[test]
fn a_tool_that_sleeps_or_waits_meets_its_deadline() {
    are_answered(
        serving_with("loops", "deadline = \"300ms\""),
        &[
            ("sleep_hour", json!({}), LATE),
            ("nap_forever", json!({}), LATE),
            ("wait_forever", json!({}), LATE),
            ("wait_for_nothing", json!({}), "the tool trapped: empty poll list"),
        ],
    );
}

#[test]
fn a_tool_that_grows_a_memory_runs_out_of_memory() {
    are_answered(
        TestHost::serving(&["good", "hungry"]),
        &[("grow_steadily", json!({}), OUT_OF_MEMORY), ("grow_at_once", json!({}), OUT_OF_MEMORY)],
    );
}

#[test]
fn many_memories_share_one_limit() {
    are_answered(TestHost::serving(&["good", "many_memories"]), &[("run", json!({}), OUT_OF_MEMORY)]);
}

#[test]
fn tables_count_as_memory() {
    are_answered(
        serving_with("growing_table", "memory = \"1MiB\""),
        &[("run", json!({}), "out of memory: the call needed more than 1MiB (limit \"memory\")")],
    );
}

#[test]
fn a_huge_result_is_not_passed_on() {
    const TOO_LARGE: &str = "the result is larger than 64KiB (limit \"output\")";
    const TOO_MUCH: &str =
        "too much data at once between the tool and the host: more than 256KiB (limit \"host_data\")";
    let megabyte = json!({"bytes": 1_000_000});
    let above = json!({"bytes": 65_537});
    are_answered(
        serving_with("hungry", "host_data = \"256KiB\"\noutput_items = 10"),
        &[
            ("long_text", above.clone(), TOO_LARGE),
            ("long_text", megabyte.clone(), TOO_MUCH),
            ("long_structured", above.clone(), TOO_LARGE),
            ("long_structured", megabyte.clone(), TOO_MUCH),
            ("long_image", above.clone(), TOO_LARGE),
            ("long_image", megabyte.clone(), TOO_MUCH),
            ("long_meta", above, TOO_LARGE),
            ("long_meta", megabyte.clone(), TOO_MUCH),
            ("many_items", json!({"items": 11}), "the result has more than 10 content items (limit \"output_items\")"),
            ("many_items", json!({"items": 5_000}), TOO_MUCH),
            ("log_line", megabyte.clone(), TOO_MUCH),
            ("progress_message", megabyte, TOO_MUCH),
        ],
    );
}

#[test]
fn a_long_failure_is_held_to_the_output_limit_too() {
    are_answered(
        TestHost::serving(&["good", "quitter"]),
        &[("failed_at_length", json!({"bytes": 65_537}), "the result is larger than 64KiB (limit \"output\")")],
    );
}

#[test]
fn a_result_that_multiplies_in_the_host_is_not_lifted() {
    are_answered(
        TestHost::serving(&["good", "result_amplified"]),
        &[(
            "run",
            json!({}),
            "too much data at once between the tool and the host: more than 16MiB (limit \"host_data\")",
        )],
    );
}

#[test]
fn handles_are_counted() {
    const TOO_MANY: &str = "too many handles: the tool held more than 1_000 at once (limit \"handles\")";
    are_answered(TestHost::serving(&["good", "hungry"]), &[("pollables", json!({"pollables": 2000}), TOO_MANY)]);
}

#[test]
fn one_request_for_random_bytes_is_bounded() {
    const TOO_MANY: &str = "too many random bytes at once: the tool asked for more than 64KiB (limit \"random\")";
    let gigabyte = json!({"bytes": 1_000_000_000});
    are_answered(
        TestHost::serving(&["good", "hungry"]),
        &[
            ("random", gigabyte.clone(), TOO_MANY),
            ("random", json!({"bytes": 65_537}), TOO_MANY),
            ("insecure_random", gigabyte, TOO_MANY),
        ],
    );
}

#[test]
fn a_tool_that_ends_without_an_answer_is_said_to_have_done_so() {
    are_answered(
        TestHost::serving(&["good", "quitter"]),
        &[
            ("panic", json!({}), UNREACHABLE),
            ("trap", json!({}), UNREACHABLE),
            ("out_of_bounds", json!({}), "the tool trapped: out of bounds memory access"),
            ("divide", json!({}), "the tool trapped: integer divide by zero"),
            ("bad_call", json!({}), "the tool trapped: undefined element: out of bounds table access"),
            ("exit", json!({"status": 0}), "the tool exited with status 0 instead of answering"),
            ("exit", json!({"status": 7}), "the tool exited with status 1 instead of answering"),
            ("exit_failure", json!({}), "the tool exited with status 1 instead of answering"),
            ("failed", json!({}), "the printer is out of paper"),
            ("invalid_input", json!({}), "`page` must be below `pages`"),
        ],
    );
}

#[test]
fn a_component_that_breaks_the_canonical_abi_traps() {
    let rows: [(&str, &str); 5] = [
        ("realloc_outside", "the tool trapped: realloc return: beyond end of memory"),
        ("result_outside", "the tool trapped: pointer out of bounds of memory"),
        ("result_not_utf8", "the tool trapped: invalid utf-8 sequence of 1 bytes from index 0"),
        ("result_no_such_case", "the tool trapped: unexpected discriminant: 77"),
        ("result_endless_list", "the tool trapped: list pointer/length out of bounds of memory"),
    ];
    for (fixture, expected) in rows {
        are_answered(TestHost::serving(&["good", fixture]), &[("run", json!({}), expected)]);
    }
}

#[test]
fn a_component_that_loops_where_no_tool_runs_is_stopped_as_well() {
    for fixture in ["realloc_spins", "post_return_spins"] {
        are_answered(TestHost::serving(&["good", fixture]), &[("run", json!({}), OUT_OF_FUEL)]);
    }
}

#[test]
fn what_a_tool_prints_never_reaches_the_wire() {
    let mut host = TestHost::serving(&["good", "noisy"]);
    for tool in ["stdout_frames", "stderr_escapes"] {
        assert_eq!(host.call(tool, json!({})).text(), "printed");
    }
    assert_eq!(host.call("log_frames", json!({})).text(), "logged");
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0], "frames that nobody asked for");
    host.will_say("red");
    let said = host.said();
    for wrong in ['\u{1b}', '\u{202e}', '\u{7}'] {
        assert!(!said.contains(wrong), "stderr holds {wrong:?}: {said:?}");
    }
    let forged = |line: &str| line.trim_start().starts_with("{\"jsonrpc\"");
    assert!(!said.lines().any(forged), "a guest's line begins like a frame: {said}");
}

#[test]
fn a_gigabyte_printed_is_taken_dropped_and_counted() {
    let mut host = serving_with("noisy", "fuel = 10_000_000_000\nlog = \"4KiB\"");
    for tool in ["stderr_gigabyte", "stdout_gigabyte"] {
        let before = host.resident_bytes();
        assert_eq!(host.call(tool, json!({})).text(), "1000013824 bytes were taken");
        host.still_works();
        let grown = host.resident_bytes().saturating_sub(before);
        assert!(grown < 64 << 20, "{tool}: the host grew by {grown} bytes");
    }
    assert!(host.said().len() < 64 << 10, "the log holds {} bytes", host.said().len());
}

#[test]
fn floods_of_log_lines_and_progress_do_not_stop_a_tool() {
    let mut host = TestHost::serving(&["good", "hungry"]);
    assert_eq!(host.call("log_lines", json!({"lines": 10_000})).text(), "logged");
    assert_eq!(host.call("progress_reports", json!({"reports": 10_000})).text(), "reported");
    host.still_works();
    assert_eq!(host.kept(), [json!(null); 0], "neither log nor progress was asked for");
}

#[test]
fn endless_loops_do_not_keep_others_from_working() {
    let limits = "fuel = 1_000_000_000_000\ndeadline = \"2s\"";
    let mut host = serving_with("loops", limits);
    let loops: Vec<Value> = (0..8).map(|_| host.start_call("spin", json!({}))).collect();
    host.still_works();
    for id in loops {
        let text = "deadline exceeded: the call took longer than 2s (limit \"deadline\")";
        assert_eq!(host.answer_to(&id).error_text(), text);
    }
    host.still_works();
}

#[test]
fn many_random_bytes_at_once_hold_up_nobody() {
    let limits = "random = \"64MiB\"\nmemory = \"128MiB\"\nfuel = 500_000_000\ndeadline = \"1m\"";
    let mut host = serving_with("hungry", &format!("{limits}\n[server]\nusage = true"));
    let out = "out of fuel: the call used its whole budget of 500_000_000 units (limit \"fuel\")";
    for tool in ["random", "insecure_random"] {
        let call = host.start_call(tool, json!({"bytes": 8_388_608}));
        host.still_works();
        assert_eq!(host.answer_to(&call).text(), "8388608", "{tool}");
        let fuel = host.call(tool, json!({"bytes": 1_000_000})).used("fuel");
        assert!(fuel > 10_000_000, "{tool}: {fuel} for a million bytes");
        assert_eq!(host.call(tool, json!({"bytes": 67_108_864})).error_text(), out, "{tool}");
        host.still_works();
    }
}
