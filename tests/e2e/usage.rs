//! The usage of calls: in the audit always, in their results where the manifest says so, and for
//! the person who makes a call by hand.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, TestHost, manifest_of, telling_usage};

const USAGE: &str = "toolcell/usage";

/// A result, an error of the tool, and a trap.
fn calls() -> [(&'static str, Value); 3] {
    [("echo", json!({"text": "tea"})), ("says_error", json!({})), ("trap", json!({}))]
}

/// The usage in each of those results, in this legacy revision or the modern one.
fn used_in(host: &mut TestHost, revision: Option<&str>) -> Vec<Option<Value>> {
    if let Some(revision) = revision {
        host.initialize(revision);
    }
    let results = calls().map(|(tool, arguments)| host.call(tool, arguments).result()["_meta"].get(USAGE).cloned());
    results.to_vec()
}

#[test]
fn results_say_what_calls_used_only_where_the_manifest_has_them_say_it() {
    for revision in LEGACY_REVISIONS.iter().copied().map(Some).chain([None]) {
        let manifest = manifest_of(&["good", "quitter"]);
        let mut host = TestHost::recording(&manifest);
        assert_eq!(used_in(&mut host, revision), vec![None; 3], "{revision:?}");
        let records = host.audit();
        let ended: Vec<&Value> = records.iter().filter(|record| record["event"] == "call.finished").collect();
        assert!(ended.len() == 3 && ended.iter().all(|record| record["usage"]["fuel"].as_u64() > Some(0)), "{ended:?}");
        let mut host = TestHost::with_manifest(&telling_usage(&manifest));
        for used in used_in(&mut host, revision) {
            let used = used.unwrap();
            let keys: Vec<&str> = used.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["fuel", "memory_peak_bytes", "duration_us"]);
            assert!(used["fuel"].as_u64() > Some(0) && used["memory_peak_bytes"].as_u64() > Some(0), "{used}");
        }
    }
}

#[test]
fn a_reload_has_results_say_it_from_the_next_call_on() {
    let mut host = TestHost::serving(&["good", "quitter"]);
    assert_eq!(used_in(&mut host, None), vec![None; 3]);
    let manifest = host.folder().read("toolcell.toml");
    host.folder().write("toolcell.toml", telling_usage(&manifest));
    assert_ne!(host.reload()["outcome"], "failed");
    assert!(used_in(&mut host, None).iter().all(Option::is_some));
    host.folder().write("toolcell.toml", manifest);
    assert_ne!(host.reload()["outcome"], "failed");
    assert_eq!(used_in(&mut host, None), vec![None; 3]);
}

#[test]
fn a_call_by_hand_says_it_where_it_is_asked() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let call =
        |more: &[&str]| Command::in_folder(&folder, &[&["call", "echo", r#"{"text":"tea"}"#], more].concat()).run();
    let is_told = |said: &str| said.starts_with("fuel ") && said.contains(", peak memory ") && said.ends_with(" ms\n");
    let plain = call(&[]);
    assert_eq!((plain.succeeded(), plain.stderr.as_str()), ("tea\n", ""));
    let told = call(&["--usage"]);
    assert!(told.succeeded() == "tea\n" && is_told(&told.stderr), "{told:?}");
    assert!(call(&["--json"]).json()["_meta"].get(USAGE).is_none());
    let told = call(&["--json", "--usage"]);
    assert!(told.json()["_meta"][USAGE]["fuel"].as_u64() > Some(0) && is_told(&told.stderr), "{told:?}");
    // Nothing ran.
    let refused = Command::in_folder(&folder, &["call", "echo", "{}", "--json", "--usage"]).run();
    assert!(
        refused.code() == 1 && refused.json()["_meta"].get(USAGE).is_none() && refused.stderr.is_empty(),
        "{refused:?}"
    );
}
