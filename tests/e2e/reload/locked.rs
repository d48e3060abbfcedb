//! The lock file: what it pins, how a difference is explained, and the rule that nothing else is
//! served in its name.
//!
//! Promise: the lock holds.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, LIST_CHANGED, Saving, TestHost};

use super::{GATE, TOOL, folder, manifest, names, version};

/// The path of the lock in a folder.
const LOCK: &str = "toolcell.lock";

/// A folder whose component is pinned in its present version.
fn pinned(fixture: &str, lines: &str) -> Folder {
    let folder = folder(fixture, lines);
    let written = Command::in_folder(&folder, &["lock"]).run();
    assert_eq!(written.succeeded(), "toolcell.lock: pinned components: 1, tools: 2\n");
    folder
}

/// The size of the component in bytes.
fn size_bytes(folder: &Folder) -> u64 {
    std::fs::metadata(folder.path().join(TOOL)).unwrap().len()
}

/// A host that serves only pinned components, and records.
fn locked(folder: Folder) -> TestHost {
    TestHost::recording_with(folder, &["--locked"])
}

fn save_manifest(folder: &Folder, lines: &str) {
    folder.save(Saving::RenamedOver, "toolcell.toml", manifest(lines));
}

/// The output of `toolcell diff`, which must find a difference.
fn diff(folder: &Folder) -> String {
    let differs = Command::in_folder(folder, &["diff"]).run();
    assert_eq!(differs.code(), 1, "{differs:?}");
    differs.stdout
}

#[test]
fn what_is_pinned_is_digests_and_words_and_is_the_same_each_time() {
    let folder = pinned("versioned_a", GATE);
    let text = folder.read(LOCK);
    let digest = Command::in_folder(&folder, &["inspect", "--json", TOOL]).run().json()["digest"].clone();
    let size = format!("size_bytes = {}", size_bytes(&folder));
    for held in [
        TOOL,
        digest.as_str().unwrap(),
        "contract = \"1.3.0\"",
        &size,
        "version",
        "linger",
        "Says which version this is.",
        "read /gate: gate",
    ] {
        assert!(text.contains(held), "no {held:?} in\n{text}");
    }
    assert_eq!(Command::in_folder(&folder, &["lock"]).run().succeeded(), "toolcell.lock: nothing differs\n");
    assert_eq!(Command::in_folder(&folder, &["diff"]).run().succeeded(), "toolcell.lock: nothing differs\n");
    let other = Command::in_folder(&folder, &["approve", "tool", "--digest", "0000000000000000"]).run();
    assert!(other.failed_with(1).contains("tool is not what was seen any more"), "{other:?}");
    assert_eq!(folder.read(LOCK), text);
    std::fs::remove_file(folder.path().join(LOCK)).unwrap();
    let _ = Command::in_folder(&folder, &["lock"]).run();
    assert_eq!(folder.read(LOCK), text, "written anew it is the same text");
    assert_eq!(
        text.lines().count(),
        text.lines().filter(|line| line.chars().count() < 200).count(),
        "lines for people and their version control"
    );
}

#[test]
fn a_difference_is_said_in_words() {
    let [before, after] = ["versioned_a", "versioned_b"].map(|fixture| size_bytes(&folder(fixture, GATE)));
    let sizes = format!("({before} and {after} bytes)");
    let rows: [(&str, &str, &[&str]); 5] = [
        ("versioned_b", GATE, &["tool\n", "  other bytes: sha256:", " was pinned, this is sha256:", &sizes]),
        (
            "versioned_c",
            GATE,
            &[
                "tool version: description was \"Says which version this is.\", is \"Says which version this is, in one letter.\"",
                "tool extra: new: \"Is new in this version.\"",
                "tool linger: gone",
            ],
        ),
        (
            "versioned_a",
            "[components.tool.filesystem]\n\"/gate\" = { path = \"gate\", access = \"write\" }\n[components.tool.env]\nUNITS = \"metric\"\n",
            &["tool version may now: write /gate: gate", "tool linger may now: variable UNITS = \"metric\""],
        ),
        ("versioned_a", "", &["tool linger may no longer: read /gate: gate"]),
        (
            "versioned_a",
            "prefix = \"my_\"\n",
            &["tool my_version: name was \"version\", is \"my_version\"", "tool my_linger may no longer: read /gate"],
        ),
    ];
    for (fixture, lines, words) in rows {
        let folder = pinned("versioned_a", GATE);
        folder.save_fixture(Saving::RenamedOver, TOOL, fixture);
        save_manifest(&folder, lines);
        let text = diff(&folder);
        words.iter().for_each(|words| assert!(text.contains(words), "no {words:?} in\n{text}"));
        let json = Command::in_folder(&folder, &["diff", "--json"]).run().json();
        let said: Vec<&str> = json["components"][0]["differences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        assert!(said.iter().all(|line| text.contains(line)), "the same for scripts: {json:#}");
        assert_eq!((&json["differs"], &json["components"][0]["component"]), (&json!(true), &json!("tool")));
        // The change has been read, and is pinned now.
        let pinned_now = Command::in_folder(&folder, &["lock"]).run();
        assert!(pinned_now.succeeded().starts_with(&text), "what is pinned is shown once more: {pinned_now:?}");
        assert_eq!(Command::in_folder(&folder, &["diff"]).run().code(), 0);
    }
}

#[test]
fn a_locked_host_does_not_start_with_anything_but_what_is_pinned() {
    let serve = |folder: &Folder| Command::in_folder(folder, &["serve", "--locked", "--control", "off"]).run();
    let folder = folder("versioned_a", "");
    assert!(serve(&folder).failed_with(1).contains("there is no toolcell.lock, and --locked serves nothing else"));
    let _ = Command::in_folder(&folder, &["lock"]).run();
    assert_eq!(serve(&folder).code(), 0, "as it is pinned it is served, until the input ends");
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    let refused = serve(&folder);
    for words in [
        "what would be served is not what toolcell.lock pins",
        "other bytes: ",
        "hint: `toolcell approve tool` pins it as it is now",
    ] {
        assert!(refused.failed_with(1).contains(words), "no {words:?} in {refused:?}");
    }
    assert_eq!(refused.stdout, "");
    let approved = Command::in_folder(&folder, &["approve", "version"]).run();
    assert!(approved.succeeded().ends_with("tool: pinned in toolcell.lock\n"), "by the name of a tool: {approved:?}");
    assert_eq!(serve(&folder).code(), 0);
    folder.write(LOCK, "what is this?");
    assert!(serve(&folder).failed_with(1).contains("is not a lock file, or was damaged"));
}

#[test]
fn the_lock_of_another_manifest_is_refused_and_stays_as_it_is() {
    let folder = pinned("versioned_a", "");
    let lock = std::fs::read(folder.path().join(LOCK)).unwrap();
    folder.save(Saving::RenamedOver, "other.toml", manifest(""));
    folder.save(Saving::RenamedOver, "other.lock", &lock);
    for command in [&["lock"][..], &["diff"], &["serve", "--locked"], &["approve", "w"]] {
        let refused = Command::in_folder(&folder, &[command, &["--manifest", "other.toml"]].concat()).run();
        let said = refused.failed_with(1);
        assert!(said.contains("other.lock is the lock of toolcell.toml, not of other.toml"), "{command:?}: {said}");
        assert!(said.contains("pin anew with `toolcell lock --manifest 'other.toml'`"), "{command:?}: {said}");
    }
    assert_eq!(std::fs::read(folder.path().join("other.lock")).unwrap(), lock);
}

#[test]
fn without_a_lock_it_is_said_once_that_nothing_is_pinned_and_with_another_that_it_differs() {
    let mut host = TestHost::in_folder(folder("versioned_a", ""));
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(2);
    assert_eq!(host.said().matches("nothing is pinned: there is no ").count(), 1, "{}", host.said());
    let folder = host.ends_leaving_its_folder();
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_a");
    let _ = Command::in_folder(&folder, &["lock"]).run();
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    let mut host = TestHost::in_folder(folder);
    assert_eq!(version(&mut host), "b", "it is served all the same");
    host.will_say("pins it: tool; `toolcell diff` says how, --locked would not serve it");
}

/// Asserts that a locked host quarantines other code: the old version serves, and the log, the
/// status and the audit say so.
fn is_quarantined(host: &mut TestHost) -> Value {
    host.will_say("quarantined: tool is not as the lock has it, and serves as it was");
    let status = host.status_when("quarantined", |status| status["quarantined"][0]["component"] == "tool");
    assert_eq!(version(host), "a");
    assert_eq!(names(host), ["version", "linger"]);
    assert_eq!(host.list_changes(), 0);
    let recorded = host.recorded("a quarantine", |record| record["event"] == "component.quarantined");
    assert_eq!((&recorded["name"], &recorded["digest"]), (&json!("tool"), &status["quarantined"][0]["digest"]));
    let shown = Command::in_folder(host.folder(), &["status"]).run();
    assert_eq!(shown.code(), 1, "a script sees that something waits");
    let digits = &status["quarantined"][0]["digest"].as_str().unwrap()["sha256:".len()..][..32];
    let suggested = format!("`toolcell approve tool --digest {digits}`");
    assert!(shown.stdout.contains(&format!("quarantined: tool ({suggested} serves it)")), "{shown:?}");
    // From elsewhere, the command names the manifest.
    let elsewhere = tempfile::tempdir().unwrap();
    let manifest = host.folder().manifest();
    let named = ["status", "--manifest", manifest.to_str().unwrap()];
    let shown = Command::in_folder(host.folder(), &named).working_in(elsewhere.path()).run();
    let suggested_there = format!("--digest {digits} --manifest '{}'` serves it", manifest.display());
    assert!(shown.stdout.contains(&suggested_there), "{shown:?}");
    host.will_say(&format!("until {suggested}"));
    status
}

#[test]
fn what_drifts_while_it_serves_is_quarantined_until_it_is_approved() {
    let mut host = locked(pinned("versioned_a", ""));
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    let before = host.folder().read(LOCK);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    let status = is_quarantined(&mut host);
    assert_eq!(status["generation"], 1, "{status:#}");
    assert_eq!(host.folder().read(LOCK), before, "nothing is pinned by itself");
    let unknown = Command::in_folder(host.folder(), &["approve", "other"]).run();
    assert!(unknown.failed_with(1).contains("nothing called \"other\" is quarantined"));
    let approved = Command::in_folder(host.folder(), &["approve", "tool"]).run();
    assert!(approved.succeeded().starts_with("generation 2: tool: new code"), "{approved:?}");
    host.next_of(LIST_CHANGED);
    assert_eq!((version(&mut host).as_str(), names(&mut host)), ("c", vec!["version".into(), "extra".into()]));
    let record = host.recorded("an approval", |record| record["event"] == "component.approved");
    assert_eq!((&record["name"], &record["digest"]), (&json!("tool"), &status["quarantined"][0]["digest"]));
    let status = host.status();
    assert_eq!(status["quarantined"], json!([]), "{status:#}");
    assert_eq!(host.list_changes(), 0);
    assert_eq!(Command::in_folder(host.folder(), &["diff"]).run().code(), 0, "it is in the lock now");
}

#[test]
fn what_is_quarantined_and_put_back_is_no_longer_so() {
    let mut host = locked(pinned("versioned_a", ""));
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    is_quarantined(&mut host);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_a");
    host.status_when("put back", |status| status["quarantined"] == json!([]));
    assert_eq!(version(&mut host), "a");
    assert!(host.audit().iter().all(|record| record["event"] != "catalog.replaced"));
}

#[test]
fn what_is_approved_is_what_was_quarantined_and_not_what_came_since() {
    let mut host = TestHost::recording_with(pinned("versioned_a", ""), &["--locked", "--watch", "off"]);
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    let _ = host.reload();
    let seen = is_quarantined(&mut host)["quarantined"][0]["digest"].clone();
    // While a person reads the difference, the file changes once more.
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    let _ = Command::in_folder(host.folder(), &["approve", "tool"]).run();
    assert!(host.folder().read(LOCK).contains(seen.as_str().unwrap()), "what was seen is pinned");
    assert_ne!(version(&mut host), "c", "what nobody saw is not served");
    let held = host.status_when("the other one held", |status| status["quarantined"][0]["digest"] != seen);
    assert_eq!(held["quarantined"][0]["component"], "tool", "{held:#}");
}

#[test]
fn bytes_that_were_seen_are_approved_and_no_others() {
    let mut host = locked(pinned("versioned_a", ""));
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    let seen = is_quarantined(&mut host)["quarantined"][0]["digest"].as_str().unwrap().to_owned();
    // While a person reads the difference, the file changes once more, and the new bytes are
    // quarantined in turn.
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    let held = host.status_when("the other one held", |status| status["quarantined"][0]["digest"] != seen.as_str());
    let pinned = host.folder().read(LOCK);
    let late = Command::in_folder(host.folder(), &["approve", "tool", "--digest", &seen]).run();
    let problem = format!(
        "tool is not what was seen any more: the digest of its bytes is {} now",
        held["quarantined"][0]["digest"].as_str().unwrap()
    );
    assert!(late.failed_with(1).contains(&problem), "{late:?}");
    assert_eq!((host.folder().read(LOCK), version(&mut host).as_str()), (pinned, "a"));
    let digest = held["quarantined"][0]["digest"].as_str().unwrap();
    assert_eq!(Command::in_folder(host.folder(), &["approve", "tool", "--digest", digest]).run().code(), 0);
    assert_eq!(version(&mut host), "c");
    // The commands work without a serving process too.
    let folder = host.ends_leaving_its_folder();
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_a");
    assert!(
        Command::in_folder(&folder, &["approve", "tool", "--digest", digest])
            .run()
            .failed_with(1)
            .contains("not what was seen")
    );
    let short = Command::in_folder(&folder, &["approve", "tool", "--digest", "0123"]).run();
    assert!(short.failed_with(2).contains("at least its first 16 digits"), "{short:?}");
}

#[test]
fn grants_that_grow_are_quarantined_and_grants_that_shrink_are_not() {
    let mut host = locked(pinned("versioned_a", ""));
    assert_eq!(version(&mut host), "a");
    save_manifest(host.folder(), GATE);
    let status = is_quarantined(&mut host);
    let differences = status["quarantined"][0]["differences"].to_string();
    assert!(differences.contains("tool linger may now: read /gate: gate"), "{differences}");
    let approved = Command::in_folder(host.folder(), &["approve", "linger"]).run();
    assert_eq!(approved.code(), 0, "{approved:?}");
    host.folder().write("gate/open", "open");
    assert_eq!(host.call("linger", json!({})).text(), "a open");
    save_manifest(host.folder(), "[components.tool.tools.linger.limits]\ndeadline = \"50ms\"\n");
    host.will_say("less is served than the lock pins: tool; ");
    host.serves_generation(3);
    assert!(host.call("linger", json!({})).error_text().contains("(limit \"deadline\")"), "the right is gone at once");
    let status = host.status();
    assert_eq!((&status["quarantined"], &status["lock_differs"]), (&json!([]), &json!(["tool"])), "{status:#}");
    assert_eq!(Command::in_folder(host.folder(), &["status"]).run().code(), 0);
}

#[test]
fn an_approval_that_is_weakened_is_quarantined_and_one_that_is_tightened_is_not() {
    let always = "approval = \"always\"\n";
    let folder = pinned("versioned_a", always);
    assert_eq!(folder.read(LOCK).matches("approval = \"always\"\ndefinition = ").count(), 2, "{}", folder.read(LOCK));
    let mut host = locked(folder);
    host.initialize("2025-11-25");
    assert!(host.call("version", json!({})).error_text().contains("needs a person's approval"));
    for (lines, words) in [
        ("", "tool linger needs less approval: was \"always\", is \"never\""),
        ("approval = \"destructive\"\n", "was \"always\", is \"destructive\""),
        ("approval = \"always\"\nremember = \"10m\"\n", "was \"always\", is \"always\", remembered for 10m"),
    ] {
        save_manifest(host.folder(), lines);
        let held =
            host.status_when(words, |status| status["quarantined"].to_string().replace('\\', "").contains(words));
        assert_eq!(held["quarantined"][0]["component"], "tool", "{held:#}");
        assert!(diff(host.folder()).contains(words));
        assert!(host.call("version", json!({})).error_text().contains("needs a person's approval"), "{words}");
    }
    let approved = Command::in_folder(host.folder(), &["approve", "tool"]).run();
    assert_eq!(approved.code(), 0, "{approved:?}");
    assert!(host.folder().read(LOCK).contains("remember_ms = 600000"), "{}", host.folder().read(LOCK));
    save_manifest(host.folder(), always);
    host.will_say("less is served than the lock pins: tool; ");
    let status = host.status();
    assert_eq!((&status["quarantined"], &status["lock_differs"]), (&json!([]), &json!(["tool"])), "{status:#}");
    let said = diff(host.folder());
    let tightened = "tool version needs more approval: was \"always\", remembered for 10m, is \"always\"";
    assert!(said.contains(tightened), "{said}");
}

#[test]
fn a_component_that_is_new_is_not_served_before_it_is_approved_and_one_that_is_gone_is_gone() {
    let mut host = locked(pinned("versioned_a", ""));
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    host.folder().write("components/more.wasm", toolcell_tests::fixture_bytes("versioned_c"));
    let more = "[components.more]\nsource = \"components/more.wasm\"\nprefix = \"more_\"\n";
    save_manifest(host.folder(), more);
    host.will_say("quarantined: more is not as the lock has it");
    assert_eq!(names(&mut host), ["version", "linger"]);
    // Changes that the lock does not cover take effect nonetheless: limits are not part of the
    // lock.
    save_manifest(host.folder(), &format!("[components.tool.limits]\narguments = \"16B\"\n{more}"));
    host.serves_generation(2);
    assert!(host.call("version", json!({"say": "more than sixteen bytes"})).is_error());
    let approved = Command::in_folder(host.folder(), &["approve", "more"]).run();
    assert_eq!(approved.code(), 0, "{approved:?}");
    host.next_of(LIST_CHANGED);
    assert_eq!(host.call("more_version", json!({})).text(), "c");
    save_manifest(host.folder(), "");
    host.next_of(LIST_CHANGED);
    assert_eq!(names(&mut host), ["version", "linger"]);
    assert_eq!(host.status()["lock_differs"], json!(["more"]));
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn a_lock_that_is_written_elsewhere_is_taken_up_and_one_that_is_damaged_or_gone_changes_nothing() {
    let mut host = locked(pinned("versioned_a", ""));
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    is_quarantined(&mut host);
    // This acts like a `git pull` that brings a new lock.
    let _ = Command::in_folder(host.folder(), &["lock"]).run();
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    for (lock, words) in [
        (Some("what is this?"), "is not a lock file, or was damaged"),
        (None, "is gone, and nothing else is to be served"),
    ] {
        match lock {
            Some(text) => host.folder().save(Saving::RenamedOver, LOCK, text),
            None => std::fs::remove_file(host.folder().path().join(LOCK)).unwrap(),
        }
        host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
        host.will_say(words);
        assert_eq!(version(&mut host), "b");
        host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
        let _ = Command::in_folder(host.folder(), &["lock"]).run();
        host.status_when("well again", |status| status["failed"].is_null() && status["quarantined"] == json!([]));
    }
}

#[test]
fn where_several_processes_serve_one_approval_is_enough() {
    let folder = pinned("versioned_a", "");
    let mut hosts = [(); 3].map(|()| TestHost::with_options(folder.clone(), &["--locked"]));
    for host in &mut hosts {
        host.initialize("2025-11-25");
        assert_eq!(version(host), "a");
    }
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    hosts.iter().for_each(|host| host.will_say("quarantined: tool is not as the lock has it"));
    let approved = Command::in_folder(&folder, &["approve", "tool"]).run();
    assert_eq!(approved.code(), 0, "{approved:?}");
    for host in &mut hosts {
        host.next_of(LIST_CHANGED);
        assert_eq!(version(host), "c");
        assert_eq!(host.list_changes(), 0);
    }
    let statuses = Command::in_folder(&folder, &["status", "--json"]).run().json();
    let quarantined: Vec<&Value> = statuses.as_array().unwrap().iter().map(|status| &status["quarantined"]).collect();
    assert_eq!(quarantined, [&json!([]), &json!([]), &json!([])], "each process answers for itself");
    let again = Command::in_folder(&folder, &["approve", "tool"]).run();
    assert_eq!(again.succeeded(), "unchanged: the files match what is served\n".repeat(3));
}

#[test]
fn approving_pins_as_well_where_a_process_serves_whatever_comes() {
    let folder = pinned("versioned_a", "");
    let mut host = TestHost::in_folder(folder.clone());
    assert_eq!(version(&mut host), "a");
    folder.save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(2);
    let approved = Command::in_folder(&folder, &["approve", "tool"]).run();
    assert!(approved.succeeded().ends_with("tool: pinned in toolcell.lock\n"), "{approved:?}");
    assert_eq!(Command::in_folder(&folder, &["diff"]).run().code(), 0);
}

/// A pattern of integers of 64 bits, as earlier versions wrote it.
const EARLIER_PATTERN: &str = "^(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18}|9[0-1][0-9]{17}|92[0-1][0-9]{16}|922[0-2][0-9]{15}|9223[0-2][0-9]{14}|92233[0-6][0-9]{13}|922337[0-1][0-9]{12}|92233720[0-2][0-9]{10}|922337203[0-5][0-9]{9}|9223372036[0-7][0-9]{8}|92233720368[0-4][0-9]{7}|922337203685[0-3][0-9]{6}|9223372036854[0-6][0-9]{5}|92233720368547[0-6][0-9]{4}|922337203685477[0-4][0-9]{3}|9223372036854775[0-7][0-9]{2}|922337203685477580[0-6][0-9]{0}|9223372036854775807|-(?:[1-9][0-9]{0,17}|[1-8][0-9]{18}|9[0-1][0-9]{17}|92[0-1][0-9]{16}|922[0-2][0-9]{15}|9223[0-2][0-9]{14}|92233[0-6][0-9]{13}|922337[0-1][0-9]{12}|92233720[0-2][0-9]{10}|922337203[0-5][0-9]{9}|9223372036[0-7][0-9]{8}|92233720368[0-4][0-9]{7}|922337203685[0-3][0-9]{6}|9223372036854[0-6][0-9]{5}|92233720368547[0-6][0-9]{4}|922337203685477[0-4][0-9]{3}|9223372036854775[0-7][0-9]{2}|922337203685477580[0-7][0-9]{0}|9223372036854775808))$";

/// A lock of `drawings` in which the tool `sum` is pinned as earlier versions pinned it.
fn earlier(lock: &str) -> String {
    let from = lock.find("[components.tool.tools.sum]").unwrap();
    let (before, rest) = lock.split_at(from);
    let (sum, after) = rest.split_at(rest.find("\n[").unwrap());
    let mut written = before.to_owned();
    for line in sum.lines() {
        let (blank, text) = line.split_at(line.len() - line.trim_start().len());
        if text.starts_with("definition_digest") {
            written +=
                "definition_digest = \"sha256:4cbb0b9f5bf2c09b7564bd41d8c8d922dc1aee90103cd11d5932a7f4e7c1a404\"\n";
            continue;
        }
        if text == "\"type\": \"integer\"" {
            written += &format!("{blank}\"maximum\": {},\n{blank}\"minimum\": {},\n", i64::MAX, i64::MIN);
        }
        written += &line.replace("^(0|-?[1-9][0-9]{0,18})$", EARLIER_PATTERN);
        written.push('\n');
    }
    written + after
}

#[test]
fn a_lock_with_the_form_that_earlier_versions_gave_types_differs_in_nothing_and_is_written_anew() {
    let folder = folder("drawings", "");
    let _ = Command::in_folder(&folder, &["lock"]).run();
    let now = folder.read(LOCK);
    let was = earlier(&now);
    assert!(was.contains(&i64::MAX.to_string()) && !now.contains(&i64::MAX.to_string()));
    folder.write(LOCK, &was);
    assert_eq!(Command::in_folder(&folder, &["diff"]).run().succeeded(), "toolcell.lock: nothing differs\n");
    let mut host = locked(folder);
    assert_eq!(host.call("sum", json!({"values": [40, 2]})).structured()["result"], 42);
    let folder = host.ends_leaving_its_folder();
    assert!(folder.read(LOCK) == was, "serving writes no lock");
    let _ = Command::in_folder(&folder, &["lock"]).run();
    assert!(folder.read(LOCK) == now, "{}", folder.read(LOCK));
    // What differs besides is a difference.
    folder.write(LOCK, was);
    save_manifest(&folder, "[components.tool.tools.sum]\ndescription = \"Adds.\"\n");
    let text = diff(&folder);
    assert!(text.contains("tool sum: description was \"Calls sum of the component.\", is \"Adds.\""), "{text}");
}
