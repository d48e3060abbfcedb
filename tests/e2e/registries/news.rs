//! Programs that look for new versions: what is outdated, what could not be asked, and the changes
//! that an update would pin.

use rcgen::PKCS_ED25519;
use serde_json::{Value, json};
use toolcell_tests::fixture_bytes;
use toolcell_tests::loopback::{Registry, Scripted};

use super::{REPOSITORY, add, folder_for, json_of, keys, push, run, trust};

#[test]
fn a_registry_that_does_not_answer_is_no_news_of_a_component() {
    let registry = Registry::start();
    let other = Registry::start();
    let more = format!("\n[registries.\"{}\"]\nprivate = true\n", other.host());
    let folder = folder_for(&registry, &more);
    push(&folder, &registry, "1.0.0", "good.wasm", &[]);
    let _ = add(&folder, &registry, "1.0.0").succeeded();
    let elsewhere = other.reference(REPOSITORY, "1.0.0");
    let _ = run(&folder, &["push", &elsewhere, "other.wasm"]).succeeded();
    let _ = run(&folder, &["add", &elsewhere, "--name", "other", "--yes"]).succeeded();
    let current = json_of(&run(&folder, &["outdated", "--json"]));
    assert_eq!((&current["outdated"], &current["failed"]), (&json!(false), &json!(false)), "{current}");
    assert_eq!(current["components"][0]["tags_complete"], true);

    other.answer_instead(|_| Some(Scripted::Whole(503, "application/json", "{}".to_owned())));
    let problem = format!("{} answers with status 503", other.host());
    let unknown = run(&folder, &["outdated", "--json"]);
    let json = json_of(&unknown);
    assert_eq!((unknown.code(), &json["outdated"], &json["failed"]), (3, &json!(false), &json!(true)), "{json}");
    assert_eq!((&json["components"][0]["outdated"], &json["components"][0]["problem"]), (&json!(false), &Value::Null));
    let failed = &json["components"][1];
    assert_eq!((&failed["outdated"], &failed["tag_leads_to"]), (&Value::Null, &Value::Null));
    assert_eq!((&failed["problem"], &failed["tags_complete"]), (&json!(problem), &Value::Null));
    let shown = run(&folder, &["outdated"]);
    assert_eq!((shown.code(), shown.stdout.as_str()), (3, ""), "{shown:?}");
    assert!(shown.stderr.contains(&problem) && !shown.stderr.contains("nothing is outdated"), "{shown:?}");

    // Something that is known to be outdated is said next to it.
    push(&folder, &registry, "1.1.0", "other.wasm", &[]);
    let both = run(&folder, &["outdated", "--json"]);
    let json = json_of(&both);
    assert_eq!((both.code(), &json["outdated"], &json["failed"]), (1, &json!(true), &json!(true)), "{json}");
    assert_eq!(json["components"][0]["newest"], "1.1.0");

    // A registry that tells where the tag leads, and then nothing more.
    let digest = registry.tag(REPOSITORY, "1.1.0");
    registry.move_tag(REPOSITORY, "1.0.0", &digest);
    registry.answer_instead(|seen| {
        seen.target().contains("/tags/list").then(|| Scripted::Whole(503, "application/json", "{}".to_owned()))
    });
    let json = json_of(&run(&folder, &["outdated", "--json"]));
    let half = &json["components"][0];
    assert_eq!((&half["outdated"], &half["tag_leads_to"]), (&json!(true), &json!(digest)), "{json}");
    assert_eq!(half["problem"], format!("{} answers with status 503", registry.host()));
}

#[test]
fn a_list_of_tags_that_is_too_long_is_said_to_be_incomplete() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    push(&folder, &registry, "1.0.0", "good.wasm", &[]);
    let _ = add(&folder, &registry, "1.0.0").succeeded();
    let tags: Vec<String> = (0..10_001).map(|n| format!("build-{n}")).collect();
    let list = json!({"tags": tags}).to_string();
    registry.answer_instead(move |seen| {
        seen.target().contains("/tags/list").then(|| Scripted::Whole(200, "application/json", list.clone()))
    });
    let asked = run(&folder, &["outdated"]);
    assert_eq!(asked.code(), 0);
    let warning = "warning: good: its repository has more tags than the 10000 that are looked at: a newer version may be among them\n";
    assert!(asked.stderr.contains(warning), "{asked:?}");
    let json = json_of(&run(&folder, &["outdated", "--json"]));
    assert_eq!((&json["outdated"], &json["components"][0]["tags_complete"]), (&json!(false), &json!(false)), "{json}");
}

#[test]
fn a_program_gets_the_changes_without_any_of_them_being_written() {
    let registry = Registry::start();
    let rule = trust(&registry, "signed_by = [{ key = \"ann.pub\" }, { key = \"bob.pub\" }]");
    let folder = folder_for(&registry, &rule);
    keys(&folder, "ann", &PKCS_ED25519);
    keys(&folder, "bob", &PKCS_ED25519);
    folder.write("reaching.wasm", fixture_bytes("reach_http"));
    let first = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "ann.key"]);
    let _ = add(&folder, &registry, "1").succeeded();
    let before = (folder.read("toolcell.toml"), folder.read("toolcell.lock"));
    let second = push(&folder, &registry, "1", "reaching.wasm", &["--sign-key", "ann.key"]);
    let tag = registry.reference(REPOSITORY, "1");
    let asked = run(&folder, &["update", "--json"]);
    let json = json_of(&asked);
    assert_eq!((asked.code(), &json["ok"]), (2, &json!(false)), "{json}");
    assert_eq!(json["problem"], "toolcell.toml stays as it is: nobody can be asked");
    let change = &json["changes"][0];
    assert_eq!((&change["name"], &change["was"]), (&json!("good"), &json!(format!("{tag}@{first}"))));
    assert_eq!(change["source"], format!("{tag}@{second}"));
    let imports: Vec<&str> = change["imports"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let http = |line: &&&str| line.starts_with("imports now wasi:http/outgoing-handler@0.2.");
    assert_eq!(imports.iter().filter(http).count(), 1, "{imports:?}");
    assert!(imports.iter().all(|line| line.starts_with("imports now ") || line.starts_with("imports no longer ")));
    assert!(change["differences"].to_string().contains("tool echo: gone"), "{json}");
    let shown = run(&folder, &["update"]);
    assert_eq!(shown.code(), 2);
    assert!(imports.iter().all(|line| shown.stdout.contains(&format!("  {line}\n"))), "{shown:?}");
    assert_eq!((folder.read("toolcell.toml"), folder.read("toolcell.lock")), before);

    // Another signer, which `--yes` alone does not take.
    let third = push(&folder, &registry, "1", "reaching.wasm", &["--sign-key", "bob.key", "--annotation", "n=3"]);
    let refused = run(&folder, &["update", "--yes", "--json"]);
    let json = json_of(&refused);
    assert_eq!((refused.code(), &json["ok"]), (1, &json!(false)), "{json}");
    assert_eq!(json["problem"], "good is not signed as the lock pins it");
    assert_eq!(json["changes"][0]["source"], format!("{tag}@{third}"));
    assert!(json["changes"][0]["differences"].to_string().contains("has no longer a signature by key"), "{json}");
    assert_eq!((folder.read("toolcell.toml"), folder.read("toolcell.lock")), before);
}

#[test]
fn an_update_heals_what_a_stricter_rule_takes_no_longer() {
    for is_locked in [true, false] {
        let registry = Registry::start();
        let folder = folder_for(&registry, "");
        keys(&folder, "own", &PKCS_ED25519);
        let unsigned = push(&folder, &registry, "1", "good.wasm", &[]);
        let _ = add(&folder, &registry, "1").succeeded();
        if !is_locked {
            std::fs::remove_file(folder.path().join("toolcell.lock")).unwrap();
        }
        let rule = trust(&registry, "signed_by = [{ key = \"own.pub\" }]");
        folder.write("toolcell.toml", format!("{}{rule}", folder.read("toolcell.toml")));
        assert_eq!(run(&folder, &["list"]).code(), 1, "the rule takes it no longer");
        let signed = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key", "--annotation", "n=2"]);
        let updated = run(&folder, &["update", "--yes"]);
        let shown = updated.succeeded();
        let before = format!("the one before is served no longer: [trust.\"{}/acme/\"]: {unsigned}", registry.host());
        assert!(shown.contains(&before) && shown.contains("has no signature that counts"), "{shown}");
        assert!(shown.contains("has a signature by key sha256:"), "{shown}");
        assert!(folder.read("toolcell.toml").contains(&signed));
        assert_eq!(super::echo(&folder).succeeded(), "hi\n");
    }
}

#[test]
fn an_update_goes_on_with_others_after_one_that_fails() {
    let registry = Registry::start();
    let other = Registry::start();
    let rule = trust(&registry, "signed_by = [{ key = \"own.pub\" }]");
    let more = format!("\n[registries.\"{}\"]\nprivate = true\n{rule}", other.host());
    let folder = folder_for(&registry, &more);
    keys(&folder, "own", &PKCS_ED25519);
    let old = push(&folder, &registry, "1", "good.wasm", &["--sign-key", "own.key"]);
    let _ = add(&folder, &registry, "1").succeeded();
    let elsewhere = other.reference(REPOSITORY, "1");
    let _ = run(&folder, &["push", &elsewhere, "other.wasm"]).succeeded();
    let _ = run(&folder, &["add", &elsewhere, "--name", "other", "--yes"]).succeeded();
    // The newer one of the first is unsigned; the second has a newer one as well.
    let unsigned = push(&folder, &registry, "1", "good.wasm", &["--annotation", "n=2"]);
    let _ = run(&folder, &["push", &elsewhere, "other.wasm", "--annotation", "n=2"]).succeeded();
    let newer = other.tag(REPOSITORY, "1");
    let updated = run(&folder, &["update", "--yes", "--json"]);
    let json = json_of(&updated);
    assert_eq!(
        (updated.code(), &json["ok"], &json["updated"][0]["name"]),
        (1, &json!(false), &json!("other")),
        "{json}"
    );
    let failed = &json["failed"][0];
    assert_eq!((&failed["name"], &json["failed"].as_array().unwrap().len()), (&json!("good"), &1), "{json}");
    assert!(
        failed["problem"].as_str().unwrap().contains(&format!("{unsigned} has no signature that counts")),
        "{json}"
    );
    let manifest = folder.read("toolcell.toml");
    assert!(manifest.contains(old.as_str()) && manifest.contains(newer.as_str()), "{manifest}");
    assert_eq!(super::echo(&folder).succeeded(), "hi\n", "the other one stays as it was");
    let shown = run(&folder, &["update"]);
    assert_eq!((shown.code(), shown.stdout.as_str()), (1, ""), "{shown:?}");
    assert!(shown.stderr.starts_with("error: good: oci://"), "{shown:?}");

    // One that can be read no longer, and has nothing newer, keeps no other one back.
    folder.write("own.pub", "");
    keys(&folder, "own", &PKCS_ED25519);
    let _ = run(&folder, &["push", &elsewhere, "other.wasm", "--annotation", "n=3"]).succeeded();
    let updated = run(&folder, &["update", "--yes"]);
    assert_eq!(updated.code(), 1, "{updated:?}");
    assert!(folder.read("toolcell.toml").contains(&other.tag(REPOSITORY, "1")), "{updated:?}");
}
