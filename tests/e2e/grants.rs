//! Grants mean what they say: for each kind a table of what is allowed, what is denied, what lies
//! on the boundary, and that a denial is told to the model and recorded for the operator. One
//! module per kind; hostile guests have modules of their own.
//!
//! Holds what the modules share: manifests of one fixture, and looking for a denial.

mod addresses;
mod examples;
mod exfiltration;
mod files;
mod http;
mod http_limits;
mod names;
mod narrowing;
mod path_tricks;
mod quotas;
mod secrets;
mod settings;
mod smuggling;
mod sockets;
mod state;
mod tls;

use serde_json::Value;
use toolcell_tests::{Answer, Command, Finished, Folder, TestHost, manifest_of};

/// A manifest that serves this fixture and `good`, with these tables: `{c}` in them stands for
/// `components.FIXTURE`.
fn manifest(fixture: &str, tables: &str) -> String {
    let limits = "\n[defaults.limits]\nfuel = 20_000_000\n";
    let more = "\n[defaults.limits]\nfuel = 2_000_000_000\n";
    let served = manifest_of(&["good", fixture]).replace(limits, more);
    format!("{served}\n{}", tables.replace("{c}", &format!("components.{fixture}")))
}

/// A folder with that manifest.
fn folder(fixture: &str, tables: &str) -> Folder {
    Folder::with_manifest(&manifest(fixture, tables))
}

/// A host that serves this fixture with these tables, and records.
fn host(fixture: &str, tables: &str) -> TestHost {
    TestHost::recording(&manifest(fixture, tables))
}

/// What a tool of a fixture says its operation came to.
fn came_to(answer: &Answer) -> Result<Value, String> {
    let outcome = answer.structured();
    match (outcome.get("ok"), outcome.get("error")) {
        (Some(value), None) => Ok(value.clone()),
        (None, Some(Value::String(error))) => Err(error.clone()),
        _ => panic!("no outcome: {outcome}"),
    }
}

/// A denial as it must be told and recorded.
struct Denied<'a> {
    /// As in the audit: `http`, `filesystem`.
    capability: &'a str,
    /// What was asked, as the guest named it.
    asked: &'a str,
    /// Why not, as the model is told.
    because: &'a str,
    /// The table of the manifest to change.
    section: &'a str,
    /// The line to put there.
    allow: &'a str,
}

/// Asserts that the answer tells of this denial, and that the audit and stderr name the line that
/// would allow it.
fn assert_denied(host: &TestHost, answer: &Answer, denied: &Denied<'_>) {
    let told = format!("denied: {} — {}", denied.asked, denied.because);
    assert!(answer.denials().contains(&told.as_str()), "{told:?} is not told in {:?}", answer.denials());
    let record =
        host.recorded(denied.asked, |record| record["event"] == "call.denied" && record["asked"] == denied.asked);
    assert_eq!(record["capability"], denied.capability, "{record}");
    assert_eq!(record["section"], denied.section, "{record}");
    assert_eq!(record["allow"], denied.allow, "{record}");
    host.will_say(denied.allow);
}

/// What `check` says of the manifest of this folder.
fn check(folder: &Folder) -> Finished {
    Command::in_folder(folder, &["check"]).run()
}

/// Asserts that this manifest is refused with each of these words.
fn assert_refused(folder: &Folder, words: &[&str]) {
    let finished = check(folder);
    let said = finished.failed_with(1);
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}
