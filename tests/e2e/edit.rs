//! Commands that edit a manifest in place: rights are granted, revoked and taken from an
//! observation, and everything else stays as it is.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, NameServer, Named, TcpEcho, UdpEcho};
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

    let granted = |component: &str, rights: &[&str]| {
        let _ = run(&folder, &[&["grant", component], rights, &["-y"]].concat()).succeeded();
    };
    let others = "
[components.reach_files]
source = \"components/reach_files.wasm\"

[components.reach_settings]
source = \"components/reach_settings.wasm\"
";
    let whole = format!("{MANIFEST}{others}");
    folder.write("toolcell.toml", format!("{}{others}", folder.read("toolcell.toml")));
    folder.make("notes");
    granted("reach_state", &["env UNITS = metric", "keyvalue"]);
    granted("reach_files", &["read /notes = ./notes"]);
    granted("reach_settings", &["config theme = dark"]);
    let text = folder.read("toolcell.toml");
    for (component, table) in [
        ("reach_state", "\n[components.reach_state.env]\nUNITS = \"metric\"\n"),
        ("reach_state", "\n[components.reach_state.keyvalue]\nquota = \"1MiB\"\n"),
        (
            "reach_files",
            "\n[components.reach_files.filesystem]\n\"/notes\" = { path = \"./notes\", access = \"read\" }\n",
        ),
        ("reach_settings", "\n[components.reach_settings.config]\ntheme = \"dark\"\n"),
    ] {
        assert!(text.contains(table), "{component}: {text}");
    }
    let written = run(&folder, &["grant", "reach_files", "write /notes = ./notes quota=10MiB", "--yes"]);
    let shown = "+ \"/notes\" = { path = \"./notes\", access = \"write\", quota = \"10MiB\" }";
    assert!(written.succeeded().contains(shown), "{written:?}");

    for (component, rights) in [
        ("reach_files", &["write /notes"][..]),
        ("reach_state", &["env UNITS", "keyvalue"]),
        ("reach_settings", &["config theme"]),
    ] {
        let _ = run(&folder, &[&["revoke", component], rights, &["--yes"]].concat()).succeeded();
    }
    let _ = run(&folder, &["revoke", "reach_http", rules[0], rules[1], "private 127.0.0.1:8080", "--yes"]).succeeded();
    assert_eq!(folder.read("toolcell.toml"), whole);
}

#[test]
fn what_would_not_load_is_refused_with_the_reason_and_what_is_written_loads() {
    let files = "\n[components.reach_files]\nsource = \"components/reach_files.wasm\"\n\
                 filesystem = { \"/data\" = { path = \"data\" } }\n";
    let manifest = format!("{MANIFEST}{files}");
    let folder = Folder::with_manifest(&manifest);
    folder.make("data");
    for (component, right, says) in [
        ("reach_state", "GET https://a.example/x", "it does not import wasi:http/outgoing-handler"),
        ("reach_state", "read /data = ./data", "it does not import wasi:filesystem"),
        ("reach_files", "keyvalue", "it does not import wasi:keyvalue"),
        ("reach_files", "read /n = ./nowhere", "there is no \"./nowhere\""),
        ("reach_files", "write /c = ./toolcell.toml", "the mount \"/c\" holds the manifest"),
        ("reach_files", "scratch /tmp = 1000PiB", "1000PiB"),
    ] {
        let refused = run(&folder, &["grant", component, right, "--yes"]);
        assert!(refused.failed_with(1).contains(says), "{right}: {refused:?}");
        assert!(refused.stderr.contains("toolcell.toml would"), "{right}: {refused:?}");
        assert_eq!(folder.read("toolcell.toml"), manifest, "{right}");
    }
    for (component, right, line) in [
        ("reach_http", "http://127.0.0.1:8081/x", "private = [\"127.0.0.1:8081\"]"),
        (
            "reach_files",
            "write /n = ./nowhere create quota=1MiB",
            "filesystem = { \"/data\" = { path = \"data\" }, \
             \"/n\" = { path = \"./nowhere\", access = \"write\", create = true, quota = \"1MiB\" } }",
        ),
        ("reach_files", "scratch /tmp", "\"/tmp\" = { scratch = \"8MiB\" } }"),
    ] {
        let _ = run(&folder, &["grant", component, right, "--yes"]).succeeded();
        let text = folder.read("toolcell.toml");
        assert!(text.contains(line), "{right}: {text}");
        assert_eq!(run(&folder, &["check"]).code(), 0, "{right}");
    }
    // The service may have what this shell lacks: that is said, and the manifest is written.
    let granted = run(&folder, &["grant", "reach_files", "env TOOLCELL_TEST_NOWHERE", "--yes"]);
    assert!(granted.succeeded().contains("from = \"env:TOOLCELL_TEST_NOWHERE\""), "{granted:?}");
    assert!(granted.stderr.contains("the host's environment has no variable"), "{granted:?}");
    // What was broken before is no reason to refuse another right.
    let again = run(&folder, &["grant", "reach_http", "GET https://b.example/", "--yes"]);
    assert!(!again.stderr.contains("no variable"), "{again:?}");
    let _ = again.succeeded();
}

#[test]
fn a_right_that_cannot_be_edited_leaves_the_manifest_as_it_is() {
    let folder = Folder::with_manifest(MANIFEST);
    for (arguments, code, words) in [
        (vec!["grant", "reach_http", "GET https://x.example"], 2, "nobody can be asked"),
        (vec!["grant", "nobody", "keyvalue", "--yes"], 1, "it has: reach_http, reach_state"),
        (vec!["grant", "reach_http", "launch rockets", "--yes"], 2, "unknown right"),
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

#[test]
fn a_right_of_a_tool_that_the_component_does_not_have_is_neither_taken_nor_given() {
    let folder = Folder::with_manifest(MANIFEST);
    for [command, component, right, tool, hint] in [
        ["revoke", "reach_http", "GET https://api.example.com/v1/*", "http_narowed", "did you mean \"http_narrowed\"?"],
        ["grant", "reach_http", "GET https://api.example.com/v1/*", "http_narowed", "did you mean \"http_narrowed\"?"],
        ["grant", "reach_state", "keyvalue", "nope", "it has: "],
    ] {
        let refused = run(&folder, &[command, component, right, "--tool", tool, "--yes"]);
        let said = format!("component {component:?} has no tool {tool:?}");
        assert!(refused.failed_with(1).contains(&said) && refused.stderr.contains(hint), "{refused:?}");
        assert_eq!(folder.read("toolcell.toml"), MANIFEST);
    }
}

/// Lines of modern calls.
fn calls(calls: &[(&str, Value)]) -> String {
    let line = |(id, (name, arguments)): (usize, &(&str, Value))| {
        let params = json!({"name": name, "arguments": arguments, "_meta": modern_meta()});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    };
    calls.iter().enumerate().map(line).collect()
}

/// The outcome of each call, in the order of the calls: the error's text, or that it went well.
fn outcomes(finished: &Finished) -> Vec<Result<Value, String>> {
    let mut frames = finished.frames();
    frames.sort_by_key(|frame| frame["id"].as_u64());
    let outcome = |frame: &Value| {
        let found = &frame["result"]["structuredContent"];
        match found.get("ok") {
            Some(value) => Ok(value.clone()),
            None => Err(found["error"].as_str().unwrap_or(&frame.to_string()).to_owned()),
        }
    };
    frames.iter().map(outcome).collect()
}

#[test]
fn what_was_observed_is_applied_and_works_in_one_round() {
    let server = HttpServer::start();
    let tcp = TcpEcho::start();
    let udp = UdpEcho::start();
    let names = NameServer::answering(&[("localhost", &[Named::at(&["127.0.0.1"])])]);
    let fixtures = ["reach_http", "reach_state", "reach_settings", "reach_files", "reach_sockets"];
    let manifest = format!(
        "{}\n[components.reach_files.filesystem]\n\"/files\" = {{ path = \"files\" }} # shared\n\n\
         [server]\ndns = [\"{}\"]\n",
        manifest_of(&fixtures),
        names.address(),
    );
    let folder = Folder::with_manifest(&manifest);
    folder.make("files");
    folder.write("notes/a.txt", "alpha");
    let tried = [
        // A private address: two lines.
        ("http", json!({"url": format!("http://{}/x", server.address())})),
        ("keyvalue", json!({"op": "set", "key": "a", "value": "one"})),
        ("config", json!({"key": "theme"})),
        ("std_read", json!({"path": "/notes/a.txt"})),
        ("write", json!({"path": "/made/b.txt", "bytes": "beta"})),
        ("write", json!({"path": "/files/c.txt", "bytes": "gamma"})),
        ("tcp", json!({"addr": tcp.address().to_string(), "send": "ping"})),
        ("udp", json!({"addr": udp.address().to_string(), "send": "pong"})),
        // A name and private addresses behind it: a look-up, a connection, two lines. The fixture
        // tries the first address alone, which may be the one that nobody listens on.
        ("tcp", json!({"name": "localhost", "port": tcp.address().port(), "send": "named"})),
        ("settings", json!({})),
        ("http", json!({"url": format!("http://localhost:{}/named", server.port())})),
    ];
    let serve = |options: &[&str]| {
        let arguments: Vec<&str> = ["serve"].into_iter().chain(options.iter().copied()).collect();
        Command::in_folder(&folder, &arguments).with_input(calls(&tried)).run()
    };
    let denied = serve(&["--observe", "tried.jsonl"]);
    assert_eq!(denied.frames().len(), tried.len(), "{denied:?}");
    assert!(denied.stderr.contains("denied attempts"), "{denied:?}");
    assert_eq!((tcp.connections(), names.asked_for("localhost")), (0, 0), "an observation reaches nothing");
    assert!(outcomes(&denied)[3..9].iter().all(Result::is_err), "{denied:?}");
    let suggested = run(&folder, &["policy", "suggest", "tried.jsonl"]).succeeded().to_owned();
    let port = tcp.address().port();
    for line in [
        "\"/notes\" = { path = \"notes\", access = \"read\" }".to_owned(),
        "\"/made\" = { path = \"made\", access = \"write\", create = true }".to_owned(),
        format!("\"localhost:{port}\","),
        format!("    \"{}\",\n    \"[::1]:{}\",\n]", server.address(), server.port()),
        "# reach_settings read its environment, which is empty. Nobody sees the names it looked for.".to_owned(),
        "# NAME = \"VALUE\"".to_owned(),
        "theme = \"VALUE\"".to_owned(),
    ] {
        assert!(suggested.contains(&line), "no {line} in\n{suggested}");
    }
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes", "-m", "toolcell.toml"]);
    let _ = applied.succeeded();
    let text = folder.read("toolcell.toml");
    assert!(text.contains("\"/files\" = { path = \"files\", access = \"write\" } # shared\n"), "{text}");
    let again = serve(&["--observe", "more.jsonl"]);
    let found = outcomes(&again);
    let allowed = |found: &Result<Value, String>| match found {
        Ok(_) => true,
        Err(error) => error == "connect: connection-refused",
    };
    assert!(found.iter().all(allowed), "{text}\n{found:#?}");
    assert!(found[10].as_ref().is_ok_and(|answer| answer["status"] == 200), "{found:#?}");
    assert_eq!((&found[3], &found[6]), (&Ok(json!("alpha")), &Ok(json!("ping"))), "{text}");
    assert_eq!(found[2], Ok(json!("VALUE")), "{text}");
    assert_eq!(folder.read("made/b.txt"), "beta");
    let more = run(&folder, &["policy", "suggest", "more.jsonl"]).succeeded().to_owned();
    assert!(more.lines().all(|line| line.starts_with('#')), "only variables are unknown:\n{more}");
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    assert_eq!(applied.succeeded(), "toolcell.toml: nothing to change\n");
}

#[test]
fn an_observed_root_shows_nothing_of_the_host_and_notes_within_bounds() {
    let folder = Folder::with_manifest(&manifest_of(&["reach_files", "reach_http"]));
    folder.write("outside.txt", "the host's own");
    let many: Vec<Value> = (0..200).map(|number| json!({"do": "stat", "path": format!("/many/{number}")})).collect();
    let long = format!("/{}", "long/".repeat(700));
    let tried = [
        ("mounts", json!({})),
        ("list", json!({"path": "/"})),
        ("read", json!({"path": "/etc/passwd"})),
        ("read", json!({"path": "/no/such/file"})),
        ("read", json!({"path": "/outside.txt"})),
        ("read", json!({"path": "/a/../../outside.txt"})),
        ("write", json!({"path": "/etc/made.txt", "bytes": "x"})),
        ("mkdir", json!({"path": "/made"})),
        ("read", json!({"path": long})),
        ("steps", json!({"steps": many})),
    ];
    let served = Command::in_folder(&folder, &["serve", "--observe", "tried.jsonl"]).with_input(calls(&tried)).run();
    let found = outcomes(&served);
    assert_eq!((&found[0], &found[1]), (&Ok(json!(["/"])), &Ok(json!([]))), "{served:?}");
    assert_eq!(found[2], Err("no-entry".to_owned()), "{served:?}");
    let says_nothing = |found: &Result<Value, String>| {
        found.as_ref().is_err_and(|error| ["no-entry", "not-permitted"].contains(&error.as_str()))
    };
    assert!(found[2..9].iter().all(says_nothing), "{found:?}");
    let lines = folder.read("tried.jsonl");
    let asked: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["asked"].as_str().unwrap().to_owned())
        .collect();
    for expected in ["read /etc/passwd", "read /no/such/file", "create /etc/made.txt", "create /made"] {
        assert!(asked.iter().any(|asked| asked == expected), "{expected}: {asked:?}");
    }
    assert!(asked.iter().all(|asked| asked.len() <= 512), "{asked:?}");
    let of_many = asked.iter().filter(|asked| asked.starts_with("read /many/")).count();
    assert_eq!(of_many, 64, "one call's attempts are told up to a bound");
    let plain = Command::in_folder(&folder, &["serve"]).with_input(calls(&tried[..1])).run();
    assert_eq!(outcomes(&plain)[0], Ok(json!([])), "without --observe there is no root");
}

#[test]
fn a_call_by_hand_says_which_command_and_lines_would_allow_it() {
    let server = HttpServer::start();
    let folder = Folder::with_manifest(&manifest_of(&["reach_http", "reach_files"]));
    folder.write("notes/a.txt", "alpha");
    let url = format!("http://{}/x", server.address());
    let called = run(&folder, &["call", "http", &json!({"url": url}).to_string()]);
    let address = server.address();
    for line in [
        format!("denied: GET {url} — no rule of tool \"http\" allows it"),
        format!("hint: toolcell grant reach_http 'GET {url}'"),
        format!("hint: add to [components.reach_http.network]: http = [\"GET {url}\"]"),
        format!("hint: add to [components.reach_http.network]: private = [\"{address}\"]"),
    ] {
        assert_eq!(called.stderr.lines().filter(|said| *said == line).count(), 1, "{line}:\n{}", called.stderr);
    }
    let _ = run(&folder, &["grant", "reach_http", &format!("GET {url}"), "--yes"]).succeeded();
    let called = run(&folder, &["call", "http", &json!({"url": url}).to_string()]);
    assert!(!called.stderr.contains("denied"), "{called:?}");

    let arguments = json!({"path": "/notes/a.txt"}).to_string();
    let called = run(&folder, &["call", "std_read", &arguments]);
    let hint = "hint: toolcell grant reach_files 'read /notes = ./notes'";
    assert!(called.stderr.lines().any(|said| said == hint), "{}", called.stderr);
    let _ = run(&folder, &["grant", "reach_files", "read /notes = ./notes", "--yes"]).succeeded();
    let called = run(&folder, &["call", "std_read", &arguments]);
    assert!(called.succeeded().contains("alpha"));
}

/// The arguments of the command that a call's output tells, where its right is the last word.
fn told_command(said: &str) -> Vec<String> {
    let told = said.lines().find_map(|line| line.strip_prefix("hint: toolcell ")).unwrap_or_else(|| panic!("{said}"));
    let (words, right) = told.trim_end_matches('\'').split_once(" '").unwrap_or_else(|| panic!("{told}"));
    words.split(' ').chain([right, "--yes"]).map(str::to_owned).collect()
}

#[test]
fn the_command_for_a_mount_that_only_reads_names_its_folder_and_works() {
    let arguments = |path: &str| json!({"path": path, "bytes": "new"}).to_string();
    for (guest, written) in [("/data", "/data/a.txt"), ("/", "/a.txt")] {
        let mount = format!("[components.reach_files.filesystem]\n\"{guest}\" = {{ path = \"files\" }}\n");
        let folder = Folder::with_manifest(&format!("{}{mount}", manifest_of(&["reach_files"])));
        folder.write("files/a.txt", "old");
        let called = run(&folder, &["call", "write", &arguments(written)]);
        let command = told_command(&called.stderr);
        assert_eq!(command[..2], ["grant", "reach_files"], "{called:?}");
        assert_eq!(command[2], format!("write {guest} = files"), "{called:?}");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let _ = run(&folder, &command).succeeded();
        assert_eq!(run(&folder, &["check"]).code(), 0, "{guest}");
        assert!(!run(&folder, &["call", "write", &arguments(written)]).stderr.contains("denied"));
        assert_eq!(folder.read("files/a.txt"), "new");
    }
}

#[test]
fn a_command_for_a_folder_that_is_missing_makes_it_and_none_makes_a_file() {
    let folder = Folder::with_manifest(&manifest_of(&["reach_files"]));
    let read = |path: &str| run(&folder, &["call", "read", &json!({"path": path}).to_string()]).stderr;
    let said = read("/notes/of/a.txt");
    let hint = "hint: mkdir -p ./notes/of && toolcell grant reach_files 'read /notes/of = ./notes/of'";
    assert!(said.lines().any(|line| line == hint), "{said}");
    let said = read("/a.txt");
    assert!(said.contains("hint: add to [") && !said.contains("toolcell grant"), "{said}");
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
