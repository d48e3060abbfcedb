//! Artifacts that are attached to a component: signatures of the index around it, and lists that
//! are too long.
//!
//! Promise: hostile registries and edited locks are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{PKCS_ED25519, SigningKey as _};
use serde_json::{Value, json};
use toolcell_tests::loopback::{Registry, Scripted, sha256};
use toolcell_tests::{Finished, Folder};

use super::{REPOSITORY, add, echo, folder_for, json_of, keys, push, run, trust};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// Entries of a list of referrers: more than anybody looks at.
const MANY: usize = 10_000;

/// A folder that trusts the key `own`.
fn trusting(registry: &Registry) -> Folder {
    let folder = folder_for(registry, &trust(registry, "signed_by = [{ key = \"own.pub\" }]"));
    keys(&folder, "own", &PKCS_ED25519);
    folder
}

/// A bundle in which a key of the folder signs a digest, as `cosign sign --key` makes it.
fn bundle(folder: &Folder, key: &str, digest: &str) -> Vec<u8> {
    const TYPE: &str = "application/vnd.in-toto+json";
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": digest.trim_start_matches("sha256:")}}],
        "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {},
    })
    .to_string();
    let signed = format!("DSSEv1 {} {TYPE} {} {statement}", TYPE.len(), statement.len());
    let pair = rcgen::KeyPair::from_pem(&folder.read(&format!("{key}.key"))).unwrap();
    let signature = pair.sign(signed.as_bytes()).unwrap();
    json!({
        "mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": ""}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(&statement), "payloadType": TYPE, "signatures": [{"sig": STANDARD.encode(signature)}],
        },
    })
    .to_string()
    .into_bytes()
}

/// Attaches a bundle to a manifest or an index. Returns the digest of the artifact.
fn attach(registry: &Registry, subject: &str, kind: &str, bundle: &[u8]) -> String {
    let artifact = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
        "config": {"mediaType": EMPTY, "digest": registry.add_blob(b"{}"), "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": registry.add_blob(bundle), "size": bundle.len()}],
        "subject": {"mediaType": kind, "digest": subject, "size": 1},
    });
    registry.add_manifest(REPOSITORY, None, &artifact)
}

/// An index with the component of this digest, under the tag `index`.
fn index_of(registry: &Registry, digest: &str) -> String {
    let size = registry.manifest_size(REPOSITORY, digest);
    let platform = json!({"os": "wasi", "architecture": "wasm"});
    let entry = json!({"mediaType": MANIFEST, "digest": digest, "size": size, "platform": platform});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    registry.add_manifest(REPOSITORY, Some("index"), &index)
}

#[test]
fn a_signature_of_the_index_alone_does_not_count() {
    let registry = Registry::start();
    let folder = trusting(&registry);
    let manifest = push(&folder, &registry, "1", "good.wasm", &[]);
    let index = index_of(&registry, &manifest);
    attach(&registry, &index, INDEX, &bundle(&folder, "own", &index));
    let refused = add(&folder, &registry, "index");
    assert_eq!(refused.code(), 1);
    let expected =
        format!("[trust.\"{}/acme/\"]: {manifest} has no signature that counts: it is about {index}", registry.host());
    assert_eq!(json_of(&refused)["problem"], expected);
    assert!(!folder.read("toolcell.toml").contains("[components"), "nothing was added");
    // The manifest that runs, signed with the same key in the same form.
    attach(&registry, &manifest, MANIFEST, &bundle(&folder, "own", &manifest));
    let added = json_of(&add(&folder, &registry, "index"));
    assert_eq!(added["ok"], true, "{added}");
    assert!(folder.read("toolcell.toml").contains(&format!(":index@{index}")));
    assert_eq!(echo(&folder).succeeded(), "hi\n");
}

/// Makes the list of referrers of a digest begin with these, and go on with many that do not exist.
fn list_many(registry: &Registry, subject: &str, first: &[String]) {
    let of = |digest: &str| json!({"mediaType": MANIFEST, "digest": digest, "size": 1});
    let others = (first.len()..MANY).map(|n| of(&sha256(&n.to_le_bytes())));
    let listed: Vec<Value> = first.iter().map(|digest| of(digest)).chain(others).collect();
    let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).to_string().into_bytes();
    let path = format!("/v2/{REPOSITORY}/referrers/{subject}");
    registry.answer_instead(move |seen| {
        let answer = || Scripted::Bytes(200, vec![("Content-Type", INDEX.to_owned())], list.clone());
        (seen.target() == path).then(answer)
    });
}

/// The first line about something that was left out.
fn first_left_out(registry: &Registry) -> String {
    let digest = sha256(&1_usize.to_le_bytes());
    format!("left out of what is attached: {digest}: {} does not have {REPOSITORY}@{digest}", registry.host())
}

#[test]
fn of_ten_thousand_referrers_those_that_are_left_out_are_said_wherever_they_are_asked_for() {
    let registry = Registry::start();
    let folder = trusting(&registry);
    let manifest = push(&folder, &registry, "1", "good.wasm", &[]);
    let signature = attach(&registry, &manifest, MANIFEST, &bundle(&folder, "own", &manifest));
    list_many(&registry, &manifest, &[signature]);
    let counted = |json: &Value| {
        let left_out = &json["left_out"];
        (left_out["skipped"].as_array().map(Vec::len), left_out["not_looked_at"].as_u64())
    };
    let expected = (Some(63), Some(10_000 - 64));
    let first = first_left_out(&registry);
    let more = "left out as well: 60";
    let unseen = "listed as attached and not looked at, at the least: 9936";
    let said = |finished: &Finished| {
        let shown = finished.succeeded();
        for words in [first.as_str(), more, unseen] {
            assert!(shown.contains(words), "{words}: {finished:?}");
        }
    };
    let reference = registry.reference(REPOSITORY, "1");
    said(&run(&folder, &["inspect", &reference]));
    assert_eq!(counted(&json_of(&run(&folder, &["inspect", &reference, "--json"]))), expected);
    let before = registry.asked().len();
    let added = json_of(&add(&folder, &registry, "1"));
    assert_eq!((&added["ok"], counted(&added)), (&json!(true), expected), "{added}");
    assert!(registry.asked().len() - before < 100, "it costs as much as 64");
    said(&run(&folder, &["add", &reference, "--name", "more", "--prefix", "x_", "--yes"]));
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    // `pull` asks for what the store lacks.
    let pull = |arguments: &[&str]| {
        std::fs::remove_dir_all(folder.path().join("store")).unwrap();
        run(&folder, arguments)
    };
    said(&pull(&["pull"]));
    assert_eq!(counted(&json_of(&pull(&["pull", "--json"]))["components"][0]), expected);
    // The same under another tag is something that `update` shows.
    registry.move_tag(REPOSITORY, "2", &manifest);
    let shown = run(&folder, &["update", "good", "--tag", "2"]);
    assert_eq!(shown.code(), 2);
    assert!([first.as_str(), more, unseen].iter().all(|words| shown.stdout.contains(words)), "{shown:?}");
    let updated = json_of(&run(&folder, &["update", "good", "--tag", "2", "--yes", "--json"]));
    assert_eq!(counted(&updated["updated"][0]), expected, "{updated}");
}

#[test]
fn a_signature_behind_ten_thousand_referrers_is_missing_and_the_refusal_says_why_that_may_be() {
    let registry = Registry::start();
    let folder = trusting(&registry);
    let manifest = push(&folder, &registry, "1", "good.wasm", &[]);
    list_many(&registry, &manifest, &[]);
    let others: Vec<String> = (0..3_usize).map(|n| sha256(&n.to_le_bytes())).collect();
    let host = registry.host();
    let mut expected =
        format!("[trust.\"{host}/acme/\"]: {manifest} has no signature that counts: nothing was found next to it");
    for digest in &others {
        expected
            .push_str(&format!("; left out of what is attached: {digest}: {host} does not have {REPOSITORY}@{digest}"));
    }
    expected.push_str("; left out as well: 61; listed as attached and not looked at, at the least: 9936");
    let refused = add(&folder, &registry, "1");
    assert_eq!((refused.code(), &json_of(&refused)["problem"]), (1, &json!(expected)), "{refused:?}");
    let refused = run(&folder, &["inspect", &registry.reference(REPOSITORY, "1"), "--json"]);
    assert_eq!((refused.code(), &json_of(&refused)["problem"]), (1, &json!(expected)), "{refused:?}");
    assert!(!folder.read("toolcell.toml").contains("[components"), "nothing was added");
}

#[test]
fn a_component_that_a_rule_refuses_is_not_downloaded() {
    let registry = Registry::start();
    let folder = trusting(&registry);
    push(&folder, &registry, "1", "good.wasm", &[]);
    let blob = format!("/blobs/{}", sha256(&toolcell_tests::fixture_bytes("good")));
    let asked = |before: usize| registry.asked()[before..].iter().filter(|asked| asked.contains(&blob)).count();
    let before = registry.asked().len();
    let refused = json_of(&add(&folder, &registry, "1"));
    assert!(refused["problem"].as_str().unwrap().contains("has no signature that counts"), "{refused}");
    assert!(registry.asked().len() > before && asked(before) == 0, "{:?}", &registry.asked()[before..]);
    let listed = json_of(&run(&folder, &["store", "ls", "--json"]));
    assert_eq!(listed["components"], json!([]), "none of it is in the store");
    push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key"]);
    let before = registry.asked().len();
    let _ = add(&folder, &registry, "1").succeeded();
    assert_eq!(asked(before), 1, "once it is signed, it is");
}
