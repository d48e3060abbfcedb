//! State between calls (`wasi:keyvalue`): kept across calls and restarts, separate for each
//! component, within quotas; in a file, and on a server that replicas share.
//!
//! Promise: nothing is reached before a call is recorded and approved.
//! Promise: state is bounded.
//! Promise: state and files hold nobody up.

use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::{Command, Folder, TestHost, alone, manifest_of, patience};

use super::{assert_refused, came_to, folder, host};

const FIXTURE: &str = "reach_state";

fn staged() -> Folder {
    folder(FIXTURE, "[{c}.keyvalue]\nquota = \"16KiB\"\nentries = 10\nvalue = \"4KiB\"\n")
}

fn serving() -> TestHost {
    TestHost::recording_in(staged(), &[])
}

/// The places of state.
const PLACES: [Place; 2] = [Place::File, Place::Server];

/// The place where a host keeps state.
#[derive(Clone, Copy, Debug)]
enum Place {
    File,
    Server,
}

/// A host whose state nobody used before.
struct Served {
    host: TestHost,
    _engine: Option<Engine>,
}

impl Place {
    fn serve(self, staged: Folder) -> Served {
        let engine = matches!(self, Self::Server).then(|| Engine::start(&[]));
        let staged = match &engine {
            Some(engine) => sharing(staged, engine, "within = \"10s\""),
            None => staged,
        };
        Served { host: TestHost::recording_in(staged, &[]), _engine: engine }
    }
}

impl Deref for Served {
    type Target = TestHost;

    fn deref(&self) -> &TestHost {
        &self.host
    }
}

impl DerefMut for Served {
    fn deref_mut(&mut self) -> &mut TestHost {
        &mut self.host
    }
}

/// The folder of a replica that has its state on this server, with these lines of `[state]`.
fn sharing(staged: Folder, engine: &Engine, lines: &str) -> Folder {
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\n{lines}\n",
        engine.port()
    );
    staged.write("toolcell.toml", staged.read("toolcell.toml").replacen("version = 1\n", &shared, 1));
    staged.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(staged.path().join("state.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    staged
}

fn replica(engine: &Engine) -> TestHost {
    TestHost::recording_in(sharing(staged(), engine, "within = \"10s\""), &[])
}

fn did(host: &mut TestHost, op: Value) -> Result<Value, String> {
    came_to(&host.call("keyvalue", op))
}

#[test]
fn what_is_set_is_there_in_the_next_call_and_after_a_restart() {
    let mut host = serving();
    assert_eq!(did(&mut host, json!({"op": "get", "key": "a"})), Ok(Value::Null));
    assert_eq!(did(&mut host, json!({"op": "set", "key": "a", "value": "one"})), Ok(Value::Null));
    assert_eq!(did(&mut host, json!({"op": "get", "key": "a"})), Ok(json!("one")));
    assert_eq!(did(&mut host, json!({"op": "increment", "key": "n", "by": 5})), Ok(json!(5)));
    let mut host = TestHost::recording_in(host.ends_leaving_its_folder(), &[]);
    assert_eq!(did(&mut host, json!({"op": "get", "key": "a"})), Ok(json!("one")));
    assert_eq!(did(&mut host, json!({"op": "increment", "key": "n"})), Ok(json!(6)));
    assert_eq!(did(&mut host, json!({"op": "keys"})), Ok(json!(["a", "n"])));
}

#[test]
fn every_operation_does_what_it_says() {
    for place in PLACES {
        does_what_it_says(&mut place.serve(staged()));
    }
}

fn does_what_it_says(host: &mut TestHost) {
    let ops = json!({"ops": [
        {"op": "exists", "key": "a"},
        {"op": "set_many", "keys": ["a", "b", "c"], "value": "v"},
        {"op": "exists", "key": "a"},
        {"op": "get_many", "keys": ["a", "missing", "c"]},
        {"op": "delete", "key": "a"},
        {"op": "delete", "key": "a"},
        {"op": "keys"},
        {"op": "delete_many", "keys": ["b", "c", "missing"]},
        {"op": "keys"},
        {"op": "set", "key": "", "value": "v"},
        {"op": "set", "key": "text", "value": "no number"},
        {"op": "increment", "key": "text"},
        {"op": "set", "key": "a", "value": "v", "bucket": "other"},
        {"op": "get", "key": "a"},
    ]});
    let found = came_to(&host.call("keyvalue_each", ops)).unwrap();
    assert_eq!(found[0], json!({"ok": false}));
    assert_eq!(found[2], json!({"ok": true}));
    assert_eq!(found[3], json!({"ok": [["a", "v"], null, ["c", "v"]]}));
    assert_eq!((&found[4], &found[5]), (&json!({"ok": null}), &json!({"ok": null})));
    assert_eq!(found[6], json!({"ok": ["b", "c"]}));
    assert_eq!(found[8], json!({"ok": []}));
    assert!(found[9]["error"].is_string(), "an empty key: {found}");
    assert!(found[11]["error"].is_string(), "no number: {found}");
    assert_eq!(found[12], json!({"ok": null}));
    assert_eq!(found[13], json!({"ok": null}), "another bucket's key");
}

#[test]
fn quotas_are_kept_and_say_what_to_do() {
    let fills = [
        (json!({"count": 20, "bytes": 1}), "entries"),
        (json!({"count": 20, "bytes": 4000}), "bytes"),
        (json!({"count": 1, "bytes": 5000}), "value"),
    ];
    for ((fill, stopped), place) in fills.into_iter().flat_map(|fill| PLACES.map(|place| (fill.clone(), place))) {
        let mut host = place.serve(staged());
        let found = came_to(&host.call("keyvalue_fill", fill.clone())).unwrap();
        let said = found["stopped"].as_str().unwrap();
        assert!(said.contains("quota") && said.contains(stopped), "{fill}: {said}");
        // The number of entries that fit.
        let count = found["set"].as_u64().unwrap();
        assert!(matches!((stopped, count), ("entries", 10) | ("bytes", 4) | ("value", 0)), "{fill}: {found}");
        host.still_works();
        if count > 0 {
            assert_eq!(did(&mut host, json!({"op": "delete", "key": "key-0"})), Ok(Value::Null));
            assert_eq!(
                did(&mut host, json!({"op": "set", "key": "key-new", "value": "v"})),
                Ok(Value::Null),
                "room comes back"
            );
        }
    }
}

#[test]
fn each_component_has_a_namespace_of_its_own() {
    let staged = staged();
    let manifest = staged.read("toolcell.toml");
    let other = "\n[components.other]\nsource = \"components/reach_state.wasm\"\nprefix = \"other_\"\n\n[components.other.keyvalue]\n";
    staged.write("toolcell.toml", manifest + other);
    for place in PLACES {
        let copy = self::staged();
        copy.write("toolcell.toml", staged.read("toolcell.toml"));
        let mut host = place.serve(copy);
        assert_eq!(did(&mut host, json!({"op": "set", "key": "a", "value": "mine"})), Ok(Value::Null));
        for bucket in ["", "default", "reach_state", "../reach_state"] {
            let found = came_to(&host.call("other_keyvalue", json!({"op": "get", "key": "a", "bucket": bucket})));
            assert!(found == Ok(Value::Null) || found.is_err(), "{place:?}, {bucket}: {found:?}");
        }
    }
}

#[test]
fn calls_at_once_do_not_lose_an_increment() {
    let mut host = serving();
    let calls: Vec<Value> = (0..8)
        .map(|_| {
            let ops: Vec<Value> = (0..5).map(|_| json!({"op": "increment", "key": "n"})).collect();
            host.start_call("keyvalue_each", json!({"ops": ops}))
        })
        .collect();
    for id in calls {
        assert!(came_to(&host.answer_to(&id)).is_ok());
    }
    assert_eq!(did(&mut host, json!({"op": "get", "key": "n"})), Ok(json!("40")));
}

#[test]
fn a_host_without_a_call_leaves_the_state_to_others() {
    let mut host = serving();
    assert!(!host.list().is_empty(), "it serves");
    let list = || Command::in_folder(host.folder(), &["list"]).run();
    assert!(list().succeeded().contains("keyvalue"), "while it serves, and before any call");
    let _ = host.reload();
    assert!(list().succeeded().contains("keyvalue"), "after it looked at everything anew");
}

#[test]
fn state_lies_where_the_manifest_says_and_only_its_owner_reads_it() {
    let _alone = alone("the files of its own state");
    use std::os::unix::fs::PermissionsExt;
    for (table, place) in [("", ".toolcell"), ("[server]\nstate = \"kept/state\"\n", "kept/state")] {
        let staged = staged();
        let manifest = staged.read("toolcell.toml");
        staged.write("toolcell.toml", manifest + table);
        assert!(!staged.path().join(place).exists());
        let mut host = TestHost::recording_in(staged, &[]);
        assert_eq!(did(&mut host, json!({"op": "set", "key": "a", "value": "v"})), Ok(Value::Null));
        let mode = std::fs::metadata(host.folder().path().join(place)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{place}: {mode:o}");
        let files = host.folder().tree(place);
        assert!(files.len() > 1, "nothing was kept there: {files:?}");
        for (file, _) in files.iter().skip(1) {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
        }
    }
}

#[test]
fn without_a_grant_there_is_no_store() {
    let mut host = host(FIXTURE, "");
    let answer = host.call("keyvalue", json!({"op": "get", "key": "a"}));
    assert_eq!(came_to(&answer), Err("open: access-denied".to_owned()));
    assert!(
        answer.denials().iter().any(|denial| denial.contains("no rule of tool \"keyvalue\" allows it")),
        "{:?}",
        answer.denials()
    );
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(
        (&record["capability"], &record["section"]),
        (&json!("keyvalue"), &json!("components.reach_state.keyvalue")),
        "{record}"
    );
    let kept = std::fs::read_dir(host.folder().path().join(".toolcell")).into_iter().flatten().flatten();
    // Where replicas share state, which tokens they know of is kept there.
    let kept: Vec<_> = kept.map(|entry| entry.file_name()).filter(|name| name != "tokens.json").collect();
    assert!(kept.is_empty(), "a store was made though nothing is kept: {kept:?}");
}

#[test]
fn grants_of_state_that_cannot_be_are_load_errors() {
    for (tables, word) in [
        ("[{c}.keyvalue]\nquota = \"0\"\n", "quota"),
        ("[{c}.keyvalue]\nentries = 0\n", "entries"),
        ("[{c}.keyvalue]\nvalues = \"1KiB\"\n", "values"),
        ("[{c}.keyvalue]\nper_caller = \"yes\"\n", "per_caller"),
    ] {
        assert_refused(&folder(FIXTURE, tables), &[word, "toolcell.toml"]);
    }
    assert_refused(&folder("reach_files", "[{c}.keyvalue]\n"), &["reach_files", "wasi:keyvalue"]);
}

/// A folder with a quota and memory for large batches, under these limits.
fn roomy(limits: &str) -> Folder {
    let tables = format!(
        "[{{c}}.keyvalue]\nquota = \"256MiB\"\nentries = 1_000_000\n[{{c}}.limits]\nmemory = \"128MiB\"\n{limits}\n"
    );
    folder(FIXTURE, &tables)
}

#[test]
fn a_batch_is_bounded_in_keys() {
    for place in PLACES {
        let mut host = place.serve(roomy("fuel = 1_000_000_000_000\ndeadline = \"1m\""));
        for op in ["set_many", "get_many", "delete_many"] {
            for count in [10_001, 100_000, 250_000] {
                let found = came_to(&host.call("keyvalue_batch", json!({"op": op, "count": count})));
                let text = format!("other: one batch has at most 10000 keys, and this one has {count}; split it");
                assert_eq!(found, Err(text), "{place:?}, {op}");
                host.still_works();
            }
            assert_eq!(did_batch(&mut host, op, 10_000), Ok(Value::Null));
        }
    }
}

fn did_batch(host: &mut TestHost, op: &str, count: u64) -> Result<Value, String> {
    came_to(&host.call("keyvalue_batch", json!({"op": op, "count": count})))
}

#[test]
fn each_key_of_a_batch_costs_fuel() {
    let out = "out of fuel: the call used its whole budget of 2_000_000_000 units (limit \"fuel\")";
    for place in PLACES {
        for (op, times) in [("set_many", 3), ("delete_many", 3), ("get_many", 30)] {
            let mut host = place.serve(roomy("fuel = 2_000_000_000\ndeadline = \"1m\""));
            assert_eq!(did_batch(&mut host, "set_many", 10_000), Ok(Value::Null));
            let answer = host.call("keyvalue_batch", json!({"op": op, "count": 10_000, "times": times}));
            assert_eq!(answer.error_text(), out, "{place:?}, {op}");
            host.still_works();
        }
        let mut host = place.serve(roomy("fuel = 2_000_000_000\ndeadline = \"1m\""));
        let _ = host.call("keyvalue_batch", json!({"op": "set_many", "count": 1_000}));
        let records = host.audit();
        let ended = records.iter().find(|record| record["event"] == "call.finished").unwrap();
        let fuel = ended["usage"]["fuel"].as_u64().unwrap();
        assert!(fuel > 80_000_000, "{place:?}: {fuel}");
    }
}

#[test]
fn calls_that_write_batches_without_end_meet_their_deadline_and_hold_up_nobody() {
    for place in PLACES {
        meet_their_deadline(&mut place.serve(roomy("fuel = 1_000_000_000_000\ndeadline = \"2s\"\nconcurrency = 16")));
    }
}

fn meet_their_deadline(host: &mut TestHost) {
    let late = "deadline exceeded: the call took longer than 2s (limit \"deadline\")";
    for round in 0..2 {
        let batch = json!({"op": "set_many", "count": 10_000, "bytes": 100, "times": 1_000_000});
        let calls: Vec<Value> = (0..16).map(|_| host.start_call("keyvalue_batch", batch.clone())).collect();
        let began = Instant::now();
        let mut longest = Duration::ZERO;
        while began.elapsed() < Duration::from_secs(1) {
            let asked = Instant::now();
            host.still_works();
            longest = longest.max(asked.elapsed());
        }
        // Most rounds take a few milliseconds on an idle machine.
        assert!(longest < Duration::from_secs(5), "round {round}: a ping and an echo took {longest:?}");
        for call in calls {
            assert_eq!(host.answer_to(&call).error_text(), late, "round {round}");
        }
        assert!(began.elapsed() < Duration::from_secs(20), "round {round}: {:?}", began.elapsed());
    }
    assert_eq!(did(host, json!({"op": "set", "key": "after", "value": "v"})), Ok(Value::Null));
}

#[test]
fn a_kept_bucket_whose_file_another_process_has_holds_up_nobody() {
    let _alone = alone("the files of its own state");
    let staged = staged();
    let manifest = staged.read("toolcell.toml");
    let kept = "[components.reach_state]\ninstance = \"per-caller\"\n";
    staged.write("toolcell.toml", manifest.replace("[components.reach_state]\n", kept));
    let mut host = TestHost::recording_in(staged, &[]);
    let held = |host: &mut TestHost| came_to(&host.call("keyvalue_held", json!({"op": "increment", "key": "n"})));
    assert_eq!(held(&mut host), Ok(json!(1)));
    let file = host.folder().path().join(".toolcell");
    let file = std::fs::read_dir(file)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "redb"));
    let other = std::fs::File::options().read(true).write(true).open(file.unwrap()).unwrap();
    for number in 2..5 {
        // The host closes the file shortly after the call.
        other.lock().unwrap();
        let call = host.start_call("keyvalue_held", json!({"op": "increment", "key": "n"}));
        // The call waits up to two seconds for the file, then gives up. Later calls do not wait for
        // that.
        host.still_works();
        other.unlock().unwrap();
        assert_eq!(came_to(&host.answer_to(&call)), Ok(json!(number)));
    }
}

#[test]
fn start_code_of_instances_made_ahead_reaches_no_state() {
    let kept = "source = \"components/start_keeps.wasm\"\nprewarm = 16\n";
    let later = "[components.later]\nsource = \"components/reach_state.wasm\"\nprefix = \"later_\"\n";
    let manifest = format!("{}\n{later}[components.kept]\n{kept}[components.kept.keyvalue]\n", manifest_of(&["good"]));
    let mut host = TestHost::recording(&manifest);
    for _ in 0..20 {
        assert_eq!(host.call("run", json!({})).text(), "survived");
    }
    host.will_all_say(
        "no instances are prewarmed: its start code calls wasi:keyvalue/store@0.2.0-draft#open, which reaches nothing before a \
         call is recorded and approved",
    );
    let said = host.said().matches("no instances are prewarmed").count();
    assert_eq!(said, host.replica_count(), "each process says it once");
    let folder = host.ends_leaving_its_folder();
    folder.write("toolcell.toml", manifest.replace("start_keeps", FIXTURE).replace("prewarm = 16\n", ""));
    let mut host = TestHost::recording_in(folder, &[]);
    let starts = did(&mut host, json!({"op": "get", "key": "starts"}));
    assert_eq!(starts, Ok(json!("20")), "each call began once, with its own rights, and nothing else did");
}

#[test]
fn state_is_one_over_three_replicas() {
    let engine = Engine::start(&[]);
    let mut replicas = [replica(&engine), replica(&engine), replica(&engine)];
    assert_eq!(did(&mut replicas[0], json!({"op": "set", "key": "a", "value": "one"})), Ok(Value::Null));
    assert_eq!(did(&mut replicas[1], json!({"op": "get", "key": "a"})), Ok(json!("one")));
    let calls: Vec<_> = (0..24)
        .map(|call| {
            let ops: Vec<Value> = (0..5).map(|_| json!({"op": "increment", "key": "n"})).collect();
            (call % 3, replicas[call % 3].start_call("keyvalue_each", json!({"ops": ops})))
        })
        .collect();
    for (replica, call) in calls {
        assert!(came_to(&replicas[replica].answer_to(&call)).is_ok());
    }
    assert_eq!(did(&mut replicas[2], json!({"op": "get", "key": "n"})), Ok(json!("120")));
    // The quota is ten entries, and two are there.
    let mut fitted = 0;
    for (number, replica) in replicas.iter_mut().enumerate() {
        let keys: Vec<String> = (0..3).map(|key| format!("{number}-{key}")).collect();
        match did(replica, json!({"op": "set_many", "keys": keys, "value": "v"})) {
            Ok(_) => fitted += 1,
            Err(refusal) => {
                assert!(refusal.starts_with("other: quota: at most 10 entries, and this would make 11"), "{refusal}");
            }
        }
    }
    assert_eq!(fitted, 2, "two batches of three fit");
    let [first, mut second, third] = replicas;
    assert!(!first.folder().path().join(".toolcell").exists(), "nothing is kept next to the manifest");
    drop((first, third));
    assert_eq!(did(&mut second, json!({"op": "delete", "key": "a"})), Ok(Value::Null));
    let keys = did(&mut replica(&engine), json!({"op": "keys"}));
    assert_eq!(keys, Ok(json!(["0-0", "0-1", "0-2", "1-0", "1-1", "1-2", "n"])));
}

#[test]
fn while_its_server_is_away_a_tool_is_told_and_the_audit_too_and_others_go_on() {
    let engine = Engine::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let lines = "within = \"2s\"\nrates_while_away = \"local\"";
    let mut host = TestHost::recording_in(sharing(staged(), &engine, lines), &[]);
    let away = "other: the state that replicas share cannot be reached; try again";
    assert_eq!(did(&mut host, json!({"op": "set", "key": "a", "value": "kept"})), Ok(Value::Null));
    engine.kill();
    assert_eq!(did(&mut host, json!({"op": "get", "key": "a"})), Err(away.to_owned()));
    let noted = host.recorded("the call that was told", |record| record["detail"].is_string());
    let detail = noted["detail"].as_str().unwrap();
    assert!(detail.starts_with("state that replicas share was away: 127.0.0.1:"), "{noted}");
    assert_eq!((&noted["event"], &noted["outcome"]), (&json!("call.finished"), &json!("ok")), "{noted}");
    let written = did(&mut host, json!({"op": "set", "key": "a", "value": "lost"}));
    assert_eq!(written, Err(format!("{away}: it may have been done, so look first")));
    host.still_works();
    engine.start_again();
    let until = Instant::now() + patience();
    while did(&mut host, json!({"op": "get", "key": "a"})) != Ok(json!("kept")) {
        assert!(Instant::now() < until, "it is not used again");
    }
}
