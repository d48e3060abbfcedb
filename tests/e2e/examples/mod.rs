//! The examples that need a service, with the manifests that stand in their folders, against
//! services on loopback. Only addresses and times are others than a person would have.

mod mail;
mod weather_live;

use std::fs;
use std::path::Path;

use toolcell_tests::{Answer, Folder};

/// A folder with this example's component and manifest, in which each of these texts stands in the
/// place of another.
///
/// # Panics
/// If the manifest does not have one of them.
fn folder(name: &str, changes: &[(&str, &str)]) -> Folder {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples");
    let mut manifest = fs::read_to_string(examples.join(name).join("toolcell.toml")).unwrap();
    let source = format!("../components/{name}.wasm");
    for (old, new) in [(source.as_str(), "tool.wasm")].iter().chain(changes) {
        assert!(manifest.contains(old), "the manifest of {name} has no {old:?}");
        manifest = manifest.replace(old, new);
    }
    let folder = Folder::with_manifest(&manifest);
    let built = examples.join("components").join(format!("{name}.wasm"));
    fs::copy(&built, folder.path().join("tool.wasm"))
        .unwrap_or_else(|error| panic!("{}: {error}; run `make guests-all`", built.display()));
    folder
}

/// The first text of an error.
fn error_of(answer: &Answer) -> &str {
    assert!(answer.is_error(), "an error was expected: {}", answer.everything());
    answer.result()["content"][0]["text"].as_str().unwrap()
}
