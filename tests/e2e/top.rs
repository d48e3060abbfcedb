//! `toolcell top`: what it shows of servers with and without a console, and what is decided there.
//!
//! Promise: nobody else controls the server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Folder, TestHost, manifest_of, patience, terminal, toolchain};

/// A manifest whose operators may decide.
fn deciding(fixtures: &[&str]) -> String {
    format!("{}\n[console]\ndecide = true\n", manifest_of(fixtures))
}

/// This manifest, with calls that may take an hour.
fn unhurried(manifest: &str) -> String {
    manifest.replace("deadline = \"5s\"", "deadline = \"1h\"")
}

/// The activity of this host once it fits.
pub(crate) fn activity_when(host: &TestHost, fits: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + patience();
    loop {
        let list = Command::in_folder(host.folder(), &["top", "--json"]).run().json();
        let activity = list[0].clone();
        assert!(list.as_array().unwrap().len() == 1 && activity["error"].is_null(), "{list:#}");
        if fits(&activity) {
            return activity;
        }
        assert!(Instant::now() < end, "it never fitted: {activity:#}");
    }
}

/// Decides over the control socket, as the program does.
pub(crate) fn decide(host: &TestHost, run: &Value, decision: &Value) -> Value {
    let folder = std::fs::read_dir(host.folder().runtime().join("toolcell")).unwrap();
    let sockets: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    let mut stream = UnixStream::connect(&sockets[0]).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    let request = json!({"toolcell": 1, "request": {"decide": {"run": run, "decision": decision}}});
    stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

fn decided(host: &TestHost, decision: &str) -> Value {
    host.recorded(decision, |record| record["event"] == "console.decided" && record["decision"] == decision)
}

#[test]
fn a_server_without_a_console_shows_what_runs_and_lets_nobody_decide() {
    let mut host = TestHost::recording(&unhurried(&manifest_of(&["good"])));
    host.initialize("2025-11-25");
    assert_eq!(host.call("echo", json!({"text": "a"})).text(), "a");
    let id = host.start_call("slow", json!({"steps": 1_000, "step_ms": 20}));
    let activity = activity_when(&host, |activity| activity["calls"][0]["state"] == "running");
    let call = &activity["calls"][0];
    assert_eq!((&call["tool"], &call["component"], &call["caller"]), (&json!("slow"), &json!("good"), &json!("local")));
    assert!(call["deadline_ms"].as_u64() > Some(0) && call["fuel_max"].as_u64() > Some(0), "{call:#}");
    assert_eq!((&activity["decide"], &activity["generation"]), (&json!(false), &json!(1)));
    assert_eq!((&activity["denials"], &activity["approvals"]), (&json!([]), &json!([])));
    assert!(activity["minute"]["p50_us"].is_u64(), "{activity:#}");
    let shown = Command::in_folder(host.folder(), &["top", "--once"]).run();
    for words in ["1 running, 0 waiting", "Now\n", "CALL TOOL", "2 slow", "Denials\n  none", "Approvals\n  none"] {
        assert!(shown.succeeded().contains(words), "{words}: {shown:?}");
    }
    assert!(!shown.stdout.contains('\u{1b}'));
    let piped = Command::in_folder(host.folder(), &["top"]).run();
    assert!(piped.succeeded().contains("2 slow"), "{piped:?}");
    let refused = decide(&host, &activity["run"], &json!({"stop": call["call"]}));
    assert_eq!(refused["error"], "operators of this server may not decide");
    assert!(refused["hint"].as_str().unwrap().contains("decide = true"), "{refused}");
    host.cancel(&id);
    host.still_works();
    assert!(!host.audit().iter().any(|record| record["event"] == "console.decided"));
}

#[test]
fn a_call_is_ended_over_the_socket_and_its_client_is_told() {
    let mut host = TestHost::recording(&unhurried(&deciding(&["good"])));
    host.initialize("2025-11-25");
    let id = host.start_call("slow", json!({"steps": 1_000, "step_ms": 20}));
    let activity = activity_when(&host, |activity| activity["calls"][0]["state"] == "running");
    let other = decide(&host, &json!("1.1"), &json!({"stop": 1}));
    assert_eq!(other["error"], "this is not the process that was shown");
    let done = decide(&host, &activity["run"], &json!({"stop": 1}));
    assert_eq!((&done["done"], &done["text"]), (&json!(true), &json!("Call 1 of \"slow\" is being ended.")));
    assert_eq!(host.answer_to(&id).error_text(), "the operator ended the call");
    let record = decided(&host, "stop");
    assert_eq!((&record["subject"], &record["done"]), (&json!("1"), &json!(true)));
    assert!(record["session"].as_str().unwrap().starts_with("terminal of uid "), "{record}");
    let gone = decide(&host, &activity["run"], &json!({"stop": 1}));
    assert_eq!((&gone["done"], &gone["text"]), (&json!(false), &json!("This call does not run any more.")));
    for wrong in [json!({"stop": -1}), json!({"end": 1}), json!("stop"), json!({"stop": 1, "mute": 1})] {
        assert!(decide(&host, &activity["run"], &wrong)["error"].is_string(), "{wrong}");
    }
    host.still_works();
}

#[test]
fn what_was_denied_is_muted_and_allowed() {
    let server = HttpServer::start();
    let mut host = TestHost::recording(&deciding(&["good", "reach_http"]));
    host.initialize("2025-11-25");
    let url = json!({"url": format!("http://{}/x", server.address())});
    let _ = host.call("http", url.clone());
    let _ = host.call("http", url.clone());
    let activity = activity_when(&host, |activity| activity["denials"][0]["count"] == 2);
    let denial = &activity["denials"][0];
    let asked = format!("GET http://{}/x", server.address());
    assert_eq!((&denial["asked"], &denial["component"]), (&json!(asked), &json!("reach_http")));
    assert_eq!(denial["rule"]["can_apply"], true);
    assert_eq!(activity["minute"]["denials"], 2);
    let shown = Command::in_folder(host.folder(), &["top", "--once"]).run();
    let private = format!("allowed by: [components.reach_http.network] private = [\"{}\"]; http = ", server.address());
    assert!(shown.succeeded().contains(&private), "{shown:?}");
    let group = &denial["group"];
    assert_eq!(decide(&host, &activity["run"], &json!({"mute": group}))["text"], "Muted until the server ends.");
    let _ = activity_when(&host, |activity| activity["denials"][0]["muted"] == true);
    let done = decide(&host, &activity["run"], &json!({"grant": group}));
    // The watcher may load the manifest before the order does.
    assert!(done["text"].as_str().unwrap().starts_with("The rule is written. "), "{done}");
    host.serves_generation(2);
    assert!(host.folder().read("toolcell.toml").contains(&format!("http = [\"{asked}\"]")));
    assert!(host.call("http", url).structured().get("ok").is_some());
    assert_eq!(decided(&host, "grant")["subject"], format!("reach_http: {asked}"));
    assert_eq!(decide(&host, &activity["run"], &json!({"mute": 99}))["text"], "There is no such group of denials.");
}

#[test]
fn a_call_that_waits_is_answered() {
    let server = "version = 1\n[server]\napprove_in = [\"console\"]\n";
    let manifest = deciding(&["good"]).replace("version = 1\n", server);
    let manifest = manifest.replace("[console]", "approval = \"always\"\nremember = \"1h\"\n[console]");
    let mut host = TestHost::recording_with(Folder::with_manifest(&manifest), &["--console", "127.0.0.1:0"]);
    host.initialize("2025-11-25");
    for answer in ["decline", "allow", "remember"] {
        let text = "\u{1b}[2Jhello";
        let id = host.start_call("echo", json!({"text": text}));
        let activity = activity_when(&host, |activity| activity["approvals"][0].is_object());
        let approval = &activity["approvals"][0];
        assert_eq!((&approval["tool"], &approval["remember_s"]), (&json!("echo"), &json!(3_600)));
        assert!(approval["arguments"].as_str().unwrap().contains("hello"), "{approval}");
        let shown = Command::in_folder(host.folder(), &["top", "--once"]).run();
        assert!(shown.succeeded().contains("hello") && !shown.stdout.contains('\u{1b}'), "{shown:?}");
        let done = decide(&host, &activity["run"], &json!({ answer: approval["question_id"] }));
        assert_eq!(done["done"], true, "{done}");
        let ended = host.answer_to(&id);
        match answer {
            "decline" => assert_eq!(ended.error_text(), "an operator declined: \"echo\" was not run"),
            _ => assert_eq!(ended.text(), text),
        }
        assert!(decided(&host, answer)["subject"].as_str().unwrap().contains("echo"));
    }
    assert_eq!(host.call("echo", json!({"text": "again"})).text(), "again", "it is remembered");
}

#[test]
fn a_call_whose_arguments_a_terminal_cuts_can_only_be_declined() {
    let server = "version = 1\n[server]\napprove_in = [\"console\"]\n";
    let manifest = deciding(&["good"]).replace("version = 1\n", server);
    let manifest = manifest.replace("[console]", "approval = \"always\"\nremember = \"1h\"\n[console]");
    let mut host = TestHost::recording_with(Folder::with_manifest(&manifest), &["--console", "127.0.0.1:0"]);
    host.initialize("2025-11-25");
    let id = host.start_call("echo", json!({"text": "x".repeat(5_000)}));
    let activity = activity_when(&host, |activity| activity["approvals"][0].is_object());
    let approval = &activity["approvals"][0];
    assert_eq!(approval["arguments_cut"], true);
    for answer in ["allow", "remember"] {
        let done = decide(&host, &activity["run"], &json!({ answer: approval["question_id"] }));
        assert_eq!(done["done"], false, "{done}");
        assert_eq!(done["text"], "A terminal does not show all of its arguments: decide in the console.");
    }
    let done = decide(&host, &activity["run"], &json!({"decline": approval["question_id"]}));
    assert_eq!(done["done"], true, "{done}");
    assert_eq!(host.answer_to(&id).error_text(), "an operator declined: \"echo\" was not run");
}

#[test]
fn a_person_ends_a_call_on_a_terminal_which_is_as_before_afterwards() {
    if !terminal::can_be_had() {
        toolchain::say("LEFT OUT: toolcell top on a terminal: this machine gives none");
        return;
    }
    let mut host = TestHost::recording(&unhurried(&deciding(&["good"])));
    host.initialize("2025-11-25");
    let id = host.start_call("slow", json!({"steps": 1_000, "step_ms": 20}));
    let _ = activity_when(&host, |activity| activity["calls"][0]["state"] == "running");
    let top = || Command::in_folder(host.folder(), &["top"]).with_variable("TERM", "xterm");
    let mut screen = top().on_terminal();
    screen.until("slow");
    screen.type_in("s");
    screen.until("y/n");
    screen.type_in("y");
    assert_eq!(host.answer_to(&id).error_text(), "the operator ended the call");
    screen.type_in("q");
    let (code, shown) = screen.ended();
    assert_eq!(code, 0, "{shown:?}");
    assert!(shown.contains("\u{1b}[?1049h"), "{shown:?}");
    let (_, after) = shown.rsplit_once("\u{1b}[?1049l").unwrap();
    assert!(!after.contains("slow"), "{after:?}");
    for keys in ["\u{3}", "\u{1b}"] {
        let mut screen = Command::in_folder(host.folder(), &["top"]).with_variable("NO_COLOR", "1").on_terminal();
        screen.until("Denials");
        screen.type_in(keys);
        let (code, shown) = screen.ended();
        assert_eq!(code, 0, "{shown:?}");
        assert!(!shown.contains("\u{1b}[38;5;"), "no colours: {shown:?}");
    }
}

#[test]
fn without_a_server_one_error_says_so() {
    let folder = Folder::with_manifest("version = 1\n");
    for arguments in [&["top"][..], &["top", "--once"], &["top", "--json"]] {
        let failed = Command::in_folder(&folder, arguments).run();
        let text = failed.failed_with(1);
        assert!(text.contains("no process of this user serves") && text.contains("toolcell serve"), "{text}");
    }
    assert_eq!(Command::in_folder(&folder, &["top", "--once", "--json"]).run().code(), 2);
}
