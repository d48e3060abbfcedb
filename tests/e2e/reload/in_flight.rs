//! Calls that run while the catalog is replaced: they end as they began, unless a permission of
//! theirs was taken away.
//!
//! Promise: a withdrawn right is gone at once.

use serde_json::{Value, json};
use toolcell_tests::{Answer, LIST_CHANGED, Saving, TestHost, fixture_bytes};

use super::{GATE, TOOL, manifest, serving, version};

/// Starts a call that waits for its gate. Returns its id once its code runs.
fn linger(host: &mut TestHost) -> Value {
    let meta = json!({"progressToken": "lingers"});
    let id = host.start("tools/call", json!({"name": "linger", "arguments": {}, "_meta": meta}));
    host.next_of("notifications/progress");
    id
}

/// Opens the gate and returns the answer of the call.
fn let_go(host: &mut TestHost, id: &Value) -> Answer {
    host.folder().save(Saving::RenamedOver, "gate/open", "open");
    host.answer_to(id)
}

fn save_manifest(host: &TestHost, lines: &str) {
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest(lines));
}

#[test]
fn a_call_ends_on_the_code_that_it_began_with_and_then_that_is_gone() {
    let mut host = serving("versioned_a", GATE);
    let running = linger(&mut host);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b", "the next call meets the new code");
    let status = host.status();
    assert_eq!((&status["generations_held"], &status["calls"]["running"]), (&json!([1]), &json!(1)), "{status:#}");
    assert_eq!(let_go(&mut host, &running).text(), "a open");
    assert_eq!(host.call("linger", json!({})).text(), "b open");
    host.status_when("the old generation gone", |status| status["generations_held"] == json!([]));
    let finished = host.recorded("the call", |record| record["event"] == "call.finished" && record["tool"] == "linger");
    assert_eq!(finished["outcome"], "ok", "{finished}");
}

#[test]
fn calls_over_several_generations_each_end_on_their_own() {
    let mut host = serving("versioned_a", GATE);
    let mut running = vec![(linger(&mut host), "a open")];
    for (generation, fixture, answer) in
        [(2, "versioned_b", "b open"), (3, "versioned_a", "a open"), (4, "versioned_b", "b open")]
    {
        host.folder().save_fixture(Saving::RenamedOver, TOOL, fixture);
        host.serves_generation(generation);
        running.push((linger(&mut host), answer));
    }
    assert_eq!(host.status()["generations_held"], json!([1, 2, 3]));
    host.folder().save(Saving::RenamedOver, "gate/open", "open");
    for (id, answer) in running {
        assert_eq!(host.answer_to(&id).text(), answer);
    }
    host.status_when("all gone", |status| status["generations_held"] == json!([]));
}

#[test]
fn a_call_keeps_the_deadline_that_it_began_with() {
    let mut host = serving("versioned_a", GATE);
    let running = linger(&mut host);
    save_manifest(&host, &format!("{GATE}[components.tool.tools.linger.limits]\ndeadline = \"50ms\"\n"));
    host.serves_generation(2);
    let later = host.call("linger", json!({}));
    assert!(later.error_text().contains("took longer than 50ms"), "{later:?}");
    assert_eq!(let_go(&mut host, &running).text(), "a open");
}

#[test]
fn a_call_is_bounded_by_its_own_deadline_whatever_comes_after() {
    let mut host = serving("versioned_a", &format!("{GATE}[components.tool.limits]\ndeadline = \"1500ms\"\n"));
    let running = linger(&mut host);
    save_manifest(&host, &format!("{GATE}[components.tool.limits]\ndeadline = \"1h\"\n"));
    host.serves_generation(2);
    assert!(host.answer_to(&running).error_text().contains("took longer than 1s500ms"));
}

#[test]
fn a_tool_that_is_removed_is_unknown_from_the_next_call_on_and_its_running_call_ends_well() {
    let mut host = serving("versioned_a", GATE);
    host.initialize("2025-11-25");
    let running = linger(&mut host);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.next_of(LIST_CHANGED);
    let unknown = host.request("tools/call", json!({"name": "linger", "arguments": {}}));
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["message"]),
        (&json!(-32602), &json!("Unknown tool: linger"))
    );
    assert_eq!(let_go(&mut host, &running).text(), "a open");
}

#[test]
fn a_right_that_is_taken_away_ends_the_calls_that_have_it() {
    let mut host = serving("versioned_a", GATE);
    let running = linger(&mut host);
    save_manifest(&host, "");
    let ended = host.answer_to(&running);
    assert_eq!(ended.error_text(), "the call was ended: what this tool may reach has been narrowed meanwhile");
    let finished = host.recorded("the call", |record| record["event"] == "call.finished" && record["tool"] == "linger");
    assert_eq!(finished["outcome"], "cancelled", "{finished}");
    host.serves_generation(2);
    assert_eq!(version(&mut host), "a");
    host.status_when("nothing held", |status| status["generations_held"] == json!([]));
}

#[test]
fn a_component_that_is_removed_takes_its_rights_and_the_calls_that_have_them_along() {
    let other = "[components.other]\nsource = \"components/other.wasm\"\nprefix = \"other_\"\n";
    let folder = super::folder("versioned_a", &format!("{GATE}{other}"));
    folder.write("components/other.wasm", fixture_bytes("versioned_b"));
    let mut host = TestHost::in_folder(folder);
    let running = linger(&mut host);
    let only_other = manifest(other).replace("[components.tool]\nsource = \"components/tool.wasm\"\n", "");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", only_other);
    let ended = host.answer_to(&running);
    let removed = "the call was ended: its component \"tool\" was removed from the manifest meanwhile";
    assert_eq!(ended.error_text(), removed);
    assert_eq!(host.call("other_version", json!({})).text(), "b");
}

#[test]
fn a_right_that_is_taken_away_leaves_running_calls_alone_where_the_manifest_says_so() {
    let server = "[server]\nnarrow_cancels = false\n";
    let mut host = serving("versioned_a", &format!("{GATE}{server}"));
    let running = linger(&mut host);
    save_manifest(&host, &format!("[components.tool.tools.linger.limits]\ndeadline = \"50ms\"\n{server}"));
    host.serves_generation(2);
    assert!(host.call("linger", json!({})).error_text().contains("(limit \"deadline\")"), "new calls lack the right");
    assert_eq!(let_go(&mut host, &running).text(), "a open", "it still sees what it could see when it began");
}

#[test]
fn more_rights_and_other_code_end_no_call() {
    let mut host = serving("versioned_a", GATE);
    let running = linger(&mut host);
    save_manifest(
        &host,
        &format!("{GATE}\"/more\" = {{ path = \"gate\" }}\n[components.tool.env]\nUNITS = \"metric\"\n"),
    );
    host.serves_generation(2);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(3);
    assert_eq!(let_go(&mut host, &running).text(), "a open");
}

#[test]
fn a_reload_is_no_way_around_the_places_of_a_tool() {
    let one_at_once =
        format!("{GATE}[components.tool.limits]\nconcurrency = 1\nqueue_wait = \"1m\"\ndeadline = \"1m\"\n");
    let mut host = serving("versioned_a", &one_at_once);
    let running = linger(&mut host);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(2);
    let waiting = host.start_call("linger", json!({}));
    let status = host.status_when("one waits", |status| status["calls"]["waiting"] == 1);
    assert_eq!(status["calls"]["running"], 1, "{status:#}");
    assert_eq!(let_go(&mut host, &running).text(), "a open");
    assert_eq!(host.answer_to(&waiting).text(), "b open");
}
