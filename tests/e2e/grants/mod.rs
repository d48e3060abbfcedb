//! Grants mean exactly what they say. For each kind, a table shows what is allowed, what is denied,
//! and the boundary. It also shows that the model is told of a denial and that the audit records it
//! for the operator. There is one module per kind; hostile guests have modules of their own.
//!
//! Holds the code that the modules share: manifests of one fixture, and the search for a denial.

mod addresses;
mod examples;
mod exfiltration;
mod files;
mod http;
mod http_limits;
mod logins;
mod names;
mod narrowing;
mod path_tricks;
mod quotas;
mod secret_programs;
mod secrets;
mod settings;
mod smuggling;
mod sockets;
mod state;
mod tls;

use serde_json::Value;
use toolcell_tests::{Answer, Command, Finished, Folder, TestHost, manifest_of};

/// A manifest that serves this fixture and `good`, with these tables. `{c}` in them stands for
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

/// The outcome that a fixture's tool reports of its operation.
pub(crate) fn came_to(answer: &Answer) -> Result<Value, String> {
    let outcome = answer.structured();
    match (outcome.get("ok"), outcome.get("error")) {
        (Some(value), None) => Ok(value.clone()),
        (None, Some(Value::String(error))) => Err(error.clone()),
        _ => panic!("no outcome: {outcome}"),
    }
}

/// A denial as the model and the audit must see it.
struct Denied<'a> {
    /// The capability, as in the audit: `http`, `filesystem`.
    capability: &'a str,
    /// The denied request, as the guest named it.
    asked: &'a str,
    /// The reason, as the model is told it.
    because: &'a str,
    /// The table of the manifest to change.
    section: &'a str,
    /// The line to add to that table.
    allow: &'a str,
}

/// Asserts that the answer mentions this denial, and that the audit and stderr name the line that
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

/// The result of `check` for the manifest of this folder.
fn check(folder: &Folder) -> Finished {
    Command::in_folder(folder, &["check"]).run()
}

/// Asserts that this manifest is refused, with each of these words in the output.
fn assert_refused(folder: &Folder, words: &[&str]) {
    let finished = check(folder);
    let said = finished.failed_with(1);
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}
