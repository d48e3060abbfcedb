//! Components served, called and checked without a manifest, with rights from the command line.

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, modern_meta};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// A folder without a manifest, that holds these fixtures.
fn folder(fixtures: &[&str]) -> Folder {
    let folder = Folder::with_manifest("");
    std::fs::remove_file(folder.manifest()).unwrap();
    for name in fixtures {
        folder.write(&format!("{name}.wasm"), fixture_bytes(name));
    }
    folder
}

/// A line of a modern call.
fn call(id: u32, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments, "_meta": modern_meta()});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Texts of the answers, in the order of the calls.
fn answers(finished: &Finished) -> Vec<String> {
    let mut frames: Vec<Value> = finished.frames().into_iter().filter(|frame| frame["id"].is_number()).collect();
    frames.sort_by_key(|frame| frame["id"].as_u64());
    frames.iter().map(|frame| frame["result"].to_string()).collect()
}

#[test]
fn components_are_served_with_the_rights_of_the_command_line_and_no_others() {
    let server = HttpServer::start();
    let folder = folder(&["reach_http", "reach_files"]);
    folder.write("data/a.txt", "alpha");
    let input = [
        call(1, "http", &json!({"url": server.url("/allowed/x")})),
        call(2, "http", &json!({"url": server.url("/other")})),
        call(3, "read", &json!({"path": "/data/a.txt"})),
        call(4, "write", &json!({"path": "/data/b.txt", "bytes": "b"})),
    ];
    let rule = format!("GET {}", server.url("/allowed/*"));
    let serve = |more: &[&str]| {
        let given = ["serve", "reach_http.wasm", "reach_files.wasm", "--control", "off", "--allow", &rule];
        let all: Vec<&str> = given.into_iter().chain(more.iter().copied()).collect();
        Command::in_folder(&folder, &all).with_input(input.concat()).run()
    };
    let read = serve(&["--mount", "/data=./data:ro"]);
    let found = answers(&read);
    assert_eq!(found.len(), 4, "{read:?}");
    let is_ok: Vec<bool> = found.iter().map(|answer| answer.contains("\"ok\"")).collect();
    assert_eq!(is_ok, [true, false, true, false], "{found:?}");
    assert!(!folder.path().join("data/b.txt").exists() && !folder.manifest().exists());
    let written = serve(&["--mount", "/data=./data:rw"]);
    assert!(answers(&written)[3].contains("\"ok\""), "{written:?}");
    assert_eq!(folder.read("data/b.txt"), "b");
    assert_eq!(server.seen().iter().map(|seen| seen.target().to_owned()).collect::<Vec<_>>(), ["/allowed/x"; 2]);
}

#[test]
fn a_wrong_option_is_named_and_no_line_of_a_file_that_nobody_has() {
    let folder = folder(&["good", "reach_http"]);
    folder.write("other/good.wasm", fixture_bytes("good"));
    folder.write("notes.txt", "");
    for (arguments, code, words) in [
        (&["good.wasm", "--allow", "GET htps://x.example"][..], 1, "--allow 'GET htps://x.example': "),
        (&["good.wasm", "--allow", "launch rockets"], 2, "unknown right \"launch rockets\""),
        (&["good.wasm", "--allow", "GET https://x.example"], 1, "--allow 'GET https://x.example': component \"good\""),
        (&["good.wasm", "other/good.wasm"], 2, "would have one name, good"),
        (&["good.wasm", "reach_http.wasm", "--allow", "keyvalue"], 1, "--allow 'keyvalue': "),
        (&["good.wasm", "--mount", "/data"], 2, "--mount /data is not a mount"),
        (&["good.wasm", "--mount", "/data=./none"], 1, "there is no ./none"),
        (&["good.wasm", "--mount", "/data/../x=."], 1, "--mount /data/../x=.: "),
        (&["good.wasm", "--env", "=x"], 2, "names no variable"),
        (&["none.wasm"], 1, "there is no none.wasm"),
        (&["notes.txt"], 2, "is not a .wasm file"),
        (&["--allow", "keyvalue"], 2, "without a manifest"),
        (&["good.wasm", "--locked"], 2, "cannot be used with"),
    ] {
        let all: Vec<&str> = ["serve", "--control", "off"].into_iter().chain(arguments.iter().copied()).collect();
        let finished = run(&folder, &all);
        let said = finished.failed_with(code);
        assert!(said.contains(words), "{arguments:?}: no {words:?} in\n{said}");
        assert!(!said.contains("(command line):") && !said.contains("toolcell.toml:"), "{arguments:?}:\n{said}");
    }
    // A call ends with the same codes as a server.
    for (arguments, code) in [
        (["--mount", "/data"], 2),
        (["--env", "=x"], 2),
        (["--allow", "launch rockets"], 2),
        (["--mount", "/data=./none"], 1),
    ] {
        let call = ["call", "echo", r#"{"text":"x"}"#, "-m", "good.wasm"];
        let finished = run(&folder, &[&call[..], &arguments].concat());
        assert!(finished.failed_with(code).contains("error: "), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn the_manifest_that_options_come_to_is_written_and_is_served() {
    let folder = folder(&["reach_http", "good"]);
    folder.make("data");
    let options = ["--allow", "GET https://api.example.com/*", "--allow", "POST http://127.0.0.1:8080/x"];
    let arguments: Vec<&str> =
        ["serve", "reach_http.wasm", "good.wasm"].into_iter().chain(options).chain(["--save"]).collect();
    let saved = run(&folder, &arguments);
    let _ = saved.succeeded();
    assert!(saved.stderr.contains("toolcell.toml: written"), "{saved:?}");
    let text = "\
version = 1

[components.reach_http]
source = \"reach_http.wasm\"

[components.reach_http.network]
http = [
    \"GET https://api.example.com/*\",
    \"POST http://127.0.0.1:8080/x\",
]
private = [
    \"127.0.0.1:8080\",
]

[components.good]
source = \"good.wasm\"
";
    assert_eq!(folder.read("toolcell.toml"), text);
    let _ = run(&folder, &["check"]).succeeded();
    let again = run(&folder, &arguments);
    assert!(again.failed_with(2).contains("toolcell.toml exists already"), "{again:?}");
    folder.make("elsewhere");
    let _ = run(&folder, &["serve", "good.wasm", "--save=elsewhere/tools.toml"]).succeeded();
    assert!(folder.read("elsewhere/tools.toml").contains("source = \"../good.wasm\""));
}

#[test]
fn one_component_is_called_listed_and_checked_without_a_manifest() {
    let server = HttpServer::start();
    let folder = folder(&["good", "reach_http"]);
    let called = run(&folder, &["call", "echo", "{\"text\":\"hi\"}", "-m", "good.wasm"]);
    assert_eq!(called.succeeded(), "hi\n");
    let listed = run(&folder, &["list", "-m", "good.wasm"]);
    assert!(listed.succeeded().contains("echo"), "{listed:?}");
    let checked = run(&folder, &["check", "good.wasm"]);
    assert!(checked.succeeded().contains("components: 1"), "{checked:?}");
    let arguments = json!({"url": server.url("/x")}).to_string();
    let denied = run(&folder, &["call", "http", &arguments, "-m", "reach_http.wasm"]);
    assert!(server.seen().is_empty(), "{denied:?}");
    let rule = format!("GET {}", server.url("/*"));
    let allowed = run(&folder, &["call", "http", &arguments, "-m", "reach_http.wasm", "--allow", &rule]);
    let _ = allowed.succeeded();
    assert_eq!(server.only_seen().target(), "/x");
    folder.write("toolcell.toml", "version = 1\n");
    let manifest = run(&folder, &["call", "http", "{}", "--allow", &rule]);
    assert!(manifest.failed_with(1).contains("without a manifest"), "{manifest:?}");
}

/// The option that a call's output tells, with its value.
fn told_option(said: &str) -> [String; 2] {
    let told =
        said.lines().find_map(|line| line.strip_prefix("hint: call it with ")).unwrap_or_else(|| panic!("{said}"));
    let told = told.split(" in place of ").next().unwrap();
    let (option, value) = told.split_once(' ').unwrap_or_else(|| panic!("{told}"));
    [option.to_owned(), value.trim_matches('\'').to_owned()]
}

#[test]
fn a_denial_without_a_manifest_tells_the_option_that_allows_it() {
    let server = HttpServer::start();
    let folder = folder(&["reach_http", "reach_files"]);
    folder.write("data/a.txt", "alpha");
    let read = json!({"path": "/data/a.txt"}).to_string();
    let write = json!({"path": "/data/b.txt", "bytes": "b"}).to_string();
    let get = json!({"url": server.url("/x")}).to_string();
    for (component, tool, arguments, given, expected) in [
        ("reach_files.wasm", "read", &read, &[][..], ["--mount", "/data=./data"]),
        ("reach_files.wasm", "write", &write, &[], ["--mount", "/data=./data:rw"]),
        ("reach_files.wasm", "write", &write, &["--mount", "/data=data"], ["--mount", "/data=data:rw"]),
        ("reach_http.wasm", "http", &get, &[], ["--allow", &format!("GET {}", server.url("/x"))]),
    ] {
        let call = ["call", tool, arguments, "-m", component];
        let denied = run(&folder, &[&call[..], given].concat()).stderr;
        assert!(!denied.contains("toolcell grant") && !denied.contains("add to ["), "{denied}");
        let option = told_option(&denied);
        assert_eq!(option, expected, "{denied}");
        let allowed = run(&folder, &[&call[..], &[&option[0], &option[1]]].concat());
        assert!(!allowed.stderr.contains("denied") && allowed.code() == 0, "{allowed:?}");
    }
    assert_eq!(folder.read("data/b.txt"), "b");
    let missing = run(&folder, &["call", "read", r#"{"path":"/no/a.txt"}"#, "-m", "reach_files.wasm"]).stderr;
    assert!(missing.contains("hint: call it with --mount /no=./no (before: mkdir -p ./no)\n"), "{missing}");
}
