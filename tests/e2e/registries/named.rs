//! Components of registries by name: looked at before anything is added, and their source, digest
//! and signers wherever a component is named.

use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::Registry;

use super::{REPOSITORY, add, folder_for, json_of, keys, push, run, trust};

#[test]
fn a_component_of_a_registry_is_looked_at_and_nothing_is_added() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    keys(&folder, "own", &PKCS_ECDSA_P256_SHA256);
    folder.write("build.json", json!({"buildDefinition": {"buildType": "https://example.com/make"}}).to_string());
    let signed =
        ["--sign-key", "own.key", "--provenance", "build.json", "--annotation", "org.example.note=\u{1b}[2Jhi"];
    let digest = push(&folder, &registry, "1", "good.wasm", &signed);
    let reference = registry.reference(REPOSITORY, "1");
    let before = folder.read("toolcell.toml");
    let look = |folder: &toolcell_tests::Folder| run(folder, &["inspect", &reference, "--json"]);
    let looked = look(&folder);
    assert_eq!(looked.code(), 0, "{looked:?}");
    let found = json_of(&looked);
    assert_eq!(found["source"], format!("{reference}@{digest}"));
    assert_eq!((&found["manifest_digest"], &found["trust"]), (&json!(digest), &json!("no rule")));
    assert_eq!((&found["signed_by"], &found["requested_permissions"]), (&json!([]), &Value::Null));
    assert_eq!(found["annotations"]["org.example.note"], "\u{1b}[2Jhi");
    assert_eq!(found["layers"][0]["media_type"], "application/wasm");
    assert_eq!(found["layers"][0]["size_bytes"], found["size_bytes"]);
    let claims = found["attached"].as_array().unwrap().iter().flat_map(|one| one["claims"].as_array().unwrap());
    let mut claims: Vec<&str> = claims.filter_map(Value::as_str).collect();
    claims.sort_unstable();
    assert_eq!(claims, ["provenance", "signature"]);
    assert!(found["tools"].to_string().contains("\"echo\""), "{found}");
    let shown = run(&folder, &["inspect", &reference]);
    let text = shown.succeeded();
    for words in [&digest, "nobody vouches for it", "says it is: signature", "org.example.note = hi", "\n  echo\n"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("[components.good]\n"), "the name that `add` would give it: {text}");
    assert_eq!(folder.read("toolcell.toml"), before);
    assert!(!folder.path().join("toolcell.lock").exists());

    let trusting = folder_for(&registry, &trust(&registry, "signed_by = [{ key = \"own.pub\" }]"));
    trusting.write("own.pub", folder.read("own.pub"));
    let found = json_of(&look(&trusting));
    assert_eq!(found["trust"], "verified", "{found}");
    let signed_by = found["signed_by"].to_string();
    assert!(signed_by.contains("signature by key sha256:") && signed_by.contains("provenance by key"), "{found}");

    keys(&trusting, "own", &PKCS_ECDSA_P256_SHA256);
    let refused = look(&trusting);
    let found = json_of(&refused);
    assert_eq!((refused.code(), &found["ok"], &found["trust"]), (1, &json!(false), &json!("refused")), "{found}");
    assert!(found["problem"].as_str().unwrap().contains("has no signature that counts"), "{found}");
    assert_eq!(found["tools"], Value::Null, "it is not looked into");
}

#[test]
fn source_digest_and_signer_are_named_wherever_the_component_is() {
    let registry = Registry::start();
    let folder = folder_for(&registry, &trust(&registry, "signed_by = [{ key = \"own.pub\" }]"));
    keys(&folder, "own", &PKCS_ECDSA_P256_SHA256);
    let manifest_digest = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key"]);
    let added = json_of(&add(&folder, &registry, "1"));
    assert_eq!(added["ok"], true, "{added}");
    let source = format!("{}@{manifest_digest}", registry.reference(REPOSITORY, "1"));
    let listed = json_of(&run(&folder, &["list", "--json"]));
    let component = &listed["components"][0];
    assert_eq!((&component["source"], &component["digest"]), (&json!(source), &added["digest"]), "{listed}");
    let signer = component["signed_by"][0].as_str().unwrap().to_owned();
    assert!(signer.starts_with("signature by key sha256:"), "{listed}");
    let shown = run(&folder, &["list"]);
    assert!(shown.succeeded().contains(&format!("\ngood  {source} [component, {signer}]\n")), "{shown:?}");

    let host = TestHost::recording_with(folder, &["--metrics", "127.0.0.1:0"]);
    let digest = added["digest"].as_str().unwrap();
    let labels = [("component", "good"), ("source", source.as_str()), ("digest", digest), ("signer", signer.as_str())];
    assert_eq!(host.figures().get("toolcell_component_info", &labels), 1.0);
    let status = json_of(&run(host.folder(), &["status", "--json"]));
    let component = &status[0]["components"][0];
    assert_eq!((&component["source"], &component["signed_by"]), (&json!(source), &json!([signer])), "{status}");
    let page = run(host.folder(), &["status"]);
    assert!(page.succeeded().contains(&format!("  component good: {source}\n    {signer}\n")), "{page:?}");
    let loaded = host.recorded("the component", |record| record["event"] == "component.loaded");
    assert_eq!((&loaded["source"], &loaded["signed_by"]), (&json!(source), &json!(signer)), "{loaded}");
    assert_eq!(run(host.folder(), &["audit", "verify", "audit.jsonl"]).code(), 0);
}
