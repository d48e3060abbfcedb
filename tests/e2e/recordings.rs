//! Recordings of calls that the manifest asks for: which calls, where, how many, and what is not in
//! them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Folder, TestHost, manifest_of, patience};

use crate::walls;

const RECORDINGS: &str = "recordings";

/// A value that appears nowhere by chance.
const EXPOSED: &str = "s3cr3t-8d1f7c2a94";
const ADDED: &str = "an0ther-secret-77";

/// The manifest of fixtures, each with this rule.
fn recorded(fixtures: &[&str], rule: &str) -> String {
    manifest_of(fixtures).replace("\nsource =", &format!("\nrecord = \"{rule}\"\nsource ="))
}

/// The recordings in a folder, oldest first.
pub(crate) fn files(folder: &Folder) -> Vec<PathBuf> {
    let list = |path: &Path| -> Vec<PathBuf> {
        let listed = std::fs::read_dir(path).map(|listed| listed.map(|entry| entry.unwrap().path()).collect());
        listed.unwrap_or_default()
    };
    let components = list(&folder.path().join(RECORDINGS));
    let mut files: Vec<PathBuf> = components.iter().flat_map(|component| list(component)).collect();
    files.sort();
    files
}

/// Ends the host, which writes what waits, and returns its folder.
fn ended(host: TestHost) -> Folder {
    host.ends_leaving_its_folder()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of calls that ended.
fn finished(host: &TestHost) -> Vec<Value> {
    host.audit().into_iter().filter(|record| record["event"] == "call.finished").collect()
}

#[test]
fn each_call_is_a_private_file_that_the_audit_names() {
    let mut host = TestHost::recording(&recorded(&["good"], "all"));
    assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
    let _ = host.call("echo", json!({"text": 5})).error_text();
    let ends = finished(&host);
    let folder = ended(host);
    let files = files(&folder);
    assert_eq!(files.len(), 1, "a call whose arguments do not fit never ran: {files:?}");
    let named = folder.path().join(RECORDINGS).join(ends[0]["recording"].as_str().unwrap());
    assert_eq!((&named, ends[1].get("recording")), (&files[0], None));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parents = [named.parent().unwrap(), named.parent().unwrap().parent().unwrap()];
    assert_eq!([mode(&named), mode(parents[0]), mode(parents[1])], [0o600, 0o700, 0o700]);
    let name = named.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("20") && name.contains("Z-1-") && name.ends_with(".jsonl"), "{name}");
    let lines = lines(&named);
    let head = &lines[0];
    assert_eq!((&head["tool"], &head["caller"]), (&json!("echo"), &json!("local")));
    assert_eq!(head["arguments"], json!({"text": "hello"}).to_string());
    assert!(lines.last().unwrap()["ended"]["Ok"].is_object(), "{lines:?}");
    let verified = Command::in_folder(&folder, &["audit", "verify"]).run();
    assert!(verified.succeeded().starts_with("audit.jsonl: ok"));
}

#[test]
fn with_errors_only_calls_that_fail_are_kept() {
    let mut host = TestHost::recording(&recorded(&["good", "liar"], "errors"));
    assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
    let _ = host.call("wrong_type", json!({})).error_text();
    let ends = finished(&host);
    let folder = ended(host);
    assert_eq!(files(&folder).len(), 1);
    assert_eq!(ends[0].get("recording"), None);
    assert!(ends[1]["recording"].as_str().unwrap().starts_with("liar/"), "{ends:?}");
}

#[test]
fn a_tool_wins_over_its_component_and_a_component_without_a_rule_records_nothing() {
    let manifest = manifest_of(&["good", "liar"]).replace(
        "[components.good]\n",
        "[components.good.tools.echo]\nrecord = \"all\"\n\n[components.good]\nrecord = \"never\"\n",
    );
    let mut host = TestHost::recording(&manifest);
    let _ = host.call("echo", json!({"text": "hello"}));
    let _ = host.call("wrong_type", json!({}));
    let folder = ended(host);
    let files = files(&folder);
    assert_eq!(files.len(), 1);
    assert!(files[0].starts_with(folder.path().join(RECORDINGS).join("good")), "{files:?}");
}

#[test]
fn a_share_of_the_calls_is_recorded() {
    let mut host = TestHost::recording(&recorded(&["good"], "50%"));
    for _ in 0..100 {
        let _ = host.call("echo", json!({"text": "hello"}));
    }
    let named = finished(&host).iter().filter(|end| end["recording"].is_string()).count();
    let folder = ended(host);
    assert_eq!(files(&folder).len(), named);
    // Less likely than one in ten to the fourteenth.
    assert!((12..=88).contains(&named), "{named}");
}

#[test]
fn a_reload_turns_recording_on_and_off_for_the_next_call() {
    let off = manifest_of(&["good"]);
    let on = recorded(&["good"], "all");
    let mut host = TestHost::recording(&off);
    let _ = host.call("echo", json!({"text": "1"}));
    for (number, manifest) in [&on, &off, &on].into_iter().enumerate() {
        host.folder().write("toolcell.toml", manifest);
        host.hang_up();
        let wanted = number + 2;
        let _ = host.recorded("the reload", |record| {
            record["event"] == "catalog.replaced" && record["generation"] == json!(wanted)
        });
        let _ = host.call("echo", json!({"text": "hello"}));
    }
    let ends: Vec<bool> = finished(&host).iter().map(|end| end["recording"].is_string()).collect();
    assert_eq!(ends, [false, true, false, true]);
    let folder = ended(host);
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn a_restart_keeps_what_is_there_within_its_bounds_and_removes_drafts() {
    let bounds = "\n[recordings]\nmax_files = 3\n";
    let manifest = recorded(&["good"], "all") + bounds;
    let mut host = TestHost::recording(&manifest);
    for _ in 0..2 {
        let _ = host.call("echo", json!({"text": "first"}));
    }
    let folder = ended(host);
    let first = files(&folder);
    assert_eq!(first.len(), 2);
    // A process that was killed left this.
    let name = first[0].file_name().unwrap().to_str().unwrap();
    let draft = first[0].with_file_name(format!(".{name}.draft"));
    std::fs::write(&draft, "{\"recording\":1").unwrap();
    // Names have seconds: those of one second have no order over restarts.
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    while second() == now {
        std::thread::yield_now();
    }
    let mut host = TestHost::recording_with(folder, &[]);
    for _ in 0..2 {
        let _ = host.call("echo", json!({"text": "second"}));
    }
    let folder = ended(host);
    let second = files(&folder);
    assert_eq!(second.len(), 3, "{second:?}");
    assert!(!draft.exists());
    let texts: Vec<Value> = second.iter().map(|file| lines(file)[0]["arguments"].clone()).collect();
    let of = |text: &str| {
        let arguments = json!({"text": text}).to_string();
        texts.iter().filter(|found| **found == arguments).count()
    };
    assert_eq!((of("first"), of("second")), (1, 2));
}

#[test]
fn a_host_that_is_killed_leaves_whole_recordings() {
    let mut host = TestHost::recording(&recorded(&["good"], "all"));
    for _ in 0..50 {
        let _ = host.call("echo", json!({"text": "x".repeat(20_000)}));
    }
    let folder = host.is_killed_leaving_its_folder();
    for file in files(&folder).iter().filter(|file| file.extension().is_some_and(|ending| ending == "jsonl")) {
        assert!(lines(file).last().unwrap()["ended"].is_object(), "{}", file.display());
    }
}

#[test]
fn a_call_whose_sandbox_process_is_killed_leaves_a_recording_up_to_there() {
    let http = HttpServer::start();
    let network = format!("network = {{ http = [\"http://{0}\"], private = [\"{0}\"] }}\n", http.address());
    let mut host = TestHost::recording(&format!("{}{network}", recorded(&["reach_http"], "all")));
    let call = host.start_call("http", json!({"url": http.url("/slow-head")}));
    let began = Instant::now();
    while http.seen().is_empty() {
        assert!(began.elapsed() < patience(), "the call does not begin");
        std::thread::yield_now();
    }
    walls::sealed(host.process_id()).into_iter().for_each(walls::kill);
    let answer = host.answer_to(&call);
    let said = answer.error_text();
    let folder = ended(host);
    let [file] = &files(&folder)[..] else { panic!("{said}") };
    assert!(lines(file).last().unwrap()["ended"]["Err"].is_object(), "{said}");
    let replayed = Command::in_folder(&folder, &["replay", RECORDINGS]).run();
    assert!(replayed.succeeded().contains("1 of 1"), "{}", replayed.stdout);
}

#[test]
fn calls_go_on_where_recordings_cannot_be_written() {
    let folder = Folder::with_manifest(&recorded(&["good"], "all"));
    folder.make("elsewhere");
    folder.make(RECORDINGS);
    symlink(folder.path().join("elsewhere"), folder.path().join(RECORDINGS).join("good")).unwrap();
    let mut host = TestHost::recording_with(folder, &[]);
    for _ in 0..3 {
        assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
    }
    host.will_say("a recording is not kept (1 since the last warning)");
    let said = host.said();
    let folder = ended(host);
    assert_eq!(said.matches("a recording is not kept").count(), 1, "{said}");
    assert_eq!(std::fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn no_mount_shows_the_recordings() {
    let mount = |path: &str, access: &str| {
        let tables = format!(
            "\n[components.reach_files.filesystem]\n\"/in\" = {{ path = \"{path}\", access = \"{access}\" }}\n"
        );
        let folder = Folder::with_manifest(&(recorded(&["reach_files"], "all") + &tables));
        folder.make("recordings/reach_files");
        symlink("recordings", folder.path().join("link")).unwrap();
        folder
    };
    for path in ["recordings", "recordings/reach_files", ".", "link", "recordings/../link/reach_files"] {
        for access in ["read", "write"] {
            let finished = Command::in_folder(&mount(path, access), &["check"]).run();
            let said = finished.failed_with(1);
            assert!(said.contains("holds the recordings of calls"), "{path} {access}: {said}");
        }
    }
}

#[test]
fn a_call_by_hand_leaves_no_file_in_the_folder_and_none_for_arguments_that_do_not_fit() {
    let folder = Folder::with_manifest(&recorded(&["liar"], "all"));
    let _ = Command::in_folder(&folder, &["call", "wrong_type", "{}"]).run();
    assert!(files(&folder).is_empty());
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let call =
        |arguments: &str| Command::in_folder(&folder, &["call", "echo", arguments, "--record", "one.jsonl"]).run();
    let refused = call("{\"text\": 5}");
    assert!(refused.failed_with(1).contains("was not recorded"));
    assert!(!folder.path().join("one.jsonl").exists());
    assert!(call("{\"text\": \"hello\"}").succeeded().contains("hello"));
    assert_eq!(lines(&folder.path().join("one.jsonl"))[0]["tool"], "echo");
}

#[test]
fn a_component_that_cannot_be_recorded_is_a_warning_and_runs() {
    let folder = Folder::with_manifest(&recorded(&["p3"], "all").replace("\nsource =", "\nwasi = \"0.3\"\nsource ="));
    let finished = Command::in_folder(&folder, &["check"]).run();
    assert!(format!("{finished:?}").contains("its calls cannot be recorded yet"), "{finished:?}");
    let host = TestHost::recording_with(folder, &[]);
    host.will_say("its calls cannot be recorded yet");
    assert_eq!(host.said().matches("its calls cannot be recorded yet").count(), 1, "{}", host.said());
    let folder = ended(host);
    let call = Command::in_folder(&folder, &["call", "random", "{\"count\": 3}", "--record", "one.jsonl"]).run();
    let why = "the call cannot be replayed: calls cannot be recorded: the component imports \"wasi:";
    assert!(call.stderr.contains(why), "{}", call.stderr);
    let replayed = Command::in_folder(&folder, &["replay", "one.jsonl"]).run();
    assert!(replayed.stdout.contains("the recording is not whole: calls cannot be recorded"), "{}", replayed.stdout);
}

/// Every text in a file of a recording, and what its base64 stands for.
fn everything(folder: &Folder) -> Vec<Vec<u8>> {
    fn collect(value: &Value, all: &mut Vec<Vec<u8>>) {
        match value {
            Value::String(text) => {
                all.push(text.clone().into_bytes());
                if let Ok(inner) = serde_json::from_str::<Value>(text)
                    && !inner.is_string()
                {
                    collect(&inner, all);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, all)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    all.push(key.clone().into_bytes());
                    match value {
                        Value::String(text) if key == "base64" => all.push(STANDARD.decode(text).unwrap()),
                        value => collect(value, all),
                    }
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    for file in files(folder) {
        all.push(std::fs::read(&file).unwrap());
        lines(&file).iter().for_each(|line| collect(line, &mut all));
    }
    all
}

/// The forms of a secret that no file may have.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let json: String = secret.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    // Base64 at each place of a longer text, without the digits that depend on its neighbours.
    let encoded = (0..3).map(|before| {
        let text = STANDARD.encode(["x".repeat(before).as_bytes(), secret.as_bytes()].concat());
        let skipped = [0, 2, 3][before];
        text[skipped..(before + secret.len()) * 8 / 6].to_owned()
    });
    let plain = [secret.to_owned(), hex.to_uppercase(), hex, escaped, json];
    plain.into_iter().chain(encoded).map(String::into_bytes).collect()
}

/// Asserts that none of these secrets is in the recordings, and that one of them is marked.
pub(crate) fn assert_marked(folder: &Folder, name: &str, secrets: &[&str]) {
    let everything = everything(folder);
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        let leak = everything.iter().find(|bytes| bytes.windows(form.len()).any(|window| window == form));
        let shown = String::from_utf8_lossy(&form);
        assert!(leak.is_none(), "{shown}: {}", String::from_utf8_lossy(leak.unwrap()));
    }
    let mark = format!("[redacted:{name}]");
    assert!(everything.iter().any(|bytes| String::from_utf8_lossy(bytes).contains(&mark)), "{mark}");
}

#[test]
fn no_secret_is_in_the_folder_in_any_form_that_is_known() {
    let server = HttpServer::start();
    let address = server.address();
    let tables = format!(
        "\n[components.exfiltrate.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\
         [components.exfiltrate.secrets]\nTOKEN = {{ from = \"env:TEST_TOKEN\", expose = true }}\n\
         KEY = {{ from = \"env:TEST_KEY\", header = \"X-Key\", for = \"http://{address}/api/*\" }}\n"
    );
    let folder = Folder::with_manifest(&(recorded(&["exfiltrate"], "all") + &tables));
    let mut host = TestHost::recording_in(folder, &[("TEST_TOKEN", EXPOSED), ("TEST_KEY", ADDED)]);
    let ways = host.call("leak_ways", json!({})).structured().clone();
    for way in ways["ways"].as_array().unwrap().iter().map(|way| way.as_str().unwrap()) {
        for from in ["env", "config"] {
            let out = server.url("/elsewhere");
            let _ = host.call("leak", json!({"from": from, "name": "TOKEN", "way": way, "out": out, "url": out}));
        }
    }
    let halves = json!(["an0ther-", "secret-77"]);
    let echo = server.url("/api/echo");
    let _ = host.call("seen", json!({"url": echo, "part": halves}));
    assert_eq!(server.seen().pop().unwrap().values("x-key"), [ADDED]);
    let _ = host.call("leak", json!({"from": "echo", "url": echo, "way": "text", "out": server.url("/elsewhere")}));
    let _ = host.call("leak", json!({"from": "env", "name": "TOKEN", "way": "text", "note": EXPOSED}));
    let calls = finished(&host).iter().filter(|end| end["recording"].is_string()).count();
    let folder = ended(host);
    assert!(calls > 25 && files(&folder).len() == calls, "{calls} {}", files(&folder).len());
    assert_marked(&folder, "TOKEN", &[EXPOSED, ADDED]);
}

#[test]
fn recordings_are_counted() {
    let folder = Folder::with_manifest(&recorded(&["good"], "all"));
    let mut host = TestHost::recording_with(folder, &["--metrics", "127.0.0.1:0"]);
    let _ = host.call("echo", json!({"text": "hello"}));
    let of = |outcome: &'static str| [("outcome", outcome)];
    let is_written = |figures: &toolcell_tests::Figures| figures.get("toolcell_recordings_total", &of("written")) > 0.0;
    let figures = host.figures_when("a recording", is_written);
    let counts = ["written", "dropped", "failed"].map(|outcome| figures.get("toolcell_recordings_total", &of(outcome)));
    assert_eq!(counts.map(|count| count as u64), [1, 0, 0]);
}

#[test]
fn a_recording_says_in_which_revision_its_caller_spoke() {
    let mut host = TestHost::recording(&recorded(&["good"], "all"));
    host.initialize("2025-06-18");
    let _ = host.call("echo", json!({"text": "hello"}));
    let folder = ended(host);
    assert_eq!(lines(&files(&folder)[0])[0]["revision"], "2025-06-18");
    let by_hand = Command::in_folder(&folder, &["call", "echo", r#"{"text":"a"}"#, "--record", "a.jsonl"]).run();
    assert_eq!(by_hand.succeeded(), "a\n");
    let replayed = Command::in_folder(&folder, &["replay", "recordings", "a.jsonl", "--json"]).run().json();
    let of = |number: usize| replayed["calls"][number]["revision"].as_str();
    assert_eq!([of(0), of(1)], [Some("2026-07-28"), Some("2025-06-18")]);
    // Recordings of earlier versions say nothing.
    let mut older = lines(&folder.path().join("a.jsonl"));
    older[0].as_object_mut().unwrap().remove("revision");
    folder.write("older.jsonl", older.iter().map(|line| format!("{line}\n")).collect::<String>());
    let replayed = Command::in_folder(&folder, &["replay", "older.jsonl", "--json"]).run();
    assert_eq!((replayed.code(), replayed.json()["calls"][0].get("revision")), (0, None));
}

#[test]
fn resources_prompts_and_completions_that_run_a_component_are_recorded_and_replayed_like_tools() {
    let own = "\n[prompts.greet]\ntext = \"Hi\"\n";
    let mut host = TestHost::recording(&format!("{}{own}", recorded(&["resources", "prompts"], "all")));
    host.initialize("2025-11-25");
    let read = host.request("resources/read", json!({"uri": "own:///index"}));
    assert_eq!(read["result"]["contents"][0]["text"], "disk\n");
    let got = host.request("prompts/get", json!({"name": "test_simple_prompt"}));
    assert!(got["result"]["messages"].is_array(), "{got}");
    let prompt = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
    let argument = json!({"name": "arg1", "value": "par"});
    let completed = host.request("completion/complete", json!({"ref": prompt, "argument": argument}));
    assert!(completed["result"]["completion"]["values"].is_array(), "{completed}");
    // A prompt of the manifest runs no component.
    assert!(host.request("prompts/get", json!({"name": "greet"}))["result"].is_object());
    let folder = ended(host);
    let tools: Vec<String> =
        files(&folder).iter().map(|file| lines(file)[0]["tool"].as_str().unwrap().to_owned()).collect();
    let mut sorted = tools.clone();
    sorted.sort();
    assert_eq!(sorted, ["completion/complete", "prompt/test_simple_prompt", "resource/read"]);
    let replayed = Command::in_folder(&folder, &["replay", "recordings", "--save", "cases"]).run();
    assert!(replayed.succeeded().contains("3 of 3 recorded calls answer as before"), "{replayed:?}");
    for (name, arguments) in [("resources/resources", r#"{"uri":"own:///index"}"#), ("prompt/test_simple_prompt", "{}")]
    {
        let file = format!("{}.jsonl", name.replace('/', "-"));
        let by_hand = Command::in_folder(&folder, &["call", name, arguments, "--record", &file]).run();
        assert!(by_hand.stderr.contains("recorded in"), "{name}: {by_hand:?}");
        let _ = Command::in_folder(&folder, &["replay", &file]).run().succeeded();
    }
}

#[test]
fn calls_recordings_and_explanations_name_the_resources_of_a_component_in_one_way() {
    let manifest = manifest_of(&["resources"]).replace("[components.resources]", "[components.wiki]");
    let folder = Folder::with_manifest(&manifest);
    let run = |arguments: &[&str]| Command::in_folder(&folder, arguments).run();
    let called = run(&["call", "resources/wiki", r#"{"uri":"own:///index"}"#, "--record", "index.jsonl"]);
    assert!(called.succeeded().contains("disk"), "{called:?}");
    let replayed = run(&["replay", "index.jsonl"]);
    assert!(replayed.succeeded().contains("resources/wiki"), "{replayed:?}");
    let explain = |name: &str| run(&["policy", "explain", name, "read /notes/a.txt"]).succeeded().to_owned();
    assert!(explain("resources/wiki").starts_with("denied: read /notes/a.txt"));
    assert_eq!(explain("resources/wiki"), explain("wiki/resources"));
    let other = run(&["policy", "explain", "resources/other", "read /notes/a.txt"]);
    assert!(other.failed_with(1).contains("has no tool \"resources/other\""), "{other:?}");
}
