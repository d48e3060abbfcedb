//! The kinds of changes: components, limits, grants, prefixes; settings that wait for a restart,
//! and components that are kept as they are.

use serde_json::{Value, json};
use toolcell_tests::{Command, LIST_CHANGED, Readings, Saving, TestHost, fixture_bytes};

use super::{GATE, TOOL, manifest, names, serving, version};

/// Saves the manifest with these further lines in the component's table.
fn save_manifest(host: &TestHost, lines: &str) {
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest(lines));
}

/// The components that were loaded for this generation, as the audit records them.
fn loaded(host: &TestHost, generation: u64) -> Vec<String> {
    let of_generation = |record: &&Value| record["event"] == "component.loaded" && record["generation"] == generation;
    host.audit().iter().filter(of_generation).map(|record| record["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_component_that_is_added_is_served_and_one_that_is_removed_is_not() {
    let mut host = serving("versioned_a", "");
    host.initialize("2025-11-25");
    assert_eq!(names(&mut host), ["version", "linger"]);
    host.folder().write("components/more.wasm", fixture_bytes("versioned_c"));
    save_manifest(&host, "[components.more]\nsource = \"components/more.wasm\"\nprefix = \"more_\"\n");
    host.next_of(LIST_CHANGED);
    assert_eq!(names(&mut host), ["version", "linger", "more_version", "more_extra"]);
    assert_eq!(host.call("more_extra", json!({})).text(), "c");
    host.will_say(
        "generation 2: more: added; tools added: more_version, more_extra; clients are notified of the new list",
    );
    assert_eq!(loaded(&host, 2), ["more"], "the other one is taken over as it is");
    // An added component is watched like any other.
    host.folder().save_fixture(Saving::RenamedOver, "components/more.wasm", "versioned_b");
    host.next_of(LIST_CHANGED);
    assert_eq!(host.call("more_version", json!({})).text(), "b");
    save_manifest(&host, "");
    host.next_of(LIST_CHANGED);
    assert_eq!(names(&mut host), ["version", "linger"]);
    let gone = host.request("tools/call", json!({"name": "more_version", "arguments": {}}));
    assert_eq!(
        (&gone["error"]["code"], &gone["error"]["message"]),
        (&json!(-32602), &json!("Unknown tool: more_version"))
    );
    host.serves_generation(4);
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn another_prefix_is_another_list_over_the_same_code() {
    let mut host = serving("versioned_a", "");
    host.initialize("2025-11-25");
    assert_eq!(names(&mut host), ["version", "linger"]);
    save_manifest(&host, "prefix = \"my_\"\n");
    host.next_of(LIST_CHANGED);
    assert_eq!(names(&mut host), ["my_version", "my_linger"]);
    assert_eq!(host.call("my_version", json!({})).text(), "a");
    host.serves_generation(2);
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn another_limit_holds_from_the_next_call_on_and_is_no_other_list() {
    let mut host = serving("versioned_a", GATE);
    host.initialize("2025-11-25");
    host.folder().write("gate/open", "open");
    assert_eq!(host.call("linger", json!({})).text(), "a open");
    save_manifest(&host, &format!("{GATE}[components.tool.limits]\narguments = \"16B\"\n"));
    host.serves_generation(2);
    let refused = host.call("linger", json!({"say": "more than the sixteen bytes"}));
    assert!(refused.error_text().contains("(limit \"arguments\")"), "{refused:?}");
    save_manifest(&host, GATE);
    host.serves_generation(3);
    assert_eq!(host.call("linger", json!({"say": "more than the sixteen bytes"})).text(), "a open");
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn another_grant_holds_from_the_next_call_on_and_is_no_other_list() {
    let limits = "[components.tool.tools.linger.limits]\ndeadline = \"100ms\"\n";
    let mut host = serving("versioned_a", limits);
    host.initialize("2025-11-25");
    host.folder().write("gate/open", "open");
    assert!(host.call("linger", json!({})).error_text().contains("(limit \"deadline\")"), "the file cannot be seen");
    save_manifest(&host, GATE);
    host.serves_generation(2);
    assert_eq!(host.call("linger", json!({})).text(), "a open");
    save_manifest(&host, limits);
    host.serves_generation(3);
    assert!(host.call("linger", json!({})).error_text().contains("(limit \"deadline\")"));
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn settings_that_need_a_restart_say_so_once_and_the_rest_of_the_change_is_made() {
    let mut host = serving("versioned_a", "# With no walls, which would be another setting.\n");
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    let server = "[server]\nname = \"another\"\npage_size = 1\n";
    let waits = "changed, and in effect from the next start: name, page_size";
    save_manifest(&host, &format!("prefix = \"my_\"\n{server}"));
    host.next_of(LIST_CHANGED);
    assert_eq!(names(&mut host), ["my_version", "my_linger"]);
    host.serves_generation(2);
    assert_eq!(host.status()["waits_for_start"], json!(["name", "page_size"]));
    save_manifest(&host, server);
    host.serves_generation(3);
    assert_eq!(host.said().matches(waits).count(), 1, "{}", host.said());
    assert_eq!(host.request("tools/list", json!({}))["result"]["nextCursor"], Value::Null, "the page is as it was");
    save_manifest(&host, "");
    host.status_when("put back", |status| status["waits_for_start"] == json!([]));
    let shown = Command::in_folder(host.folder(), &["status"]).run();
    assert!(!shown.succeeded().contains("waits for the next start"), "{shown:?}");
}

#[test]
fn a_component_that_is_not_concerned_keeps_its_instances() {
    let other = "[components.remembers]\nsource = \"components/remembers.wasm\"\ninstance = \"per-caller\"\n";
    let mut host = serving("versioned_a", other);
    assert_eq!(host.call("count", json!({})).text(), "1");
    assert_eq!(host.call("count", json!({})).text(), "2");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(2);
    assert_eq!(loaded(&host, 2), ["tool"]);
    assert_eq!(host.call("count", json!({})).text(), "3", "its instance lived on");
    save_manifest(&host, &format!("{other}[components.remembers.limits]\noutput = \"2KiB\"\n"));
    host.serves_generation(3);
    assert_eq!(loaded(&host, 3), ["remembers"]);
    assert_eq!(host.call("count", json!({})).text(), "1", "under another policy it is another instance");
}

#[test]
fn a_file_is_read_once_and_its_digest_is_of_what_was_read() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    host.folder().write("components/next.wasm", fixture_bytes("versioned_b"));
    let next = host.folder().path().join("components/next.wasm");
    let digest =
        Command::in_folder(host.folder(), &["inspect", "--json", "components/next.wasm"]).run().json()["digest"]
            .clone();
    let readings = Readings::of(&next);
    std::fs::rename(&next, host.folder().path().join(TOOL)).unwrap();
    host.serves_generation(2);
    assert_eq!(readings.count(), 1);
    assert_eq!(host.status()["components"][0]["digest"], digest);
    let audit = host.audit();
    let record = audit.iter().find(|record| record["event"] == "component.loaded" && record["generation"] == 2);
    assert_eq!(record.unwrap()["digest"], digest);
    let readings = Readings::of(&host.folder().path().join(TOOL));
    assert_eq!(host.reload(), json!({"outcome": "unchanged"}));
    assert_eq!(readings.count(), 1, "also where nothing changed");
}

#[test]
fn who_asks_for_a_reload_has_what_components_may_reach_looked_at_anew() {
    let mut host = serving("versioned_a", GATE);
    host.initialize("2025-11-25");
    host.folder().write("gate/open", "one");
    assert_eq!(host.call("linger", json!({})).text(), "a one");
    // The mount's path leads to another folder, though the manifest is unchanged.
    let path = |relative| host.folder().path().join(relative);
    std::fs::rename(path("gate"), path("gate.old")).unwrap();
    host.folder().write("gate/open", "another");
    let told = host.reload();
    let summary = "files and variables checked again: tool";
    assert_eq!((&told["generation"], &told["summary"]), (&json!(2), &json!(summary)), "{told:#}");
    assert_eq!(host.call("linger", json!({})).text(), "a another");
    assert_eq!(host.list_changes(), 0);
}
