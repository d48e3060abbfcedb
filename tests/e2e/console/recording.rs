//! The next calls of a tool, recorded by an operator: how many, until when, and who cannot.
//!
//! Promise: the console is its operators' only.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use toolcell_tests::web::Ask;
use toolcell_tests::{Command, Folder, manifest_of};

use super::Operator;
use crate::recordings::files;

const BEGIN: &str = "/recordings/begin";
const END: &str = "/recordings/end";

/// A console of these fixtures, whose manifest names a folder of recordings.
fn recording(fixtures: &[&str]) -> Operator {
    of(&format!("{}\n[recordings]\n", manifest_of(fixtures)))
}

fn of(manifest: &str) -> Operator {
    let mut operator = Operator::of(manifest);
    operator.host.initialize("2025-11-25");
    operator
}

/// Calls a tool that answers with its text.
fn echo(operator: &mut Operator, text: &str) {
    assert_eq!(operator.host.call("echo", json!({"text": text})).text(), text);
}

/// Ends the host, which writes what waits: its folder, and the calls that the audit names a
/// recording for.
fn ended(operator: Operator) -> (Folder, Vec<Option<String>>) {
    let finished = operator.host.audit().into_iter().filter(|record| record["event"] == "call.finished");
    let named = finished.map(|record| record["recording"].as_str().map(str::to_owned)).collect();
    (operator.host.ends_leaving_its_folder(), named)
}

fn arguments(folder: &Folder) -> Vec<String> {
    let head = |path: &std::path::PathBuf| -> Value {
        serde_json::from_str(std::fs::read_to_string(path).unwrap().lines().next().unwrap()).unwrap()
    };
    files(folder).iter().map(|path| head(path)["arguments"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_next_calls_of_a_tool_are_recorded_and_no_other() {
    let mut operator = recording(&["good", "liar"]);
    echo(&mut operator, "before");
    let page = operator.decides(BEGIN, "tool=echo&calls=2");
    assert!(page.contains("The next 2 calls are recorded.") && page.contains("2 of 2 calls are left."), "{page}");
    assert!(operator.page("/tools").contains("<span class=\"chip ask\">recording</span>"));
    // Another tool does not count, nor does a call that never runs.
    let _ = operator.host.call("wrong_type", json!({}));
    let _ = operator.host.call("echo", json!({"text": 5})).error_text();
    echo(&mut operator, "first");
    assert!(operator.page("/tools/echo").contains("1 of 2 calls are left."));
    echo(&mut operator, "second");
    let end = operator.decided("recording ended");
    assert_eq!((&end["subject"], &end["detail"]), (&json!("echo"), &json!("2 of 2 calls were recorded")));
    let begun = operator.decided("record");
    assert_eq!((&begun["subject"], &begun["session"]), (&json!("echo, the next 2 calls"), &end["session"]));
    echo(&mut operator, "after");
    for path in ["/recordings", "/recordings/good", "/recordings/begin"] {
        assert_eq!(operator.ask(&operator.get(path)).status(), 404, "the console gives none out");
    }
    assert!(operator.page("/tools/echo").contains("action=\"/recordings/begin\""));
    let (folder, named) = ended(operator);
    assert_eq!(arguments(&folder), [r#"{"text":"first"}"#, r#"{"text":"second"}"#]);
    let named: Vec<String> = named.into_iter().flatten().collect();
    for (file, name) in files(&folder).iter().zip(&named) {
        assert!(file.ends_with(name), "{file:?} {name}");
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(named.len(), 2);
    let replayed = Command::in_folder(&folder, &["replay", "recordings"]).run();
    assert!(replayed.succeeded().contains("2 of 2 recorded calls answer as before"), "{replayed:?}");
}

#[test]
fn a_number_out_of_bounds_an_unknown_tool_and_a_form_sent_twice_record_nothing_more() {
    let mut operator = recording(&["good"]);
    for calls in ["0", "-1", "101", "18446744073709551616", "1e2", "five", ""] {
        let page = operator.decides(BEGIN, &format!("tool=echo&calls={calls}"));
        assert!(page.contains("Between 1 and 100 calls can be recorded."), "{calls}: {page}");
    }
    let page = operator.decides(BEGIN, "tool=%00nothing&calls=1");
    assert!(page.contains("There is no such tool."), "{page}");
    echo(&mut operator, "unrecorded");
    let twice = [operator.form(BEGIN, "tool=echo&calls=1"), operator.form(BEGIN, "tool=echo&calls=1")];
    twice.iter().for_each(|form| assert_eq!(operator.ask(form).status(), 303));
    let refused = operator.page("/tools/echo");
    assert!(refused.contains("already: 1 of 1 are left."), "{refused}");
    echo(&mut operator, "one");
    echo(&mut operator, "two");
    let (folder, _) = ended(operator);
    assert_eq!(arguments(&folder), [r#"{"text":"one"}"#]);
}

#[test]
fn who_is_no_operator_and_a_console_that_only_shows_begin_nothing() {
    let operator = recording(&["good"]);
    let form = operator.form(BEGIN, "tool=echo&calls=5");
    let strange = [
        form.clone().without("cookie"),
        form.clone().saying("tool=echo&calls=5"),
        form.clone().with("origin", "http://evil.example"),
        Ask::bare("GET", &format!("{BEGIN}?tool=echo&calls=5")).with("host", &operator.address.to_string()),
    ];
    for ask in strange {
        assert_eq!(operator.ask(&ask).status(), 403, "{ask:?}");
    }
    assert_eq!(operator.ask(&operator.get(&format!("{BEGIN}?tool=echo&calls=5"))).status(), 404);
    assert!(operator.page("/tools/echo").contains("action=\"/recordings/begin\""));
    let manifest = format!("{}\n[recordings]\n", manifest_of(&["good"]));
    let shows = Operator::deciding(Folder::with_manifest(&manifest), &[]);
    let page = shows.page("/tools/echo");
    assert!(page.contains("Operators may not decide.") && !page.contains(BEGIN), "{page}");
    assert_eq!(shows.ask(&shows.form(BEGIN, "tool=echo&calls=5")).status(), 403);
}

#[test]
fn what_is_ended_early_keeps_no_call_that_still_runs() {
    let mut operator = recording(&["good"]);
    let _ = operator.decides(BEGIN, "tool=slow&calls=5");
    let _ = operator.host.call("slow", json!({"steps": 1, "step_ms": 1}));
    let running = operator.host.start_call("slow", json!({"steps": 100_000, "step_ms": 10}));
    let _ = operator.page_with("/", "action=\"/calls/stop\"");
    let page = operator.decides(END, "tool=slow");
    assert!(page.contains("Ended: 1 of 5 calls were recorded."), "{page}");
    let end = operator.decided("end recording");
    assert_eq!((&end["subject"], &end["done"]), (&json!("slow, 1 of 5 calls recorded"), &json!(true)));
    assert!(operator.decides(END, "tool=slow").contains("not being recorded any more"));
    let _ = operator.decides("/calls/stop", "call=2");
    let _ = operator.host.answer_to(&running);
    let (folder, _) = ended(operator);
    assert_eq!(files(&folder).len(), 1);
}

#[test]
fn it_goes_on_after_a_reload_and_ends_where_it_cannot() {
    let manifest = |more: &str| format!("{}\n[console]\ndecide = true\n{more}", manifest_of(&["good", "liar"]));
    let mut operator = recording(&["good", "liar"]);
    let reloads = |operator: &Operator, text: &str, generation: u64| {
        operator.host.folder().write("toolcell.toml", text);
        operator.host.hang_up();
        let _ = operator.host.recorded("the reload", |record| {
            record["event"] == "catalog.replaced" && record["generation"] == json!(generation)
        });
    };
    for tool in ["echo", "wrong_type"] {
        let _ = operator.decides(BEGIN, &format!("tool={tool}&calls=3"));
    }
    echo(&mut operator, "first");
    // A component goes.
    let one = manifest("[recordings]\n").replace("[components.liar]\nsource = \"components/liar.wasm\"\n", "");
    reloads(&operator, &one, 2);
    let end = operator.decided("recording ended");
    let why = "0 of 3 calls were recorded: the manifest was reloaded, and the tool is gone";
    assert_eq!((&end["subject"], &end["detail"]), (&json!("wrong_type"), &json!(why)));
    echo(&mut operator, "second");
    assert!(operator.page("/tools/echo").contains("1 of 3 calls are left."));
    // The folder goes.
    reloads(&operator, &one.replace("[recordings]\n", ""), 3);
    let is_end = |record: &Value| record["decision"] == "recording ended" && record["subject"] == "echo";
    let end = operator.host.recorded("the end", is_end);
    let why = "2 of 3 calls were recorded: the manifest was reloaded. The manifest names no folder for recordings.";
    assert_eq!(end["detail"], why);
    echo(&mut operator, "third");
    let page = operator.page("/tools/echo");
    assert!(page.contains("[recordings]\nfolder = &quot;recordings&quot;") && !page.contains(BEGIN), "{page}");
    let (folder, _) = ended(operator);
    assert_eq!(arguments(&folder), [r#"{"text":"first"}"#, r#"{"text":"second"}"#]);
}

#[test]
fn a_rule_of_the_manifest_goes_on_holding_and_the_page_says_what_cannot_be_recorded() {
    let ruled = |rule: &str| manifest_of(&["good"]).replace("\nsource =", &format!("\n{rule}\nsource ="));
    let mut operator = of(&ruled("record = \"errors\""));
    let _ = operator.decides(BEGIN, "tool=echo&calls=1");
    echo(&mut operator, "kept");
    echo(&mut operator, "not kept");
    let (folder, _) = ended(operator);
    assert_eq!(arguments(&folder), [r#"{"text":"kept"}"#]);
    for (rule, reason) in
        [("record = \"all\"", "All calls of this tool are recorded"), ("instance = \"per-caller\"", "share instances")]
    {
        let operator = of(&format!("{}\n[recordings]\n", ruled(rule)));
        let page = operator.page("/tools/echo");
        assert!(page.contains(reason) && !page.contains(BEGIN), "{page}");
        assert!(operator.decides(BEGIN, "tool=echo&calls=1").contains(reason));
    }
}
