//! Commands that edit a manifest in place: rights are granted, revoked and taken from an
//! observation, and everything else stays as it is.

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of, modern_meta};

/// A manifest as a person writes it.
const MANIFEST: &str = "\
# The tools of the team.
version = 1

[components.reach_http] # by Ann
source = \"components/reach_http.wasm\"

[components.reach_http.network]
# The public API.
http = [
    \"GET https://api.example.com/v1/*\", # forecasts
]

# Nothing here is granted yet.
[components.reach_state]
source = \"components/reach_state.wasm\"
";

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

#[test]
fn a_right_is_granted_and_revoked_and_every_other_byte_stays() {
    let folder = Folder::with_manifest(MANIFEST);
    let rules = ["GET https://api.example.com/v2/*", "GET http://127.0.0.1:8080/x"];
    let granted = run(&folder, &["grant", "reach_http", rules[0], rules[1], "--yes"]);
    let shown = "+     \"GET https://api.example.com/v2/*\",\n+     \"GET http://127.0.0.1:8080/x\",\n\
                 + private = [\"127.0.0.1:8080\"]\n";
    assert_eq!(granted.succeeded(), shown);
    assert!(granted.stderr.contains("toolcell.toml: changed"), "{granted:?}");
    let more = "# forecasts\n    \"GET https://api.example.com/v2/*\",\n    \
                \"GET http://127.0.0.1:8080/x\",\n]\nprivate = [\"127.0.0.1:8080\"]\n";
    assert_eq!(folder.read("toolcell.toml"), MANIFEST.replace("# forecasts\n]\n", more));
    let again = run(&folder, &["grant", "reach_http", rules[0], "--yes"]);
    assert_eq!(again.succeeded(), "toolcell.toml: nothing to change\n");

    let rights = ["read /notes = ./notes", "env UNITS = metric", "config theme = dark", "keyvalue"];
    let arguments: Vec<&str> = ["grant", "reach_state"].into_iter().chain(rights).chain(["-y"]).collect();
    let _ = run(&folder, &arguments).succeeded();
    let text = folder.read("toolcell.toml");
    let tables = "
[components.reach_state.filesystem]
\"/notes\" = { path = \"./notes\", access = \"read\" }

[components.reach_state.env]
UNITS = \"metric\"

[components.reach_state.config]
theme = \"dark\"

[components.reach_state.keyvalue]
quota = \"1MiB\"
";
    assert!(text.ends_with(tables), "{text}");
    let written = run(&folder, &["grant", "reach_state", "write /notes = ./notes", "--yes"]);
    assert!(written.succeeded().contains("+ \"/notes\" = { path = \"./notes\", access = \"write\" }"), "{written:?}");

    let rights = ["write /notes", "env UNITS", "config theme", "keyvalue"];
    let arguments: Vec<&str> = ["revoke", "reach_state"].into_iter().chain(rights).chain(["--yes"]).collect();
    let _ = run(&folder, &arguments).succeeded();
    let _ = run(&folder, &["revoke", "reach_http", rules[0], rules[1], "private 127.0.0.1:8080", "--yes"]).succeeded();
    assert_eq!(folder.read("toolcell.toml"), MANIFEST);
}

#[test]
fn a_right_that_cannot_be_edited_leaves_the_manifest_as_it_is() {
    let folder = Folder::with_manifest(MANIFEST);
    for (arguments, code, words) in [
        (vec!["grant", "reach_http", "GET https://x.example"], 2, "nobody can be asked"),
        (vec!["grant", "nobody", "keyvalue", "--yes"], 1, "it has: reach_http, reach_state"),
        (vec!["grant", "reach_http", "launch rockets", "--yes"], 2, "is no right"),
        (vec!["grant", "reach_http", "fetch https://x.example", "--yes"], 1, "stays as it is"),
        (vec!["grant", "reach_http", "tcp db.example.com", "--yes"], 1, "stays as it is"),
        (vec!["revoke", "reach_http", "GET https://x.example", "--yes"], 1, "has no such right"),
        (vec!["revoke", "reach_state", "keyvalue", "--yes"], 1, "has no such right"),
    ] {
        let finished = run(&folder, &arguments);
        let said = finished.failed_with(code);
        assert!(said.contains(words), "{arguments:?}: no {words:?} in\n{said}");
        assert_eq!(folder.read("toolcell.toml"), MANIFEST, "{arguments:?}");
    }
}

#[test]
fn a_secret_is_granted_by_its_place_and_revoked_by_its_name() {
    let folder = Folder::with_manifest(MANIFEST);
    let rights = [
        "secret KEY = env:KEY as Authorization: Bearer {} for https://api.example.com",
        "secret ID = file:id as ?id for GET https://api.example.com/v1/x",
    ];
    let _ = run(&folder, &["grant", "reach_http", rights[0], rights[1], "--yes"]).succeeded();
    let table = "
[components.reach_http.secrets]
KEY = { from = \"env:KEY\", header = \"Authorization\", value = \"Bearer {}\", for = \"https://api.example.com\" }
ID = { from = \"file:id\", query = \"id\", for = \"GET https://api.example.com/v1/x\" }
";
    assert_eq!(folder.read("toolcell.toml"), MANIFEST.replace("\n# Nothing", &format!("{table}\n# Nothing")));
    let elsewhere = run(&folder, &["grant", "reach_http", "secret A = env:A as x-a for https://x.example", "--yes"]);
    assert!(elsewhere.failed_with(1).contains("no http rule allows"), "{elsewhere:?}");
    let _ = run(&folder, &["revoke", "reach_http", "secret KEY", "secret ID", "--yes"]).succeeded();
    assert_eq!(folder.read("toolcell.toml"), MANIFEST);
}

#[test]
fn one_tool_loses_a_right_and_gets_it_back() {
    let manifest = MANIFEST.replace("# forecasts\n]", "# forecasts\n    \"GET https://b.example/*\",\n]");
    let folder = Folder::with_manifest(&manifest);
    let rule = "GET https://b.example/*";
    let tool = ["--tool", "http_narrowed", "--yes"];
    let with = |command: &'static str, rule: &'static str| {
        [command, "reach_http", rule].into_iter().chain(tool).collect::<Vec<_>>()
    };
    let _ = run(&folder, &with("revoke", rule)).succeeded();
    let table = "
[components.reach_http.tools.http_narrowed]
network = { http = [\"GET https://api.example.com/v1/*\"] }
";
    let narrowed = manifest.replace("\n# Nothing", &format!("{table}\n# Nothing"));
    assert_eq!(folder.read("toolcell.toml"), narrowed);
    let explained =
        |tool: &str| run(&folder, &["policy", "explain", tool, "GET https://b.example/x"]).succeeded().to_owned();
    assert!(explained("reach_http/http_narrowed").starts_with("denied"));
    assert!(explained("reach_http/http").starts_with("allowed"));
    let again = run(&folder, &with("revoke", rule));
    assert!(again.failed_with(1).contains("reach_http/http_narrowed has no such right"), "{again:?}");
    let wider = run(&folder, &with("grant", "GET https://c.example/*"));
    assert!(wider.failed_with(1).contains("does not lie within one of the component's"), "{wider:?}");
    assert_eq!(folder.read("toolcell.toml"), narrowed);
    let _ = run(&folder, &with("grant", rule)).succeeded();
    assert!(explained("reach_http/http_narrowed").starts_with("allowed"));
}

/// Lines of modern calls.
fn calls(calls: &[(&str, Value)]) -> String {
    let line = |(id, (name, arguments)): (usize, &(&str, Value))| {
        let params = json!({"name": name, "arguments": arguments, "_meta": modern_meta()});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    };
    calls.iter().enumerate().map(line).collect()
}

#[test]
fn what_was_observed_is_applied_and_works_in_one_round() {
    let server = HttpServer::start();
    let manifest = format!(
        "{}\n[components.reach_files.filesystem]\n\"/files\" = {{ path = \"files\" }} # shared\n",
        manifest_of(&["reach_http", "reach_state", "reach_settings", "reach_files"])
    );
    let folder = Folder::with_manifest(&manifest);
    folder.make("files");
    let tried = [
        ("http", json!({"url": format!("http://{}/x", server.address())})),
        ("keyvalue", json!({"op": "set", "key": "a", "value": "one"})),
        ("config", json!({"key": "theme"})),
    ];
    let serve = |options: &[&str]| {
        let arguments: Vec<&str> = ["serve"].into_iter().chain(options.iter().copied()).collect();
        Command::in_folder(&folder, &arguments).with_input(calls(&tried)).run()
    };
    let denied = serve(&["--observe", "tried.jsonl"]);
    assert_eq!(denied.frames().len(), tried.len(), "{denied:?}");
    assert!(denied.stderr.contains("denied attempts"), "{denied:?}");
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes", "-m", "toolcell.toml"]);
    let _ = applied.succeeded();
    let text = folder.read("toolcell.toml");
    assert!(text.contains("\"/files\" = { path = \"files\" } # shared\n"), "{text}");
    let again = serve(&["--observe", "more.jsonl"]);
    assert!(again.stderr.contains("observed 0 denied attempts"), "{text}\n{again:?}");
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    assert_eq!(applied.succeeded(), "toolcell.toml: nothing to change\n");
}

#[test]
fn two_manifests_of_a_folder_have_a_lock_each() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    folder.write("other.toml", manifest_of(&["versioned_a"]));
    folder.write("components/versioned_a.wasm", fixture_bytes("versioned_a"));
    let _ = run(&folder, &["lock"]).succeeded();
    let _ = run(&folder, &["lock", "-m", "other.toml"]).succeeded();
    assert!(folder.read("toolcell.lock").contains("[components.good]"));
    assert!(folder.read("other.lock").contains("[components.versioned_a]"));
    let served = run(&folder, &["serve", "--locked", "-m", "other.toml", "--control", "off"]);
    let _ = served.succeeded();
}
