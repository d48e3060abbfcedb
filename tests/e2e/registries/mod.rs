//! Components from registries: pushed, added by a tag, pinned by their digest, signed, and served
//! from the store without any network.
//!
//! Promise: a registry gives what the manifest pins.
//! Promise: a registry learns no other's password.
//! Promise: only components of named signers run.
mod attached;
mod attacks;
mod metadata;
mod named;
mod news;
mod requested_permissions;
mod settings;
mod signers;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use serde_json::{Value, json};
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Command, Finished, Folder, TestHost, fixture_bytes};

pub(crate) use signers::signed_by_another;

const REPOSITORY: &str = "acme/good";

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

fn json_of(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"))
}

/// A folder with a manifest that reaches this registry, and a fixture to push.
fn folder_for(registry: &Registry, more: &str) -> Folder {
    let host = registry.host();
    let text = format!("version = 1\n\n[server]\nstore = \"store\"\n\n[registries.\"{host}\"]\nprivate = true\n{more}");
    let folder = Folder::with_manifest(&text);
    folder.write("good.wasm", fixture_bytes("good"));
    folder.write("other.wasm", fixture_bytes("loops"));
    folder
}

fn push(folder: &Folder, registry: &Registry, tag: &str, file: &str, more: &[&str]) -> String {
    let reference = registry.reference(REPOSITORY, tag);
    let arguments = [&["push", &reference, file, "--json"], more].concat();
    let pushed = json_of(&run(folder, &arguments));
    assert_eq!(pushed["source"], format!("{reference}@{}", pushed["manifest_digest"].as_str().unwrap()));
    assert_eq!(registry.tag(REPOSITORY, tag), pushed["manifest_digest"]);
    pushed["manifest_digest"].as_str().unwrap().to_owned()
}

fn add(folder: &Folder, registry: &Registry, tag: &str) -> Finished {
    run(folder, &["add", &registry.reference(REPOSITORY, tag), "--name", "good", "--yes", "--json"])
}

fn echo(folder: &Folder) -> Finished {
    run(folder, &["call", "echo", r#"{"text":"hi"}"#])
}

/// A component with this content in a custom section of this name, behind its others.
fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = component.to_vec();
    bytes.push(0);
    let mut length = content.len() + name.len() + 1;
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend(content);
    bytes
}

/// A key pair: the files of its halves.
fn keys(folder: &Folder, name: &str, algorithm: &'static rcgen::SignatureAlgorithm) {
    let pair = KeyPair::generate_for(algorithm).unwrap();
    folder.write(&format!("{name}.key"), pair.serialize_pem());
    folder.write(&format!("{name}.pub"), pair.public_key_pem());
}

/// A rule for the repository's registry.
fn trust(registry: &Registry, rule: &str) -> String {
    format!("\n[trust.\"{}/acme/\"]\n{rule}\n", registry.host())
}

#[test]
fn what_was_pushed_is_added_by_its_tag_and_served_without_the_registry() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    let digest = push(&folder, &registry, "1.0.0", "good.wasm", &["--annotation", "org.example.note=a=b"]);
    let added = json_of(&add(&folder, &registry, "1.0.0"));
    let source = format!("{}@{digest}", registry.reference(REPOSITORY, "1.0.0"));
    assert_eq!((&added["ok"], &added["source"]), (&json!(true), &json!(source)), "{added}");
    assert!(folder.read("toolcell.toml").contains(&format!("source = \"{source}\"")));
    assert!(folder.read("toolcell.lock").contains(&source), "it is pinned");
    let asked = registry.asked().len();
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    assert_eq!(registry.asked().len(), asked, "nothing is asked of a registry to serve");
    let before = registry.asked().len();
    let pulled = json_of(&run(&folder, &["pull", "--json"]));
    assert_eq!((&pulled["ok"], &pulled["components"][0]["pulled"]), (&json!(true), &json!(false)));
    assert_eq!(registry.asked().len(), before, "what is there is not pulled again");
    let host = registry.host();
    drop(registry);
    assert_eq!(echo(&folder).succeeded(), "hi\n", "{host} is gone");
    let locked = run(&folder, &["check", "--json"]);
    assert_eq!(json_of(&locked)["ok"], true, "{locked:?}");
}

#[test]
fn a_moved_tag_changes_nothing_until_it_is_updated() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    let first = push(&folder, &registry, "1.0.0", "good.wasm", &[]);
    let _ = add(&folder, &registry, "1.0.0").succeeded();
    assert_eq!(run(&folder, &["outdated"]).code(), 0);
    let second = push(&folder, &registry, "1.0.0", "other.wasm", &[]);
    let _ = push(&folder, &registry, "1.1.0", "other.wasm", &[]);
    let _ = push(&folder, &registry, "latest", "other.wasm", &[]);
    assert_ne!(first, second);
    let _ = run(&folder, &["pull"]).succeeded();
    assert_eq!(echo(&folder).succeeded(), "hi\n", "the digest is what is served");
    let outdated = run(&folder, &["outdated", "--json"]);
    let news = json_of(&outdated);
    assert_eq!(outdated.code(), 1);
    assert_eq!((&news["outdated"], &news["components"][0]["tag_leads_to"]), (&json!(true), &json!(second)));
    assert_eq!(news["components"][0]["newest"], "1.1.0");

    folder.write("recordings/good/.keep", "");
    let record = ["call", "echo", r#"{"text":"hi"}"#, "--record", "recordings/good/1.jsonl"];
    assert_eq!(run(&folder, &record).succeeded(), "hi\n");
    let asked = run(&folder, &["update"]);
    assert_eq!(asked.code(), 2, "nobody can be asked: {asked:?}");
    let recorded = "0 of 1 recorded call answers as before; 1 could not be run";
    for shown in [first.as_str(), &second, "tool echo: gone", "tool sleep_hour: new", "nobody vouches for it", recorded]
    {
        assert!(asked.stdout.contains(shown), "{shown}: {asked:?}");
    }
    assert!(folder.read("toolcell.toml").contains(&first));
    let updated = json_of(&run(&folder, &["update", "good", "--tag", "1.1.0", "--yes", "--json"]));
    assert_eq!(updated["updated"][0]["name"], "good");
    assert_eq!(updated["updated"][0]["recorded"]["otherwise"][0]["verdict"], "not run");
    assert!(folder.read("toolcell.toml").contains(&format!(":1.1.0@{second}")));
    assert!(folder.read("toolcell.lock").contains("sleep_hour"));
    assert_eq!(run(&folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");
    let again = run(&folder, &["update"]);
    assert!(again.stderr.contains("no tag has moved"), "{again:?}");
}

#[test]
fn only_components_of_named_signers_are_added_and_served() {
    let registry = Registry::start();
    let rule = trust(&registry, "signed_by = [{ key = \"own.pub\" }]");
    let folder = folder_for(&registry, &rule);
    keys(&folder, "own", &PKCS_ECDSA_P256_SHA256);
    keys(&folder, "other", &PKCS_ED25519);
    push(&folder, &registry, "unsigned", "good.wasm", &[]);
    let refused = add(&folder, &registry, "unsigned");
    assert_eq!(refused.code(), 1);
    let problem = json_of(&refused)["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("has no signature that counts: nothing was found next to it"), "{problem}");
    assert!(!folder.read("toolcell.toml").contains("[components"), "nothing was added");

    push(&folder, &registry, "other", "good.wasm", &["--sign-key", "other.key", "--annotation", "n=other"]);
    let refused = json_of(&add(&folder, &registry, "other"));
    assert!(refused["problem"].as_str().unwrap().contains("not signed by any of the keys in signed_by"), "{refused}");

    // Signatures of another component say nothing about this one.
    push(&folder, &registry, "signed", "other.wasm", &["--sign-key", "own.key"]);
    let unsigned = registry.tag(REPOSITORY, "unsigned");
    registry.attach_to(REPOSITORY, &unsigned);
    let refused = json_of(&add(&folder, &registry, "unsigned"));
    assert!(refused["problem"].as_str().unwrap().contains("it is about sha256:"), "{refused}");

    let own = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key", "--annotation", "n=own"]);
    let added = json_of(&add(&folder, &registry, "1"));
    assert_eq!(added["ok"], true, "{added}");
    assert!(folder.read("toolcell.lock").contains("\"signature by key sha256:"), "the lock pins who signed");
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    assert!(folder.read("toolcell.toml").contains(&own));

    // The rule names another key from now on.
    folder.write("own.pub", folder.read("other.pub"));
    let refused = echo(&folder);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("has no signature that counts"), "{refused:?}");
}

#[test]
fn another_signer_than_the_pinned_one_is_approved_by_name() {
    let registry = Registry::start();
    let rule = trust(&registry, "signed_by = [{ key = \"ann.pub\" }, { key = \"bob.pub\" }]");
    let folder = folder_for(&registry, &rule);
    keys(&folder, "ann", &PKCS_ED25519);
    keys(&folder, "bob", &PKCS_ED25519);
    push(&folder, &registry, "1", "good.wasm", &["--sign-key", "ann.key"]);
    let _ = add(&folder, &registry, "1").succeeded();
    let pinned = folder.read("toolcell.lock");
    push(&folder, &registry, "1", "good.wasm", &["--sign-key", "bob.key", "--annotation", "n=2"]);
    let refused = run(&folder, &["update", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("good is not signed as the lock pins it"), "{refused:?}");
    assert!(refused.stdout.contains("has no longer a signature by key"), "{refused:?}");
    assert_eq!(folder.read("toolcell.lock"), pinned);
    let _ = run(&folder, &["update", "--yes", "--allow-signer-change"]).succeeded();
    assert_eq!(run(&folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");

    // The lock as it was, next to what is signed by another: nothing is served.
    folder.write("toolcell.lock", &pinned);
    let refused = run(&folder, &["serve", "--locked"]);
    assert_eq!((refused.code(), refused.stdout.as_str()), (1, ""), "nothing is served: {refused:?}");
    assert!(refused.stderr.contains("has no longer a signature by key"), "{refused:?}");
    for arguments in [&["lock"][..], &["approve", "good"]] {
        let refused = run(&folder, arguments);
        assert_eq!(refused.code(), 1, "{refused:?}");
        assert!(refused.stderr.contains("--allow-signer-change"), "{refused:?}");
    }
    assert_eq!(folder.read("toolcell.lock"), pinned);
    let _ = run(&folder, &["approve", "good", "--allow-signer-change"]).succeeded();
    assert_eq!(run(&folder, &["diff"]).succeeded(), "toolcell.lock: nothing differs\n");
}

#[test]
fn what_a_rule_requires_must_be_signed_as_well() {
    let registry = Registry::start();
    let rule =
        trust(&registry, "signed_by = [{ key = \"own.pub\" }]\nrequire = [\"signature\", \"provenance\", \"sbom\"]");
    let folder = folder_for(&registry, &rule);
    keys(&folder, "own", &PKCS_ECDSA_P256_SHA256);
    folder.write("parts.json", json!({"spdxVersion": "SPDX-2.3", "name": "good"}).to_string());
    folder.write("build.json", json!({"buildDefinition": {"buildType": "https://example.com/make"}}).to_string());
    let signed = ["--sign-key", "own.key"];
    push(&folder, &registry, "1", "good.wasm", &signed);
    let refused = json_of(&add(&folder, &registry, "1"));
    assert!(refused["problem"].as_str().unwrap().contains("has no provenance that counts"), "{refused}");
    push(
        &folder,
        &registry,
        "2",
        "good.wasm",
        &[&signed[..], &["--provenance", "build.json", "--annotation", "n=2"]].concat(),
    );
    let refused = json_of(&add(&folder, &registry, "2"));
    assert!(refused["problem"].as_str().unwrap().contains("has no SBOM that counts"), "{refused}");
    let all = ["--provenance", "build.json", "--sbom", "parts.json", "--annotation", "n=3"];
    push(&folder, &registry, "3", "good.wasm", &[&signed[..], &all].concat());
    let added = json_of(&add(&folder, &registry, "3"));
    assert_eq!(added["ok"], true, "{added}");
    let lock = folder.read("toolcell.lock");
    for what in ["signature by key", "provenance by key", "sbom by key"] {
        assert!(lock.contains(what), "{what}: {lock}");
    }
    let wrong = run(
        &folder,
        &["push", &registry.reference(REPOSITORY, "4"), "good.wasm", "--sign-key", "own.key", "--sbom", "build.json"],
    );
    assert!(wrong.stderr.contains("build.json is not an SBOM"), "{wrong:?}");
}

#[test]
fn a_changed_store_is_noticed_whenever_it_is_read() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    push(&folder, &registry, "1", "good.wasm", &[]);
    let added = json_of(&add(&folder, &registry, "1"));
    let digest = added["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let blob = format!("store/blobs/sha256/{digest}");
    let mut bytes = std::fs::read(folder.path().join(&blob)).unwrap();
    assert_eq!(bytes, fixture_bytes("good"));
    assert_eq!(run(&folder, &["store", "verify"]).code(), 0);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::remove_file(folder.path().join(&blob)).unwrap();
    folder.write(&blob, &bytes);
    let refused = echo(&folder);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("was changed: its digest is not its name"), "{refused:?}");
    let verified = run(&folder, &["store", "verify", "--json"]);
    assert_eq!(verified.code(), 1);
    assert!(json_of(&verified)["faults"][0]["problem"].as_str().unwrap().contains(&digest), "{verified:?}");
    // What was changed is pulled again.
    std::fs::remove_file(folder.path().join(&blob)).unwrap();
    let _ = run(&folder, &["pull"]).succeeded();
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    // Without its index, nothing is removed or pulled: the advice is what helps.
    folder.write("store/index.json", "{");
    let broken = run(&folder, &["store", "verify"]);
    let said = broken.failed_with(1);
    assert!(said.contains("hint: remove the file, and pull again") && !said.contains("store gc"), "{said}");
    std::fs::remove_file(folder.path().join("store/index.json")).unwrap();
    let _ = run(&folder, &["pull"]).succeeded();
    assert_eq!(run(&folder, &["store", "verify"]).code(), 0);
}

#[test]
fn a_machine_without_a_network_gets_one_file() {
    let registry = Registry::start();
    let rule = trust(&registry, "signed_by = [{ key = \"own.pub\" }]");
    let folder = folder_for(&registry, &rule);
    keys(&folder, "own", &PKCS_ED25519);
    push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key"]);
    let _ = add(&folder, &registry, "1").succeeded();
    let exported = json_of(&run(&folder, &["store", "export", "all.tar", "--json"]));
    assert_eq!(exported["components"].as_array().unwrap().len(), 1, "{exported}");
    assert_eq!(run(&folder, &["store", "export", "all.tar"]).code(), 1, "no file is overwritten");
    let elsewhere = folder_for(&registry, "");
    for file in ["toolcell.toml", "toolcell.lock", "own.pub"] {
        elsewhere.write(file, folder.read(file));
    }
    elsewhere.write("all.tar", std::fs::read(folder.path().join("all.tar")).unwrap());
    drop(registry);
    let missing = echo(&elsewhere);
    assert_eq!(missing.code(), 1);
    assert!(missing.stderr.contains("`toolcell pull` fetches it"), "{missing:?}");
    let imported = json_of(&run(&elsewhere, &["store", "import", "all.tar", "--json"]));
    assert_eq!((&imported["ok"], &imported["attached"]), (&json!(true), &json!(1)), "{imported}");
    assert_eq!(echo(&elsewhere).succeeded(), "hi\n", "with its signature");
    let listed = json_of(&run(&elsewhere, &["store", "ls", "--json"]));
    assert_eq!(listed["components"][0]["attached"], 1, "{listed}");
}

#[test]
fn what_no_manifest_names_is_removed_once_that_is_wanted() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    push(&folder, &registry, "1", "other.wasm", &[]);
    let _ = add(&folder, &registry, "1").succeeded();
    push(&folder, &registry, "1", "good.wasm", &[]);
    let _ = run(&folder, &["update", "--yes"]).succeeded();
    let of =
        |folder: &Folder| json_of(&run(folder, &["store", "ls", "--json"]))["components"].as_array().unwrap().len();
    assert_eq!(of(&folder), 2);
    let asked = run(&folder, &["store", "gc"]);
    assert_eq!((asked.code(), of(&folder)), (2, 2), "nobody can be asked: {asked:?}");
    let removed = json_of(&run(&folder, &["store", "gc", "--yes", "--json"]));
    assert_eq!((&removed["removed"]["components"], of(&folder)), (&json!(1), 1), "{removed}");
    assert_eq!(echo(&folder).succeeded(), "hi\n");
}

#[test]
fn a_registry_of_an_own_network_is_named_or_not_asked() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    push(&folder, &registry, "1", "good.wasm", &[]);
    let asked = registry.asked().len();
    folder.write("toolcell.toml", "version = 1\n[server]\nstore = \"store\"\n");
    let refused = json_of(&add(&folder, &registry, "1"));
    assert_eq!(refused["ok"], false);
    assert!(refused["hint"].as_str().unwrap().contains("private"), "{refused}");
    assert_eq!(registry.asked().len(), asked, "its address is refused before it is connected to");
    for (reference, words) in [
        ("oci://good:1", "oci://"),
        ("oci://127.0.0.1:1/Good:1", "the repository \"Good\" may have a-z and 0-9"),
        ("oci://127.0.0.1:1/good@sha256:12", "sha256:12"),
    ] {
        let refused = run(&folder, &["add", reference, "--yes"]);
        assert_eq!(refused.code(), 2, "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
}

#[test]
fn a_package_is_added_by_its_name_and_only_its_place_is_kept() {
    let registry = Registry::start();
    let names = Registry::start();
    let of_names = format!("[registries.\"{0}\"]\nprivate = true\n[packages]\nacme = \"{0}\"\n", names.host());
    let folder = folder_for(&registry, &of_names);
    names.say_of_packages(&json!({"oci": {"registry": registry.host(), "namespacePrefix": "all/"}}));
    for tag in ["1.2.0", "1.3.0"] {
        let place = registry.reference("all/acme/good", tag);
        let _ = run(&folder, &["push", &place, "good.wasm", "--annotation", &format!("n={tag}")]).succeeded();
    }
    let added = json_of(&run(&folder, &["add", "acme:good@1.2.0", "--yes", "--json"]));
    let digest = registry.tag("all/acme/good", "1.2.0");
    let source = format!("{}@{digest}", registry.reference("all/acme/good", "1.2.0"));
    assert_eq!((&added["ok"], &added["source"], &added["component"]), (&json!(true), &json!(source), &json!("good")));
    assert!(folder.read("toolcell.lock").contains(&source), "it is pinned");
    let asked = names.asked().len();
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    let _ = run(&folder, &["pull"]).succeeded();
    assert_eq!(names.asked().len(), asked, "the name is looked up once");
    let newest = run(&folder, &["add", "acme:good", "--name", "newest", "--prefix", "n_", "--yes", "--json"]);
    assert!(json_of(&newest)["source"].as_str().unwrap().contains(":1.3.0@"), "{newest:?}");

    let before = folder.read("toolcell.toml");
    names.say_of_packages(&json!({"oci": {"registry": registry.host(), "namespacePrefix": "../all/"}}));
    for (package, code, words) in [
        ("other:good@1.2.0", 1, "no registry of the namespace other is named"),
        ("acme:good@1.2", 2, "is not a version"),
        ("acme:Good@1.2.0", 2, "is not a namespace or package name"),
        ("acme:good@1.2.0", 1, "the package metadata of"),
    ] {
        let refused = run(&folder, &["add", package, "--name", "x", "--yes"]);
        assert_eq!(refused.code(), code, "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert_eq!(folder.read("toolcell.toml"), before);
}

/// An entry of a registry of MCP servers.
fn listed(name: &str, description: &str, identifier: &str, runtime: Option<&str>) -> Value {
    let package = json!({"registryType": "oci", "identifier": identifier, "runtimeHint": runtime});
    json!({"server": {"name": name, "description": description, "version": "1.0.0", "packages": [package]}})
}

#[test]
fn a_search_shows_what_says_that_it_is_a_component_and_how_to_add_it() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    push(&folder, &registry, "1.0.0", "good.wasm", &[]);
    let source = registry.reference(REPOSITORY, "1.0.0");
    let identifier = source.trim_start_matches("oci://");
    let servers = [
        listed("io.example/good", "Echoes.", identifier, Some("wasmtime")),
        listed("io.example/unsaid", "May be one.", "ghcr.io/acme/unsaid:1", None),
        listed("io.example/image", "Is none.", "ghcr.io/acme/image:1", Some("docker")),
        json!({"server": {"name": "io.example/npm", "packages": [{"registryType": "npm", "identifier": "x"}]}}),
    ];
    registry.list_servers(&json!({"servers": servers, "metadata": {"count": 4}}).to_string());
    let address = format!("http://{}", registry.host());
    let search = |more: &[&str]| run(&folder, &[&["search", "good", "--registry", &address], more].concat());
    let shown = search(&[]);
    let expected = format!("io.example/good 1.0.0\n  Echoes.\n  toolcell add {source}\n");
    assert_eq!(shown.succeeded(), expected);
    assert!(shown.stderr.contains("OCI packages that do not say what they are: 1; --all shows them"), "{shown:?}");
    let all = search(&["--all"]);
    assert!(all.stdout.contains("toolcell add oci://ghcr.io/acme/unsaid:1  (may be an image)"), "{all:?}");
    assert!(!all.stdout.contains("acme/image"), "{all:?}");
    let json = json_of(&search(&["--json"]));
    assert_eq!((&json["looked_at"], &json["not_shown"], &json["complete"]), (&json!(4), &json!(1), &json!(true)));
    assert_eq!(json["servers"][0]["packages"], json!([{"source": source, "says_component": true}]));
    assert!(registry.asked().iter().any(|asked| asked.starts_with("GET /v0.1/servers?search=good&")));
    let added = run(&folder, &["add", &source, "--name", "good", "--yes"]);
    assert_eq!((added.code(), echo(&folder).succeeded()), (0, "hi\n"), "{added:?}");
}

#[test]
fn a_hostile_registry_of_servers_writes_nothing_to_the_terminal_but_texts() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    let address = format!("http://{}", registry.host());
    let search = |more: &[&str]| run(&folder, &[&["search", "x", "--registry", &address], more].concat());
    let escapes = "a\u{1b}[31m\u{1b}]0;b\u{7}\r\nc\u{202e}d\u{9b}e";
    let mut entry = listed(escapes, &escapes.repeat(1_000), "ghcr.io/acme/x:1", Some("wasm"));
    entry["server"]["version"] = json!(escapes);
    registry.list_servers(&json!({"servers": [entry]}).to_string());
    let shown = search(&[]);
    let is_bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!shown.succeeded().contains(is_bad) && shown.stdout.len() < 10_000, "{shown:?}");
    assert_eq!(shown.stdout.lines().count(), 3, "{shown:?}");
    assert!(!search(&["--json"]).succeeded().contains(is_bad));
    for (page, words) in [
        ("<html>\u{1b}[31m", "is not understood"),
        ("{\"servers\":[[[", "is not understood"),
        (" ".repeat(2 << 20).as_str(), "has more than 1048576 bytes"),
    ] {
        registry.list_servers(page);
        let refused = search(&[]);
        assert_eq!(refused.code(), 1, "{refused:?}");
        assert!(refused.stderr.contains(words) && !refused.stderr.contains("\u{1b}[31m"), "{refused:?}");
    }
}

#[test]
fn a_search_says_where_there_is_no_network() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    let address = format!("http://{}", registry.host());
    let missing = run(&folder, &["search", "x", "--registry", &address]);
    assert_eq!(missing.code(), 1, "{missing:?}");
    assert!(missing.stderr.contains("does not have the API of a registry of MCP servers"), "{missing:?}");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    folder.write("toolcell.toml", format!("version = 1\n[registries.\"{gone}\"]\nprivate = true\n"));
    let unreached = run(&folder, &["search", "x", "--registry", &format!("http://{gone}"), "--json"]);
    assert_eq!(unreached.code(), 3, "{unreached:?}");
    let json = json_of(&unreached);
    assert!(json["problem"].as_str().unwrap().ends_with("a search needs a network"), "{json}");
    assert!(json["hint"].as_str().unwrap().contains("toolcell store ls"), "{json}");
    for (arguments, words) in [
        (&["search", ""][..], "the word has 0 characters"),
        (&["search", "x", "--registry", "file:///etc"], "is not only a host"),
        (&["search", "x", "--registry", "https://user:secret@registry.example"], "is not only a host"),
    ] {
        let refused = run(&folder, arguments);
        assert_eq!(refused.code(), 2, "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    let private = run(&folder, &["search", "x", "--registry", "https://127.0.0.1:1"]);
    assert_eq!(private.code(), 1, "{private:?}");
    assert!(private.stderr.contains("is not asked: 127.0.0.1"), "{private:?}");
}

#[test]
fn a_start_with_a_lock_serves_the_pinned_bytes_that_the_store_has() {
    let registry = Registry::start();
    let pinned_by = |folder: &Folder| {
        let first = push(folder, &registry, "1.0.0", "good.wasm", &[]);
        let _ = add(folder, &registry, "1.0.0").succeeded();
        first
    };

    // The manifest names another version, which is in the store as well, and nobody has locked it.
    let folder = folder_for(&registry, "");
    let first = pinned_by(&folder);
    let second = push(&folder, &registry, "2.0.0", "other.wasm", &[]);
    let text = folder.read("toolcell.toml");
    let moved = text.replace(&format!("1.0.0@{first}"), &format!("2.0.0@{second}"));
    assert_ne!(moved, text);
    folder.write("toolcell.toml", moved);
    let _ = run(&folder, &["pull"]).succeeded();
    serves_as_pinned(folder);

    // A file has other bytes than those that were locked, which came from a registry once.
    let folder = folder_for(&registry, "");
    let _ = pinned_by(&folder);
    let text = folder.read("toolcell.toml");
    let source = text.lines().find(|line| line.starts_with("source = ")).unwrap();
    folder.write("toolcell.toml", text.replace(source, "source = \"good.wasm\""));
    let _ = run(&folder, &["lock"]).succeeded();
    folder.write("good.wasm", fixture_bytes("loops"));
    serves_as_pinned(folder);

    // Where the store lacks them, nothing is served in their place.
    let folder = folder_for(&registry, "");
    let _ = pinned_by(&folder);
    folder.write("toolcell.toml", text.replace(source, "source = \"good.wasm\""));
    let _ = run(&folder, &["lock"]).succeeded();
    folder.write("good.wasm", fixture_bytes("loops"));
    std::fs::remove_dir_all(folder.path().join("store")).unwrap();
    let refused = run(&folder, &["serve", "--locked"]);
    assert!(refused.failed_with(1).contains("is not what"), "{refused:?}");
    assert!(!folder.path().join("store").exists(), "a look makes no store");
}

/// The component `good` answers although its source has other bytes, and is named for that.
fn serves_as_pinned(folder: Folder) {
    let mut host = TestHost::with_options(folder, &["--locked"]);
    assert_eq!(host.call("echo", json!({"text": "pinned"})).text(), "pinned");
    host.will_say("quarantined: good");
    assert_eq!(host.call("echo", json!({"text": "still"})).text(), "still");
    host.still_works();
}
