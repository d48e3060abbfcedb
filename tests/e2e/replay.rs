//! Recorded calls, run again: with the recorded component on a machine that has nothing of what the
//! calls had, and with other components.
//!
//! Promise: a replay reaches nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, TcpEcho};
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// Records a call in this file of the folder.
fn record(folder: &Folder, tool: &str, arguments: &Value, file: &str) -> Finished {
    std::fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
    let recorded = run(folder, &["call", tool, &arguments.to_string(), "--record", file]);
    assert!(recorded.stderr.contains("recorded in"), "{tool}: {}", recorded.stderr);
    recorded
}

/// The lines of a recording.
fn lines(folder: &Folder, file: &str) -> Vec<Value> {
    folder.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_lines(folder: &Folder, file: &str, lines: &[Value]) {
    folder.write(file, lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// A folder with this fixture alone, and the recordings of another folder.
fn elsewhere(fixture: &str, from: &Folder, files: &[&str]) -> Folder {
    let folder = Folder::with_manifest("version = 1\n");
    folder.write("it.wasm", fixture_bytes(fixture));
    files.iter().for_each(|file| folder.write(file, from.read(file)));
    folder
}

/// Everything that a fixture can reach, with the calls that reach it.
struct Reaching {
    fixture: &'static str,
    tables: String,
    calls: Vec<(&'static str, Value)>,
}

fn all_that_reach(http: &HttpServer, echo: &TcpEcho) -> Vec<Reaching> {
    let echo = echo.address();
    vec![
        Reaching {
            fixture: "reach_http",
            tables: format!(
                "network = {{ http = [\"http://{0}\"], private = [\"{0}\"] }}\nsecrets = {{ KEY = {{ from = \"env:KEY\", \
                 header = \"Authorization\", value = \"Bearer {{}}\", for = \"http://{0}\" }} }}",
                http.address()
            ),
            calls: vec![("http", json!({"url": http.url("/hello")}))],
        },
        Reaching {
            fixture: "reach_sockets",
            tables: format!("network = {{ tcp = [\"{echo}\"], private = [\"{echo}\"] }}"),
            calls: vec![("tcp", json!({"addr": echo.to_string()}))],
        },
        Reaching {
            fixture: "reach_files",
            tables: "filesystem = { \"/data\" = { path = \"data\", access = \"write\" } }".to_owned(),
            calls: vec![
                ("read", json!({"path": "/data/a.txt"})),
                ("std_read", json!({"path": "/data/a.txt"})),
                ("write", json!({"path": "/data/b.txt", "bytes": "b"})),
                ("stat", json!({"path": "/nowhere"})),
            ],
        },
        Reaching {
            fixture: "reach_state",
            tables: "keyvalue = { quota = \"16KiB\" }".to_owned(),
            calls: vec![
                ("keyvalue", json!({"op": "set", "key": "a", "value": "v"})),
                ("keyvalue", json!({"op": "get", "key": "a"})),
            ],
        },
        Reaching {
            fixture: "reach_settings",
            tables: "env = { A = \"b\" }\nargs = [\"x\"]\nstdin = \"in\"\nconfig = { key = \"value\" }".to_owned(),
            calls: vec![("settings", json!({})), ("config", json!({"key": "key"}))],
        },
        Reaching { fixture: "async", tables: String::new(), calls: vec![("sleeps", json!({"nanoseconds": 9}))] },
        Reaching {
            fixture: "config_drafts",
            tables: "config = { a = \"one\" }".to_owned(),
            calls: vec![("of_runtime", json!({"key": "a"}))],
        },
    ]
}

#[test]
fn what_a_call_reached_is_not_needed_to_run_it_a_hundred_times_more() {
    let http = HttpServer::start();
    let echo = TcpEcho::start();
    let all = all_that_reach(&http, &echo);
    let mut recorded = Vec::new();
    for Reaching { fixture, tables, calls } in &all {
        let folder = Folder::with_manifest(&format!("{}{tables}\n", manifest_of(&[fixture])));
        folder.write("data/a.txt", "a file");
        let mut files = Vec::new();
        for (number, (tool, arguments)) in calls.iter().enumerate() {
            let file = format!("{number}.jsonl");
            let arguments = arguments.to_string();
            let call = ["call", *tool, &arguments, "--record", &file];
            let call = Command::in_folder(&folder, &call).with_variable("KEY", "s3cr3t-of-the-host-alone").run();
            assert!(call.stderr.contains("recorded in"), "{fixture} {tool}: {}{}", call.stdout, call.stderr);
            assert!(lines(&folder, &file).len() > 2, "{tool} reached something");
            assert!(!folder.read(&file).contains("s3cr3t-of"), "{tool}");
            files.push(file);
        }
        recorded.push((*fixture, folder, files));
    }
    let requests = http.seen().len();
    let connections = echo.connections();
    drop(http);
    drop(echo);
    for (fixture, folder, files) in recorded {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let other = elsewhere(fixture, &folder, &files);
        drop(folder);
        let replayed = run(&other, &[&["replay", "--component", "it.wasm", "--runs", "100"], &files[..]].concat());
        let summary = format!("{0} of {0} recorded", files.len());
        assert!(replayed.succeeded().contains(&summary), "{fixture}: {}", replayed.stdout);
    }
    assert!(requests > 0 && connections > 0, "the recorded calls reached them");
}

#[test]
fn many_values_and_long_ones_cost_a_recorded_call_no_more_than_another() {
    let variables: Vec<String> = (0..250).map(|number| format!("V{number} = \"{number}\"")).collect();
    let tables = format!("env = {{ {} }}\n", variables.join(", "));
    let folder = Folder::with_manifest(&format!(
        "{}{tables}[components.reach_state]\nsource = \"components/reach_state.wasm\"\n[components.reach_state.keyvalue]\n\
         quota = \"4MiB\"\nvalue = \"2MiB\"\n",
        manifest_of(&["reach_settings"])
    ));
    folder.write("components/reach_state.wasm", fixture_bytes("reach_state"));
    let fuel = |said: &Finished| said.stderr.lines().find(|line| line.starts_with("fuel ")).map(str::to_owned);
    let used =
        |said: &Finished| fuel(said).unwrap_or_else(|| panic!("{}", said.stderr)).split(',').next().unwrap().to_owned();
    let long = "x".repeat(900_000);
    let calls = [("settings", json!({})), ("keyvalue", json!({"op": "set", "key": "a", "value": long}))];
    for (tool, arguments) in calls {
        folder.write("arguments.json", arguments.to_string());
        let plain = run(&folder, &["call", tool, "@arguments.json", "--usage"]);
        let recorded = run(&folder, &["call", tool, "@arguments.json", "--usage", "--record", "a.jsonl"]);
        assert_eq!((plain.code(), recorded.code()), (0, 0), "{tool}: {}", recorded.stderr);
        assert_eq!(used(&plain), used(&recorded), "{tool}");
        assert!(run(&folder, &["replay", "a.jsonl"]).succeeded().contains("1 of 1"), "{tool}");
    }
}

#[test]
fn a_recorded_call_says_how_many_bytes_it_may_pass_at_once() {
    let state = "[components.reach_state.keyvalue]\nquota = \"4MiB\"\nvalue = \"2MiB\"\n";
    let limits = "[components.reach_state.limits]\nhost_data = \"1MiB\"\n";
    let folder = Folder::with_manifest(&format!("{}{state}{limits}", manifest_of(&["reach_state"])));
    let call = |bytes: usize, more: &[&str]| {
        let arguments = json!({"op": "set", "key": "a", "value": "x".repeat(bytes)});
        folder.write("arguments.json", arguments.to_string());
        run(&folder, &[&["call", "keyvalue", "@arguments.json"], more].concat())
    };
    let record = ["--record", "a.jsonl"];
    assert_eq!(call(200 << 10, &record).code(), 0);
    assert_eq!(call(300 << 10, &[]).code(), 0);
    let said = call(300 << 10, &record);
    let expected = "more than 1MiB, or a quarter of it as bytes in a recorded call (limit \"host_data\")";
    assert!(format!("{}{}", said.stdout, said.stderr).contains(expected), "{}{}", said.stdout, said.stderr);
    assert!(run(&folder, &["replay", "a.jsonl"]).succeeded().contains("1 of 1"));
}

#[test]
fn calls_that_failed_fail_again_in_the_same_way() {
    let folder = Folder::with_manifest(&format!("{}prefix = \"q_\"\n", manifest_of(&["hungry", "quitter"])));
    let calls = ["q_panic", "q_divide", "q_exit_failure", "q_failed", "grow_at_once"];
    for tool in calls {
        record(&folder, tool, &json!({}), &format!("all/{tool}.jsonl"));
    }
    let replayed = run(&folder, &["replay", "all"]);
    assert!(replayed.succeeded().contains("5 of 5 recorded calls answer as before"), "{}", replayed.stdout);
}

#[test]
fn another_version_is_held_against_what_the_first_one_did() {
    let folder = Folder::with_manifest(&manifest_of(&["versioned_a"]));
    record(&folder, "version", &json!({}), "a.jsonl");
    folder.write("same.wasm", fixture_bytes("versioned_a"));
    folder.write("new.wasm", fixture_bytes("versioned_b"));
    folder.write("other.wasm", fixture_bytes("good"));
    assert!(run(&folder, &["replay", "a.jsonl", "--component", "same.wasm"]).succeeded().contains("1 of 1"));
    let differs = run(&folder, &["replay", "a.jsonl", "--component", "new.wasm"]);
    let shown = differs.failed_with(1);
    assert!(differs.stdout.contains("differs") && differs.stdout.contains("1 gives another answer"), "{shown}");
    let as_json = run(&folder, &["replay", "a.jsonl", "--component", "new.wasm", "--json"]).json();
    assert_eq!(as_json["calls"][0]["verdict"], "differs");
    assert_eq!((as_json["total"].as_u64(), as_json["as_before"].as_u64()), (Some(1), Some(0)));
    let without = run(&folder, &["replay", "a.jsonl", "--component", "other.wasm"]);
    let _ = without.failed_with(1);
    assert!(without.stdout.contains("could not be run"), "{}", without.stdout);
    // The new answer is taken.
    let _ = run(&folder, &["replay", "a.jsonl", "--component", "new.wasm", "--update"]).succeeded();
    assert!(run(&folder, &["replay", "a.jsonl", "--component", "new.wasm"]).succeeded().contains("1 of 1"));
}

#[test]
fn what_a_call_asked_for_besides_is_named() {
    let folder =
        Folder::with_manifest(&format!("{}keyvalue = {{ quota = \"16KiB\" }}\n", manifest_of(&["reach_state"])));
    record(&folder, "keyvalue", &json!({"op": "get", "key": "one"}), "a.jsonl");
    let mut changed = lines(&folder, "a.jsonl");
    // As if it had been recorded with another key.
    let at = changed.iter().position(|line| line["call"] == "wasi:keyvalue/store#[method]bucket.get").unwrap();
    changed[at]["with"][1] = json!("two");
    write_lines(&folder, "b.jsonl", &changed);
    let asked = run(&folder, &["replay", "b.jsonl"]);
    let _ = asked.failed_with(1);
    for words in [
        "asks",
        "asked for wasi:keyvalue/store [method]bucket.get \"one\"",
        "recorded",
        "\"two\"",
        "1 asks for something else",
    ] {
        assert!(asked.stdout.contains(words), "{words}: {}", asked.stdout);
    }
    let as_json = run(&folder, &["replay", "b.jsonl", "--json"]).json();
    assert_eq!(as_json["calls"][0]["asked"]["with"][1], "one");
    assert_eq!(as_json["calls"][0]["expected"]["with"][1], "two");
}

#[test]
fn a_file_that_is_not_a_recording_and_one_that_lies_are_said_in_one_line() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    record(&folder, "echo", &json!({"text": "hello"}), "good.jsonl");
    let good = lines(&folder, "good.jsonl");
    let mut newer = good.clone();
    newer[0]["recording"] = json!(2);
    write_lines(&folder, "newer.jsonl", &newer);
    let mut secrets = good.clone();
    let many: serde_json::Map<String, Value> = (0..257).map(|number| (format!("S{number}"), json!(8))).collect();
    secrets[0]["secrets"] = Value::Object(many);
    write_lines(&folder, "secrets.jsonl", &secrets);
    let mut tool = good.clone();
    tool[0]["tool"] = json!("no_such");
    write_lines(&folder, "tool.jsonl", &tool);
    let mut manifest = good.clone();
    manifest[0]["manifest"] = json!("version = 1\n[components.good]\nsource = 5\nlimits = 7\n");
    write_lines(&folder, "manifest.jsonl", &manifest);
    let entry = json!({"call": "wasi:random/random#get-random-u64", "gave": [1]});
    let mut longer = good.clone();
    longer.insert(1, entry);
    write_lines(&folder, "longer.jsonl", &longer);
    folder.write("empty.jsonl", "");
    folder.write("text.jsonl", "hello\nworld\n");
    folder.write("wide.jsonl", format!("{}\n{{}}\n", "[],".repeat(500_000)));
    folder.write("deep.jsonl", format!("{}\n{{}}\n", "[".repeat(100_000)));
    for (file, words) in [
        ("newer.jsonl", "version 2"),
        ("secrets.jsonl", "257 secrets, at most 256"),
        ("tool.jsonl", "no tool \"no_such\""),
        ("manifest.jsonl", "cannot be served"),
        ("longer.jsonl", "did not ask for wasi:random/random get-random-u64"),
        ("empty.jsonl", "its end"),
        ("text.jsonl", "its head"),
        ("deep.jsonl", "its head"),
        ("wide.jsonl", "values"),
        ("missing.jsonl", "missing.jsonl"),
    ] {
        let refused = run(&folder, &["replay", file]);
        assert_eq!(refused.code(), 1, "{file}: {}", refused.stderr);
        assert!(
            format!("{}{}", refused.stdout, refused.stderr).contains(words),
            "{file}: {}{}",
            refused.stdout,
            refused.stderr
        );
    }
    let _ = run(&folder, &["replay", "good.jsonl"]).succeeded();
}

#[test]
fn recordings_become_cases_that_anybody_reads() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    record(&folder, "echo", &json!({"text": "one"}), "all/1.jsonl");
    record(&folder, "echo", &json!({"text": "two"}), "all/2.jsonl");
    let _ = run(&folder, &["replay", "all", "--save", "cases"]).succeeded();
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder.path().join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert_eq!(cases.len(), 2, "{cases:?}");
    assert!(cases[0].file_name().unwrap().to_str().unwrap().starts_with("echo-"), "{cases:?}");
    assert!(run(&folder, &["replay", "cases"]).succeeded().contains("2 of 2"));
}

#[test]
fn calls_with_the_same_arguments_and_other_answers_are_other_cases() {
    let folder = Folder::with_manifest(&format!("{}keyvalue = {{}}\n", manifest_of(&["reach_state"])));
    for number in 1..=3 {
        record(&folder, "keyvalue", &json!({"op": "increment", "key": "n"}), &format!("all/{number}.jsonl"));
    }
    let save = || run(&folder, &["replay", "all", "--save", "cases"]);
    let saved = save();
    assert!(!saved.stderr.contains("in place of"), "{}", saved.stderr);
    assert!(run(&folder, &["replay", "cases"]).succeeded().contains("3 of 3"));
    assert!(!save().stderr.contains("in place of"), "the same case is there already");
    let mut first = lines(&folder, "all/1.jsonl");
    first[0]["caller"] = json!("somebody");
    write_lines(&folder, "all/1.jsonl", &first);
    assert_eq!(save().stderr.matches(", in place of the case there").count(), 1);
}

#[test]
fn what_recorded_calls_used_is_evidence_for_narrower_grants() {
    let tables = "filesystem = { \"/data\" = { path = \"data\", access = \"write\" } }";
    let folder = Folder::with_manifest(&format!("{}{tables}\n", manifest_of(&["reach_files"])));
    folder.write("data/sub/a.txt", "a file");
    folder.write("data/other/b.txt", "another");
    record(&folder, "read", &json!({"path": "/data/sub/a.txt"}), "recordings/reach_files/a.jsonl");
    let narrowed = run(&folder, &["policy", "suggest", "--narrow", "--days", "0", "--json"]);
    assert_eq!(narrowed.code(), 0, "{}{}", narrowed.stdout, narrowed.stderr);
    let _ = run(&folder, &["policy", "suggest", "--narrow", "--days", "0", "--apply", "--yes"]).succeeded();
    let manifest = folder.read("toolcell.toml");
    assert!(!manifest.contains("\"write\""), "what was read alone is read-only: {manifest}");
    let again = run(&folder, &["call", "read", r#"{"path":"/data/sub/a.txt"}"#]);
    assert_eq!(again.code(), 0, "{manifest}\n{}{}", again.stdout, again.stderr);
    // Requests around the rule need what no recorded call used.
    let fuzzed = run(&folder, &["policy", "fuzz", "reach_files"]);
    assert!(fuzzed.stdout.contains("/data"), "{}{}", fuzzed.stdout, fuzzed.stderr);
}

#[test]
fn who_approves_a_new_version_sees_how_recorded_calls_end_with_it() {
    let folder = Folder::with_manifest(&manifest_of(&["versioned_a"]));
    let _ = run(&folder, &["lock"]).succeeded();
    record(&folder, "version", &json!({}), "recordings/versioned_a/a.jsonl");
    folder.write("components/versioned_a.wasm", fixture_bytes("versioned_b"));
    let approved = run(&folder, &["approve", "versioned_a"]);
    let text = approved.succeeded();
    assert!(text.contains("0 of 1 recorded call answers as before; 1 gives another answer"), "{text}");
    assert!(text.contains("differs version: "), "{text}");
}

/// The forms in which a text could be in a file.
fn forms(text: &str) -> Vec<String> {
    let percent = |bytes: &str| bytes.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let partly: String = url_encoded(text);
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped: String = text.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    let numbers = text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(",");
    let mut forms = vec![text.to_owned(), percent(text), partly, hex, escaped, numbers];
    // In base64 a text has three forms, by its place. Two digits at each end depend on what is next
    // to it.
    for place in 0..3 {
        let encoded = STANDARD.encode(format!("{}{text}", &"   "[..place]));
        let inner = encoded.trim_end_matches('=');
        let inner = inner.get(place * 2..inner.len().saturating_sub(2)).unwrap_or_default();
        forms.extend((inner.len() > 5).then(|| inner.to_owned()));
    }
    forms
}

fn url_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Every text in a value, also those in JSON within a text.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                texts(&inner, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(members) => members.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

/// The keys of all objects in a value.
fn keys(value: &Value, found: &mut String) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.push_str(key);
            keys(value, found);
        }),
        _ => {}
    }
}

#[test]
fn a_recording_without_its_content_has_no_word_of_it_in_any_form() {
    let http = HttpServer::start();
    let echo = TcpEcho::start();
    let mut looked_for = 0;
    for Reaching { fixture, tables, calls } in &all_that_reach(&http, &echo) {
        let folder = Folder::with_manifest(&format!("{}{tables}\n", manifest_of(&[fixture])));
        folder.write("data/a.txt", "a file of the customer");
        for (number, (tool, arguments)) in calls.iter().enumerate() {
            let file = format!("{number}.jsonl");
            let arguments = arguments.to_string();
            let call = ["call", *tool, &arguments, "--record", &file];
            let _ = Command::in_folder(&folder, &call).with_variable("KEY", "s3cr3t-of-the-host-alone").run();
            let out = format!("report-{number}");
            let made = run(&folder, &["replay", &file, "--anonymous", &out]);
            assert_eq!(made.code(), 0, "{}", made.stderr);
            let path = folder.path().join(&out).join("1.jsonl");
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let shown = folder.read(&format!("{out}/1.jsonl"));
            let original = lines(&folder, &file);
            let head = &original[0];
            let mut words: Vec<String> = ["127.0.0.1", "\"local\"", "/data", "a file of", "KEY\"", "s3cr3t", fixture]
                .map(str::to_owned)
                .to_vec();
            words.extend(["listed", "component", "recorded"].map(|key| head[key].as_str().unwrap().to_owned()));
            words.retain(|word| word != *tool);
            texts(&json!([head["arguments"], original.last().unwrap()["ended"]]), &mut words);
            for entry in &original[1..original.len() - 1] {
                texts(&json!([entry["with"], entry["gave"], entry["ended"]]), &mut words);
            }
            words.extend(head["manifest"].as_str().unwrap().lines().map(str::to_owned));
            let mut kept: String = original.iter().filter_map(|entry| entry["call"].as_str()).collect();
            original.iter().for_each(|entry| keys(&json!([entry["with"], entry["gave"]]), &mut kept));
            // Names of functions and of their types say nothing, and one letter is everywhere.
            // JSON may look like a value of any call; the texts in it are looked for.
            words.retain(|word| word.len() >= 4 && !kept.contains(word.as_str()) && !word.starts_with(['{', '[']));
            for form in words.iter().flat_map(|word| forms(word)).filter(|form| form.len() >= 4) {
                assert!(!shown.contains(&form), "{fixture} {tool} {form:?}: {shown}");
                looked_for += 1;
            }
            let anonymous: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(anonymous.len(), original.len());
            assert_eq!((&anonymous[0]["anonymous"], &anonymous[0]["tool"]), (&json!(true), &json!(tool)));
            assert_eq!(anonymous[0]["digest"], head["digest"]);
            for (after, before) in anonymous.iter().zip(&original).skip(1) {
                assert_eq!((&after["call"], &after["used"]), (&before["call"], &before["used"]));
            }
        }
    }
    assert!(looked_for > 500, "{looked_for}");
}

#[test]
fn a_recording_without_its_content_is_marked_and_nothing_runs_it() {
    let folder = Folder::with_manifest(&manifest_of(&["versioned_a", "good"]));
    let _ = run(&folder, &["lock"]).succeeded();
    record(&folder, "version", &json!({}), "one.jsonl");
    record(&folder, "echo", &json!({"text": "echo, echo"}), "two.jsonl");
    let _ = run(&folder, &["replay", "one.jsonl", "two.jsonl", "--anonymous", "recordings/versioned_a"]).succeeded();
    // The name in the schema stays, and equal values have one stand-in.
    let shown = folder.read("recordings/versioned_a/2.jsonl");
    assert!(shown.contains(r#"{\"text\":\"text-3(10)\"}"#) && shown.contains(r#""text":"text-3(10)""#), "{shown}");
    let refused = run(&folder, &["replay", "recordings"]);
    let sentence = "it was made anonymous: it is for reading, and is not replayed";
    assert!(refused.code() == 1 && refused.stderr.contains(sentence), "{}", refused.stderr);
    for option in [["--save", "cases"], ["--anonymous", "again"]] {
        let refused = run(&folder, &[&["replay", "recordings/versioned_a/1.jsonl"][..], &option].concat());
        assert!(refused.code() == 1 && refused.stderr.contains(sentence), "{}", refused.stderr);
    }
    let left_out = "2 recordings were made anonymous and left out: they are for reading";
    let narrowed = run(&folder, &["policy", "suggest", "--narrow", "--days", "0"]);
    assert!(narrowed.stderr.contains(left_out), "{}", narrowed.stderr);
    folder.write("components/versioned_a.wasm", fixture_bytes("versioned_b"));
    let approved = run(&folder, &["approve", "versioned_a"]);
    assert!(approved.code() == 0 && approved.stderr.contains(left_out), "{}", approved.stderr);
    assert!(!approved.stdout.contains("recorded call"), "{}", approved.stdout);
    // Without the component, names of arguments go as well; what is there is not overwritten.
    let bare = elsewhere("good", &folder, &["two.jsonl"]);
    let made = run(&bare, &["replay", "two.jsonl", "--anonymous", "out"]);
    assert!(made.stderr.contains("names of arguments are replaced as well"), "{}", made.stderr);
    assert!(bare.read("out/1.jsonl").contains(r#"{\"key-1(4)\":"#), "{}", bare.read("out/1.jsonl"));
    let again = run(&bare, &["replay", "two.jsonl", "--anonymous", "out"]);
    assert!(again.code() == 1 && again.stderr.contains("out/1.jsonl is there already"), "{}", again.stderr);
}

#[test]
fn a_recording_that_lies_about_its_name_is_saved_in_the_folder() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    record(&folder, "echo", &json!({"text": "hello"}), "lies.jsonl");
    let mut lying = lines(&folder, "lies.jsonl");
    lying[0]["listed"] = json!("../../escaped");
    write_lines(&folder, "lies.jsonl", &lying);
    let _ = run(&folder, &["replay", "lies.jsonl", "--save", "all/cases"]).succeeded();
    let saved: Vec<_> = std::fs::read_dir(folder.path().join("all/cases")).unwrap().collect();
    assert_eq!(saved.len(), 1, "{saved:?}");
}
