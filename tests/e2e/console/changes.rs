//! Quarantined components: how they differ, since when, and how they are approved.
//!
//! Promise: swapped bytes are not read.
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Command, Folder, Saving, patience};

use super::Operator;
use crate::registries::signed_by_another;

/// A manifest of one component, whose table has these lines.
fn manifest(lines: &str) -> String {
    format!("version = 1\n[console]\ndecide = true\n[components.tool]\nsource = \"tool.wasm\"\n{lines}")
}

/// An operator of a locked server that serves `versioned_a`, with these lines in its table.
fn locked(lines: &str) -> Operator {
    let folder = Folder::with_manifest(&manifest(lines));
    folder.make("gate");
    folder.save_fixture(Saving::RenamedOver, "tool.wasm", "versioned_a");
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    Operator::deciding(folder, &["--locked"])
}

/// The digest in the form that approves.
fn digest(page: &str) -> String {
    page.split("name=\"digest\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// The time since which a component is quarantined, as the page has it.
fn since(page: &str) -> String {
    page.split("Since <time datetime=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// The words that only an older, or only a newer version has, as a page shows them.
fn marked(element: &str, words: &str) -> String {
    let what = if element == "del" { "removed" } else { "added" };
    format!("<{element}><span class=\"hidden\"> {what}: </span><bdi>{words}</bdi>")
}

#[test]
fn what_is_quarantined_is_approved_by_its_digest() {
    let mut operator = locked("");
    operator.host.initialize("2025-11-25");
    operator.host.folder().save_fixture(Saving::RenamedOver, "tool.wasm", "versioned_b");
    operator.host.will_say("quarantined: tool");
    let page = operator.page_with("/changes", "action=\"/changes/approve\"");
    assert!(page.contains("none of it was read") && page.contains("The old version serves on."), "{page}");
    for absent in ["<ins>", "<del>", "not signed as the lock pins it", "The bytes are the same."] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    let digest = digest(&page);
    let wrong = operator.decides("/changes/approve", &format!("component=tool&digest=sha256:{}", "0".repeat(64)));
    assert!(wrong.contains("is not what was seen any more") && !wrong.contains("Approved"), "{wrong}");
    let page = operator.decides("/changes/approve", &format!("component=tool&digest={digest}"));
    assert!(page.contains("Approved. Generation 2 serves."), "{page}");
    assert_eq!(operator.host.call("version", json!({})).text(), "b");
    let is_done = |record: &Value| record["decision"] == "approve" && record["done"] == true;
    assert_eq!(operator.host.recorded("it", is_done)["subject"], format!("tool {digest}"));
}

#[test]
fn another_description_and_other_grants_are_shown_word_by_word_with_the_time_since_when() {
    let mut operator = locked("[components.tool.filesystem]\n\"/gate\" = { path = \"gate\" }\n");
    operator.host.initialize("2025-11-25");
    let other = manifest(
        "[components.tool.env]\nUNITS = \"metric\"\n\
         [components.tool.tools.version]\ndescription = \"Tells which version this is <b>.\"\n",
    );
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    operator.host.will_say("quarantined: tool");
    let page = operator.page_with("/changes", "action=\"/changes/approve\"");
    for part in [
        "<h4><bdi>version</bdi>, <bdi>description</bdi> <span class=\"chip off\">changed</span></h4>",
        &marked("del", "Says"),
        &marked("ins", "Tells"),
        "<bdi> which version this is</bdi>",
        &marked("ins", " &lt;b&gt;"),
        "<ins><span class=\"sign\">+ <span class=\"hidden\">more: </span></span>\
         <bdi>version: variable UNITS = &quot;metric&quot;</bdi></ins>",
        "<del><span class=\"sign\">− <span class=\"hidden\">less: </span></span><bdi>linger: read /gate: gate</bdi></del>",
        "The bytes are the same.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("description was"), "it is said in one place: {page}");

    // The time is that of the quarantine, whatever is tried afterwards.
    let status = operator.host.status();
    let held = status["quarantined"][0]["since"].as_str().unwrap();
    assert_eq!(since(&page), format!("{}Z", &held[.."2026-07-28T09:30:00.123".len()]));
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", "version = ");
    let later = operator.page_with("/changes", ">refused</span>");
    assert_eq!(since(&later), since(&page));
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    let _ = operator.host.status_when("well again", |status| status["failed"].is_null());

    let form = format!("component=tool&digest={}", digest(&page));
    let page = operator.decides("/changes/approve", &form);
    assert!(page.contains("Approved. Generation 2 serves."), "{page}");
    assert!(page.contains("Nothing is in quarantine") && page.contains(">approved</span>"), "{page}");
    let tools = operator.host.list();
    assert_eq!(tools[0]["description"], "Tells which version this is <b>.");
    assert!(operator.host.folder().read("toolcell.lock").contains("UNITS"));
}

#[test]
fn a_swapped_component_is_read_when_an_operator_says_so_and_its_words_are_shown_until_something_changes() {
    let mut operator = locked("");
    operator.host.initialize("2025-11-25");
    operator.host.folder().save_fixture(Saving::RenamedOver, "tool.wasm", "versioned_c");
    operator.host.will_say("quarantined: tool");
    let page = operator.page_with("/changes", "action=\"/changes/read\"");
    assert!(!page.contains("in one letter"), "{page}");
    let seen = digest(&page);
    for (wrong, says) in [
        (format!("component=tool&digest=sha256:{}", "0".repeat(64)), "is not what was seen any more"),
        (format!("component=nothing&digest={seen}"), "nothing called"),
        ("component=tool&digest=x".to_owned(), "a digest, or at least its first 16 digits"),
    ] {
        let page = operator.decides("/changes/read", &wrong);
        assert!(page.contains(says) && page.contains("action=\"/changes/read\""), "{wrong}: {page}");
    }
    // Files may be looked at once more after it was saved, and what was read is forgotten then.
    let read = |operator: &Operator, words: &[&str]| {
        let end = Instant::now() + patience();
        loop {
            let page = operator.decides("/changes/read", &format!("component=tool&digest={seen}"));
            assert!(page.contains("tool is read: ") && Instant::now() < end, "{page}");
            if words.iter().all(|words| page.contains(words)) {
                break page;
            }
        }
    };
    let page = read(&operator, &["in one letter"]);
    for part in [
        "tool is read: it differs as shown, and stays in quarantine.",
        "<bdi>Says which version this is</bdi>",
        &marked("ins", ", in one letter"),
        "<bdi>extra</bdi>",
        "tool linger: gone",
        "action=\"/changes/approve\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("action=\"/changes/read\"") && !page.contains("none of it was read"), "{page}");
    assert_eq!(operator.host.call("version", json!({})).text(), "a", "none of it serves");
    let done = |record: &Value| record["decision"] == "read" && record["done"] == true;
    assert_eq!(operator.host.recorded("it", done)["subject"], format!("tool {seen}"));
    // Other grants may stand in the manifest now.
    let other = manifest("[components.tool.env]\nUNITS = \"metric\"\n");
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", other);
    let page = operator.page_with("/changes", "action=\"/changes/read\"");
    assert!(!page.contains("in one letter"), "{page}");
    read(&operator, &["UNITS = &quot;metric&quot;", "in one letter"]);
    let page = operator.decides("/changes/approve", &format!("component=tool&digest={seen}"));
    assert!(page.contains("Approved. Generation 2 serves."), "{page}");
    assert_eq!(operator.host.call("version", json!({})).text(), "c");
    let quarantined = |record: &&Value| record["event"] == "component.quarantined";
    assert_eq!(operator.host.audit().iter().filter(quarantined).count(), 1, "it is quarantined once");
}

#[test]
fn what_cannot_be_read_is_said_and_stays_in_quarantine() {
    let mut operator = locked("");
    operator.host.initialize("2025-11-25");
    operator.host.folder().save(Saving::RenamedOver, "tool.wasm", "no component");
    operator.host.will_say("quarantined: tool");
    let page = operator.page_with("/changes", "action=\"/changes/read\"");
    let page = operator.decides("/changes/read", &format!("component=tool&digest={}", digest(&page)));
    assert!(page.contains("It cannot be read: ") && page.contains("action=\"/changes/read\""), "{page}");
    assert_eq!(operator.host.call("version", json!({})).text(), "a");
}

#[test]
fn another_signer_is_shown_beside_the_pinned_one_and_approved_with_a_box_of_its_own() {
    let registry = Registry::start();
    let (folder, other) = signed_by_another(&registry, "\n[console]\ndecide = true\n");
    let pinned = folder.read("toolcell.lock");
    let mut operator = Operator::deciding(folder, &["--locked"]);
    operator.host.initialize("2025-11-25");
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    operator.host.will_say("quarantined: good");
    let page = operator.page_with("/changes", "action=\"/changes/approve\"");
    let lines = operator.host.status()["quarantined"][0]["differences"].clone();
    let line = |start: &str| -> String {
        let lines = lines.as_array().unwrap().iter().filter_map(Value::as_str);
        lines.filter_map(|line| line.strip_prefix(start)).map(str::to_owned).next().unwrap()
    };
    let old = line("has no longer a ");
    let new = line("has now a ");
    assert!(old.starts_with("signature by key sha256:") && new.starts_with("signature by key sha256:"), "{lines}");
    let (serves, waits) = page.split_once("<div>waits</div>").unwrap();
    assert!(serves.contains(&format!("<li><bdi>{old}</bdi></li>")), "{page}");
    assert!(waits.contains(&format!("<li><bdi>{new}</bdi></li>")), "{page}");
    for part in ["It is not signed as the lock pins it.", "The bytes are the same.", "name=\"signers\" value=\"other\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }

    let form = format!("component=good&digest={}", digest(&page));
    let refused = operator.decides("/changes/approve", &form);
    assert!(refused.contains("tick the box") && refused.contains("class=\"notice failed\""), "{refused}");
    assert_eq!(operator.host.folder().read("toolcell.lock"), pinned);
    let page = operator.decides("/changes/approve", &format!("{form}&signers=other"));
    assert!(page.contains("Approved. Generation 2 serves."), "{page}");
    let is_done = |record: &Value| record["decision"] == "approve" && record["done"] == true;
    let subject = operator.host.recorded("it", is_done)["subject"].clone();
    assert!(subject.as_str().unwrap().ends_with(", with other signers"), "{subject}");
    let lock = operator.host.folder().read("toolcell.lock");
    assert!(lock.contains(&new) && !lock.contains(&old), "{lock}");
}

#[test]
fn a_version_that_waits_is_held_against_recorded_calls_once() {
    let mut operator = locked("record = \"all\"\n");
    operator.host.initialize("2025-11-25");
    assert_eq!(operator.host.call("version", json!({})).text(), "a");
    operator.host.folder().save_fixture(Saving::RenamedOver, "tool.wasm", "versioned_b");
    operator.host.will_say("quarantined: tool");
    let page = operator.page_with("/changes", "action=\"/changes/hold\"");
    assert!(!page.contains("recorded call answers"), "a page runs nothing: {page}");
    let digest = digest(&page);
    let fields = format!("component=tool&digest={digest}");
    let other = operator.decides("/changes/hold", &format!("component=tool&digest=sha256:{}", "0".repeat(64)));
    assert!(other.contains("This version does not wait any more."), "{other}");
    assert!(operator.decides("/changes/hold", &fields).contains("Recorded calls of tool are being run."));
    let page = operator.page_with("/changes", "0 of 1 recorded call answers as before; 1 gives another answer");
    assert!(page.contains("differs version: ") && !page.contains("action=\"/changes/hold\""), "{page}");
    assert!(operator.decides("/changes/hold", &fields).contains("Its recorded calls were run already."));
    let is_done = |record: &Value| record["decision"] == "hold" && record["done"] == true;
    assert_eq!(operator.host.recorded("it", is_done)["subject"], format!("tool {digest}"));
    assert_eq!(operator.host.call("version", json!({})).text(), "a", "nothing is approved by that");
    let without = operator.ask(&operator.form("/changes/hold", &fields).without("cookie"));
    assert_eq!(without.status(), 403);
}

#[test]
fn without_recordings_nothing_is_held_against_them() {
    for (lines, offered) in [("", false), ("[recordings]\n", true)] {
        let operator = locked(lines);
        operator.host.folder().save_fixture(Saving::RenamedOver, "tool.wasm", "versioned_b");
        let page = operator.page_with("/changes", "action=\"/changes/approve\"");
        assert_eq!(page.contains("action=\"/changes/hold\""), offered, "{page}");
        if offered {
            let _ = operator.decides("/changes/hold", &format!("component=tool&digest={}", digest(&page)));
            let _ = operator.page_with("/changes", "No call of it is recorded.");
        }
    }
}
