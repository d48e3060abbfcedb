//! A broken change has no effect: the old version serves and clients hear nothing. The operator is
//! told the problem and its place, and repairing the file is enough.
//!
//! Promise: a broken change has no effect.

use std::io::Write;

use serde_json::{Value, json};
use toolcell_tests::{Command, LIST_CHANGED, Readings, Saving, TestHost, fixture_bytes};

use super::{GATE, TOOL, manifest, serving, version};

/// One way to break a served file.
struct Break {
    what: &'static str,
    /// Breaks a file in the folder of this host.
    broken: fn(&TestHost),
    /// Words of the reported problem.
    says: &'static [&'static str],
    at: Underlined,
}

/// The place of the manifest that a problem points at.
struct Underlined {
    line: u64,
    column: u64,
    /// The number of underlined characters.
    width: usize,
}

fn save_component(host: &TestHost, bytes: &[u8]) {
    host.folder().save(Saving::RenamedOver, TOOL, bytes);
}

fn save_manifest(host: &TestHost, text: &str) {
    host.folder().save(Saving::RenamedOver, "toolcell.toml", text);
}

/// The place of the value of `source`.
const SOURCE: Underlined = Underlined { line: 4, column: 10, width: 22 };

const BREAKS: [Break; 10] = [
    Break {
        what: "no WebAssembly",
        broken: |host| save_component(host, b"no WebAssembly at all"),
        says: &["component \"tool\"", "not a WebAssembly component"],
        at: SOURCE,
    },
    Break {
        what: "an empty file",
        broken: |host| save_component(host, b""),
        says: &["component \"tool\"", "not a WebAssembly component"],
        at: SOURCE,
    },
    Break {
        what: "half a file",
        broken: |host| save_component(host, &fixture_bytes("versioned_b")[..40_000]),
        says: &["component \"tool\"", "not a valid component"],
        at: SOURCE,
    },
    Break {
        what: "a component of another world",
        broken: |host| save_component(host, &fixture_bytes("no_export")),
        says: &["component \"tool\"", "toolcell:mcp/tools", "exports nothing"],
        at: SOURCE,
    },
    Break {
        what: "a component that wants what is not offered",
        broken: |host| save_component(host, &fixture_bytes("imports_unknown")),
        says: &["imports what this host does not offer: evil:corp/api@1.0.0"],
        at: SOURCE,
    },
    Break {
        what: "a component that does not come to list its tools",
        broken: |host| save_component(host, &fixture_bytes("list_traps")),
        says: &["component \"tool\""],
        at: SOURCE,
    },
    Break {
        what: "a file that is gone",
        broken: |host| std::fs::remove_file(host.folder().path().join(TOOL)).unwrap(),
        says: &["components/tool.wasm", "there is no such file"],
        at: SOURCE,
    },
    Break {
        what: "two tools of one name",
        broken: |host| {
            save_manifest(host, &manifest(&format!("[components.twin]\nsource = \"{TOOL}\"\n")));
        },
        says: &["components \"tool\" and \"twin\" both have a tool \"version\"", "give one of them a `prefix`"],
        at: Underlined { line: 5, column: 13, width: 4 },
    },
    Break {
        what: "a manifest that is not TOML",
        broken: |host| save_manifest(host, &manifest("prefix = \"my_\n")),
        says: &["toolcell.toml"],
        at: Underlined { line: 5, column: 14, width: 1 },
    },
    Break {
        what: "a key that nobody knows",
        broken: |host| save_manifest(host, &manifest("prefixx = \"my_\"\n")),
        says: &["prefixx", "prefix"],
        at: Underlined { line: 5, column: 1, width: 7 },
    },
];

/// Asserts that the problem points at this place, in JSON and in the drawing.
fn points_at(status: &Value, at: &Underlined) {
    let Underlined { line, column, width } = *at;
    let failed = &status["failed"];
    let problem = failed["problems"].as_array().unwrap().iter().find(|problem| problem["severity"] == "error").unwrap();
    assert_eq!((&problem["line"], &problem["column"]), (&json!(line), &json!(column)), "{failed:#}");
    let drawn = failed["drawn"].as_str().unwrap();
    assert!(drawn.contains(&format!("toolcell.toml:{line}:{column}\n")), "{drawn}");
    let underlined = drawn.lines().map(|line| line.matches('^').count()).find(|count| *count > 0);
    assert_eq!(underlined, Some(width), "{drawn}");
}

#[test]
fn whatever_is_broken_the_old_version_serves_and_the_operator_hears_why() {
    for Break { what, broken, says, at } in BREAKS {
        let mut host = serving("versioned_a", "");
        host.initialize("2025-11-25");
        assert_eq!(version(&mut host), "a");
        broken(&host);
        host.will_say("not reloaded: ");
        let status = host.status_when("told of", |status| !status["failed"].is_null());
        assert_eq!(
            (&status["generation"], &status["reloads"]["refused"]),
            (&json!(1), &json!(1)),
            "{what}: {status:#}"
        );
        points_at(&status, &at);
        let recorded = host.recorded("a refusal", |record| record["event"] == "catalog.refused");
        let shown = Command::in_folder(host.folder(), &["status"]).run();
        assert_eq!(shown.code(), 1, "{what}: a script sees that something is wrong");
        let audited = recorded["cause"].as_str().unwrap();
        for (place, text) in [
            ("stderr", host.said().as_str()),
            ("status", &status["failed"].to_string().replace("\\\"", "\"")),
            ("audit", audited),
            ("status for people", &shown.stdout),
        ] {
            says.iter().for_each(|words| assert!(text.contains(words), "{what}: no {words:?} in {place}:\n{text}"));
        }
        assert_eq!((version(&mut host).as_str(), host.list_changes()), ("a", 0), "{what}");
        mended(&mut host, what);
    }
}

/// Repairs the file, which must be enough.
fn mended(host: &mut TestHost, what: &str) {
    save_component(host, &fixture_bytes("versioned_c"));
    save_manifest(host, &manifest(""));
    host.next_of(LIST_CHANGED);
    assert_eq!(version(host), "c", "{what}");
    let status = host.status_when("well again", |status| status["failed"].is_null());
    assert_eq!(status["reloads"]["replaced"], 1, "{what}: {status:#}");
    assert_eq!(Command::in_folder(host.folder(), &["status"]).run().code(), 0, "{what}");
    assert_eq!(host.list_changes(), 0, "{what}");
}

#[test]
fn putting_back_what_was_there_is_no_swap_and_all_is_well() {
    let mut host = serving("versioned_a", "");
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    save_component(&host, b"no WebAssembly at all");
    host.will_say("not reloaded: ");
    save_component(&host, &fixture_bytes("versioned_a"));
    let status =
        host.status_when("well again", |status| status["failed"].is_null() && status["reloads"]["refused"] == 1);
    assert_eq!((&status["generation"], &status["reloads"]["replaced"]), (&json!(1), &json!(0)));
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn a_component_past_its_size_is_refused_before_it_is_compiled() {
    let load = "[components.tool.load]\ncomponent_size = \"140KiB\"\n";
    let mut host = serving("versioned_a", load);
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "good");
    host.will_say("component \"tool\": components/tool.wasm is larger than 140KiB (limit \"component_size\")");
    assert_eq!(version(&mut host), "a");
    save_component(&host, &fixture_bytes("versioned_b"));
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
}

#[test]
fn of_several_changes_none_is_made_where_one_is_broken_and_all_problems_are_named_at_once() {
    let other = "[components.other]\nsource = \"components/other.wasm\"\nprefix = \"other_\"\n";
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    host.is_done_with_its_start();
    host.pause();
    save_component(&host, &fixture_bytes("versioned_b"));
    host.folder().write("components/other.wasm", "broken");
    save_manifest(&host, &manifest(&format!("{other}[components.third]\nsource = \"components/third.wasm\"\n")));
    host.resume();
    host.will_say("toolcell.toml: 2 errors; generation 1 serves on");
    let status = host.status_when("told of", |status| !status["failed"].is_null());
    let lines: Vec<&Value> =
        status["failed"]["problems"].as_array().unwrap().iter().map(|problem| &problem["line"]).collect();
    assert_eq!(lines, [6, 9], "{status:#}");
    assert_eq!(version(&mut host), "a", "the good part of the change waits for the rest");
    host.folder().write("components/other.wasm", fixture_bytes("versioned_c"));
    host.folder().write("components/third.wasm", fixture_bytes("good"));
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    assert_eq!(host.call("other_version", json!({})).text(), "c");
}

#[test]
fn a_right_that_a_broken_manifest_takes_away_is_not_taken_away_yet_and_that_is_said() {
    let mut host = serving("versioned_a", GATE);
    host.folder().write("gate/open", "open");
    assert_eq!(host.call("linger", json!({})).text(), "a open");
    save_manifest(&host, &manifest("prefixx = \"my_\"\n"));
    host.will_say("a right that it takes away is not taken away yet");
    assert_eq!(host.call("linger", json!({})).text(), "a open");
    save_manifest(&host, &manifest("[components.tool.tools.linger.limits]\ndeadline = \"100ms\"\n"));
    host.serves_generation(2);
    assert!(host.call("linger", json!({})).error_text().contains("(limit \"deadline\")"));
}

#[test]
fn a_file_that_goes_on_being_written_is_reported_as_such_after_a_while() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    let path = host.folder().path().join(TOOL);
    std::fs::write(&path, b"half").unwrap();
    let readings = Readings::of(&path);
    // The file is written to each time the host has read it, until the host gives up.
    while !host.said().contains("not reloaded: ") {
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b".").unwrap();
        readings.wait();
    }
    host.will_say("(the files are still being written to); generation 1 serves on");
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::InPlace, TOOL, "versioned_b");
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
}

#[test]
fn who_asks_for_a_reload_is_told_why_there_is_none_and_is_not_kept_waiting() {
    let mut host = TestHost::recording_with(super::folder("versioned_a", ""), &["--watch", "off"]);
    assert_eq!(version(&mut host), "a");
    save_manifest(&host, &manifest("prefixx = \"my_\"\n"));
    let told = Command::in_folder(host.folder(), &["reload"]).run();
    let text = told.failed_with(1);
    for words in ["error: not reloaded: ", "prefixx", "toolcell.toml:5:1", "^^^"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let told = host.reload();
    assert_eq!((&told["outcome"], &told["problems"][0]["line"]), (&json!("failed"), &json!(5)), "{told:#}");
    save_manifest(&host, &manifest(""));
    assert_eq!(
        Command::in_folder(host.folder(), &["reload"]).run().succeeded(),
        "unchanged: the files match what is served\n"
    );
}
