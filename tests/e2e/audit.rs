//! Nothing hidden: the records of each call, and the commands that check and show them.
//!
//! Promise: no edited record hides behind a gap.
//! Promise: refusals are recorded.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, TestHost, manifest_of};

const AUDIT: &str = "audit.jsonl";

fn audit(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, &[&["audit"], arguments].concat()).run()
}

fn of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["event"] == event).collect()
}

/// A host with an audit of one call of each kind: one that ran, and one whose arguments do not fit.
fn recorded() -> TestHost {
    let mut host = TestHost::recording(&format!("{}\n[server]\nwalls = \"none\"\n", manifest_of(&["good"])));
    assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
    let _ = host.call("echo", json!({"text": 5})).error_text();
    host
}

/// The manifest of fixtures with an `[audit]` section.
fn with_audit(section: &str) -> String {
    let manifest = manifest_of(&["good"]);
    let (head, components) = manifest.split_at(manifest.find("[components").unwrap());
    format!("{head}[audit]\n{section}\n\n{components}")
}

#[test]
fn a_call_that_the_input_schema_refuses_ends_with_its_problems() {
    let host = recorded();
    let records = host.audit();
    let started = of_event(&records, "call.started");
    let finished = of_event(&records, "call.finished");
    assert_eq!((started.len(), finished.len()), (2, 2));
    let ends: Vec<_> = finished.iter().map(|record| (&record["outcome"], &record["tool"])).collect();
    assert_eq!(ends, [(&json!("ok"), &json!("echo")), (&json!("invalid_input"), &json!("echo"))]);
    assert_eq!(finished[1]["detail"], "- /text: must be of type string");
    assert_eq!(finished[1]["id"], started[1]["id"]);
    assert!(started[1]["arguments_digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(of_event(&records, "call.refused").is_empty());
}

#[test]
fn arguments_past_their_limit_are_one_record() {
    let manifest = manifest_of(&["good"]).replace("\noutput =", "\narguments = \"1KiB\"\noutput =");
    let mut host = TestHost::recording(&manifest);
    let _ = host.call("echo", json!({"text": "x".repeat(2_000)})).error_text();
    let records = host.audit();
    assert_eq!(of_event(&records, "call.refused")[0]["outcome"], "limit_exceeded");
    assert!(of_event(&records, "call.started").is_empty());
}

#[test]
fn a_result_that_the_output_schema_refuses_is_not_recorded_as_ok() {
    let mut host = TestHost::recording(&manifest_of(&["liar"]));
    for (tool, why) in [
        ("not_json", ""),
        (
            "number_too_large",
            "its structured content cannot be taken: a number at byte 9 is too large for a 64-bit float",
        ),
        ("wrong_type", "its structured content does not fit its output schema:\n- (root): must be of type object"),
        ("nothing_structured", "its output schema asks for structured content, and there is none"),
    ] {
        let _ = host.call(tool, json!({})).error_text();
        let records = host.audit();
        let finished = of_event(&records, "call.finished");
        let last = finished.last().unwrap();
        assert_eq!((&last["outcome"], &last["usage"]["output_bytes"]), (&json!("invalid_output"), &json!(0)), "{tool}");
        assert_eq!(last["detail"].as_str().unwrap_or_default(), why, "{tool}");
    }
}

#[test]
fn verify_says_whether_the_chain_is_whole_and_where_it_breaks() {
    let host = recorded();
    let folder = host.folder();
    let whole = audit(folder, &["verify"]);
    let records = host.audit().len();
    assert!(whole.succeeded().starts_with(&format!("audit.jsonl: ok; records: {records}, files: 1\n")), "{whole:?}");
    let found: Value = serde_json::from_str(audit(folder, &["verify", "--json"]).succeeded()).unwrap();
    assert_eq!((&found["ok"], &found["records"]), (&json!(true), &json!(records)));
    let head = found["head"].as_str().unwrap().to_owned();
    assert_eq!(audit(folder, &["verify", "--head", &head]).code(), 0);
    assert_eq!(audit(folder, &["verify", "--head", &"0".repeat(64)]).code(), 1);

    let path = folder.path().join(AUDIT);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(folder.path().join("forged.jsonl"), text.replace("\"echo\"", "\"ohce\"")).unwrap();
    let forged = audit(folder, &["verify", "forged.jsonl"]);
    assert_eq!((forged.code(), forged.stdout.as_str()), (1, ""));
    assert!(forged.stderr.contains("the chain breaks at record"), "{}", forged.stderr);
    let found = audit(folder, &["verify", "forged.jsonl", "--json"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found["ok"], false);
    assert!(found["line"].as_u64().unwrap() > 1, "{found}");

    std::fs::write(folder.path().join("torn.jsonl"), &text[..text.len() - 9]).unwrap();
    let torn = audit(folder, &["verify", "torn.jsonl"]);
    assert_eq!(torn.code(), 1);
    assert!(torn.stderr.contains("the last record is torn"), "{}", torn.stderr);
    assert_eq!(audit(folder, &["verify", "missing.jsonl"]).code(), 1);
}

#[test]
fn show_has_a_line_for_each_call_and_filters() {
    let host = recorded();
    let folder = host.folder();
    let lines = |arguments: &[&str]| {
        let shown = audit(folder, &[&["show"], arguments].concat());
        shown.succeeded().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines(&[]);
    assert!(all[0].starts_with("TIME (UTC)"), "{all:?}");
    assert!(all.iter().any(|line| line.contains("host.started")));
    for (arguments, expected) in [
        (&["--outcome", "ok"][..], Some("ok")),
        (&["--outcome", "invalid_input"], Some("invalid_input")),
        (&["--call", "2", "--since", "1h"], Some("must be of type string")),
        (&["--tool", "echo", "--call", "1"], Some("echo")),
        (&["--tool", "nothing"], None),
        (&["--since", "2999-01-01"], None),
        (&["--denials"], None),
    ] {
        let found = lines(arguments);
        match expected {
            Some(text) => assert!(found.len() == 2 && found[1].contains(text), "{arguments:?}: {found:?}"),
            None => assert!(found.is_empty(), "{arguments:?}: {found:?}"),
        }
    }
    let json = lines(&["--json", "--outcome", "ok"]);
    let record: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!((json.len(), &record["event"]), (1, &json!("call.finished")));
    assert_eq!(audit(folder, &["show", "--since", "yesterday"]).code(), 2);
    assert_eq!(audit(folder, &["show", "--outcome", "no_such"]).code(), 2);
    assert!(!audit(folder, &["show"]).stdout.contains('\u{1b}'));
}

/// The folder of an ended host, with its audit of nine files.
fn rotated() -> Folder {
    let manifest = with_audit("file = \"audit.jsonl\"\nrotate = \"64KiB\"\nkeep = 8\narguments = \"values\"");
    let mut host = TestHost::with_manifest(&manifest);
    let text = "x".repeat(4_000);
    while !host.folder().path().join("audit.jsonl.8").exists() {
        assert_eq!(host.call("echo", json!({"text": text})).text(), text);
    }
    host.ends_leaving_its_folder()
}

/// Changes every record of a closed file and does not repair the chain.
fn forge(folder: &Folder, number: u32) {
    let path = folder.path().join(format!("{AUDIT}.{number}"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"echo\"", "\"ohce\"")).unwrap();
}

#[test]
fn verify_reports_every_file_beyond_a_gap_also_with_a_head_that_is_found() {
    let folder = rotated();
    let whole: Value = serde_json::from_str(audit(&folder, &["verify", "--json"]).succeeded()).unwrap();
    assert_eq!(whole["files"].as_array().unwrap().len(), 9);
    let head = whole["head"].as_str().unwrap();
    let remove = |number: u32| std::fs::remove_file(folder.path().join(format!("{AUDIT}.{number}"))).unwrap();
    [3, 4].into_iter().for_each(remove);
    (5..=8).for_each(|number| forge(&folder, number));
    for asked in [&["verify"][..], &["verify", "--head", head]] {
        let found = audit(&folder, asked);
        assert_eq!((found.code(), found.stdout.as_str()), (1, ""), "{asked:?}");
        assert!(
            found.stderr.contains("audit.jsonl.5: 4 files beyond a gap, where nothing is checked"),
            "{}",
            found.stderr
        );
    }
    let found = audit(&folder, &["verify", "--json", "--head", head]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((&found["ok"], found["unchecked"].as_array().unwrap().len()), (&json!(false), 4), "{found}");
    // Now nothing else is left beyond the gap. The rest is the end of a chain, as if rotation had
    // removed the files before it.
    (5..=8).for_each(remove);
    assert!(audit(&folder, &["verify", "--head", head]).succeeded().contains("files: 3"));
    // One more file is removed. A gap of one file is looked across, and the chain does not continue
    // behind it.
    remove(1);
    let found = audit(&folder, &["verify"]);
    assert!(found.code() == 1 && found.stderr.contains("the chain breaks at record"), "{found:?}");
}

#[test]
fn a_changed_last_record_is_seen_with_a_head_alone() {
    let host = recorded();
    let folder = host.ends_leaving_its_folder();
    let path = folder.path().join(AUDIT);
    let found: Value = serde_json::from_str(audit(&folder, &["verify", "--json"]).succeeded()).unwrap();
    let head = found["head"].as_str().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let forged = text.replacen("end of input", "END of input", 1);
    assert_ne!(forged, text);
    std::fs::write(&path, forged).unwrap();
    assert_eq!(audit(&folder, &["verify"]).code(), 0, "nothing follows that would tell");
    let found = audit(&folder, &["verify", "--head", head]);
    assert_eq!(found.code(), 1);
    assert!(found.stderr.contains("no record has the hash"), "{}", found.stderr);
}

#[test]
fn an_audit_whose_host_was_killed_while_it_rotated_is_read_as_far_as_it_is_there() {
    let folder = rotated();
    let last = |finished: &Finished| {
        let line = finished.succeeded().lines().last().unwrap().to_owned();
        serde_json::from_str::<Value>(&line).unwrap()["seq"].clone()
    };
    let shown = last(&audit(&folder, &["show", "--json"]));
    // The steps of a rotation before it makes the new file.
    std::fs::remove_file(folder.path().join("audit.jsonl.8")).unwrap();
    for number in (0..8).rev() {
        let name = |number| if number == 0 { AUDIT.to_owned() } else { format!("{AUDIT}.{number}") };
        std::fs::rename(folder.path().join(name(number)), folder.path().join(name(number + 1))).unwrap();
    }
    assert_eq!(last(&audit(&folder, &["show", "--json"])), shown);
    assert_eq!(last(&audit(&folder, &["tail", "-n", "1", "--json"])), shown);
    let verified = audit(&folder, &["verify"]);
    assert!(verified.succeeded().contains("files: 8\n"), "{verified:?}");
    assert!(verified.stdout.contains("the file itself is not there"), "{verified:?}");
    assert_eq!(audit(&folder, &["verify", "missing.jsonl"]).code(), 1);
}

/// `toolcell audit tail`. Dropping this ends it.
struct Tail {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Tail {
    fn following(folder: &Folder) -> Self {
        let mut child = std::process::Command::new(toolcell_tests::toolcell())
            .args(["audit", "tail", "-n", "1000", "--follow", "--json"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next_number(&mut self) -> u64 {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64().unwrap()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_manifest_names_the_audit_and_tail_follows_it_from_file_to_file() {
    let manifest = with_audit("file = \"audit.jsonl\"\nrotate = \"64KiB\"\nkeep = 100\narguments = \"values\"");
    let mut host = TestHost::with_manifest(&manifest);
    assert_eq!(host.call("echo", json!({"text": "first"})).text(), "first");
    let mut tail = Tail::following(host.folder());
    assert_eq!(tail.next_number(), 1);
    for _ in 0..200 {
        host.call("echo", json!({"text": "hello"}));
    }
    let last = host.audit().last().unwrap()["seq"].as_u64().unwrap();
    for number in 2..=last {
        assert_eq!(tail.next_number(), number);
    }
    assert!(host.folder().path().join("audit.jsonl.1").exists());
    let verified = audit(host.folder(), &["verify"]);
    assert!(verified.succeeded().contains(&format!("records: {last}")), "{verified:?}");
    let started = audit(host.folder(), &["show", "--json", "--call", "1"]);
    let started: Value = serde_json::from_str(started.succeeded().lines().next().unwrap()).unwrap();
    assert_eq!(started["arguments"], r#"{"text":"first"}"#);
    let end = audit(host.folder(), &["tail", "-n", "2"]);
    assert_eq!(end.succeeded().lines().count(), 2, "{}", end.stdout);
}

/// One of several processes that serve a folder's manifest over stdio.
struct Served {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start(folder: &Folder) -> Self {
        let mut child = std::process::Command::new(toolcell_tests::toolcell())
            .args(["serve", "--log", "off"])
            .current_dir(folder.path())
            .env("XDG_RUNTIME_DIR", folder.runtime())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut served = Self { child, lines };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        served.ask("initialize", &params);
        served
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        use std::io::Write as _;
        let frame = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{frame}").unwrap();
        let reply: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        assert!(reply["result"].is_object(), "{reply}");
        reply
    }

    fn echo(&mut self, text: &str) {
        let reply = self.ask("tools/call", &json!({"name": "echo", "arguments": {"text": text}}));
        assert_eq!(reply["result"]["content"][0]["text"], text, "{reply}");
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn ten_processes_of_one_manifest_record_all_of_their_calls() {
    let folder = Folder::with_manifest(&with_audit("file = \"audit.jsonl\""));
    let mut served: Vec<Served> = (0..10).map(|_| Served::start(&folder)).collect();
    for (number, process) in served.iter_mut().enumerate() {
        process.echo(&format!("from {number}"));
    }
    // A killed process leaves its chain to the next one, which goes on with it.
    served.remove(4).kill();
    let mut next = Served::start(&folder);
    next.echo("from the next");
    served.push(next);
    served.into_iter().for_each(Served::end);

    let verified = audit(&folder, &["verify"]);
    assert_eq!(verified.succeeded().matches(": ok; ").count(), 10, "{}", verified.stdout);
    let shown = audit(&folder, &["show", "--json"]);
    let records: Vec<Value> = shown.succeeded().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(of_event(&records, "host.started").len(), 11);
    assert_eq!(of_event(&records, "call.finished").len(), 11);
    assert_eq!(of_event(&records, "host.stopped").len(), 10);
    assert!(!folder.path().join("audit.jsonl-11").exists());

    // All are one list by their times, also where another process begins while it is followed.
    let times: Vec<&str> = records.iter().map(|record| record["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let last = audit(&folder, &["tail", "-n", "3", "--json"]);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(last.succeeded().lines().collect::<Vec<_>>(), lines[lines.len() - 3..]);

    // A change in any chain is found.
    let text = folder.read("audit.jsonl-7");
    folder.write("audit.jsonl-7", text.replacen("echo", "ohce", 1));
    let broken = audit(&folder, &["verify"]);
    assert!(broken.failed_with(1).contains("audit.jsonl-7:"), "{}", broken.stderr);
}

#[test]
fn a_tail_that_runs_hears_of_processes_that_begin_later() {
    let folder = Folder::with_manifest(&with_audit("file = \"audit.jsonl\""));
    let mut first = Served::start(&folder);
    first.echo("first");
    let mut tail = Tail::following(&folder);
    let mut hears = |tool: &str, chain: &str| loop {
        let line = tail.lines.next().unwrap().unwrap();
        let record: Value = serde_json::from_str(&line).unwrap();
        if record["event"] == "call.finished" && record["tool"] == tool {
            assert!(folder.read(chain).contains(&line), "{chain} has no {line}");
            return;
        }
    };
    hears("echo", "audit.jsonl");
    let mut second = Served::start(&folder);
    second.echo("second");
    hears("echo", "audit.jsonl-2");
    first.echo("third");
    hears("echo", "audit.jsonl");
    first.end();
    second.end();
}

#[test]
fn without_a_file_the_audit_of_the_manifest_is_read() {
    let folder = Folder::with_manifest(&with_audit("file = \"records/calls.jsonl\""));
    folder.make("records");
    let mut served = Served::start(&folder);
    served.echo("hello");
    served.end();
    for command in [&["verify"][..], &["show"], &["tail"], &["verify", "--manifest", "toolcell.toml"]] {
        let shown = audit(&folder, command);
        assert!(!shown.succeeded().is_empty(), "{command:?}: {shown:?}");
    }
    assert!(audit(&folder, &["verify"]).succeeded().contains("records/calls.jsonl: ok; records: "));
    let elsewhere = Folder::with_manifest("");
    let named = folder.manifest();
    let shown = audit(&elsewhere, &["show", "--json", "--manifest", named.to_str().unwrap()]);
    assert!(shown.succeeded().contains("call.finished"), "{shown:?}");
    // The manifest elsewhere names none: the audit of this folder is another server's.
    let silent = Folder::with_manifest(&manifest_of(&["good"]));
    let silent = silent.manifest();
    let silent = silent.to_str().unwrap();
    folder.write("audit.jsonl", folder.read("records/calls.jsonl"));
    let narrow = ["policy", "suggest", "--narrow", "--days", "0"];
    for command in [&["audit", "verify"][..], &["audit", "show"], &["audit", "tail"], &["usage"], &narrow] {
        let refused = Command::in_folder(&folder, &[command, &["--manifest", silent]].concat()).run();
        let said = refused.failed_with(1);
        assert!(said.contains(&format!("{silent} keeps no audit")) && said.contains("name the audit"), "{command:?}");
        assert_eq!(refused.stdout, "", "{command:?}");
    }
    let fuzzed = Command::in_folder(&folder, &["policy", "fuzz", "--manifest", silent]).run();
    assert!(fuzzed.succeeded().contains("0 calls known"), "{fuzzed:?}");
    folder.write("toolcell.toml", "version = 1\nnonsense");
    assert!(audit(&folder, &["verify"]).failed_with(1).contains("has problems; `toolcell check` shows them"));
    assert_eq!(audit(&folder, &["verify", "records/calls.jsonl"]).code(), 0);
}
