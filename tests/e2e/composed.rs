//! Components that were composed of others, as `wac` makes them: what passes between their parts,
//! their memories, and their imports.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, manifest_of};

/// A host that serves this fixture, whose calls may take this much memory.
fn serving_within(fixture: &str, memory: &str) -> TestHost {
    let manifest = manifest_of(&["good", fixture]);
    TestHost::with_manifest(&format!("{manifest}\n[components.{fixture}.limits]\nmemory = \"{memory}\"\n"))
}

fn out_of(memory: &str) -> String {
    format!("out of memory: the call needed more than {memory} (limit \"memory\")")
}

/// The text of the error that the tool itself answers with.
fn error_of(host: &mut TestHost, tool: &str, arguments: Value) -> String {
    let answer = host.call(tool, arguments);
    assert!(answer.is_error(), "{:?}", answer.result());
    answer.result()["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn texts_lists_records_results_and_resources_pass_between_two_parts() {
    let mut host = TestHost::serving(&["composed"]);
    let texts = json!(["", "one", "zwölf", "🦀"]);
    assert_eq!(host.call("length", json!({"text": "zwölf 🦀"})).structured()["result"], 11);
    assert_eq!(host.call("same", json!({"texts": texts})).structured()["result"], texts);
    assert_eq!(
        host.call("sum", json!({"values": [1, 2, 4_294_967_295_u32]})).structured()["result"],
        4_294_967_298_u64
    );
    let entry = json!({"name": "tea", "tags": texts});
    assert_eq!(*host.call("tidy", json!({"entry": entry})).structured(), entry);
    assert_eq!(host.call("check", json!({"text": "short"})).structured()["result"], "short");
    assert_eq!(error_of(&mut host, "check", json!({"text": "much too long"})), r#"{"error":"much too long"}"#);
    assert_eq!(host.call("counted", json!({"at": 41})).structured()["result"], 41);
}

#[test]
fn texts_lists_and_results_pass_through_five_parts() {
    let mut host = TestHost::serving(&["chained"]);
    assert_eq!(host.call("parts", json!({})).structured()["result"], 5);
    let texts = json!(["one", "zwölf"]);
    assert_eq!(host.call("pass", json!({"texts": texts})).structured()["result"], texts);
    assert_eq!(error_of(&mut host, "pass", json!({"texts": []})), r#"{"error":""}"#);
}

#[test]
fn a_part_gets_what_the_component_is_granted_and_no_more() {
    let sealed = manifest_of(&["chained"]);
    let granted = format!("{sealed}[components.chained.env]\nONE = \"1\"\nTWO = \"2\"\n");
    for (manifest, expected) in [(sealed, 0), (granted, 2)] {
        let mut host = TestHost::with_manifest(&manifest);
        assert_eq!(host.call("variables", json!({})).structured()["result"], expected);
    }
}

#[test]
fn the_memory_of_each_part_counts() {
    // Five memories of one mebibyte each.
    let mut host = serving_within("chained", "4MiB");
    assert_eq!(host.call("parts", json!({})).error_text(), out_of("4MiB"));
    host.still_works();
    let mut host = serving_within("chained", "6MiB");
    assert_eq!(host.call("parts", json!({})).structured()["result"], 5);
}

#[test]
fn the_memories_of_one_module_count_together() {
    let mut host = serving_within("own_memories", "4MiB");
    assert_eq!(host.call("grow", json!({"pages": 0})).structured()["result"], 32);
    assert_eq!(host.call("grow", json!({"pages": 15})).structured()["result"], 62);
    // The first one grows, the second one no longer.
    assert_eq!(host.call("grow", json!({"pages": 20})).structured()["result"], 36 + 16);
    host.still_works();
    let mut host = serving_within("own_memories", "1MiB");
    assert_eq!(host.call("grow", json!({"pages": 0})).error_text(), out_of("1MiB"));
    host.still_works();
}

#[test]
fn composed_components_are_checked_and_inspected_like_others() {
    let folder = Folder::with_manifest(&manifest_of(&["composed", "chained", "own_memories"]));
    assert_eq!(Command::in_folder(&folder, &["check", "toolcell.toml"]).run().code(), 0);
    let found = Command::in_folder(&folder, &["inspect", "components/chained.wasm", "--json"]).run().json();
    assert_eq!(found["imports"], json!(["wasi:cli/environment@0.2.0"]), "{found}");
}

#[test]
fn what_a_composed_component_exports_is_a_tool_or_is_left_out_by_name() {
    let manifest = manifest_of(&["exports_of_parts"]);
    let mut host = TestHost::with_manifest(&manifest);
    let mut names: Vec<_> = host.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    assert_eq!(names, ["copies_go", "go_alone", "things_go"]);
    for tool in &names {
        assert_eq!(host.call(tool, json!({})).structured()["result"], 7, "{tool}");
    }
    let folder = Folder::with_manifest(&manifest);
    let said = Command::in_folder(&folder, &["check", "toolcell.toml"]).run().stderr;
    for left_out in [
        "fixture:parts/things@1.0.0.inner/deep\" (it is in an instance within an interface)",
        "fixture:again/copies@1.0.0.inner/deep\" (it is in an instance within an interface)",
        "fixture:parts/handles@1.0.0.[constructor]thing\" (it makes a resource)",
        "fixture:parts/handles@1.0.0.[method]thing.use\" (it is a method of a resource)",
        "fixture:parts/handles@1.0.0.[static]thing.any\" (it is a static function of a resource)",
    ] {
        assert!(said.contains(left_out), "no {left_out} in {said}");
    }
}

#[test]
fn a_component_that_hands_an_import_on_as_its_own_is_refused_for_that() {
    let folder = Folder::with_manifest(&manifest_of(&["reexports_import"]));
    let refused = Command::in_folder(&folder, &["check", "toolcell.toml"]).run();
    let said = refused.failed_with(1);
    for words in
        ["component \"reexports_import\"", "`draw`", "reexport of an imported function", "hint: the engine hands no"]
    {
        assert!(said.contains(words), "no {words} in {said}");
    }
}
