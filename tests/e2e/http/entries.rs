//! Entries of state as resources over three replicas: written at one, told at another, read at a
//! third, and to nobody but their caller.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, Folder, manifest_of, patience};

const UPDATED: &str = "notifications/resources/updated";

/// Begins the addresses that replicas are tried with.
const READY: &str = "note:///ready/";

/// Addresses that the tests watch, with one for each replica that is tried.
const WATCHED: [&str; 5] = ["note:///mine", "note:///last", "note:///ready/0", "note:///ready/1", "note:///ready/2"];

/// The folder of a replica with state on this server. Each caller keeps entries of its own.
fn folder(engine: &Engine) -> Folder {
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"10s\"\n",
        engine.port()
    );
    let served = manifest_of(&["reach_state"]).replacen("version = 1\n", &shared, 1);
    let folder = Folder::with_manifest(&format!(
        "{served}[components.reach_state.keyvalue]\nper_caller = true\n[components.reach_state.resources]\n\
         \"note:///{{+key}}\" = {{ keyvalue = \"default\", mime_type = \"text/markdown\" }}\n\
         [http]\ntokens = \"tokens.jsonl\"\n[callers.ann]\ntools = [\"*\"]\n[callers.bob]\ntools = [\"*\"]\n"
    ));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
    folder
}

/// Three replicas, and the headers of ann and bob.
fn replicas(engine: &Engine) -> ([WebHost; 3], [String; 2]) {
    let folders = [(); 3].map(|()| folder(engine));
    let [first, others @ ..] = &folders;
    let bearers = ["ann", "bob"]
        .map(|name| format!("Bearer {}", Command::in_folder(first, &["token", "new", name]).run().succeeded().trim()));
    for other in others {
        other.write("tokens.jsonl", first.read("tokens.jsonl"));
    }
    (folders.map(|folder| WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])), bearers)
}

fn set(replica: &WebHost, token: &str, key: &str, value: &str) {
    let arguments = json!({"op": "set", "bucket": "default", "key": key, "value": value});
    let reply = replica.ask(&Ask::call("keyvalue", arguments).with("authorization", token)).frame();
    assert_eq!(reply["result"]["isError"], false, "{reply}");
}

fn read(replica: &WebHost, token: &str, uri: &str) -> Value {
    let ask = Ask::modern(3, "resources/read", json!({"uri": uri})).with("mcp-name", uri);
    replica.ask(&ask.with("authorization", token)).frame()
}

/// A stream of a modern client that watches all addresses.
fn watching(replica: &WebHost, token: &str) -> Wire {
    let mut stream = replica.connect();
    let wanted = json!({"notifications": {"resourceSubscriptions": WATCHED}});
    stream.send(&Ask::modern(7, "subscriptions/listen", wanted).with("authorization", token).bytes());
    assert_eq!(stream.head().status(), 200);
    assert_eq!(stream.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    stream
}

/// The next address that a stream tells of. Those that replicas were tried with may still come.
fn told(stream: &mut Wire) -> Value {
    loop {
        let event = stream.event().expect("the stream ended");
        let uri = event["params"]["uri"].as_str().unwrap_or_default();
        if event["method"] == UPDATED && !uri.starts_with(READY) {
            return uri.into();
        }
    }
}

/// Waits until the stream hears of what each replica writes: what was written before is told to
/// nobody.
fn hears_all(stream: &mut Wire, replicas: &[WebHost; 3], token: &str) {
    for (number, replica) in replicas.iter().enumerate() {
        let until = Instant::now() + patience();
        std::thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let uri = format!("{READY}{number}");
                while stream.event().expect("the stream ended")["params"]["uri"] != *uri {}
            });
            for round in 0.. {
                set(replica, token, &format!("ready/{number}"), &round.to_string());
                if heard.is_finished() {
                    break;
                }
                assert!(Instant::now() < until, "replica {number} is not heard");
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    }
}

#[test]
fn an_entry_is_written_at_one_replica_told_once_at_another_and_read_at_a_third() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, bob]) = replicas(&engine);
    hears_all(&mut watching(&replicas[0], &ann), &replicas, &ann);
    let [mut anns, mut bobs] = [&ann, &bob].map(|token| watching(&replicas[0], token));
    set(&replicas[1], &ann, "mine", "ann's");
    assert_eq!(told(&mut anns), "note:///mine");
    let contents = read(&replicas[2], &ann, "note:///mine")["result"].clone();
    assert_eq!(
        contents["contents"],
        json!([{"uri": "note:///mine", "mimeType": "text/markdown", "text": "ann's"}]),
        "{contents}"
    );
    assert_eq!(contents["cacheScope"], "private");
    for replica in &replicas {
        assert_eq!(read(replica, &bob, "note:///mine")["error"]["code"], -32602, "he keeps nothing");
    }
    set(&replicas[1], &ann, "last", "hers");
    assert_eq!(told(&mut anns), "note:///last", "the first change was told once");
    set(&replicas[2], &bob, "last", "his");
    assert_eq!(told(&mut bobs), "note:///last", "the first that he hears of");
    assert_eq!(read(&replicas[1], &bob, "note:///last")["result"]["contents"][0]["text"], "his");
    assert_eq!(read(&replicas[1], &ann, "note:///last")["result"]["contents"][0]["text"], "hers");
    set(&replicas[0], &ann, "mine", "hers again");
    assert_eq!(told(&mut anns), "note:///mine", "of what he wrote she hears nothing");
    assert_eq!(read(&replicas[2], &ann, "note:///mine")["result"]["contents"][0]["text"], "hers again");
}

#[test]
fn a_session_watches_entries_at_any_replica_and_hears_on_its_stream() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, bob]) = replicas(&engine);
    let opened = replicas[0].ask(&Ask::initialize("2025-11-25").with("authorization", &ann));
    let session = opened.field("mcp-session-id").unwrap().to_owned();
    let of_session = |ask: Ask| ask.of_session(&session).with("authorization", &ann);
    let mut stream = replicas[2].connect();
    stream.send(&of_session(Ask::bare("GET", "/mcp").with("accept", "text/event-stream")).bytes());
    assert_eq!(stream.head().status(), 200);
    for uri in WATCHED {
        let subscribe = of_session(Ask::request(2, "resources/subscribe", json!({"uri": uri})));
        assert_eq!(replicas[1].ask(&subscribe).frame()["result"], json!({}));
    }
    hears_all(&mut stream, &replicas, &ann);
    set(&replicas[0], &bob, "mine", "his");
    set(&replicas[0], &ann, "last", "hers");
    assert_eq!(told(&mut stream), "note:///last", "of what he wrote she hears nothing");
    set(&replicas[1], &ann, "mine", "hers");
    assert_eq!(told(&mut stream), "note:///mine", "told once");
    let read = of_session(Ask::request(3, "resources/read", json!({"uri": "note:///mine"})));
    assert_eq!(replicas[0].ask(&read).frame()["result"]["contents"][0]["text"], "hers");
}
