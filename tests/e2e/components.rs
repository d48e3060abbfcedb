//! Commands that put components into a manifest, take them out and rename them: nothing else
//! changes, and nothing is left half written.

use std::os::unix::fs::symlink;

use ring::digest::{SHA256, digest};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of};

/// A manifest as a person writes it.
const MANIFEST: &str = "\
# The tools of the team.
version = 1

# Nothing to see here.
[components.versioned_a] # by Ann
source = \"components/versioned_a.wasm\"

[callers.local]
tools = [
    \"versioned_a/*\", # all of it
]
";

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// A folder without a manifest, that holds these fixtures.
fn without_manifest(fixtures: &[&str]) -> Folder {
    let folder = Folder::with_manifest("");
    std::fs::remove_file(folder.manifest()).unwrap();
    for name in fixtures {
        folder.write(&format!("{name}.wasm"), fixture_bytes(name));
    }
    folder
}

/// `sha256:…` of these bytes.
fn digest_of(bytes: &[u8]) -> String {
    let digits: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[test]
fn from_a_file_to_a_pinned_tool_in_one_command() {
    let folder = without_manifest(&["good"]);
    let added = run(&folder, &["add", "good.wasm", "--yes"]);
    let shown = added.succeeded();
    for words in ["  tools    echo", "+ [components.good]"] {
        assert!(shown.contains(words), "no {words:?} in\n{shown}");
    }
    // Rust's library asks for variables whatever a tool does: none is hinted at.
    let line = "\n  can use, if you grant it: environment variables; its language brings that along\n\n";
    assert!(shown.contains(line), "{shown}");
    assert_eq!(added.stderr, "toolcell.toml: good is added, and pinned in toolcell.lock\n");
    let text = "version = 1\n\n[components.good]\nsource = \"components/good.wasm\"\n";
    assert_eq!(folder.read("toolcell.toml"), text);
    assert_eq!(std::fs::read(folder.path().join("components/good.wasm")).unwrap(), fixture_bytes("good"));
    let called = run(&folder, &["call", "echo", "{\"text\":\"hi\"}"]);
    assert_eq!(called.succeeded(), "hi\n");
    let _ = run(&folder, &["serve", "--locked", "--control", "off"]).succeeded();
    let _ = run(&folder, &["remove", "good", "--delete-file", "--yes"]).succeeded();
    assert_eq!(folder.read("toolcell.toml"), "version = 1\n");
    assert!(!folder.read("toolcell.lock").contains("good"));
    assert!(!folder.path().join("components/good.wasm").exists());
}

/// The engine of JavaScript imports HTTP for any script.
#[test]
fn a_component_in_javascript_is_told_from_one_whose_own_code_asks_for_http() {
    let folder = without_manifest(&[]);
    let section = b"\0\x21\x09producers\x01\x08language\x01\x0aJavaScript\0";
    folder.write("script.wasm", [&fixture_bytes("reach_http")[..], section].concat());
    let added = run(&folder, &["add", "script.wasm", "--yes"]);
    let uses =
        "\n  can use, if you grant it: files, HTTP requests, environment variables; its language brings that along\n\n";
    assert!(added.succeeded().contains(uses) && !added.stdout.contains("can ask for"), "{added:?}");
    assert_eq!(added.stderr, "toolcell.toml: script is added, and pinned in toolcell.lock\n");
    let added = run(&folder, &["add", "script.wasm", "--name", "again", "--prefix", "x_", "--yes", "--json"]).json();
    assert_eq!(added["can_ask_for"], serde_json::json!([]));
    assert_eq!(added["can_use"], serde_json::json!(["files", "HTTP requests", "environment variables"]));
}

#[test]
fn a_component_is_added_and_removed_and_every_other_byte_stays() {
    let folder = Folder::with_manifest(MANIFEST);
    let _ = run(&folder, &["lock"]).succeeded();
    let locked = folder.read("toolcell.lock");
    folder.write("elsewhere/reach_http.wasm", fixture_bytes("reach_http"));
    let arguments = ["add", "elsewhere/reach_http.wasm", "--name", "web", "--prefix", "web_", "--yes"];
    let added = run(&folder, &arguments);
    let asks = "\n  can ask for HTTP requests; none of it is granted\n  \
                can use, if you grant it: files, environment variables; its language brings that along\n\n";
    assert!(added.succeeded().contains(asks), "{added:?}");
    let hint = "toolcell.toml: web is added, and pinned in toolcell.lock\n\n\
                hint: allow it something with `toolcell grant web \"GET https://api.example.com/*\"`\n";
    assert_eq!(added.stderr, hint);
    let table = "\n[components.web]\nsource = \"components/web.wasm\"\nprefix = \"web_\"\n";
    assert_eq!(folder.read("toolcell.toml"), MANIFEST.replace("\n[callers", &format!("{table}\n[callers")));
    let both = folder.read("toolcell.lock");
    assert!(both.starts_with(locked.trim_end()) && both.contains("[components.web]"), "{both}");
    let _ = run(&folder, &["diff"]).succeeded();
    let removed = run(&folder, &["remove", "web", "--yes"]);
    assert!(removed.succeeded().contains("- [components.web]"), "{removed:?}");
    assert_eq!(folder.read("toolcell.toml"), MANIFEST);
    assert_eq!(folder.read("toolcell.lock"), locked);
    assert!(folder.path().join("components/web.wasm").exists(), "only --delete-file deletes it");
}

#[test]
fn a_component_that_cannot_be_added_leaves_everything_as_it_is() {
    let folder = Folder::with_manifest(&MANIFEST.replace("versioned_a", "good"));
    for name in ["good", "core_module", "no_export", "versioned_b"] {
        folder.write(&format!("new/{name}.wasm"), fixture_bytes(name));
    }
    folder.write("components/taken.wasm", "something else");
    folder.make("empty");
    let before = folder.tree("");
    for (arguments, code, words) in [
        (&["new/versioned_b.wasm"][..], 2, "nobody can be asked"),
        (&["new/none.wasm", "--yes"], 1, "there is no such file"),
        (&["toolcell.toml", "--yes"], 1, "error: toolcell.toml: "),
        (&["new/core_module.wasm", "--yes"], 1, "new/core_module.wasm"),
        (&["new/no_export.wasm", "--yes"], 1, "new/no_export.wasm"),
        (&["new/good.wasm", "--yes"], 1, "the manifest has a component \"good\" already"),
        (&["new/good.wasm", "--name", "other", "--yes"], 1, "both have a tool"),
        (&["new/good.wasm", "--name", "Other", "--yes"], 2, "must not contain 'O'"),
        (&["new/good.wasm", "--prefix", "a b", "--yes"], 2, "the prefix \"a b\""),
        (&["new/versioned_b.wasm", "--name", "taken", "--yes"], 1, "exists already, and is something else"),
        (&["empty", "--yes"], 1, "neither a toolcell.toml nor a built component"),
        (&["https://example.com/a.wasm", "--yes"], 2, "has no digest"),
        (&["https://example.com/a.wasm@sha256:12", "--yes"], 2, "is not a SHA-256 digest"),
    ] {
        let all: Vec<&str> = ["add"].into_iter().chain(arguments.iter().copied()).collect();
        let finished = run(&folder, &all);
        let said = finished.failed_with(code);
        assert!(said.contains(words), "{arguments:?}: no {words:?} in\n{said}");
        assert!(said.contains("hint: ") || said.contains("stays as it is"), "{arguments:?}: no advice in\n{said}");
        assert_eq!(folder.tree(""), before, "{arguments:?}");
    }
    let refused = run(&folder, &["add", "new/core_module.wasm", "--yes", "--json"]);
    assert_eq!((refused.code(), refused.json()["ok"].clone()), (1, false.into()), "{refused:?}");
}

#[test]
fn a_download_is_what_its_digest_says_or_nothing() {
    let server = HttpServer::start();
    let bytes = fixture_bytes("good");
    let url = server.holding("/tools/good.wasm?version=1", bytes.clone());
    let right = digest_of(&bytes);
    let moved = server.url(&format!("/redirect?{url}"));
    for (address, from) in [(url.as_str(), "itself"), (&moved, "a redirect")] {
        let folder = without_manifest(&[]);
        let added = run(&folder, &["add", &format!("{address}@{right}"), "--name", "good", "--yes", "--json"]);
        assert_eq!(added.json()["digest"], right, "{from}: {added:?}");
        assert_eq!(std::fs::read(folder.path().join("components/good.wasm")).unwrap(), bytes, "{from}");
    }
    let named = without_manifest(&[]);
    let _ = run(&named, &["add", &format!("{url}@{right}"), "--yes"]).succeeded();
    assert!(named.read("toolcell.toml").contains("[components.good]"));

    let folder = without_manifest(&[]);
    let wrong = digest_of(b"something else");
    for (address, code, words) in [
        (format!("{url}@{wrong}"), 1, "is not what was named"),
        (format!("{}@{right}", server.url("/status/404")), 1, "answers with status 404"),
        (format!("{}@{right}", server.url("/redirect?")), 1, "comes after more than 5 redirects"),
        (format!("{}@{right}", server.url("/cut")), 1, "cannot be downloaded"),
        (format!("{}@{right}", server.url("/endless")), 1, "more than 134217728 bytes"),
        (format!("{}@{right}", server.url("/redirect?http://192.0.2.1/x")), 1, "is not reached over https"),
        (format!("{}@{right}", server.url("/redirect?/redirect?/x")), 1, "is not what was named"),
        (format!("http://192.0.2.1/good.wasm@{right}"), 1, "is not reached over https"),
    ] {
        let finished = run(&folder, &["add", &address, "--name", "good", "--yes"]);
        let said = finished.failed_with(code);
        assert!(said.contains(words), "{address}: no {words:?} in\n{said}");
        assert_eq!(folder.tree("").len(), 1, "{address}: something was kept");
    }
}

#[test]
fn a_project_is_linked_with_what_its_manifest_says_and_without_its_grants() {
    let project = "\
version = 1

[components.counts]
source = \"build/counts.wasm\"
filesystem = { \"/home\" = { path = \"/\" } }

[components.counts.limits]
deadline = \"7s\"
";
    let folder = without_manifest(&[]);
    folder.write("projects/counts/toolcell.toml", project);
    let early = run(&folder, &["add", "projects/counts", "--yes"]);
    assert!(early.failed_with(1).contains("projects/counts/build/counts.wasm is not built yet"), "{early:?}");
    folder.write("projects/counts/build/counts.wasm", fixture_bytes("good"));
    folder.make("team");
    let added = run(&folder, &["add", "projects/counts", "-m", "team/tools.toml", "--yes"]);
    assert!(added.succeeded().contains("its project grants it filesystem: that is not taken over"), "{added:?}");
    let text = "version = 1\n\n[components.counts]\nsource = \"../projects/counts/build/counts.wasm\"\n\n\
                [components.counts.limits]\ndeadline = \"7s\"\n";
    assert_eq!(folder.read("team/tools.toml"), text);
    assert!(!folder.path().join("team/tools.lock").exists(), "what is worked on begins no lock");
    assert!(!folder.path().join("team/components").exists());
    let called = run(&folder, &["call", "echo", "{\"text\":\"hi\"}", "-m", "team/tools.toml"]);
    assert_eq!(called.succeeded(), "hi\n");

    // A folder with one built component, and a link to a file that builds replace.
    let bare = without_manifest(&["good"]);
    bare.make("out");
    symlink("../good.wasm", bare.path().join("out/latest.wasm")).unwrap();
    let _ = run(&bare, &["add", "out", "--yes"]).succeeded();
    assert!(bare.read("toolcell.toml").contains("[components.latest]\nsource = \"out/latest.wasm\"\n"));
}

#[test]
fn a_component_is_renamed_with_its_lock_and_its_callers() {
    let folder = Folder::with_manifest(MANIFEST);
    folder.write(".toolcell/versioned_a.redb", "state");
    let _ = run(&folder, &["lock"]).succeeded();
    let renamed = run(&folder, &["rename", "versioned_a", "numbers", "--yes"]);
    assert!(renamed.succeeded().contains("+ [components.numbers] # by Ann"), "{renamed:?}");
    assert!(renamed.stderr.contains("its state stays in .toolcell/versioned_a.redb"), "{renamed:?}");
    let expected = MANIFEST
        .replace("[components.versioned_a]", "[components.numbers]")
        .replace("\"versioned_a/*\"", "\"numbers/*\"");
    assert_eq!(folder.read("toolcell.toml"), expected);
    let diff = run(&folder, &["diff"]);
    assert!(diff.succeeded().contains("nothing differs"), "{diff:?}");
    for (arguments, code, words) in [
        (["rename", "versioned_a", "x", "--yes"], 1, "it has: numbers"),
        (["rename", "numbers", "No", "--yes"], 2, "must not contain 'N'"),
        (["rename", "numbers", "numbers", "--yes"], 1, "already"),
        (["remove", "versioned_a", "--yes", "--delete-file"], 1, "it has: numbers"),
    ] {
        let finished = run(&folder, &arguments);
        let said = finished.failed_with(code);
        assert!(said.contains(words), "{arguments:?}: no {words:?} in\n{said}");
        assert_eq!(folder.read("toolcell.toml"), expected, "{arguments:?}");
    }
}

#[test]
fn only_a_file_of_its_own_among_the_components_is_deleted() {
    let shared =
        format!("{}\n[components.again]\nsource = \"components/good.wasm\"\nprefix = \"a_\"\n", manifest_of(&["good"]));
    let folder = Folder::with_manifest(&shared);
    folder.write("outside.wasm", fixture_bytes("versioned_a"));
    let _ = run(&folder, &["add", "outside.wasm", "--link", "--yes"]).succeeded();
    let before = folder.tree("");
    for (name, words) in [("again", "is the file of good as well"), ("outside", "is not in components/")] {
        let finished = run(&folder, &["remove", name, "--delete-file", "--yes"]);
        assert!(finished.failed_with(1).contains(words), "{finished:?}");
        assert_eq!(folder.tree(""), before, "{name}");
    }
}
