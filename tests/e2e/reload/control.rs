//! The control socket: the facts a process gives about itself, who may ask, and the requests it
//! refuses.
//!
//! Promise: nobody else controls the server.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcell_tests::{Command, LIST_CHANGED, Saving, TestHost, alone};

use super::{GATE, TOOL, folder, serving, version};

/// The only control socket of this host.
fn socket_of(host: &TestHost) -> PathBuf {
    let entries = std::fs::read_dir(host.folder().runtime().join("toolcell")).unwrap();
    match entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>().as_slice() {
        [socket] => socket.clone(),
        other => panic!("one socket was expected: {other:?}"),
    }
}

/// Sends these bytes and returns the whole answer.
fn answer_to(host: &TestHost, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket_of(host)).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    stream.write_all(bytes).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_status_says_what_is_served_and_how_it_goes() {
    let limits =
        "[components.tool.limits]\nconcurrency = 1\nqueue_wait = \"1m\"\ndeadline = \"1m\"\narguments = \"64B\"\n";
    let mut host = serving("versioned_a", &format!("{GATE}{limits}"));
    assert_eq!(version(&mut host), "a");
    assert!(host.call("version", json!({"say": "x".repeat(100)})).is_error());
    let calls = [host.start_call("linger", json!({})), host.start_call("linger", json!({}))];
    let status = host.status_when("busy", |status| status["calls"]["waiting"] == 1);
    assert_eq!(status["generation"], 1);
    assert_eq!(status["generations_held"], json!([]));
    assert_eq!(status["calls"], json!({"started": 4, "running": 1, "waiting": 1}));
    assert_eq!(status["limits_hit"], json!({"limit_exceeded": 1}));
    assert_eq!(status["manifest"], json!(host.folder().manifest()));
    assert_eq!((&status["locked"], &status["failed"]), (&json!(false), &Value::Null));
    assert_eq!(status["reloads"], json!({"replaced": 0, "refused": 0, "last": []}));
    assert!(status["uptime_s"].is_u64() && status["pid"].is_u64() && status["started"].is_string(), "{status:#}");
    let component = &status["components"][0];
    assert_eq!(
        (&component["name"], &component["source"], &component["tools"]),
        (&json!("tool"), &json!(TOOL), &json!(2))
    );
    let tool = |name: &str, running: u64, waiting: u64| json!({"name": name, "component": "tool", "running": running, "waiting": waiting});
    assert_eq!(status["tools"], json!([tool("version", 0, 0), tool("linger", 1, 1)]));
    let shown = Command::in_folder(host.folder(), &["status"]).run();
    for words in [
        "generation 1: components: 1, tools: 2",
        "calls: 1 running, 1 waiting, 4 started",
        "limits hit: limit_exceeded 1",
    ] {
        assert!(shown.succeeded().contains(words), "no {words:?} in {shown:?}");
    }
    host.folder().save(Saving::RenamedOver, "gate/open", "open");
    for id in calls {
        assert_eq!(host.answer_to(&id).text(), "a open");
    }
}

#[test]
fn the_status_remembers_reloads_that_went_well_and_those_that_did_not() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(2);
    host.folder().save(Saving::RenamedOver, TOOL, "broken");
    host.will_say("not reloaded: ");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(3);
    let status = host.status();
    let reloads = &status["reloads"];
    assert_eq!((&reloads["replaced"], &reloads["refused"]), (&json!(2), &json!(1)), "{status:#}");
    let shown =
        |attempt: &Value| json!([attempt["generation"], attempt["trigger"], attempt["replaced"], attempt["announced"]]);
    let last: Vec<Value> = reloads["last"].as_array().unwrap().iter().map(shown).collect();
    let expected =
        [json!([2, "files", true, true]), json!([2, "files", false, false]), json!([3, "files", true, true])];
    assert_eq!(last, expected);
    let summary = reloads["last"][0]["summary"].as_str().unwrap();
    let expected = "tool: new code; tools added: extra; tools removed: linger; tools defined otherwise: version";
    assert_eq!(summary, expected);
    let text = Command::in_folder(host.folder(), &["status"]).run().stdout;
    assert_eq!(
        (text.matches(" replaced (files): ").count(), text.matches(" refused (files): ").count()),
        (2, 1),
        "{text}"
    );
}

#[test]
fn only_the_user_that_serves_can_enter_the_folder_of_the_socket() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    let socket = socket_of(&host);
    let own = rustix::process::geteuid().as_raw();
    for (path, mode) in [(socket.parent().unwrap(), 0o700), (&socket, 0o600)] {
        let metadata = std::fs::metadata(path).unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.uid()), (mode, own), "{}", path.display());
    }
}

#[test]
fn a_folder_that_others_can_enter_holds_no_socket_and_serving_goes_on() {
    let folder = folder("versioned_a", "");
    let open = folder.runtime().join("toolcell");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut host = TestHost::in_folder(folder);
    host.will_say("is not a folder that only this user can enter");
    assert_eq!(version(&mut host), "a");
    let asked = Command::in_folder(host.folder(), &["status"]).run();
    assert!(asked.failed_with(1).contains("no process of this user serves toolcell.toml"));
}

#[test]
fn a_second_user_is_not_answered_even_where_the_way_is_open() {
    // Only root can act as another user. For any other user the folder's mode, tested above,
    // decides.
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    let socket = socket_of(&host);
    let program = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                   s.sendall(b'{\"toolcell\":1,\"request\":\"status\"}\\n')\nsys.stdout.write(s.recv(9).decode())\n";
    let ask = |user: Option<u32>| {
        let mut python = std::process::Command::new("python3");
        if let Some(user) = user {
            std::os::unix::process::CommandExt::uid(&mut python, user);
        }
        python.arg("-c").arg(program).arg(&socket).output().unwrap()
    };
    assert_eq!(ask(None).stdout, b"{\"version", "the user that serves is answered");
    if rustix::process::geteuid().is_root() {
        let somebody = Some(65_534);
        assert!(!ask(somebody).status.success(), "the folder cannot be entered");
        let open =
            |path: &std::path::Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        [socket.as_path(), socket.parent().unwrap(), host.folder().runtime()].into_iter().for_each(open);
        assert_eq!(ask(somebody).stdout, b"", "the kernel tells who asks");
        host.will_say("the control socket refused another user");
    }
}

#[test]
fn what_is_no_request_is_answered_so_or_not_at_all_and_serving_goes_on() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    for (bytes, answer) in [
        (&b"what?\n"[..], "not a request: "),
        (b"{\"toolcell\":1}\n", "not a request: "),
        (b"{\"toolcell\":1,\"request\":\"status\",\"more\":1}\n", "not a request: "),
        (b"{\"toolcell\":1,\"request\":\"shutdown\"}\n", "not a request: "),
        (b"{\"toolcell\":2,\"request\":\"status\"}\n", "this process speaks version 1 of the control protocol"),
        (&[b'x'; 4096], "not a request: "),
    ] {
        let text = answer_to(&host, bytes);
        assert!(text.contains(answer), "{text}");
    }
    // Many silent connections do not delay the answer to another.
    let silent: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(socket_of(&host)).unwrap()).collect();
    assert_eq!(host.status()["generation"], 1);
    drop(silent);
    assert_eq!(version(&mut host), "a");
}

#[test]
fn a_socket_can_be_elsewhere_or_nowhere() {
    let folder = folder("versioned_a", "");
    let own = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap();
    let socket = own.path().join("own.sock");
    let mut host = TestHost::recording_with(folder, &["--control", socket.to_str().unwrap()]);
    assert_eq!(version(&mut host), "a");
    let asked = Command::in_folder(host.folder(), &["status", "--json", "--control", socket.to_str().unwrap()]).run();
    assert_eq!(asked.json()[0]["generation"], 1);
    assert_eq!(Command::in_folder(host.folder(), &["status"]).run().code(), 1, "it is not where it is usually");
    let folder = host.ends_leaving_its_folder();
    assert!(!socket.exists(), "it is removed at the end");
    let mut host = TestHost::recording_with(folder, &["--control", "off"]);
    assert_eq!(version(&mut host), "a");
    assert_eq!(std::fs::read_dir(host.folder().runtime()).unwrap().count(), 0);
    host.initialize("2025-11-25");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.next_of(LIST_CHANGED);
}

#[test]
fn a_process_is_found_though_a_client_started_it_with_less_of_the_environment() {
    let folder = folder("versioned_a", "");
    folder.make("home");
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    let variables = [("HOME", home.as_str()), ("XDG_RUNTIME_DIR", ""), ("XDG_STATE_HOME", "")];
    let mut host = TestHost::recording_in(folder, &variables);
    assert_eq!(version(&mut host), "a");
    assert_eq!(std::fs::read_dir(host.folder().runtime()).unwrap().count(), 0, "its socket is in the home");
    let ask =
        |command| Command::in_folder(host.folder(), &[command, "--json"]).with_variable("HOME", &home).run().json();
    assert_eq!(ask("status")[0]["generation"], 1, "who asks has a runtime folder");
    assert_eq!(ask("reload")[0]["outcome"], "unchanged");
}

#[test]
fn what_a_killed_process_left_is_cleared_away_and_several_processes_are_told_apart() {
    let mut first = serving("versioned_a", "");
    assert_eq!(version(&mut first), "a");
    let second = Command::in_folder(first.folder(), &["serve"]).with_input("");
    let _ = second.run();
    assert_eq!(first.status()["generation"], 1, "one that ended in order leaves nothing");
    let left = socket_of(&first);
    let folder = first.is_killed_leaving_its_folder();
    assert!(left.exists(), "one that was killed leaves its socket");
    let asked = Command::in_folder(&folder, &["status"]).run();
    assert!(asked.failed_with(1).contains("no process of this user serves toolcell.toml"));
    assert!(!left.exists(), "whoever comes across it removes it");
}

#[test]
fn a_stopped_process_is_named_and_the_others_answer() {
    let _alone = alone("the processes of one folder");
    let folder = folder("versioned_a", "");
    let mut stopped = TestHost::in_folder(folder.clone());
    let mut host = TestHost::in_folder(folder);
    assert_eq!((version(&mut stopped), version(&mut host)), ("a".to_owned(), "a".to_owned()));
    let stopped_pid = json!(stopped.process_id());
    stopped.pause();
    let problem = format!("process {stopped_pid} does not answer");
    let shown = Command::in_folder(host.folder(), &["status"]).run();
    assert!(shown.failed_with(1).contains(&problem), "{shown:?}");
    assert_eq!(shown.stdout.matches("generation 1: components: 1").count(), 1, "{shown:?}");
    for arguments in [&["log-level", "--json"][..], &["reload", "--json"], &["top", "--json"]] {
        let asked = Command::in_folder(host.folder(), arguments).run();
        let answers = asked.json();
        let (silent, answered): (Vec<&Value>, Vec<&Value>) =
            answers.as_array().unwrap().iter().partition(|answer| answer["error"].is_string());
        assert_eq!((silent.len(), answered.len()), (1, 1), "{asked:?}");
        assert_eq!((&silent[0]["pid"], &silent[0]["error"]), (&stopped_pid, &json!(problem)), "{asked:?}");
    }
    stopped.resume();
    assert_eq!(version(&mut stopped), "a");
}

#[test]
fn a_process_is_found_though_its_manifest_was_moved_away() {
    let mut host = serving("versioned_a", "");
    assert_eq!(version(&mut host), "a");
    let manifest = host.folder().manifest();
    std::fs::rename(&manifest, manifest.with_extension("away")).unwrap();
    assert_eq!(host.status()["generation"], 1);
}
