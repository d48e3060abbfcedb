//! Replicas know what one of them learns: revoked tokens, what persons allowed for a time,
//! components that were approved or end their sandboxes, resources that tools embedded.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, Saving, fixture_bytes, manifest_of, modern_meta, patience};

use crate::walls::{abort, busy};

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Another key.
const OTHER_KEY: &str = "ffffffffffffffffffffffffffffffff";

/// The folder of a replica with this manifest and this key, and with state on this server.
fn folder(engine: &Engine, key: &str, manifest: &str) -> Folder {
    let shared = format!(
        "version = 1\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"2s\"\n[server]\n\
         state_key = \"file:state.key\"\n",
        engine.port()
    );
    let folder = Folder::with_manifest(&manifest.replacen("version = 1\n", &shared, 1));
    folder.write("state.key", key);
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
    folder
}

fn serving(folder: Folder, options: &[&str]) -> WebHost {
    WebHost::in_folder(folder, &[&["--http", "127.0.0.1:0", "--audit", "audit.jsonl"], options].concat())
}

/// The folder of a replica that has ended.
fn ended(replica: WebHost) -> Folder {
    let process = replica.into_process();
    process.terminate();
    process.ends_leaving_its_folder()
}

/// Asks until this holds of the answer.
fn in_time(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn bearer(ask: Ask, token: &str) -> Ask {
    ask.with("authorization", &format!("Bearer {token}"))
}

/// Three replicas with files of their own that have the tokens of Ann and Bob.
pub(super) fn with_tokens(engine: &Engine, manifest: &str) -> ([WebHost; 3], [String; 2]) {
    let manifest = format!("{manifest}\n[http]\ntokens = \"tokens.jsonl\"\n");
    let folders = [(); 3].map(|()| folder(engine, KEY, &manifest));
    let tokens = ["ann", "bob"]
        .map(|name| Command::in_folder(&folders[0], &["token", "new", name]).run().succeeded().trim().to_owned());
    let lines = folders[0].read("tokens.jsonl");
    (
        folders.map(|folder| {
            folder.write("tokens.jsonl", &lines);
            serving(folder, &[])
        }),
        tokens,
    )
}

/// The status of a call with this token.
fn status(replica: &WebHost, token: &str) -> u16 {
    replica.ask(&bearer(Ask::call("echo", json!({"text": "x"})), token)).status()
}

/// Revokes the token of this caller in the file of one replica.
fn revoke(folder: &Folder, name: &str) {
    let revoked = Command::in_folder(folder, &["token", "revoke", name]).run();
    assert_eq!(revoked.succeeded(), format!("the token of {name} is revoked\n"));
}

#[test]
fn a_token_that_is_revoked_at_one_replica_is_revoked_at_all_and_after_a_restart() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, bob]) = with_tokens(&engine, &manifest_of(&["good"]));
    for replica in &replicas {
        assert_eq!((status(replica, &ann), status(replica, &bob)), (200, 200));
    }
    let mut open = replicas[2].connect();
    open.send(&bearer(Ask::listen(5), &ann).bytes());
    assert_eq!(open.head().status(), 200);
    assert_eq!(open.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    let lines = replicas[1].process().folder().read("tokens.jsonl");
    revoke(replicas[0].process().folder(), "ann");
    for replica in &replicas {
        in_time("it is revoked", || status(replica, &ann) == 401);
        assert_eq!(status(replica, &bob), 200, "and no other");
    }
    in_time("what it listens to has ended", || open.event().is_none());
    assert_eq!(replicas[1].process().folder().read("tokens.jsonl"), lines, "their files are their own");
    assert!(!engine.whole_answer(&["KEYS", "*"]).contains("ann"));
    // A replica that starts with an old file knows it before it lets anybody in.
    let [one, two, three] = replicas;
    let restarted = serving(ended(two), &[]);
    assert_eq!((status(&restarted, &ann), status(&restarted, &bob)), (401, 200));
    // Without the server it cannot know.
    engine.kill();
    let alone = serving(ended(three), &[]);
    assert_eq!((status(&alone, &ann), status(&alone, "toolcell_00")), (503, 401));
    assert_eq!((status(&restarted, &ann), status(&restarted, &bob)), (401, 200), "who knew it goes on knowing it");
    // The server has forgotten everything; nothing says any more that it was revoked.
    engine.start_again();
    in_time("it can ask", || status(&alone, &bob) == 200);
    // A line that comes back is valid again, everywhere.
    one.process().folder().write("tokens.jsonl", lines);
    in_time("it is back", || status(&one, &ann) == 200 && status(&restarted, &ann) == 200);
}

#[test]
fn a_token_whose_line_came_back_while_no_replica_ran_is_valid_and_an_old_copy_makes_none_valid() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, bob]) = with_tokens(&engine, &manifest_of(&["good"]));
    let lines = replicas[0].process().folder().read("tokens.jsonl");
    revoke(replicas[0].process().folder(), "ann");
    for replica in &replicas {
        in_time("it is revoked", || status(replica, &ann) == 401);
    }
    let [one, two, three] = replicas.map(ended);
    let old = serving(two, &[]);
    assert_eq!((status(&old, &ann), status(&old, &bob)), (401, 200), "its file is as old as ever");
    one.write("tokens.jsonl", &lines);
    let restored = serving(one, &[]);
    in_time("it is valid where the line came back", || status(&restored, &ann) == 200);
    in_time("and everywhere", || status(&old, &ann) == 200);
    let last = serving(three, &[]);
    assert_eq!((status(&last, &ann), status(&last, &bob)), (200, 200));
}

#[test]
fn a_revoked_token_stays_revoked_where_another_line_came_to_the_file_before_a_start() {
    let engine = Engine::start(&[]);
    let ([one, two, three], [ann, bob]) = with_tokens(&engine, &manifest_of(&["good"]));
    revoke(one.process().folder(), "ann");
    for replica in [&one, &two, &three] {
        in_time("it is revoked", || status(replica, &ann) == 401);
    }
    let made = Command::in_folder(two.process().folder(), &["token", "new", "frank"]).run();
    let frank = made.succeeded().trim().to_owned();
    in_time("the file is read", || status(&two, &frank) == 200);
    let two = serving(ended(two), &[]);
    assert_eq!((status(&two, &ann), status(&two, &frank)), (401, 200));
    // Whatever the start had to say was said before this.
    revoke(two.process().folder(), "bob");
    for replica in [&one, &two, &three] {
        in_time("a later one is revoked", || status(replica, &bob) == 401);
        assert_eq!(status(replica, &ann), 401);
    }
}

#[test]
fn a_token_that_is_revoked_while_its_replica_or_the_state_is_away_is_revoked_after_the_next_start() {
    let engine = Engine::start(&[]);
    let ([one, two, three], [ann, bob]) = with_tokens(&engine, &manifest_of(&["good"]));
    let stopped = ended(one);
    revoke(&stopped, "ann");
    let one = serving(stopped, &[]);
    for replica in [&one, &two, &three] {
        in_time("it is revoked", || status(replica, &ann) == 401);
    }
    engine.pause();
    revoke(one.process().folder(), "bob");
    in_time("the file is read", || status(&one, &bob) == 401);
    let one = serving(ended(one), &[]);
    engine.go_on();
    for replica in [&one, &two, &three] {
        in_time("it is revoked", || status(replica, &bob) == 401);
    }
}

/// A call of `http` by a client that can ask its person, with an answer if it is a further round.
fn reaching(server: &HttpServer, token: &str, answer: Option<(&Value, &str)>) -> Ask {
    let url = format!("http://{}/x", server.address());
    let mut params = json!({"name": "http", "arguments": {"url": url}, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    if let Some((asked, choice)) = answer {
        params["requestState"] = asked["result"]["requestState"].clone();
        let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        params["inputResponses"] = json!({key: {"action": "accept", "content": {"allow": choice}}});
    }
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    bearer(Ask::call("http", json!({})).saying(&body), token)
}

#[test]
fn what_a_person_allowed_for_a_time_is_allowed_at_all_replicas() {
    let engine = Engine::start(&[]);
    let server = HttpServer::start();
    let manifest = format!("{}ungranted = \"ask\"\n", manifest_of(&["good", "reach_http"]));
    let (replicas, [ann, bob]) = with_tokens(&engine, &manifest);
    let asked = replicas[0].ask(&reaching(&server, &ann, None)).frame();
    let questions = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let question = questions.values().next().unwrap();
    let meanings = &question["params"]["requestedSchema"]["properties"]["allow"]["enumNames"];
    assert_eq!(meanings[1], "allow it to this tool for 12 hours", "{question}");
    let went = |reply: &Value| reply["result"]["structuredContent"].get("ok").is_some();
    let allowed = replicas[1].ask(&reaching(&server, &ann, Some((&asked, "session")))).frame();
    assert!(went(&allowed), "{allowed}");
    for replica in &replicas {
        in_time("it is known", || went(&replica.ask(&reaching(&server, &ann, None)).frame()));
        let other = replica.ask(&reaching(&server, &bob, None)).frame();
        assert_eq!(other["result"]["resultType"], "input_required", "another caller is asked: {other}");
    }
    // What was known stays known while the server is away, and for those who start later.
    let [one, two, _] = replicas;
    let restarted = serving(ended(two), &[]);
    in_time("it is known", || went(&restarted.ask(&reaching(&server, &ann, None)).frame()));
    drop(one);
    let records = restarted.process().audit();
    let answers = records.iter().filter(|record| record["event"] == "call.asked");
    assert!(answers.clone().any(|record| record["answer"] == "remembered"), "{:?}", answers.collect::<Vec<_>>());
}

/// The file that is saved again.
const TOOL: &str = "components/tool.wasm";

/// A folder whose component is pinned in its first version. `lines` belong to its table.
fn pinned(engine: &Engine, key: &str, lines: &str) -> Folder {
    let manifest = format!("version = 1\n[components.tool]\nsource = \"{TOOL}\"\n{lines}");
    let folder = folder(engine, key, &manifest);
    folder.write(TOOL, fixture_bytes("versioned_a"));
    assert_eq!(Command::in_folder(&folder, &["lock"]).run().code(), 0);
    folder
}

fn version(replica: &WebHost) -> String {
    let reply = replica.ask(&Ask::call("version", json!({}))).frame();
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

fn approvals(replica: &WebHost) -> usize {
    replica.process().audit().iter().filter(|record| record["event"] == "component.approved").count()
}

#[test]
fn a_component_that_is_approved_at_one_replica_is_approved_at_those_that_have_the_same() {
    let engine = Engine::start(&[]);
    let locked = |folder| serving(folder, &["--locked"]);
    let alike = [(); 3].map(|()| locked(pinned(&engine, KEY, "")));
    let with_more = locked(pinned(&engine, KEY, ""));
    let stranger = locked(pinned(&engine, OTHER_KEY, ""));
    let save = |replica: &WebHost| {
        replica.process().folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    };
    let is_held = |replica: &WebHost| {
        replica.process().status_when("quarantined", |status| status["quarantined"][0]["component"] == "tool")
    };
    let [one, two, late] = &alike;
    let manifest = with_more.process().folder().read("toolcell.toml");
    with_more
        .process()
        .folder()
        .write("toolcell.toml", format!("{manifest}[components.tool.env]\nUNITS = \"metric\"\n"));
    for replica in [one, two, &with_more, &stranger] {
        save(replica);
        is_held(replica);
        assert_eq!(version(replica), "a");
    }
    let approved = Command::in_folder(one.process().folder(), &["approve", "tool"]).run();
    assert!(approved.succeeded().starts_with("generation 2: tool: new code"), "{approved:?}");
    assert_eq!(version(one), "c");
    in_time("the other serves it as well", || version(two) == "c");
    two.process().status_when("nothing is held", |status| status["quarantined"] == json!([]));
    assert_eq!(one.process().folder().read("toolcell.lock"), two.process().folder().read("toolcell.lock"));
    // One whose file comes later finds the approval.
    save(late);
    in_time("the late one serves it", || version(late) == "c");
    assert_eq!([one, two, late].map(approvals), [1, 1, 1]);
    // The same bytes with another right were not approved, nor anything by a stranger's key.
    with_more
        .process()
        .will_say("tool: these bytes were approved at another replica, with other tools or grants than here");
    for replica in [&with_more, &stranger] {
        is_held(replica);
        assert_eq!((version(replica).as_str(), approvals(replica)), ("a", 0));
    }
}

#[test]
fn an_approval_that_other_replicas_cannot_be_told_of_says_so_and_can_be_given_again() {
    let engine = Engine::start(&[]);
    let [one, other] = [(); 2].map(|()| serving(pinned(&engine, KEY, ""), &["--locked"]));
    engine.kill();
    for replica in [&one, &other] {
        replica.process().folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
        replica.process().status_when("quarantined", |status| status["quarantined"][0]["component"] == "tool");
    }
    let approve = || Command::in_folder(one.process().folder(), &["approve", "tool"]).run();
    let said = approve();
    let problem = "tool is approved here, and other replicas were not notified: the state that replicas share cannot be \
                   reached; try again";
    assert!(said.failed_with(1).contains(problem), "{said:?}");
    in_time("it is served here", || {
        let status = one.process().status();
        status["quarantined"] == json!([])
    });
    engine.start_again();
    in_time("it can be said again", || approve().code() == 0);
    in_time("the other serves it", || other.process().status()["quarantined"] == json!([]));
}

#[test]
fn a_component_that_ends_its_sandboxes_is_held_back_at_all_replicas() {
    let engine = Engine::start(&[]);
    let manifest = "version = 1\nwalls = \"best\"\n[components.good]\nsource = \"components/good.wasm\"\n\
                    [components.loops]\nsource = \"components/loops.wasm\"\n\
                    [components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"20s\"\n";
    let replicas = [(); 2].map(|()| serving(folder(&engine, KEY, manifest), &[]));
    let text = |reply: Value| reply["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let count = "local n = 0; for _, key in ipairs(redis.call('KEYS', 'toolcell:1:set:*')) do \
                 n = n + redis.call('ZCARD', key) end; return n";
    let ends = || engine.ask(&["EVAL", count, "0"]);
    for round in 0..5_usize {
        let replica = &replicas[round % 2];
        let mut wire = replica.connect();
        wire.send(&Ask::call("spin", json!({})).bytes());
        abort(busy(replica.process().process_id()));
        let ended = text(wire.reply().frame());
        assert!(ended.starts_with("the sandbox was ended: "), "{ended}");
        in_time("the end is known", || ends() == format!(":{}", round + 1));
        in_time("others go on", || {
            replicas.iter().all(|replica| text(replica.ask(&Ask::call("echo", json!({"text": "x"}))).frame()) == "x")
        });
    }
    for replica in &replicas {
        let mut said = String::new();
        in_time("it is held back", || {
            said = text(replica.ask(&Ask::call("spin", json!({}))).frame());
            said.contains("ended its sandbox 5 times within 10 minutes")
        });
        assert!(said.ends_with("have it run again by `toolcell reload`"), "{said}");
    }
}

/// The resource that the fixture's tool `every_kind` embeds twice, under one address.
const NOTE: &str = "note://one";

/// The addresses that are listed.
fn listed(reply: &Value) -> Vec<String> {
    let resources = reply["result"]["resources"].as_array().unwrap_or_else(|| panic!("no resources in {reply}"));
    resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_resource_that_a_result_embedded_is_listed_and_read_at_any_replica() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, bob]) = with_tokens(&engine, &manifest_of(&["good"]));
    let list = |token: &str| bearer(Ask::modern(2, "resources/list", json!({})), token);
    let read =
        |token: &str| bearer(Ask::modern(3, "resources/read", json!({"uri": NOTE})).with("mcp-name", NOTE), token);
    assert_eq!(replicas[0].ask(&bearer(Ask::call("every_kind", json!({})), &ann)).status(), 200);
    let first = replicas[0].ask(&read(&ann)).frame();
    let contents = &first["result"]["contents"];
    assert_eq!((&contents[0]["text"], &contents[1]["blob"]), (&json!("first note"), &json!("AP9/")), "{first}");
    assert_eq!(first["result"]["cacheScope"], "private");
    for replica in &replicas {
        let entry = replica.ask(&list(&ann)).frame();
        assert_eq!(listed(&entry), [NOTE]);
        let entry = &entry["result"]["resources"][0];
        assert_eq!((&entry["name"], &entry["size"]), (&json!("one"), &json!(13)));
        assert_eq!(replica.ask(&read(&ann)).frame()["result"]["contents"], *contents);
        assert_eq!(replica.ask(&read(&bob)).frame()["error"]["code"], -32602, "another caller's is nobody's");
        assert_eq!(listed(&replica.ask(&list(&bob)).frame()), [""; 0]);
    }
    // A session's are its own, and end with it.
    let session = |replica: &WebHost| {
        let opened = replica.ask(&bearer(Ask::initialize("2025-11-25"), &ann));
        let id = opened.field("mcp-session-id").unwrap().to_owned();
        let ready = Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).of_session(&id);
        assert_eq!(replica.ask(&bearer(ready, &ann)).status(), 202);
        id
    };
    let of = |id: &str, method: &str, params: Value| bearer(Ask::request(4, method, params).of_session(id), &ann);
    let [one, other] = [session(&replicas[0]), session(&replicas[1])];
    let embedded = replicas[1].ask(&of(&one, "tools/call", json!({"name": "every_kind", "arguments": {}}))).frame();
    assert_ne!(embedded["result"]["isError"], true, "{embedded}");
    for replica in &replicas {
        assert_eq!(listed(&replica.ask(&of(&one, "resources/list", json!({}))).frame()), [NOTE]);
        let found = replica.ask(&of(&one, "resources/read", json!({"uri": NOTE}))).frame();
        assert_eq!(found["result"]["contents"], *contents, "{found}");
        let missing = replica.ask(&of(&other, "resources/read", json!({"uri": NOTE}))).frame();
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
    }
    assert!(!engine.whole_answer(&["KEYS", "*"]).contains("note"), "no key says whose or what");
    let of_sessions = || engine.ask(&["EVAL", "return #redis.call('KEYS', 'toolcell:1:res:*:one:*')", "0"]);
    assert_eq!(of_sessions(), ":2");
    assert_eq!(replicas[2].ask(&bearer(Ask::bare("DELETE", "/mcp").of_session(&one), &ann)).status(), 204);
    assert_eq!(of_sessions(), ":1", "they go with the session");
    // Without the server nobody finds them, and results are whole.
    engine.kill();
    let away = replicas[0].ask(&read(&ann)).frame();
    assert!(away["error"]["message"].as_str().unwrap().contains("cannot be reached: try again"), "{away}");
    engine.start_again();
    in_time("it is back", || replicas[1].ask(&read(&ann)).frame()["error"]["code"] == -32602);
}

#[test]
fn lists_of_resources_have_pages_at_any_replica() {
    let engine = Engine::start(&[]);
    let manifest = manifest_of(&["labels"]).replacen("version = 1\n", "version = 1\npage_size = 7\n", 1);
    let (replicas, [ann, _]) = with_tokens(&engine, &manifest);
    let call = bearer(Ask::call("label", json!({"first": 0, "count": 20, "body": 3})), &ann);
    let embedded = replicas[0].ask(&call).frame();
    assert_ne!(embedded["result"]["isError"], true, "{embedded}");
    let mut cursor = None::<Value>;
    let mut all = Vec::new();
    for page in 0.. {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let reply = replicas[page % 3].ask(&bearer(Ask::modern(2, "resources/list", params), &ann)).frame();
        let addresses = listed(&reply);
        assert!(addresses.len() <= 7, "{reply}");
        all.extend(addresses);
        match reply["result"].get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(all, (0..20).map(|number| format!("label:{number}")).collect::<Vec<_>>());
}
