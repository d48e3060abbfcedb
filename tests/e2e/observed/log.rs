//! The operator's log: JSON lines that parse and name their call, and a level that can change while
//! the host serves.
//!
//! Promise: others' words do not act on a terminal.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, TestHost, alone, manifest_of, patience};

fn serving(fixtures: &[&str], options: &[&str]) -> TestHost {
    TestHost::recording_with(Folder::with_manifest(&manifest_of(fixtures)), options)
}

/// The lines of a log in JSON. Each must be an object.
fn lines(said: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let lines: Vec<Value> = said.lines().map(read).collect();
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()), "{lines:#?}");
    lines
}

#[test]
fn json_lines_parse_and_name_their_call() {
    let mut host = serving(&["good", "noisy", "reach_http", "quitter"], &["--log-format", "json", "--log", "debug"]);
    host.call("stdout_frames", json!({}));
    host.call("stderr_escapes", json!({}));
    host.call("log_frames", json!({}));
    host.call("http", json!({"url": "http://example.com/\u{202e}"}));
    host.call("failed_with_escapes", json!({}));
    host.call("trap", json!({}));
    host.call("echo", json!({"text": 1}));
    let records = host.audit();
    host.close_input();
    let finished = host.ends().stderr;
    assert!(!finished.contains(['\u{202e}', '\u{1b}', '\u{9b}']), "{finished}");
    let lines = lines(&finished);
    let of_calls: Vec<&Value> = lines.iter().filter(|line| line["tool"].is_string()).collect();
    for line in &of_calls {
        assert!(line["call"].is_u64() && line["request"].is_string() && line["caller"] == "local", "{line}");
        let of_it = |record: &&Value| record["id"] == line["call"] && record["event"] != "call.finished";
        let record = records.iter().find(of_it).unwrap_or_else(|| panic!("no record of {line}"));
        assert_eq!((&record["tool"], &record["request"]), (&line["tool"], &line["request"]), "{record}");
    }
    let tools: BTreeSet<&str> = of_calls.iter().map(|line| line["tool"].as_str().unwrap()).collect();
    let every = ["echo", "failed_with_escapes", "http", "log_frames", "stderr_escapes", "stdout_frames", "trap"];
    assert_eq!(tools, BTreeSet::from(every));
    let ids: BTreeSet<u64> = of_calls.iter().map(|line| line["call"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=7).collect());
}

#[test]
fn what_is_said_before_and_beside_the_log_is_json_as_its_lines_are() {
    let manifest = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\nlimits = { deadline = 30, \"\u{202e}\" = 1 }\n";
    let folder = Folder::with_manifest(manifest);
    for level in ["info", "off"] {
        let serve = |more: &[&str]| {
            let refused =
                Command::in_folder(&folder, &[&["serve", "--log-format", "json", "--log", level], more].concat()).run();
            let said = refused.failed_with(1);
            assert!(!said.contains('\u{202e}'), "{said}");
            lines(said)
        };
        let problems = serve(&[]);
        let told: Vec<_> =
            problems.iter().map(|line| (&line["level"], &line["code"], &line["line"], &line["hint"])).collect();
        assert_eq!(told[0], (&json!("ERROR"), &json!("limits::unit"), &json!(4), &json!("write \"30s\" or \"30ms\"")));
        assert_eq!(told[1].1, "manifest::unknown_key", "{problems:#?}");
        assert_eq!(problems.last().unwrap()["message"], "toolcell.toml: 2 errors");
        let missing = serve(&["--manifest", "gone.toml"]);
        assert_eq!(missing.len(), 1, "{missing:#?}");
        assert_eq!(missing[0]["message"], "gone.toml cannot be read: there is no such file");
        assert!(missing[0]["hint"].as_str().unwrap().starts_with("name the manifest"), "{missing:#?}");
    }
}

#[test]
fn two_clients_with_the_same_ids_are_told_apart() {
    let folder = Folder::with_manifest(&manifest_of(&["noisy"]));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    for _ in 0..2 {
        let _ = host.ask(&Ask::call("stdout_frames", json!({})));
    }
    host.process().will_say("call=2 request=\"1\" caller=\"anyone\" tool=\"stdout_frames\"");
    assert!(host.process().said().contains("call=1 request=\"1\" caller=\"anyone\" tool=\"stdout_frames\""));
}

#[test]
fn the_level_changes_while_it_serves() {
    let mut host = serving(&["good", "noisy"], &[]);
    let level = |host: &TestHost, arguments: &[&str]| {
        let run = Command::in_folder(host.folder(), &[&["log-level"], arguments].concat()).run();
        run.succeeded().to_owned()
    };
    let process = host.process_id();
    host.call("stdout_frames", json!({}));
    assert_eq!(level(&host, &[]), format!("process {process}: info\n"));
    host.will_say("printed: ");
    assert!(!host.said().contains("ended: ok"));
    assert_eq!(level(&host, &["warn"]), format!("process {process}: warn, info before\n"));
    let before = host.said().matches("printed: ").count();
    host.call("stdout_frames", json!({}));
    assert_eq!(level(&host, &["debug"]), format!("process {process}: debug, warn before\n"));
    host.call("echo", json!({"text": "x"}));
    host.will_say("ended: ok");
    assert_eq!(host.said().matches("printed: ").count(), before, "nothing of the call in between");
    assert_eq!(host.status()["log"], "debug");
    assert_eq!(level(&host, &["off"]), format!("process {process}: off, debug before\n"));
    let json = Command::in_folder(host.folder(), &["log-level", "info", "--json"]).run();
    let answers: Value = serde_json::from_str(json.succeeded()).unwrap();
    assert_eq!(answers, json!([{"pid": process, "level": "info", "before": "off"}]));
    let wrong = Command::in_folder(host.folder(), &["log-level", "loud"]).run();
    assert!(wrong.failed_with(2).contains("possible values: off, error, warn, info, debug"), "{wrong:?}");
}

#[test]
fn without_a_process_there_is_no_level() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let said = Command::in_folder(&folder, &["log-level"]).run();
    assert!(said.failed_with(1).contains("no process of this user serves"), "{said:?}");
}

#[test]
fn a_process_that_serves_writes_nothing_at_off_and_warnings_at_warn() {
    let manifest = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n";
    let folder = Folder::with_manifest(manifest);
    let said = |level: &str| {
        let ended = Command::in_folder(&folder, &["serve", "--log", level]).run();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        ended.stderr
    };
    assert!(said("info").contains("walls: "), "the walls are announced");
    assert_eq!((said("off"), said("error")), (String::new(), String::new()));
    let warned = said("warn");
    assert!(warned.lines().all(|line| line.contains("WARN") || line.starts_with("warning: ")), "{warned}");
}

#[test]
fn the_level_of_the_manifest_holds_from_the_first_line_on() {
    let _alone = alone("its own stderr");
    let twice = "[components.reach_http.network]\nhttp = [\"GET https://a.example\", \"GET https://a.example\"]\n";
    let folder = |level: &str| {
        let server = format!("[server]\nlog = \"{level}\"\n");
        Folder::with_manifest(&format!("{}{twice}{server}", manifest_of(&["good", "reach_http"])))
    };
    let over_stdio = |level: &str, more: &[&str]| {
        let ended = Command::in_folder(&folder(level), &[&["serve"], more].concat()).run();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        ended.stderr
    };
    let over_http = |level: &str| {
        let host = TestHost::recording_with(folder(level), &["--http", "127.0.0.1:0"]);
        let end = Instant::now() + patience();
        while Command::in_folder(host.folder(), &["status"]).run().code() != 0 {
            assert!(Instant::now() < end, "it does not serve");
        }
        host.terminate();
        host.ends().stderr
    };
    for serve in [&|level: &str| over_stdio(level, &[]), &over_http as &dyn Fn(&str) -> String] {
        assert_eq!((serve("off"), serve("error")), (String::new(), String::new()));
        let warned = serve("warn");
        assert!(warned.contains("rule appears twice") && !warned.contains("walls: "), "{warned}");
        assert!(serve("info").contains("walls: "), "the walls are announced");
    }
    assert!(over_stdio("off", &["--log", "info"]).contains("walls: "), "the command line wins");
    assert_eq!(over_stdio("info", &["--log", "off"]), "");
}

#[test]
fn what_a_manifest_is_refused_for_is_said_at_every_level() {
    let wrong = "version = 1\n[server]\nlog = \"off\"\n[components.a]\nsource = \"none.wasm\"\n";
    let folder = Folder::with_manifest(wrong);
    for more in [&[][..], &["--log", "off"]] {
        let refused = Command::in_folder(&folder, &[&["serve"], more].concat()).run();
        assert!(refused.failed_with(1).contains("none.wasm"), "{refused:?}");
    }
}

#[test]
fn commands_that_succeed_say_nothing_beside_their_answer() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    for arguments in
        [&["check"][..], &["call", "echo", r#"{"text":"tea"}"#], &["list"], &["call", "says_error", "--json"]]
    {
        let done = Command::in_folder(&folder, arguments).run();
        assert_eq!(done.stderr, "", "{done:?}");
    }
}
