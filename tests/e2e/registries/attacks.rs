//! Attacks on what comes from registries, a row each with the exact answer: on the manifest, the
//! lock and the store after `add`, and by the registry itself.
//!
//! Promise: hostile registries and edited locks are refused.

use rcgen::PKCS_ED25519;
use serde_json::{Value, json};
use toolcell_tests::loopback::{Registry, Scripted, sha256};
use toolcell_tests::{Finished, Folder, fixture_bytes};

use super::{REPOSITORY, add, echo, folder_for, json_of, keys, push, run, trust};

const RULE: &str = "signed_by = [{ key = \"own.pub\" }]\nrequire = [\"signature\", \"sbom\"]";

const SERVE: [&str; 4] = ["serve", "--locked", "--control", "off"];

/// A signed component with a list of its parts, added and pinned, in a folder that trusts the key
/// `own`.
struct Pinned {
    registry: Registry,
    folder: Folder,
    /// Digest of its manifest.
    manifest: String,
    /// The lines of the lock about its signatures.
    signature: String,
    sbom: String,
}

impl Pinned {
    fn new() -> Self {
        let registry = Registry::start();
        let folder = folder_for(&registry, &trust(&registry, RULE));
        keys(&folder, "own", &PKCS_ED25519);
        keys(&folder, "other", &PKCS_ED25519);
        folder.write("parts.json", json!({"spdxVersion": "SPDX-2.3", "name": "good"}).to_string());
        let manifest = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key", "--sbom", "parts.json"]);
        let added = json_of(&add(&folder, &registry, "1"));
        assert_eq!(added["ok"], true, "{added}");
        let lines: Vec<String> = added["signed_by"].as_array().unwrap().iter().map(said).collect();
        let line = |what: &str| lines.iter().find(|line| line.starts_with(what)).unwrap().clone();
        let signature = line("signature by key");
        let sbom = line("sbom by key");
        Self { registry, folder, manifest, signature, sbom }
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let before = self.folder.read(file);
        assert_eq!(before.matches(from).count(), 1, "{from}: {before}");
        self.folder.write(file, before.replace(from, to));
    }

    /// Removes entries of the store's index about artifacts that are attached and whose layer holds
    /// a statement of this kind.
    fn strip(&self, kind: &str) {
        let mut index: Value = serde_json::from_str(&self.folder.read("store/index.json")).unwrap();
        let entries = index["manifests"].as_array_mut().unwrap();
        let before = entries.len();
        entries.retain(|entry| !self.blob(entry["digest"].as_str().unwrap()).contains(kind));
        assert!(entries.len() < before, "{kind}: {entries:?}");
        self.folder.write("store/index.json", index.to_string());
    }

    fn blob(&self, digest: &str) -> String {
        self.folder.read(&format!("store/blobs/sha256/{}", digest.trim_start_matches("sha256:")))
    }

    /// Starts a server that serves only what is pinned. Nothing may be served.
    fn refused_to_start(&self) -> String {
        let refused = run(&self.folder, &SERVE);
        assert_eq!((refused.code(), refused.stdout.as_str()), (1, ""), "{refused:?}");
        refused.stderr
    }

    /// The refusal of what is not as the lock pins it.
    fn drift(&self, lines: &[&str]) -> String {
        let is_signer = |line: &&str| line.contains(" by key ") || line.starts_with("trusted root: ");
        let signers = if lines.iter().any(is_signer) { "; other signers need --allow-signer-change" } else { "" };
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        format!(
            "error: what would be served is not what toolcell.lock pins\ngood\n{lines}\nhint: `toolcell approve good` pins it as it is now, `toolcell lock` all{signers}\n"
        )
    }

    /// The refusal of a component whose rule is not fulfilled.
    fn untrusted(&self, problem: &str) -> String {
        let host = self.registry.host();
        let source = self.source();
        let column = "source = \"".len() + 1;
        let manifest = self.folder.read("toolcell.toml");
        let line = manifest.lines().position(|line| line.starts_with("source = ")).unwrap() + 1;
        let space = " ".repeat(line.to_string().len());
        let under = "^".repeat(source.len() + 2);
        format!(
            "error[components::source]: component \"good\": [trust.\"{host}/acme/\"]: {problem}\n{space}--> toolcell.toml:{line}:{}\n{space} |\n{line} | source = \"{source}\"\n{space} |          {under}\n{space} |\n{space} = hint: `toolcell pull` asks for signatures that came since; [trust] says who must have signed\n\ntoolcell.toml: 1 error\n",
            column - 1
        )
    }

    fn source(&self) -> String {
        format!("{}@{}", self.registry.reference(REPOSITORY, "1"), self.manifest)
    }
}

fn said(line: &Value) -> String {
    line.as_str().unwrap().trim_start_matches("has a ").to_owned()
}

#[test]
fn a_rule_that_requires_less_does_not_free_a_component_from_what_the_lock_pins() {
    let pinned = Pinned::new();
    let lower = || pinned.edit("toolcell.toml", "require = [\"signature\", \"sbom\"]", "require = [\"signature\"]");
    pinned.strip("spdx.dev");
    assert_eq!(
        pinned.refused_to_start(),
        pinned.untrusted(&format!(
            "{} has no SBOM that counts: only a {} was found",
            pinned.manifest,
            pinned.signature.trim_end_matches(", in no log")
        ))
    );
    // The rule asks for it no longer, and the lock still does.
    lower();
    assert_eq!(pinned.refused_to_start(), pinned.drift(&[&format!("has no longer a {}", pinned.sbom)]));
    for arguments in [&["lock"][..], &["approve", "good"]] {
        let refused = run(&pinned.folder, arguments);
        assert_eq!(refused.code(), 1, "{refused:?}");
        assert!(refused.stderr.contains("--allow-signer-change"), "{refused:?}");
    }
    // Alone it changes nothing that is served: all that was signed is still there.
    let pinned = Pinned::new();
    pinned.edit("toolcell.toml", "require = [\"signature\", \"sbom\"]", "require = [\"signature\"]");
    assert_eq!(run(&pinned.folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");
    assert_eq!(echo(&pinned.folder).succeeded(), "hi\n");
}

#[test]
fn a_table_of_trust_that_is_gone_is_drift() {
    let pinned = Pinned::new();
    pinned.edit("toolcell.toml", &trust(&pinned.registry, RULE), "");
    let lost = [&pinned.sbom, &pinned.signature].map(|line| format!("has no longer a {line}"));
    assert_eq!(pinned.refused_to_start(), pinned.drift(&[&lost[0], &lost[1]]));
}

#[test]
fn a_lock_that_was_edited_is_no_lock_of_what_is_there() {
    let pinned = Pinned::new();
    let lock = pinned.folder.read("toolcell.lock");
    let key = pinned.signature.split("sha256:").nth(1).unwrap()[..64].to_owned();
    let zeros = "0".repeat(64);
    let layer = added_digest(&lock);
    let other = pinned.signature.replace(&key, &zeros);
    let source = pinned.source();
    let elsewhere = source.replace(REPOSITORY, "mallory/good");
    let size = fixture_bytes("good").len();
    let rows = [
        (
            format!("    \"{}\",\n", pinned.signature),
            format!("    \"{other}\",\n"),
            vec![format!("has no longer a {other}"), format!("has now a {}", pinned.signature)],
        ),
        (
            "\n[components.good.tools.".to_owned(),
            format!("trusted_root = \"sha256:{zeros}\"\n\n[components.good.tools."),
            vec![format!("trusted root: was sha256:{}…, is none", &zeros[..12])],
        ),
        (
            format!("source = \"{source}\""),
            format!("source = \"{elsewhere}\""),
            vec![format!("source: was {elsewhere}, is {source}")],
        ),
        (
            format!("digest = \"{layer}\"\n"),
            format!("digest = \"sha256:{zeros}\"\n"),
            vec![
                format!(
                    "other bytes: sha256:{}… was pinned, this is {}… ({size} and {size} bytes)",
                    &zeros[..12],
                    &layer[..19]
                ),
                "none of it was read; `toolcell diff` reads it, and shows its tools and what they may do".to_owned(),
            ],
        ),
    ];
    for (from, to, lines) in rows {
        assert!(lock.contains(&from), "{from}: {lock}");
        pinned.folder.write("toolcell.lock", lock.replacen(&from, &to, 1));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(pinned.refused_to_start(), pinned.drift(&lines), "{to}");
    }
    pinned.folder.write("toolcell.lock", &lock);
    assert_eq!(run(&pinned.folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");
}

/// The digest of the component's bytes that a lock pins.
fn added_digest(lock: &str) -> String {
    let line = lock.lines().find_map(|line| line.strip_prefix("digest = \"")).unwrap();
    line.trim_end_matches('"').to_owned()
}

#[test]
fn a_store_without_its_signatures_serves_nothing() {
    let pinned = Pinned::new();
    pinned.strip("dev.sigstore.bundle");
    assert_eq!(
        pinned.refused_to_start(),
        pinned.untrusted(&format!("{} has no signature that counts: nothing was found next to it", pinned.manifest))
    );
    let verified = run(&pinned.folder, &["store", "verify"]);
    assert_eq!(verified.code(), 0, "what is left is whole: {verified:?}");
    // A pull brings them back.
    let _ = run(&pinned.folder, &["pull"]).succeeded();
    assert_eq!(echo(&pinned.folder).succeeded(), "hi\n");
}

#[test]
fn a_lost_signature_is_noticed_though_a_provenance_of_the_same_signer_is_left() {
    let pinned = Pinned::new();
    let own = &pinned.folder;
    own.write("build.json", json!({"buildDefinition": {"buildType": "https://example.com/make"}}).to_string());
    let further = ["--sign-key", "own.key", "--provenance", "build.json", "--annotation", "n=2"];
    let manifest = push(own, &pinned.registry, "2", "good.wasm", &further);
    let text = own
        .read("toolcell.toml")
        .replace(&pinned.source(), &format!("{}@{manifest}", pinned.registry.reference(REPOSITORY, "2")));
    own.write("toolcell.toml", text.replace("\"signature\", \"sbom\"", "\"signature\""));
    let _ = run(own, &["pull"]).succeeded();
    let _ = run(own, &["lock", "--allow-signer-change"]).succeeded();
    let lock = own.read("toolcell.lock");
    assert!(lock.contains("signature by key") && lock.contains("provenance by key"), "{lock}");
    pinned.strip("https://sigstore.dev/cosign/sign/v1");
    let differs = run(own, &["diff"]);
    assert!(differs.stdout.contains("signature by key") && differs.code() == 1, "{differs:?}");
    assert_eq!(echo(own).code(), 1, "it is held back");
}

#[test]
fn a_forged_signature_in_the_store_is_noticed() {
    let pinned = Pinned::new();
    // The bytes of a bundle, changed under its name.
    let index: Value = serde_json::from_str(&pinned.folder.read("store/index.json")).unwrap();
    let digests = index["manifests"].as_array().unwrap().iter().map(|entry| entry["digest"].as_str().unwrap());
    let is_signature = |manifest: &Value| manifest.to_string().contains("https://sigstore.dev/cosign/sign/v1");
    let manifests = digests.map(|digest| serde_json::from_str::<Value>(&pinned.blob(digest)).unwrap());
    let signature = manifests.into_iter().find(is_signature).unwrap();
    let digest = signature["layers"][0]["digest"].as_str().unwrap().to_owned();
    let path = format!("store/blobs/sha256/{}", &digest[7..]);
    let bundle = pinned.folder.read(&path);
    let forged = bundle.replacen("\"hint\":\"", "\"hint\":\"A", 1).replacen("==\"", "=\"", 1);
    assert_ne!(forged, bundle);
    std::fs::remove_file(pinned.folder.path().join(&path)).unwrap();
    pinned.folder.write(&path, &forged);
    let refused = pinned.refused_to_start();
    assert!(refused.contains(&format!("{} was changed: ", &digest[7..])), "{refused}");
    assert!(
        refused.contains("somebody or a failing disk changed the store: remove the file, and pull again"),
        "{refused}"
    );

    // A store in which everything fits, and somebody else signed.
    let pinned = Pinned::new();
    let rule = RULE.replace("own.pub", "other.pub");
    let other = folder_for(&pinned.registry, &trust(&pinned.registry, &rule));
    for file in ["other.key", "other.pub", "parts.json"] {
        other.write(file, pinned.folder.read(file));
    }
    pinned.registry.forget_attached(REPOSITORY);
    let signed = ["--sign-key", "other.key", "--sbom", "parts.json"];
    assert_eq!(push(&other, &pinned.registry, "1", "good.wasm", &signed), pinned.manifest);
    assert_eq!(json_of(&add(&other, &pinned.registry, "1"))["ok"], true);
    let store = |folder: &Folder| folder.path().join("store");
    std::fs::remove_dir_all(store(&pinned.folder)).unwrap();
    std::fs::rename(store(&other), store(&pinned.folder)).unwrap();
    assert_eq!(
        pinned.refused_to_start(),
        pinned.untrusted(&format!(
            "{} has no signature that counts: it is not signed by any of the keys in signed_by (1)",
            pinned.manifest
        ))
    );
}

/// A component that a registry offers.
#[derive(Clone)]
struct Offered {
    config: Value,
    layer: Vec<u8>,
    /// Size that the manifest says.
    size: usize,
}

impl Offered {
    fn new(registry: &Registry, layer: Vec<u8>) -> Self {
        let config =
            json!({"mediaType": "application/vnd.wasm.config.v0+json", "digest": registry.add_blob(b"{}"), "size": 2});
        let size = layer.len();
        Self { config, layer, size }
    }

    fn manifest(&self, registry: &Registry) -> Value {
        let layer =
            json!({"mediaType": "application/wasm", "digest": registry.add_blob(&self.layer), "size": self.size});
        json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": self.config,
            "layers": [layer],
        })
    }
}

/// The stderr of adding tag 1, which fails with 1, and leaves the manifest as it was.
fn refused(folder: &Folder, registry: &Registry) -> String {
    let before = folder.read("toolcell.toml");
    let refused = run(folder, &["add", &registry.reference(REPOSITORY, "1"), "--name", "good", "--yes"]);
    assert_eq!((refused.code(), refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert_eq!(folder.read("toolcell.toml"), before);
    let listed = json_of(&run(folder, &["store", "ls", "--json"]));
    assert_eq!(listed["components"], json!([]), "none of it is in the store");
    refused.stderr
}

fn error(problem: &str, hint: &str) -> String {
    format!("error: {problem}\n\nhint: {hint}\n")
}

#[test]
fn what_a_hostile_registry_offers_is_refused_in_its_own_words() {
    const CHANGED: &str = "the registry or somebody on the way changes what it sends: do not use it";
    let good = fixture_bytes("good");
    let digest = sha256(&good);
    let gzip = [b"\x1f\x8b\x08\0", good.as_slice()].concat();
    let registry = || {
        let registry = Registry::start();
        let folder = folder_for(&registry, "");
        (registry, folder)
    };
    let blob = |answer: Scripted| {
        let path = format!("/blobs/{digest}");
        move |seen: &toolcell_tests::loopback::Seen| seen.target().ends_with(&path).then(|| answer.clone())
    };

    // A compressed layer, said to be none.
    let (at, folder) = registry();
    at.add_manifest(REPOSITORY, Some("1"), &Offered::new(&at, gzip.clone()).manifest(&at));
    assert_eq!(
        refused(&folder, &at),
        error(
            &format!("the layer {} is compressed with gzip", sha256(&gzip)),
            "push the component uncompressed, as `wkg oci push` does"
        )
    );

    // An image of machines.
    let (at, folder) = registry();
    let inner = at.add_manifest(REPOSITORY, None, &Offered::new(&at, good.clone()).manifest(&at));
    let entry = |os: &str, machine: &str| {
        json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": inner, "size": 1,
            "platform": {"os": os, "architecture": machine}})
    };
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry("linux", "amd64"), entry("windows", "arm64")]});
    let index = at.add_manifest(REPOSITORY, Some("1"), &index);
    assert_eq!(
        refused(&folder, &at),
        error(
            &format!("{index} is an image for linux/amd64, windows/arm64, and holds no component"),
            "name an artifact with a layer \"application/wasm\", as `wkg oci push` makes it"
        )
    );

    // A layer that is larger than said, by its answer and by the bytes that come.
    for answer in [Scripted::Bytes(200, Vec::new(), [&good[..], b"more"].concat()), Scripted::As("/endless")] {
        let (at, folder) = registry();
        at.add_manifest(REPOSITORY, Some("1"), &Offered::new(&at, good.clone()).manifest(&at));
        at.answer_instead(blob(answer));
        let problem = format!("{} sends more than the {} bytes that {digest} has", at.host(), good.len());
        assert_eq!(refused(&folder, &at), error(&problem, CHANGED));
        let kept = std::fs::read_dir(folder.path().join("store/partial")).unwrap();
        assert!(kept.map(|entry| entry.unwrap().metadata().unwrap().len()).all(|bytes| bytes == 0), "nothing is kept");
    }

    // A bomb: more than any component may have.
    let (at, folder) = registry();
    let offered = Offered { size: (128 << 20) + 1, ..Offered::new(&at, good.clone()) };
    at.add_manifest(REPOSITORY, Some("1"), &offered.manifest(&at));
    let asked = at.asked().len();
    assert_eq!(
        refused(&folder, &at),
        error(
            &format!("the component {digest} has 134217729 bytes, at most 134217728 are allowed"),
            "larger components are not loaded: build a smaller one"
        )
    );
    assert!(at.asked()[asked..].iter().all(|asked| !asked.contains("/blobs/")), "none of it is downloaded");

    // A redirect to where clouds keep credentials.
    for (to, problem, hint) in [
        (
            "/redirect?https://169.254.169.254/latest/meta-data/",
            "169.254.169.254 is not asked: 169.254.169.254 is an address of a cloud's metadata service",
            "no setting allows addresses of metadata",
        ),
        (
            "/redirect?http://169.254.169.254/latest/meta-data/",
            "169.254.169.254 is not asked over plain HTTP",
            "have the registry serve https, or allow plain HTTP for it",
        ),
    ] {
        let (at, folder) = registry();
        at.add_manifest(REPOSITORY, Some("1"), &Offered::new(&at, good.clone()).manifest(&at));
        at.answer_instead(blob(Scripted::As(to)));
        assert_eq!(refused(&folder, &at), error(problem, hint));
    }
}

#[test]
fn a_tag_that_is_moved_back_to_an_older_signed_digest_changes_nothing_by_itself() {
    let pinned = Pinned::new();
    let Pinned { registry, folder, manifest: older, .. } = &pinned;
    let signed = ["--sign-key", "own.key", "--sbom", "parts.json", "--annotation", "n=2"];
    let newer = push(folder, registry, "1", "good.wasm", &signed);
    let _ = run(folder, &["update", "--yes"]).succeeded();
    registry.move_tag(REPOSITORY, "1", older);
    let before = (folder.read("toolcell.toml"), folder.read("toolcell.lock"));
    let _ = run(folder, &["pull"]).succeeded();
    assert_eq!(echo(folder).succeeded(), "hi\n");
    assert_eq!(run(folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");
    let said = |finished: &Finished, code: i32| (finished.code() == code).then(|| finished.stdout.clone()).unwrap();
    let outdated = run(folder, &["outdated"]);
    assert_eq!(said(&outdated, 1), format!("good: 1 leads to {older} now; `toolcell update good` shows it\n"));
    let shown = run(folder, &["update"]);
    let tag = registry.reference(REPOSITORY, "1");
    assert!(said(&shown, 2).starts_with(&format!("good\n  was {tag}@{newer}\n  is  {tag}@{older}\n")), "{shown:?}");
    assert!(shown.stderr.contains("toolcell.toml stays as it is: nobody can be asked"), "{shown:?}");
    assert_eq!((folder.read("toolcell.toml"), folder.read("toolcell.lock")), before);
}
