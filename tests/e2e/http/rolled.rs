//! Three replicas behind nginx and on one Valkey server, rolled forward to another version of their
//! tools and back, under load: each in its turn, by `/readyz` and SIGTERM, as an orchestrator does
//! it. Without an nginx the test is skipped, and stderr says so.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::nginx::{self, Nginx};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, Folder, fixture_bytes, manifest_of, patience};

/// The name in clients' requests.
const NAME: &str = "tools.example.com";

/// Replicas at one time, besides one that takes over.
const REPLICAS: usize = 3;

/// Clients that call at the same time.
const CLIENTS: usize = 4;

/// A replica that serves this version of the component, pinned by a lock of its own.
fn replica(engine: &Engine, version: &str) -> WebHost {
    let before = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n\
         [state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"10s\"\n\
         [http]\nhosts = [\"{NAME}\"]\nnotice = \"5m\"\ndrain = \"30s\"\n",
        engine.port()
    );
    let manifest = manifest_of(&["good"]).replacen("version = 1\n", &before, 1);
    let folder =
        Folder::with_manifest(&format!("{manifest}\n[components.versioned]\nsource = \"components/versioned.wasm\"\n"));
    folder.write("components/versioned.wasm", fixture_bytes(&format!("versioned_{version}")));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--locked"])
}

fn addresses(replicas: &[WebHost]) -> Vec<SocketAddr> {
    replicas.iter().map(WebHost::address).collect()
}

/// Waits until this holds.
fn in_time(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_ready(replica: &WebHost) -> bool {
    replica.ask(&Ask::bare("GET", "/readyz")).status() == 200
}

fn calls_started(replica: &WebHost) -> usize {
    replica.process().audit().iter().filter(|record| record["event"] == "call.started").count()
}

/// Replaces each replica by one of another version, and keeps the records of those that end. A
/// replica gets requests from being ready to being not.
fn roll(nginx: &mut Nginx, running: &mut Vec<WebHost>, kept: &Path, make: impl Fn() -> WebHost) {
    for _ in 0..REPLICAS {
        let new = make();
        in_time("the new one is ready", || is_ready(&new));
        running.push(new);
        nginx.goes_before(&addresses(running));
        let old = running.remove(0);
        old.process().terminate();
        in_time("the old one is not ready", || !is_ready(&old));
        let before = calls_started(&old);
        in_time("it still takes what is sent to it", || calls_started(&old) > before + 4);
        nginx.goes_before(&addresses(running));
        keep(old, kept);
    }
}

/// Ends a replica that nobody sends requests any more, and keeps its records.
fn keep(replica: WebHost, kept: &Path) {
    let audit = replica.process().folder().path().join("audit.jsonl");
    std::fs::hard_link(audit, kept.join(format!("{}.jsonl", replica.process().process_id()))).unwrap();
    if is_ready(&replica) {
        replica.process().terminate();
        in_time("it is not ready", || !is_ready(&replica));
    }
    // A second signal ends the notice. Two at once would be one.
    replica.process().terminate();
    let ended = replica.into_process().ends();
    assert!(ended.status.success(), "{}", ended.stderr);
}

/// The outcomes of all calls in these records, with their counts.
fn outcomes(kept: &Path) -> (usize, BTreeSet<String>) {
    let texts = std::fs::read_dir(kept).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let records: Vec<Value> = texts
        .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
        .collect();
    let finished: Vec<_> = records.iter().filter(|record| record["event"] == "call.finished").collect();
    let words = finished.iter().map(|record| record["outcome"].as_str().unwrap().to_owned()).collect();
    (finished.len(), words)
}

fn text(frame: &Value) -> &str {
    frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{frame}"))
}

/// Calls that go on, and what is known of them.
struct Load {
    address: SocketAddr,
    is_over: AtomicBool,
    answered: AtomicUsize,
    versions: Mutex<BTreeSet<String>>,
}

impl Load {
    fn on(address: SocketAddr) -> Self {
        Self { address, is_over: false.into(), answered: 0.into(), versions: Mutex::default() }
    }

    /// One client: calls one after another until it is over, each on a connection of its own.
    fn drive(&self, client: usize) {
        for number in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let said = format!("{client}: {number}");
            let (ask, expected) = match number % 6 {
                0 => (Ask::call("slow", json!({"steps": 1, "step_ms": 50})), Some("1 steps done")),
                1 | 3 | 5 => (Ask::call("version", json!({})), None),
                _ => (Ask::call("echo", json!({"text": said})), Some(said.as_str())),
            };
            let frame = Wire::to(self.address).ask(&ask.with("host", NAME)).frame();
            match expected {
                Some(expected) => assert_eq!(text(&frame), expected, "{frame}"),
                None => drop(self.versions.lock().unwrap().insert(text(&frame).to_owned())),
            }
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for this many more answers, and takes the versions that answered since the last time.
    fn versions_after(&self, answers: usize) -> BTreeSet<String> {
        let wanted = self.answered.load(Ordering::Relaxed) + answers;
        in_time("more answers", || self.answered.load(Ordering::Relaxed) >= wanted);
        std::mem::take(&mut *self.versions.lock().unwrap())
    }

    /// The versions that answer calls which begin from now on.
    fn versions_now(&self) -> BTreeSet<String> {
        // Those that are on their way may be of another one: one of each client.
        let _ = self.versions_after(2 * CLIENTS);
        self.versions_after(50)
    }
}

#[test]
fn replicas_roll_forward_and_back_under_load_and_no_call_is_lost_doubled_or_wrong() {
    let Some(program) = nginx::installed() else { return };
    let engine = Engine::start(&[]);
    let kept = tempfile::tempdir().unwrap();
    let mut running: Vec<WebHost> = (0..REPLICAS).map(|_| replica(&engine, "a")).collect();
    running.iter().for_each(|replica| in_time("it is ready", || is_ready(replica)));
    let mut nginx = Nginx::before(&program, &addresses(&running), |shown| shown);
    let load = &Load::on(nginx.address());
    let old = BTreeSet::from(["a".to_owned()]);
    let new = BTreeSet::from(["b".to_owned()]);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || load.drive(client))).collect();
        // The clients must end even if an assertion here fails.
        let rolled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(load.versions_now(), old);
            roll(&mut nginx, &mut running, kept.path(), || replica(&engine, "b"));
            assert_eq!(load.versions_after(0), &old | &new, "both answer while it rolls");
            assert_eq!(load.versions_now(), new, "forward");
            roll(&mut nginx, &mut running, kept.path(), || replica(&engine, "a"));
            assert_eq!(load.versions_now(), old, "and back");
        }));
        load.is_over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        rolled.unwrap();
    });
    running.into_iter().for_each(|replica| keep(replica, kept.path()));
    assert!(!nginx.errors().contains("no live upstreams"), "{}", nginx.errors());
    let (finished, words) = outcomes(kept.path());
    assert_eq!(words, BTreeSet::from(["ok".to_owned()]));
    assert_eq!(finished, load.answered.load(Ordering::Relaxed), "each call ran once, and was answered");
}
