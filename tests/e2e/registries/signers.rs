//! Components that another key signs than the one that the lock pins, while they are served.
//!
//! Promise: no other signer takes a pinned one's place.
use rcgen::PKCS_ED25519;
use serde_json::json;
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Folder, Saving, TestHost};

use super::{add, folder_for, keys, push, run, trust};

/// A folder whose component `good` is pinned as ann signed it, and the text of a manifest in which
/// the same bytes are as bob signed them. The store has both. `more` is in both manifests.
pub(crate) fn signed_by_another(registry: &Registry, more: &str) -> (Folder, String) {
    let rule = trust(registry, "signed_by = [{ key = \"ann.pub\" }, { key = \"bob.pub\" }]");
    let folder = folder_for(registry, &format!("{rule}{more}"));
    keys(&folder, "ann", &PKCS_ED25519);
    keys(&folder, "bob", &PKCS_ED25519);
    let ann = push(&folder, registry, "1", "good.wasm", &["--sign-key", "ann.key"]);
    let _ = add(&folder, registry, "1").succeeded();
    let bob = push(&folder, registry, "1", "good.wasm", &["--sign-key", "bob.key", "--annotation", "n=2"]);
    let pinned = folder.read("toolcell.toml");
    let other = pinned.replace(&ann, &bob);
    assert_ne!(pinned, other);
    folder.write("toolcell.toml", &other);
    let _ = run(&folder, &["pull"]).succeeded();
    folder.write("toolcell.toml", &pinned);
    (folder, other)
}

#[test]
fn the_same_bytes_of_another_signer_are_quarantined_until_the_signer_is_approved_as_well() {
    let registry = Registry::start();
    let (folder, other) = signed_by_another(&registry, "");
    let pinned = folder.read("toolcell.lock");
    let mut host = TestHost::recording_with(folder, &["--locked"]);
    host.initialize("2025-11-25");
    assert_eq!(host.call("echo", json!({"text": "hi"})).text(), "hi");
    let serving = host.status()["components"][0].clone();
    host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    let status = host.status_when("quarantined", |status| status["quarantined"][0]["component"] == "good");
    let held = &status["quarantined"][0];
    assert_eq!((&held["other_signers"], &held["digest"]), (&json!(true), &serving["digest"]), "the same bytes");
    assert_eq!((&status["generation"], &status["components"][0]), (&json!(1), &serving), "ann's serves on");
    let recorded = host.recorded("a quarantine", |record| record["event"] == "component.quarantined");
    assert_eq!((&recorded["name"], &recorded["digest"]), (&json!("good"), &serving["digest"]));
    for said in [held["differences"].to_string(), recorded["differences"].to_string()] {
        for words in
            ["source: was oci://", "has no longer a signature by key sha256:", "has now a signature by key sha256:"]
        {
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    let refused = run(host.folder(), &["approve", "good"]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    let problem = "good is not signed as the lock pins it; --allow-signer-change approves that as well";
    assert!(format!("{}{}", refused.stdout, refused.stderr).contains(problem), "{refused:?}");
    assert_eq!(host.folder().read("toolcell.lock"), pinned);

    // The suggested command is one that works.
    let digits = &held["digest"].as_str().unwrap()["sha256:".len()..][..32];
    let arguments = ["approve", "good", "--digest", digits, "--allow-signer-change"];
    let suggested = format!("`toolcell {}`", arguments.join(" "));
    host.will_say(&format!("until {suggested}"));
    let shown = run(host.folder(), &["status"]);
    assert!(shown.stdout.contains(&format!("quarantined: good ({suggested} serves it)")), "{shown:?}");
    let _ = run(host.folder(), &arguments).succeeded();
    let status = host.status();
    assert_eq!((&status["quarantined"], &status["generation"]), (&json!([]), &json!(2)), "{status:#}");
    assert_ne!(status["components"][0]["signed_by"], serving["signed_by"]);
    assert_eq!(host.call("echo", json!({"text": "hi"})).text(), "hi");
}

#[test]
fn other_bytes_of_another_signer_are_quarantined_unread_and_need_both_approvals() {
    let registry = Registry::start();
    let (folder, other) = signed_by_another(&registry, "");
    let bob = registry.tag(super::REPOSITORY, "1");
    let loops = push(&folder, &registry, "2", "other.wasm", &["--sign-key", "bob.key"]);
    let other = other.replace(&bob, &loops);
    let pinned = folder.read("toolcell.toml");
    folder.write("toolcell.toml", &other);
    let _ = run(&folder, &["pull"]).succeeded();
    folder.write("toolcell.toml", &pinned);
    let mut host = TestHost::recording_with(folder, &["--locked"]);
    host.initialize("2025-11-25");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    let status = host.status_when("quarantined", |status| status["quarantined"][0]["component"] == "good");
    let held = &status["quarantined"][0];
    assert_eq!(held["other_signers"], true);
    let said = held["differences"].to_string();
    for words in
        ["other bytes: ", "has no longer a signature by key", "has now a signature by key", "none of it was read"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let refused = run(host.folder(), &["approve", "good", "--digest", held["digest"].as_str().unwrap()]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    let _ = run(host.folder(), &["approve", "good", "--allow-signer-change"]).succeeded();
    assert_eq!(host.status()["quarantined"], json!([]));
    assert!(host.list().iter().any(|tool| tool["name"] == "sleep_hour"));
}

#[test]
fn another_signer_is_held_back_without_locked_as_well() {
    let registry = Registry::start();
    let (folder, other) = signed_by_another(&registry, "");
    let manifest = folder.read("toolcell.toml");
    let lock = folder.read("toolcell.lock");

    // Nothing is served at a start, and commands that look say why.
    folder.write("toolcell.toml", &other);
    for arguments in [&["serve", "--control", "off"][..], &["call", "echo", r#"{"text":"hi"}"#]] {
        let refused = run(&folder, arguments);
        assert_eq!((refused.code(), refused.stdout.as_str()), (1, ""), "{refused:?}");
        for words in ["has no longer a signature by key", "other signers need --allow-signer-change"] {
            assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        }
    }
    let listed = run(&folder, &["list"]);
    assert!(listed.succeeded().contains("; not as the lock pins it, and not served]"), "{listed:?}");
    let json = super::json_of(&run(&folder, &["list", "--json"]));
    assert_eq!(json["components"][0]["other_signers"], true, "{json}");

    // While it is served, the pinned one serves on. Definitions and grants may change as before.
    folder.write("toolcell.toml", &manifest);
    let mut host = TestHost::recording_with(folder, &[]);
    host.initialize("2025-11-25");
    let serving = host.status()["components"][0].clone();
    host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    let status = host.status_when("quarantined", |status| status["quarantined"][0]["component"] == "good");
    assert_eq!((&status["locked"], &status["quarantined"][0]["other_signers"]), (&json!(false), &json!(true)));
    assert_eq!((&status["generation"], &status["components"][0]), (&json!(1), &serving), "ann's serves on");
    assert_eq!(host.call("echo", json!({"text": "hi"})).text(), "hi");
    let _ = host.recorded("a quarantine", |record| record["event"] == "component.quarantined");
    let refused = run(host.folder(), &["approve", "good"]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    assert_eq!(host.folder().read("toolcell.lock"), lock);
    let _ = run(host.folder(), &["approve", "good", "--allow-signer-change"]).succeeded();
    let status = host.status();
    assert_eq!((&status["quarantined"], &status["generation"]), (&json!([]), &json!(2)), "{status:#}");
    assert_ne!(status["components"][0]["signed_by"], serving["signed_by"]);
    assert_eq!(host.call("echo", json!({"text": "hi"})).text(), "hi");
}
