//! The commands besides `serve`: their stdout, their stderr, and their exit codes.
//!
//! Promise: others' words do not act on a terminal.

use std::process::Stdio;

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of, toolcell};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

fn good() -> Folder {
    Folder::with_manifest(&manifest_of(&["good"]))
}

fn good_and_bad() -> Folder {
    Folder::with_manifest(&manifest_of(&["good", "liar", "loops", "quitter"]))
}

#[test]
fn help_has_an_example_for_every_command() {
    let whole = Command::toolcell(&["--help"]).run();
    for command in [
        "serve",
        "dev",
        "check",
        "list",
        "call",
        "calibrate",
        "bench",
        "inspect",
        "annotate",
        "compile",
        "audit",
        "bundle",
        "policy",
        "completions",
        "search",
        "pull",
        "outdated",
        "update",
        "push",
        "store",
    ] {
        assert!(whole.succeeded().contains(command), "no {command} in {}", whole.stdout);
        let help = Command::toolcell(&[command, "--help"]).run();
        assert!(help.succeeded().contains(&format!("toolcell {command}")), "{}", help.stdout);
    }
}

#[test]
fn version_names_the_program() {
    let version = Command::toolcell(&["--version"]).run();
    assert_eq!(version.succeeded(), format!("toolcell {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(Command::toolcell(&["completions", shell]).run().succeeded().contains("toolcell"), "{shell}");
    }
}

#[test]
fn a_command_line_that_is_wrong_is_explained_on_stderr() {
    for arguments in [&["no-such-command"][..], &["call"], &["serve", "--no-such-option"], &[]] {
        let finished = Command::toolcell(arguments).run();
        assert_eq!(finished.code(), 2, "{arguments:?}: {finished:?}");
        assert_eq!(finished.stdout, "", "{arguments:?}");
        assert!(finished.stderr.contains("Usage: toolcell"), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn check_says_yes() {
    let folder = good();
    let finished = run(&folder, &["check"]);
    let tools = run(&folder, &["list"]).stdout.lines().count();
    let first = finished.succeeded().split_inclusive('\n').next();
    assert_eq!(first, Some(format!("toolcell.toml: ok; components: 1, tools: {tools}\n").as_str()));
    assert_eq!(finished.stderr, "");
}

#[test]
fn check_points_to_every_problem_of_the_manifest() {
    let folder = Folder::with_manifest(
        "version = 1\n[defaults.limits]\ndeadline = 30\nmemroy = \"1MiB\"\n[components.good]\nsource = \"components/good.wasm\"\n",
    );
    let finished = run(&folder, &["check"]);
    let text = finished.failed_with(1);
    for part in ["toolcell.toml:3:12", "deadline = 30", "^^", "toolcell.toml:4:1", "memory"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn check_gives_its_problems_as_json() {
    let folder = Folder::with_manifest("version = 1\n[defaults.limits]\ndeadline = 30\n");
    let finished = run(&folder, &["check", "--json"]);
    assert_eq!(finished.code(), 1);
    assert!(finished.json().to_string().contains("\"line\":3"), "{}", finished.stdout);
}

#[test]
fn check_warns_of_tools_that_say_little_and_fails_for_that_only_where_it_is_strict() {
    let said = "[components.good.tools]\nadd = { title = \"Add\", read_only = true }\n";
    let folder = Folder::with_manifest(&format!("{}{said}", manifest_of(&["good"])));
    let shown = run(&folder, &["check"]);
    let (_, warned) = shown.succeeded().split_once("\nwarning[").unwrap();
    let titles = "no_title]: no title: required by Anthropic's directory\n  echo, ";
    assert!(warned.contains(titles) && !warned.contains(" add, "), "{warned}");
    let told = run(&folder, &["check", "--json"]).json();
    assert_eq!((&told["ok"], &told["problems"]), (&json!(true), &json!([])));
    let of_echo = |code: &str| json!({"code": code, "tool": "echo", "component": "good"});
    let warnings = told["warnings"].as_array().unwrap();
    for code in ["no_title", "no_hints"] {
        let wanted = of_echo(code);
        let is_it = |one: &&Value| wanted.as_object().unwrap().iter().all(|(key, value)| one[key] == *value);
        assert_eq!(warnings.iter().filter(is_it).count(), 1, "{code}: {warnings:?}");
        assert!(!warnings.iter().any(|one| one["code"] == code && one["tool"] == "add"), "{warnings:?}");
    }
    assert_eq!(told["warnings_left_out"], 0);
    assert_eq!(run(&folder, &["check", "--strict"]).code(), 1);
    let nothing = Folder::with_manifest("version = 1\n");
    assert_eq!(run(&nothing, &["check"]).code(), 0);
    assert_eq!(run(&nothing, &["check", "--strict"]).code(), 1, "a manifest without components is warned of");
}

#[test]
fn a_tool_called_again_and_again_is_warned_of_once() {
    let twice = "[components.reach_http.network]\nhttp = [\"GET https://a.example\", \"GET https://a.example\"]\n";
    let folder = Folder::with_manifest(&format!("{}{twice}", manifest_of(&["good", "reach_http"])));
    let state = folder.path().join("state").to_string_lossy().into_owned();
    let call = || {
        let call = ["call", "add", r#"{"a":1,"b":2}"#];
        Command::in_folder(&folder, &call).with_variable("XDG_STATE_HOME", &state).run()
    };
    let first = call();
    assert!(first.succeeded().contains('3') && first.stderr.contains("rule appears twice"), "{first:?}");
    let again = call();
    assert!(again.succeeded().contains('3') && again.stderr.is_empty(), "{again:?}");
    assert!(run(&folder, &["check"]).stderr.contains("rule appears twice"));
    let manifest = folder.read("toolcell.toml").replace("a.example", "b.example");
    folder.write("toolcell.toml", manifest);
    assert!(call().stderr.contains("b.example"), "another warning is shown");
}

#[test]
fn list_shows_every_tool() {
    let folder = good_and_bad();
    let finished = run(&folder, &["list"]);
    for tool in ["echo", "add", "not_json", "spin"] {
        assert!(finished.succeeded().contains(tool), "no {tool} in {}", finished.stdout);
    }
    let listed = run(&folder, &["list", "--json"]);
    assert_eq!(listed.code(), 0);
    assert!(listed.json().to_string().contains("\"echo\""));
}

#[test]
fn check_shows_what_each_component_is_and_which_tools_it_has() {
    let program = "[components.run]\nsource = \"components/preview1.wasm\"\nprefix = \"x_\"\n\
                   tools.it.description = \"Runs it.\"\n";
    let folder = Folder::with_manifest(&format!("{}{program}", manifest_of(&["drawings", "smuggle"])));
    let shown = run(&folder, &["check"]);
    for line in ["\nsmuggle   contract  ", "\nrun       program   x_it\n", "\ndrawings  typed     "] {
        assert!(shown.succeeded().contains(line), "no {line:?} in {}", shown.stdout);
    }
    let told = run(&folder, &["check", "--json"]).json();
    let component = |name: &str| {
        let components = told["components"].as_array().unwrap();
        components.iter().find(|component| component["name"] == name).unwrap().clone()
    };
    assert_eq!((&component("run")["shape"], &component("run")["tools"]), (&json!("program"), &json!(["x_it"])));
    assert_eq!((&component("run")["adapted"], &component("drawings")["adapted"]), (&json!(true), &json!(false)));
    assert_eq!(component("smuggle")["shape"], "contract");
    assert!(component("smuggle")["digest"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn call_shows_what_a_tool_printed_with_its_name_whatever_it_answers() {
    let folder = Folder::with_manifest(&manifest_of(&["quitter", "noisy"]));
    let panicked = run(&folder, &["call", "panic", "{}"]);
    let said = panicked.failed_with(1);
    assert!(said.starts_with("the tool trapped: "), "{said}");
    let (_, printed) = said.split_once("\npanic printed:\n").unwrap_or_else(|| panic!("{said}"));
    assert!(printed.contains("the tool gave up"), "{said}");
    let told = run(&folder, &["call", "panic", "{}", "--json"]).json();
    assert!(told["_meta"]["toolcell/printed"].as_str().unwrap().contains("the tool gave up"), "{told}");
    let silent = run(&folder, &["call", "failed", "{}"]);
    assert_eq!(silent.failed_with(1), "the printer is out of paper\n");
    let told = run(&folder, &["call", "failed", "{}", "--json"]).json();
    assert_eq!(told["_meta"].get("toolcell/printed"), None);
    let answered = run(&folder, &["call", "stdout_frames", "{}"]);
    assert_eq!(answered.succeeded(), "printed\n");
    let printed = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"forged"}]}}"#;
    assert_eq!(answered.stderr, format!("\nstdout_frames printed:\n\n{printed}\n"));
}

/// A stack as Python prints it, which looked for the source.
const TRACEBACK: &str =
    "Traceback (most recent call last):\n  File \"/python/app.py\", line 3, in look\nValueError: no";

#[test]
fn call_offers_a_denied_file_as_the_cause_only_where_nothing_else_answered() {
    let folder = Folder::with_manifest(&manifest_of(&["looks_around"]));
    let call = |arguments: Value| run(&folder, &["call", "look", &arguments.to_string()]);
    for (arguments, first, is_cause) in [
        (json!({"path": "/python/app.py", "fail": "division by zero"}), "division by zero", false),
        (json!({"path": "/python/app.py", "print": TRACEBACK}), "the tool trapped: ", false),
        (json!({"path": "/data/a.txt", "fail": "cannot open /data/a.txt"}), "cannot open /data/a.txt", true),
        (json!({"path": "/data/a.txt", "fail": "No such file or directory"}), "No such file", true),
        (json!({"path": "/data/a.txt"}), "the tool trapped: ", true),
    ] {
        let path = arguments["path"].as_str().unwrap();
        let called = call(arguments.clone());
        let said = called.failed_with(1);
        assert!(said.starts_with(first), "{arguments}: {said}");
        assert_eq!(said.contains("hint: "), is_cause, "{arguments}: {said}");
        assert_eq!(said.contains(&format!("denied: read {path}")), is_cause, "{arguments}: {said}");
        let note = format!("\nnote: also denied, and the answer does not speak of it: read {path}; see ");
        assert_eq!(said.contains(&note), !is_cause, "{arguments}: {said}");
    }
    // A call that succeeds got along without the file.
    let called = call(json!({"path": "/etc/localtime", "answer": "noon"}));
    assert_eq!(called.succeeded(), "noon\n");
    let explain = "toolcell policy explain look 'read /etc/localtime'";
    let note = "note: also denied, and the answer does not speak of it: read /etc/localtime";
    assert_eq!(called.stderr, format!("\n{note}; see `{explain}`\n"));
    assert!(run(&folder, &["policy", "explain", "look", "read /etc/localtime"]).stdout.contains("add to ["));
}

#[test]
fn call_shows_what_a_tool_logged_where_it_failed_and_with_log_always() {
    let folder = Folder::with_manifest(&manifest_of(&["looks_around"]));
    let call = |arguments: &Value, more: &[&str]| {
        let arguments = arguments.to_string();
        run(&folder, &[&["call", "look", &arguments][..], more].concat())
    };
    let failed = call(&json!({"log": "half way\u{1b}[31m", "print": "printed", "fail": "no paper"}), &[]);
    assert_eq!(failed.failed_with(1), "no paper\n\nlook printed:\nprinted\n\nlook logged:\nwarning: half way\n");
    let answered = json!({"log": "half way", "print": "x".repeat(8_000), "answer": "fine"});
    let quiet = call(&answered, &[]);
    assert_eq!(quiet.succeeded(), "fine\n");
    assert!(!quiet.stderr.contains("half way") && quiet.stderr.contains("of which this is a part"), "{quiet:?}");
    let all = call(&answered, &["--log"]);
    let expected = format!("\nlook printed:\n{}\n\nlook logged:\nwarning: half way\n", "x".repeat(8_000));
    assert_eq!((all.succeeded(), all.stderr.as_str()), ("fine\n", expected.as_str()));
    let told = call(&answered, &["--log", "--json"]).json();
    assert_eq!(told["_meta"]["toolcell/logged"], "warning: half way\n", "{told}");
    assert_eq!(call(&answered, &["--json"]).json()["_meta"].get("toolcell/logged"), None);
}

#[test]
fn call_prints_the_answer_for_people_and_for_scripts() {
    let folder = good();
    let finished = run(&folder, &["call", "echo", r#"{"text":"hello"}"#, "--manifest", "toolcell.toml"]);
    assert_eq!(finished.succeeded(), "hello\n");
    let finished = run(&folder, &["call", "add", r#"{"a":2,"b":3}"#, "--json"]);
    assert_eq!(finished.code(), 0);
    assert_eq!(finished.json()["structuredContent"], json!({"sum": 5}));
}

#[test]
fn call_takes_arguments_from_a_file_and_from_stdin() {
    let folder = good();
    folder.write("arguments.json", r#"{"text":"from a file"}"#);
    assert_eq!(run(&folder, &["call", "echo", "@arguments.json"]).succeeded(), "from a file\n");
    let from_stdin = Command::in_folder(&folder, &["call", "echo", "-"]).with_input(r#"{"text":"from stdin"}"#).run();
    assert_eq!(from_stdin.succeeded(), "from stdin\n");
}

#[test]
fn call_shows_what_a_call_took() {
    let finished = run(&good(), &["call", "echo", r#"{"text":"x"}"#, "--usage"]);
    assert_eq!(finished.succeeded(), "x\n");
    for part in ["fuel", "memory", "time"] {
        assert!(finished.stderr.contains(part), "no {part} in {}", finished.stderr);
    }
}

#[test]
fn call_fails_where_the_tool_does() {
    let folder = Folder::with_manifest(&manifest_of(&["good", "loops"]));
    for (arguments, expected) in [
        (
            &["call", "spin", "{}"][..],
            "out of fuel: the call used its whole budget of 20_000_000 units (limit \"fuel\")",
        ),
        (&["call", "says_error", "{}"], "the shop is closed"),
        (&["call", "add", r#"{"a":1}"#], "\"b\" is required"),
        (&["call", "no_such_tool", "{}"], "no_such_tool"),
        (&["call", "ecko", "{}"], "echo"),
        (&["call", "echo", "{text:1}"], "JSON"),
        (&["call", "echo", "[]"], "object"),
        (&["call", "echo", "@missing.json"], "missing.json"),
    ] {
        let finished = run(&folder, arguments);
        assert_ne!(finished.code(), 0, "{arguments:?}");
        let both = format!("{}{}", finished.stdout, finished.stderr);
        assert!(both.contains(expected), "{arguments:?}: no {expected:?} in {both}");
    }
}

#[test]
fn nothing_that_acts_on_a_terminal_is_printed() {
    let folder = Folder::with_manifest(&manifest_of(&["liar", "quitter", "list_escapes"]));
    for arguments in [
        &["call", "escapes", "{}"][..],
        &["call", "failed_with_escapes", "{}"],
        &["list"],
        &["check"],
        &["inspect", "components/list_escapes.wasm"],
    ] {
        let finished = run(&folder, arguments);
        for wrong in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\0'] {
            assert!(!finished.stdout.contains(wrong), "{arguments:?}: {wrong:?} in {:?}", finished.stdout);
            assert!(!finished.stderr.contains(wrong), "{arguments:?}: {wrong:?} in {:?}", finished.stderr);
        }
    }
}

#[test]
fn inspect_tells_what_a_component_is() {
    let folder = Folder::with_manifest(&manifest_of(&["good", "nosy", "imports_unknown"]));
    let finished = run(&folder, &["inspect", "components/good.wasm"]);
    let size = std::fs::metadata(folder.path().join("components/good.wasm")).unwrap().len();
    for part in ["toolcell:mcp/tools@1.3.0", "wasi:clocks/monotonic-clock", "echo", "sha256:"] {
        assert!(finished.succeeded().contains(part), "no {part} in {}", finished.stdout);
    }
    let json = run(&folder, &["inspect", "components/good.wasm", "--json"]);
    assert_eq!(json.code(), 0);
    assert!(json.json().to_string().contains(&size.to_string()), "no size in {}", json.stdout);
    let unknown = run(&folder, &["inspect", "components/imports_unknown.wasm"]);
    assert!(format!("{}{}", unknown.stdout, unknown.stderr).contains("evil:corp/api@1.0.0"), "{unknown:?}");
}

#[test]
fn a_manifest_that_is_not_there_is_named() {
    let folder = good();
    for command in [&["check", "missing.toml"][..], &["serve", "--manifest", "missing.toml"]] {
        let finished = run(&folder, command);
        assert_ne!(finished.code(), 0);
        assert_eq!(finished.stdout, "");
        assert!(finished.stderr.contains("missing.toml"), "{}", finished.stderr);
    }
}

#[test]
fn what_inspect_prints_for_a_manifest_loads_also_with_its_comments_taken_out() {
    for fixture in
        ["good", "program", "preview1", "drawings", "reach_files", "reach_http", "reach_sockets", "reach_state"]
    {
        let folder = Folder::with_manifest("version = 1\n");
        folder.make("data");
        folder.write(&format!("{fixture}.wasm"), fixture_bytes(fixture));
        let shown = Command::in_folder(&folder, &["inspect", &format!("{fixture}.wasm")]).run();
        let (_, entry) = shown.succeeded().rsplit_once("\nmanifest\n").unwrap();
        let entry: String = entry.lines().map(|line| format!("{}\n", line.trim_start())).collect();
        folder.write("toolcell.toml", format!("version = 1\n{entry}"));
        let checked = Command::in_folder(&folder, &["check"]).run();
        assert_eq!(checked.code(), 0, "{entry}\n{checked:?}");
        // A line of a comment that ends with a colon says what the next one is for.
        let granted = entry.lines().filter(|line| !(line.starts_with("# ") && line.ends_with(':')));
        let granted: String = granted.map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
        folder.write("toolcell.toml", format!("version = 1\n{granted}"));
        let checked = Command::in_folder(&folder, &["check"]).run();
        assert_eq!(checked.code(), 0, "{granted}\n{checked:?}");
    }
}

#[test]
fn a_reader_that_closes_the_output_has_seen_enough() {
    let folder = good();
    for arguments in [&["check"][..], &["list", "--json"], &["completions", "bash"]] {
        let mut command = std::process::Command::new(toolcell());
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && !said.contains("error"), "{arguments:?}: {}\n{said}", done.status);
    }
}

#[test]
fn a_recording_and_a_bundle_never_take_the_place_of_the_manifest() {
    let folder = good();
    let before = std::fs::read(folder.manifest()).unwrap();
    let call = ["call", "echo", r#"{"text":"x"}"#, "--record", "./toolcell.toml"];
    let expected = "would take the place of the manifest";
    assert!(run(&folder, &call).failed_with(2).contains(expected));
    assert!(run(&folder, &["bundle", "--output", "toolcell.toml"]).failed_with(2).contains(expected));
    assert_eq!(std::fs::read(folder.manifest()).unwrap(), before);
}

#[test]
fn check_warns_of_what_a_start_would_not_find() {
    let settings =
        "[server]\nstate_key = \"file:no.key\"\n[http]\ntokens = \"no.jsonl\"\n[audit]\nfile = \"none/a.jsonl\"\n";
    let folder = Folder::with_manifest(&format!("{}\n{settings}", manifest_of(&["good"])));
    let checked = run(&folder, &["check", "--json"]);
    let problems = checked.json()["problems"].clone();
    let said: Vec<&str> = problems.as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    assert_eq!(checked.code(), 0, "{said:?}");
    for name in ["serving fails: state_key: ", "serving fails: [http] tokens: ", "serving fails: [audit] file: "] {
        assert!(said.iter().any(|message| message.starts_with(name)), "no {name:?} in {said:?}");
    }
    assert_eq!(run(&folder, &["check", "--strict"]).code(), 1);
}

#[test]
fn an_audit_of_a_manifest_that_was_named_and_is_missing_is_never_another_one() {
    let folder = good();
    folder.write("audit.jsonl", "");
    assert_eq!(run(&folder, &["audit", "verify", "-m", "missing.toml"]).code(), 1);
    assert_eq!(run(&folder, &["audit", "show", "-m", "missing.toml"]).code(), 1);
}
