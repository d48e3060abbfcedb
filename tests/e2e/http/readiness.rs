//! `/readyz` for balancers: no while the server gives notice of its end, or while state that it
//! needs is away; and what is answered meanwhile.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::engine::Engine;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, alone, manifest_of, patience};

/// A host with this text behind the manifest of `good`.
fn host(tables: &str) -> WebHost {
    let manifest = manifest_of(&["good"]);
    let manifest = manifest.replacen("version = 1\n", "version = 1\n[server]\nstate_key = \"file:state.key\"\n", 1);
    let folder = Folder::with_manifest(&format!("{manifest}\n{tables}\n"));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
}

fn sharing(engine: &Engine, lines: &str) -> WebHost {
    let port = engine.port();
    host(&format!("[state]\nshared = \"redis://127.0.0.1:{port}\"\nwithin = \"2s\"\n{lines}"))
}

/// The status and the text of a health path, which answers whatever the name.
fn health(host: &WebHost, path: &str) -> (u16, String) {
    let reply = host.ask(&Ask::bare("GET", path).with("host", "10.1.2.3:8080"));
    (reply.status(), String::from_utf8(reply.body().to_vec()).unwrap())
}

/// Waits until `/readyz` has this status, and returns its text.
fn becomes(host: &WebHost, status: u16) -> String {
    let end = Instant::now() + patience();
    loop {
        let (now, text) = health(host, "/readyz");
        if now == status {
            return text;
        }
        assert!(Instant::now() < end, "/readyz is still {now}: {text}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn echo() -> Ask {
    Ask::call("echo", json!({"text": "hello"}))
}

#[test]
fn a_replica_is_ready_while_state_that_it_needs_answers() {
    let engine = Engine::start(&[]);
    let host = sharing(&engine, "");
    assert_eq!(becomes(&host, 200), "ready\n");
    engine.kill();
    assert_eq!(becomes(&host, 503), "no shared state\n");
    assert_eq!(health(&host, "/healthz"), (200, "ok\n".to_owned()), "a restart would not bring it back");
    engine.start_again();
    becomes(&host, 200);
    engine.pause();
    assert_eq!(becomes(&host, 503), "no shared state\n");
    engine.go_on();
    becomes(&host, 200);
    // A server that takes no writes refuses calls as well.
    engine.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(becomes(&host, 503), "no shared state\n");
    engine.ask(&["REPLICAOF", "NO", "ONE"]);
    becomes(&host, 200);
    assert_eq!(host.ask(&echo()).frame()["result"]["content"][0]["text"], "hello");
}

#[test]
fn a_replica_that_counts_by_itself_meanwhile_stays_ready() {
    let engine = Engine::start(&[]);
    let host = sharing(&engine, "rates_while_away = \"local\"");
    becomes(&host, 200);
    engine.kill();
    assert_eq!(host.ask(&echo()).frame()["result"]["content"][0]["text"], "hello");
    assert_eq!(health(&host, "/readyz"), (200, "ready\n".to_owned()));
}

#[test]
fn a_replica_whose_audit_cannot_be_written_is_not_ready_and_says_why() {
    let _alone = alone("the audit of its own process");
    let folder = Folder::with_manifest(&format!(
        "{}\n[audit]\nfile = \"audit.jsonl\"\nrotate = \"64KiB\"\nkeep = 1\narguments = \"values\"\n",
        manifest_of(&["good"])
    ));
    let options = ["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let host = WebHost::in_folder(folder, &options);
    becomes(&host, 200);
    let figure = || host.process().figures().get("toolcell_unhealthy", &[("part", "audit")]);
    assert_eq!(figure(), 0.0);
    // No file can take this name, so that the audit cannot go on in a new one.
    host.process().folder().make("audit.jsonl.1");
    let long = Ask::call("echo", json!({"text": "x".repeat(8_192)}));
    let end = Instant::now() + patience();
    // A short record, which says how many are missing, may still fit.
    while health(&host, "/readyz").0 == 200 {
        let _ = host.ask(&long);
        assert!(Instant::now() < end, "the audit goes on");
    }
    assert_eq!(health(&host, "/readyz"), (503, "the audit cannot be written\n".to_owned()));
    assert_eq!(figure(), 1.0);
    let status = Command::in_folder(host.process().folder(), &["status", "--json"]).run();
    let problem = &status.json()[0]["problems"][0];
    assert_eq!((&problem["part"], &problem["fails_calls"]), (&json!("audit"), &json!(true)), "{status:?}");
    assert_eq!(status.status.code(), Some(1));
    std::fs::remove_dir(host.process().folder().path().join("audit.jsonl.1")).unwrap();
    assert_eq!(becomes(&host, 200), "ready\n");
    assert_eq!(host.ask(&echo()).frame()["result"]["content"][0]["text"], "hello");
}

#[test]
fn many_looks_are_few_questions() {
    let engine = Engine::start(&[]);
    let began = Instant::now();
    let host = sharing(&engine, "");
    becomes(&host, 200);
    // One write for each question.
    let count_is_at_most = |most: u32| {
        let script = "local said = redis.call('INFO', 'commandstats'):match('cmdstat_set:calls=(%d+)'); \
                      return tonumber(said) <= tonumber(ARGV[1]) and 1 or 0";
        engine.ask(&["EVAL", script, "0", &most.to_string()])
    };
    let mut wire = host.connect();
    for _ in 0..500 {
        assert_eq!(wire.ask(&Ask::bare("GET", "/readyz")).status(), 200);
    }
    let most = 2 + u32::try_from(began.elapsed().as_secs()).unwrap();
    assert_eq!(count_is_at_most(most), ":1", "500 looks in {:?} are at most {most} questions", began.elapsed());
}

#[test]
fn a_server_that_gives_notice_is_not_ready_and_goes_on_answering() {
    let _alone = alone("the end of its own process");
    let host = host("[http]\nnotice = \"5m\"");
    becomes(&host, 200);
    let mut kept = host.connect();
    let idle = host.connect();
    let mut listening = host.connect();
    assert_eq!(kept.ask(&echo()).field("connection"), None);
    listening.send(&Ask::listen(7).bytes());
    listening.head();
    listening.event().unwrap();
    host.process().terminate();
    assert_eq!(becomes(&host, 503), "ending\n");
    assert_eq!(health(&host, "/healthz").0, 200);
    // A new connection, one that has been used, and one that waited: each is answered, then closed.
    for mut wire in [host.connect(), kept, idle] {
        let reply = wire.ask(&echo());
        assert_eq!(reply.frame()["result"]["content"][0]["text"], "hello");
        assert_eq!(reply.field("connection"), Some("close"));
        wire.is_closed();
    }
    let began = Instant::now();
    host.process().terminate();
    let ended = listening.event().unwrap();
    assert_eq!((&ended["id"], &ended["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert!(host.into_process().ends().status.success());
    assert!(began.elapsed() < patience(), "a second signal ends the notice: {:?}", began.elapsed());
}

#[test]
fn notice_ends_by_itself() {
    let _alone = alone("the end of its own process");
    let host = host("[http]\nnotice = \"3s\"");
    let began = Instant::now();
    host.process().terminate();
    assert_eq!(becomes(&host, 503), "ending\n");
    assert!(host.into_process().ends().status.success());
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
}
