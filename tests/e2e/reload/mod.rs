//! Hot reload: a saved file is served, clients are notified of a changed list and of nothing else,
//! and a broken file has no effect.
//!
//! Holds the code that the modules share: a folder with one component, `tool`, that is saved again
//! in other versions.

mod announced;
mod broken;
mod changed;
mod control;
mod in_flight;
mod locked;
mod saved;
mod stuck;

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost, fixture_bytes};

/// The file that is saved again.
const TOOL: &str = "components/tool.wasm";

/// Lines that give `linger` access to its gate.
const GATE: &str = "[components.tool.filesystem]\n\"/gate\" = { path = \"gate\" }\n";

/// A manifest that serves [`TOOL`] as the component `tool`. Further lines belong to its table.
fn manifest(lines: &str) -> String {
    format!("version = 1\n\n[components.tool]\nsource = \"{TOOL}\"\n{lines}")
}

/// A folder with that manifest, where the file is this fixture. The folder `gate` is empty.
fn folder(fixture: &str, lines: &str) -> Folder {
    let folder = Folder::with_manifest(&manifest(lines));
    folder.write(TOOL, fixture_bytes(fixture));
    folder.make("gate");
    folder
}

/// A host that serves it, and records.
fn serving(fixture: &str, lines: &str) -> TestHost {
    TestHost::recording_in(folder(fixture, lines), &[])
}

/// The version that answers.
fn version(host: &mut TestHost) -> String {
    host.call("version", json!({})).text().to_owned()
}

/// The names of the listed tools, in the order of the list.
fn names(host: &mut TestHost) -> Vec<String> {
    host.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Opens a subscription to changes of the list and returns its id.
fn subscribe(host: &mut TestHost) -> Value {
    let id = host.start("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    host.next_of("notifications/subscriptions/acknowledged");
    id
}
