//! Questions about the manifest. It tells what a tool can reach, what it may do and by which line,
//! which expectations fail, and which lines would allow the calls it tried.

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, manifest_of};

/// `reach_files` may read one folder and has one variable; its tool `stat` has no files.
const MANIFEST: &str = r#"version = 1

[components.reach_files]
source = "components/reach_files.wasm"

[components.reach_files.filesystem]
"/data" = { path = "data" }

[components.reach_files.env]
UNITS = "metric"

[components.reach_files.tools.stat]
filesystem = {}
"#;

fn granted() -> Folder {
    let folder = Folder::with_manifest(MANIFEST);
    folder.write("data/one.txt", "one");
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

#[test]
fn check_shows_what_each_tool_reaches_and_by_which_line() {
    let folder = granted();
    let shown = run(&folder, &["check"]);
    let text = shown.succeeded();
    let stat = text.split("\n\n").find(|block| block.starts_with("stat\n")).unwrap_or_default();
    assert!(stat.contains("env") && stat.contains("UNITS") && stat.contains("line 10"), "{text}");
    assert!(!stat.contains("/data"), "a tool without files shows none: {text}");
    assert!(text.contains("read /data from \"data\"") && text.contains("line 7"), "{text}");
    assert!(!text.contains("metric"), "values are not shown: {text}");
    let reach = &run(&folder, &["check", "--json"]).json()["reach"];
    assert_eq!(reach["stat"].as_array().map(Vec::len), Some(1), "{reach:#}");
    assert_eq!(reach["stat"][0]["capability"], "env");
    assert_eq!(reach["stat"][0]["line"], 10);
}

#[test]
fn check_says_of_a_sealed_tool_that_it_reaches_nothing() {
    let folder = Folder::with_manifest("version = 1\n[components.good]\nsource = \"components/good.wasm\"\n");
    assert!(run(&folder, &["check"]).succeeded().contains("\nreach nothing: "));
}

#[test]
fn explain_names_the_line_that_allows_and_the_line_that_would() {
    let folder = granted();
    let allowed = run(&folder, &["policy", "explain", "reach_files/read", "read /data/one.txt"]);
    assert!(allowed.succeeded().contains("allowed: read /data/one.txt"), "{}", allowed.stdout);
    assert!(allowed.stdout.contains("toolcell.toml:7:"), "{}", allowed.stdout);

    for (tool, ask, denial, hint) in [
        (
            "reach_files/read",
            "write /data/one.txt",
            "denied: write /data/one.txt — tool \"read\" may read there, not write",
            "access = \"write\"",
        ),
        (
            "stat",
            "read /data/one.txt",
            "denied: read /data/one.txt — no rule of tool \"stat\" allows it",
            "[components.reach_files.tools.stat",
        ),
        (
            "reach_files",
            "GET https://x.example/",
            "denied: GET https://x.example/ — no rule of component \"reach_files\" allows it",
            "note: the component cannot use HTTP requests: it does not import wasi:http/outgoing-handler",
        ),
    ] {
        let denied = run(&folder, &["policy", "explain", tool, ask]);
        assert!(denied.succeeded().contains(denial), "{}", denied.stdout);
        assert!(denied.stdout.contains(hint), "no {hint:?} in {}", denied.stdout);
    }
}

#[test]
fn explain_gives_json() {
    let folder = granted();
    let explained = |ask: &str| run(&folder, &["policy", "explain", "stat", ask, "--json"]).json();
    let allowed = explained("env UNITS");
    assert_eq!((&allowed["allowed"], &allowed["rule"]["line"]), (&json!(true), &json!(10)), "{allowed:#}");
    let denied = explained("env HOME");
    assert_eq!((&denied["allowed"], &denied["rule"]), (&json!(false), &Value::Null));
    assert_eq!(denied["denial"]["capability"], "env");
}

#[test]
fn what_cannot_be_asked_is_explained() {
    let folder = granted();
    let ask = run(&folder, &["policy", "explain", "stat", "launch /missiles"]);
    assert!(ask.failed_with(2).contains("read /data/x"), "{}", ask.stderr);
    let tool = run(&folder, &["policy", "explain", "no_such_tool", "env UNITS"]);
    assert!(tool.failed_with(1).contains("toolcell.toml has no tool \"no_such_tool\""), "{}", tool.stderr);
    let arguments = run(&folder, &["policy", "explain", "stat", "call {\"path\":}"]);
    assert!(arguments.failed_with(2).contains("the arguments are not a JSON object"), "{}", arguments.stderr);
}

#[test]
fn a_component_is_asked_about_its_own_tools_alone_if_it_can_be_loaded() {
    let absent = "[components.absent]\nsource = \"components/absent.wasm\"\n";
    let folder = Folder::with_manifest(&format!("{MANIFEST}{absent}"));
    folder.make("data");
    for ask in ["env UNITS", "call {}"] {
        let slip = run(&folder, &["policy", "explain", "reach_files/raed", ask]);
        assert!(slip.failed_with(1).contains("has no tool \"reach_files/raed\""), "{}", slip.stderr);
    }
    let slip = run(&folder, &["policy", "fuzz", "reach_files/raed"]);
    assert!(slip.failed_with(1).contains("component \"reach_files\" has no tool \"raed\""), "{}", slip.stderr);
    assert!(slip.stderr.contains("did you mean \"read\"?"), "{}", slip.stderr);
    folder.write("slip.toml", "[[expect]]\ntool = \"reach_files/raed\"\nask = \"env UNITS\"\nallowed = true\n");
    let slip = run(&folder, &["policy", "test", "slip.toml"]);
    assert!(slip.failed_with(1).contains("there is no tool \"reach_files/raed\""), "{}", slip.stderr);
    let unknown = run(&folder, &["policy", "explain", "absent/any", "env UNITS"]);
    assert!(unknown.succeeded().starts_with("denied: env UNITS"), "{}", unknown.stdout);
    let said = "component \"absent\" cannot be loaded, so the names of its tools are not checked";
    assert!(unknown.stderr.contains(said), "{}", unknown.stderr);
}

#[test]
fn expectations_are_met_or_shown_with_their_place() {
    let folder = granted();
    let expect = |tool: &str, ask: &str, allowed: bool| {
        format!("[[expect]]\ntool = {tool:?}\nask = {ask:?}\nallowed = {allowed}\n")
    };
    folder.write("met.toml", expect("stat", "env UNITS", true) + &expect("reach_files/read", "write /data/x", false));
    let met = run(&folder, &["policy", "test", "met.toml"]);
    assert_eq!(met.succeeded(), "met.toml: 2 of 2 expectations met\n");

    folder.write("unmet.toml", expect("stat", "env UNITS", false) + &expect("nobody", "env UNITS", true));
    let unmet = run(&folder, &["policy", "test", "unmet.toml"]);
    let said = unmet.failed_with(1);
    for part in ["unmet.toml:4:11", "expected to be denied", "there is no tool \"nobody\"", "unmet.toml:6:8"] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    assert_eq!(unmet.stdout, "unmet.toml: 0 of 2 expectations met\n");
    let report = run(&folder, &["policy", "test", "unmet.toml", "--json"]).json();
    assert_eq!((&report["ok"], &report["expectations"][0]["met"]), (&json!(false), &json!(false)));

    folder.write("broken.toml", "[[expect]]\ntool = \"stat\"\nask = \"launch\"\n");
    assert!(run(&folder, &["policy", "test", "broken.toml"]).failed_with(1).contains("broken.toml:3:7"));
    folder.write("broken.toml", "[[expect]]\ntool = \"stat\"\nask = 'call {\"path\":}'\nallowed = false\n");
    let broken = run(&folder, &["policy", "test", "broken.toml"]);
    assert!(broken.failed_with(1).contains("the arguments are not a JSON object"), "{}", broken.stderr);
}

#[test]
fn the_lines_that_would_allow_what_was_tried_are_suggested() {
    let folder = granted();
    let denied = |component: &str, asked: &str| {
        format!("{}\n", json!({"event": "call.denied", "component": component, "asked": asked}))
    };
    let lines = [
        json!({"event": "call.started", "id": 1}).to_string() + "\n",
        denied("reach_files", "GET https://x.example/v1/a"),
        denied("reach_files", "GET https://x.example/v1/a"),
        denied("reach_files", "write /out/log.txt"),
        "{\"event\":\"call.den".to_owned(),
    ];
    folder.write("tried.jsonl", lines.concat());
    let suggested = run(&folder, &["policy", "suggest", "tried.jsonl"]);
    let text = suggested.succeeded();
    assert!(text.contains("[components.reach_files.network]") && text.contains("GET https://x.example/v1/a"), "{text}");
    assert!(text.contains("[components.reach_files.filesystem]") && text.contains("\"/out\""), "{text}");
    assert_eq!(text.matches("https://x.example").count(), 1, "{text}");

    folder.write("nothing.jsonl", "");
    let nothing = run(&folder, &["policy", "suggest", "nothing.jsonl"]);
    assert_eq!(nothing.succeeded(), "");
    assert!(nothing.stderr.contains("nothing was denied"));
    folder.write("no.jsonl", "no JSON\n");
    assert!(run(&folder, &["policy", "suggest", "no.jsonl"]).failed_with(1).contains("line 1"));
}

#[test]
fn what_a_manifest_cannot_have_is_left_out_and_said_and_the_rest_is_written() {
    let rules = "[components.reach_http]\nsource = \"components/reach_http.wasm\"\n\
                 [components.reach_http.env]\nA = \"fixed\"\n";
    let folder = Folder::with_manifest(&format!("version = 1\n{rules}"));
    let denied =
        |asked: &str| format!("{}\n", json!({"event": "call.denied", "component": "reach_http", "asked": asked}));
    let tried = ["GET https://x.example/v1", "env A", "GET http://169.254.169.254/latest", "env B"];
    folder.write("tried.jsonl", tried.map(denied).concat());
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    let _ = applied.succeeded();
    let text = folder.read("toolcell.toml");
    assert!(text.contains("GET https://x.example/v1") && text.contains("env:B"), "{text}");
    assert!(text.contains("A = \"fixed\"") && !text.contains("169.254"), "{text}");
    for said in ["not written: reach_http: env A: ", "not written: reach_http: nothing allows GET http://169."] {
        assert!(applied.stderr.contains(said), "{}", applied.stderr);
    }
}

#[test]
fn a_name_that_no_tool_has_is_neither_suggested_as_a_pattern_nor_written() {
    let folder = Folder::with_manifest(&manifest_of(&["good", "calls"]));
    let denied = |asked: &str| format!("{}\n", json!({"event": "call.denied", "component": "calls", "asked": asked}));
    folder.write("tried.jsonl", ["call *", "call no_such_tool", "call relay", "call echo"].map(denied).concat());
    let suggested = run(&folder, &["policy", "suggest", "tried.jsonl"]).succeeded().to_owned();
    assert!(suggested.contains("# calls: nothing allows call * alone, as no tool can have this name"), "{suggested}");
    assert!(!suggested.contains("\"*\""), "{suggested}");
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    assert_eq!(applied.succeeded(), "+ calls = [\"echo\"]\n", "{}", applied.stderr);
    for said in [
        "not written: calls: nothing allows call * alone",
        "not written: calls: call no_such_tool: there is no tool \"no_such_tool\"",
        "not written: calls: call relay: the tool \"relay\" may call itself",
    ] {
        assert!(applied.stderr.contains(said), "no {said:?} in\n{}", applied.stderr);
    }
    let _ = run(&folder, &["check"]).succeeded();
}

#[test]
fn lines_that_would_not_load_are_not_applied() {
    let folder = granted();
    let denied =
        |asked: &str| format!("{}\n", json!({"event": "call.denied", "component": "reach_files", "asked": asked}));
    folder.write("tried.jsonl", ["read /absent/a.txt", "write /made/a.txt"].map(denied).concat());
    let applied = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    assert!(applied.succeeded().contains("\"/made\"") && !applied.stdout.contains("/absent"), "{}", applied.stdout);
    let said = "not written: reach_files: read /absent/a.txt: component \"reach_files\": there is no \"absent\"";
    assert!(applied.stderr.contains(said), "{}", applied.stderr);
    let before = folder.read("toolcell.toml");
    folder.write("tried.jsonl", denied("keyvalue"));
    let refused = run(&folder, &["policy", "suggest", "tried.jsonl", "--apply", "--yes"]);
    assert!(refused.failed_with(1).contains("toolcell.toml would not load, and stays as it is"), "{}", refused.stderr);
    assert_eq!(folder.read("toolcell.toml"), before);
}

#[test]
fn what_tools_try_is_observed_denied_and_becomes_a_suggestion_that_allows_it() {
    let manifest = "version = 1\n[components.reach_http]\nsource = \"components/reach_http.wasm\"\n";
    let folder = Folder::with_manifest(manifest);
    let get = |id: u32| {
        let params = json!({
            "name": "http",
            "arguments": {"url": "https://tried.example/v1/now?key=1"},
            "_meta": toolcell_tests::modern_meta(),
        });
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    };
    let served = Command::in_folder(&folder, &["serve", "--observe", "tried.jsonl"]).with_input(get(1) + &get(2)).run();
    assert_eq!(served.frames().len(), 2, "{served:?}");
    assert!(served.stdout.contains("HttpRequestDenied"), "observed is not allowed: {}", served.stdout);
    assert!(served.stderr.contains("observed 1 denied attempts"), "{}", served.stderr);

    let suggested = run(&folder, &["policy", "suggest", "tried.jsonl"]).succeeded().to_owned();
    assert!(suggested.contains("https://tried.example/v1/now") && !suggested.contains("key=1"), "{suggested}");
    folder.write("toolcell.toml", format!("{manifest}\n{suggested}"));
    let explained = run(&folder, &["policy", "explain", "http", "GET https://tried.example/v1/now"]);
    assert!(explained.succeeded().starts_with("allowed: "), "{}", explained.stdout);
}
