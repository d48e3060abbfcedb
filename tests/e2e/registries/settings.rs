//! The ways to a registry that a manifest names, and the store that manifests share.
//!
//! Promise: no other signer takes a pinned one's place.

use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolcell_tests::loopback::{Registry, Scripted};
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, toolchain};

use super::{REPOSITORY, add, echo, folder_for, json_of, push, run};

/// Makes a registry answer only those who show this password of the user `ci`.
fn with_password(registry: &Registry, password: &str) {
    let wanted = format!("Basic {}", STANDARD.encode(format!("ci:{password}")));
    registry.answer_instead(move |seen| {
        let challenge = || vec![("WWW-Authenticate", "Basic realm=\"x\"".to_owned())];
        (seen.values("authorization") != [wanted.as_str()]).then(|| Scripted::Bytes(401, challenge(), Vec::new()))
    });
}

#[test]
fn a_password_of_a_file_or_of_a_keyring_opens_a_registry() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "user = \"ci\"\npassword = \"file:registry.password\"\n");
    folder.write("registry.password", "hunter2\n");
    let path = folder.path().join("registry.password");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    with_password(&registry, "hunter2");
    push(&folder, &registry, "1", "good.wasm", &[]);
    assert_eq!(json_of(&add(&folder, &registry, "1"))["ok"], true);
    folder.write("registry.password", "hunter3\n");
    let refused = run(&folder, &["outdated", "--json"]);
    let problem = json_of(&refused)["components"][0]["problem"].clone();
    assert_eq!(
        (refused.code(), problem),
        (3, json!(format!("{} wants other credentials for {REPOSITORY}", registry.host())))
    );

    // The manifest names an entry of the keyring: one that nobody has, then one that is there.
    let named = folder.read("toolcell.toml").replace("file:registry.password", "keyring:toolcell-tests/nobody");
    folder.write("toolcell.toml", &named);
    let missing = run(&folder, &["outdated"]);
    assert_eq!(missing.code(), 1);
    assert!(missing.stderr.contains("no keyring of this system gives toolcell-tests/nobody"), "{missing:?}");
    let keeping = Folder::with_manifest(
        "version = 1\n[components.reach]\nsource = \"reach.wasm\"\n\
         [components.reach.network]\nhttp = [\"https://api.example.com\"]\n",
    );
    keeping.write("reach.wasm", fixture_bytes("reach_http"));
    let set = ["secret", "set", "TOKEN", "--keyring", "--header", "X-Key", "--for", "https://api.example.com", "--yes"];
    let kept = Command::in_folder(&keeping, &set).with_input("hunter2\n").run();
    if kept.stderr.contains("no keyring of this system takes") {
        toolchain::say("LEFT OUT: a password of a keyring: this machine's kernel has none");
        return;
    }
    let _ = kept.succeeded();
    let text = keeping.read("toolcell.toml");
    let place = text.split('"').find(|part| part.starts_with("keyring:")).unwrap();
    folder.write("toolcell.toml", named.replace("keyring:toolcell-tests/nobody", place));
    let asked = run(&folder, &["outdated"]);
    let _ = run(&keeping, &["secret", "remove", "TOKEN", "--yes"]).succeeded();
    assert_eq!(asked.code(), 0, "{asked:?}");
    assert_eq!(run(&folder, &["outdated"]).code(), 1, "it is gone");
}

#[test]
fn a_mirror_has_the_beginning_of_a_path() {
    let mirror = Registry::start();
    let folder = folder_for(&mirror, "\n[registries.\"registry.example\"]\n");
    let at = mirror.reference("cache/all/acme/good", "1");
    let pushed = json_of(&run(&folder, &["push", &at, "good.wasm", "--json"]));
    let text = folder.read("toolcell.toml");
    folder.write("toolcell.toml", format!("{text}mirror = \"{}/cache/all\"\n", mirror.host()));
    let added =
        json_of(&run(&folder, &["add", "oci://registry.example/acme/good:1", "--name", "good", "--yes", "--json"]));
    let digest = pushed["manifest_digest"].as_str().unwrap();
    assert_eq!(added["source"], format!("oci://registry.example/acme/good:1@{digest}"), "{added}");
    assert_eq!(echo(&folder).succeeded(), "hi\n");
    assert_eq!(run(&folder, &["outdated"]).code(), 0);
    folder.write("toolcell.toml", text + "mirror = \"mirror.example/Cache/\"\n");
    let refused = run(&folder, &["check"]);
    assert_eq!(refused.code(), 1);
    let problem = "error[registries::mirror]: \"mirror.example/Cache/\" is not a registry host with an optional path";
    assert!(refused.stderr.contains(problem), "{refused:?}");
}

#[test]
fn an_identity_that_no_signer_can_have_is_an_error_of_the_manifest_where_no_component_uses_it() {
    let rule = "[trust.\"ghcr.io/acme/\"]\nsigned_by = [{ issuer = \"https://issuer.example\", identity = \"https://*/x\" }]\n";
    let folder = Folder::with_manifest(&format!("version = 1\n{rule}"));
    let refused = run(&folder, &["check"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused.stderr.contains("error[trust::signer]: `*` in `https://*/x` could stand for another host"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("toolcell.toml:3:"), "{refused:?}");
}

/// Runs a command whose user has the home `home`.
fn at_home(home: &Folder, folder: &Folder, arguments: &[&str]) -> Finished {
    let data = home.path().join("data").to_string_lossy().into_owned();
    Command::in_folder(folder, arguments).with_variable("XDG_DATA_HOME", &data).run()
}

#[test]
fn manifests_of_a_user_share_a_store_and_what_another_one_names_is_kept_if_it_is_said() {
    let registry = Registry::start();
    let home = Folder::with_manifest("version = 1\n");
    let sharing = || {
        let folder = folder_for(&registry, "");
        folder.write("toolcell.toml", folder.read("toolcell.toml").replace("[server]\nstore = \"store\"\n", ""));
        folder
    };
    let one = sharing();
    let two = sharing();
    push(&one, &registry, "1", "good.wasm", &[]);
    push(&one, &registry, "2", "other.wasm", &[]);
    let add = |folder: &Folder, tag: &str| {
        let added = at_home(&home, folder, &["add", &registry.reference(REPOSITORY, tag), "--name", "good", "--yes"]);
        let _ = added.succeeded();
    };
    add(&one, "1");
    add(&two, "2");
    assert!(!one.path().join("store").exists());
    let digests = |folder: &Folder| {
        let listed = json_of(&at_home(&home, folder, &["store", "ls", "--json"]));
        assert_eq!(listed["store"], json!(home.path().join("data/toolcell/store")), "{listed}");
        listed["components"].as_array().unwrap().len()
    };
    assert_eq!((digests(&one), digests(&two)), (2, 2));
    let asked = registry.asked().len();
    let third = sharing();
    third.write("toolcell.toml", one.read("toolcell.toml"));
    let pulled = at_home(&home, &third, &["pull"]);
    assert!(pulled.succeeded().starts_with("good: is in the store, "), "{pulled:?}");
    assert_eq!(registry.asked().len(), asked);

    let other = two.path().join("toolcell.toml").to_string_lossy().into_owned();
    let kept = json_of(&at_home(&home, &one, &["store", "gc", "--keep", &other, "--yes", "--json"]));
    assert_eq!((&kept["kept"], &kept["removed"]["components"]), (&json!(2), &json!(0)), "{kept}");
    assert_eq!(digests(&one), 2);
    let removed = json_of(&at_home(&home, &one, &["store", "gc", "--yes", "--json"]));
    assert_eq!((&removed["kept"], &removed["removed"]["components"]), (&json!(1), &json!(1)), "{removed}");
    let gone = at_home(&home, &two, &["check"]);
    assert_eq!(gone.code(), 1);
    assert!(gone.stderr.contains("`toolcell pull` fetches it"), "{gone:?}");
    let _ = at_home(&home, &two, &["pull"]).succeeded();
    assert_eq!(digests(&two), 2);
}

#[test]
fn another_spelling_of_a_registry_passes_no_rule_of_trust() {
    let rule = "signed_by = [{ key = \"own.pub\" }]";
    let digest = "0".repeat(64);
    for (written, name) in [
        ("ghcr.io:443/acme/x", "ghcr.io"),
        ("docker.io/alpine", "docker.io/library/alpine"),
        ("index.docker.io/library/alpine", "docker.io"),
        ("registry-1.docker.io/library/alpine", "docker.io"),
    ] {
        let said = format!("is another spelling of \"{name}\": write that");
        let source = format!("version = 1\n[components.a]\nsource = \"oci://{written}@sha256:{digest}\"\n");
        let prefix = format!("version = 1\n[trust.\"{written}\"]\n{rule}\n");
        for text in [source, prefix] {
            let refused = run(&Folder::with_manifest(&text), &["check"]);
            assert_eq!(refused.code(), 1, "{refused:?}");
            let shown = format!("{}{}", refused.stdout, refused.stderr);
            assert!(shown.contains(&said), "{said}: {refused:?}");
        }
        let refused = run(&Folder::with_manifest("version = 1\n"), &["add", &format!("oci://{written}")]);
        assert!(refused.code() == 2 && refused.stderr.contains(&said), "{refused:?}");
    }
    for written in ["GHCR.IO/acme/x", "ghcr.io./acme/x", "ghcr.io//acme/x", "ghcr.io/acme%2fx"] {
        let refused = run(&Folder::with_manifest("version = 1\n"), &["add", &format!("oci://{written}")]);
        assert_eq!(refused.code(), 2, "{written}: {refused:?}");
    }
}
