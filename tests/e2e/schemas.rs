//! Schemas that take long to compile or to apply, and values for them. Each is refused soon and in
//! little memory, and other calls go on.
//!
//! Promise: checks of values end.
//! Promise: schemas cannot be used against the host.
//! Promise: typed tools are bounded.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, manifest_of};

/// Time in which a busy machine answers. An unbounded check takes minutes.
const SOON: Duration = Duration::from_secs(20);

const TOO_LONG: &str = "- (root): checking it would take too long: it is too large for what its schema asks of it";

/// The fixtures, with results of up to a megabyte.
fn wide(fixtures: &[&str]) -> String {
    // Many checks at once take seconds on a busy machine.
    manifest_of(fixtures)
        .replace("output = \"64KiB\"", "output = \"1MiB\"")
        .replace("deadline = \"5s\"", "deadline = \"1m\"\nqueue_wait = \"1m\"")
}

/// The fixtures, with fuel to list large definitions.
fn ample(fixtures: &[&str]) -> String {
    manifest_of(fixtures).replace("fuel = 20_000_000", "fuel = 1_000_000_000")
}

fn refused_in(folder: &Folder) -> String {
    Command::in_folder(folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned()
}

fn unusable(tool: &str) -> String {
    format!("The result of {tool} is unusable: its structured content does not fit its output schema:\n{TOO_LONG}")
}

fn unfit(tool: &str) -> String {
    format!("The arguments do not fit the input schema of {tool}:\n{TOO_LONG}")
}

#[test]
fn results_and_arguments_that_take_too_long_to_check_are_refused_soon_and_nobody_waits() {
    let mut host = TestHost::with_manifest(&wide(&["good", "slow_checks"]));
    host.still_works();
    let bits = json!({"bits": "01".repeat(20_000)});
    let names: Value =
        (0..5_000).map(|number| (format!("name{number}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let began = Instant::now();
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push((host.start_call("gives_bits", json!({})), unusable("gives_bits")));
        calls.push((host.start_call("gives_bits_to_several", json!({})), unusable("gives_bits_to_several")));
        calls.push((host.start_call("takes_bits", bits.clone()), unfit("takes_bits")));
        calls.push((host.start_call("takes_names", names.clone()), unfit("takes_names")));
    }
    host.request("ping", json!({}));
    for (id, expected) in calls {
        assert_eq!(host.answer_to(&id).error_text(), expected);
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    host.still_works();
    // Short values are checked as before.
    assert_eq!(host.call("takes_names", json!({"a": 1})).text(), "taken");
    let short = host.call("takes_bits", json!({"bits": "01"})).error_text().to_owned();
    let expected = "- /bits: must match the pattern ^[01]*1[01]{1900}2";
    assert_eq!(short, format!("The arguments do not fit the input schema of takes_bits:\n{expected}"));
}

#[test]
fn schemas_that_would_take_a_gigabyte_are_refused_where_they_are_written() {
    let began = Instant::now();
    let text = refused_in(&Folder::with_manifest(&ample(&["list_heavy_patterns"])));
    for expected in [
        "tool \"each_too_heavy\": inputSchema/allOf/16/pattern one of more than 16 patterns that are too large",
        "tool \"together_too_heavy\": inputSchema/allOf/",
        "tool \"names_too_heavy\": inputSchema/patternProperties/",
        "compiling it takes more memory than the 16384 KiB left for it",
        "tool \"places_too_long\": inputSchema the names of its subschemas are too long in all",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn typed_tools_are_counted_before_any_of_them_is_described() {
    let refused = |more: &str| {
        let folder = Folder::with_manifest(&format!("{}{more}", manifest_of(&["wide_names"])));
        let began = Instant::now();
        let text = refused_in(&folder);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        text
    };
    let described = refused("");
    let expected = "component \"wide_names\" could not list its tools: too much data at once between the tool and the host: \
                    more than 16MiB (limit \"host_data\")";
    assert!(described.contains(expected), "{described}");
    let counted = refused("\n[components.wide_names.load]\ntools = 800\n");
    let expected = "component \"wide_names\" lists 900 tools; a component may list 800 (limit \"tools\")";
    assert!(counted.contains(expected), "{counted}");
    let folder = Folder::with_manifest(&manifest_of(&["wide_names"]));
    let inspected = Command::in_folder(&folder, &["inspect", "components/wide_names.wasm"]).run();
    assert!(inspected.stdout.contains("too much data at once"), "{}", inspected.stdout);
}

#[test]
fn a_reload_with_heavy_schemas_leaves_memory_as_it_was() {
    let heavy = ample(&["good", "wide_names", "list_heavy_patterns"]);
    let folder = Folder::with_manifest(&heavy);
    folder.write("toolcell.toml", manifest_of(&["good"]));
    let mut host = TestHost::in_folder(folder);
    host.still_works();
    let before = host.resident_bytes();
    host.folder().write("toolcell.toml", heavy);
    host.will_say("each_too_heavy");
    host.still_works();
    let grown = host.resident_bytes().saturating_sub(before);
    assert!(grown < 300 << 20, "{} MiB", grown >> 20);
}
