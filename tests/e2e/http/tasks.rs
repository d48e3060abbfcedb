//! Tasks over HTTP: after a disconnect, for nobody but their caller, in legacy sessions, and over
//! three replicas of which one ends.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::web::{Ask, Reply, WebHost};
use toolcell_tests::{Command, Folder, MODERN_REVISION, alone, manifest_of, modern_meta, patience};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

const RULES: &str = "[components.tasks]\nsource = \"components/tasks.wasm\"\ntask = \"0ms\"\n";

/// A manifest whose tools run as tasks.
fn manifest(lines: &str) -> String {
    format!("{}\n{RULES}{lines}\n", manifest_of(&["good"]))
}

/// A modern request of a client that can take tasks and answer forms.
fn modern(method: &str, mut params: Value) -> Ask {
    params["_meta"] = modern_meta();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}, "extensions": {EXTENSION: {}}});
    let name = params["name"].as_str().or_else(|| params["taskId"].as_str()).map(str::to_owned);
    let ask = Ask::request(1, method, params).with("mcp-protocol-version", MODERN_REVISION).with("mcp-method", method);
    match name {
        Some(name) => ask.with("mcp-name", &name),
        None => ask,
    }
}

fn call(tool: &str, arguments: Value) -> Ask {
    modern("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn get(id: &str) -> Ask {
    modern("tasks/get", json!({"taskId": id}))
}

fn id_of(reply: &Reply) -> String {
    let result = reply.frame()["result"].clone();
    assert_eq!(result["resultType"], "task", "{reply:?}");
    result["taskId"].as_str().unwrap().to_owned()
}

/// The task once it has one of these statuses.
fn once(host: &WebHost, ask: &Ask, statuses: &[&str]) -> Value {
    let until = Instant::now() + patience();
    loop {
        let task = host.ask(ask).frame()["result"].clone();
        if statuses.iter().any(|status| task["status"] == *status) {
            return task;
        }
        assert!(Instant::now() < until, "not {statuses:?}: {task}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_task_outlives_the_connection_that_began_it() {
    let host = WebHost::with_manifest(&manifest(""));
    let id = {
        let mut wire = host.connect();
        id_of(&wire.ask(&call("slow_compute", json!({"seconds": 1}))))
    };
    let done = once(&host, &get(&id), &["completed", "failed"]);
    assert_eq!(done["result"]["content"][0]["text"], "computed it");
}

#[test]
fn the_header_names_the_task() {
    let host = WebHost::with_manifest(&manifest(""));
    let id = id_of(&host.ask(&call("greet", json!({}))));
    for (ask, expected) in [
        (get(&id).with("mcp-name", "another"), (400, -32020)),
        (get(&id).without("mcp-name"), (400, -32020)),
        (modern("tasks/cancel", json!({"taskId": id})).with("mcp-name", "another"), (400, -32020)),
        (modern("tasks/list", json!({})), (404, -32601)),
        (modern("tasks/result", json!({"taskId": id})), (404, -32601)),
    ] {
        assert_eq!(host.ask(&ask).error(), expected);
    }
    assert_eq!(host.ask(&get(&id)).status(), 200);
}

#[test]
fn nobody_finds_the_task_of_another_caller() {
    let manifest = manifest("[http]\ntokens = \"tokens.jsonl\"");
    let folder = Folder::with_manifest(&manifest);
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    });
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let id = id_of(&host.ask(&call("confirm_delete", json!({})).with("authorization", &ann)));
    let answer = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    for ask in [
        get(&id),
        modern("tasks/update", json!({"taskId": id, "inputResponses": answer})),
        modern("tasks/cancel", json!({"taskId": id})),
    ] {
        let reply = host.ask(&ask.with("authorization", &bob)).frame();
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    once(&host, &get(&id).with("authorization", &ann), &["input_required"]);
    let legacy = |bearer: &str| {
        let opened = host.ask(&Ask::initialize("2025-11-25").with("authorization", bearer));
        let session = opened.field("mcp-session-id").unwrap().to_owned();
        let list = Ask::request(2, "tasks/list", json!({})).of_session(&session).with("authorization", bearer);
        host.ask(&list).frame()["result"]["tasks"].as_array().unwrap().len()
    };
    assert_eq!((legacy(&ann), legacy(&bob)), (1, 0));
}

#[test]
fn a_legacy_session_waits_is_asked_and_cannot_list_where_callers_are_not_told_apart() {
    let host = WebHost::with_manifest(&manifest(""));
    let opened = host.ask(&Ask::initialize("2025-11-25"));
    let offered = opened.frame()["result"]["capabilities"]["tasks"].clone();
    assert_eq!(offered, json!({"cancel": {}, "requests": {"tools": {"call": {}}}}));
    let session = session(&host, json!({"elicitation": {}}));
    let request = |id: u64, method: &str, params: Value| Ask::request(id, method, params).of_session(&session);
    assert_eq!(host.ask(&request(2, "tasks/list", json!({}))).frame()["error"]["code"], -32601);
    let begun = host.ask(&request(3, "tools/call", json!({"name": "confirm_delete", "arguments": {}, "task": {}})));
    let id = begun.frame()["result"]["task"]["taskId"].clone();
    let mut wire = host.connect();
    wire.send(&request(4, "tasks/result", json!({"taskId": id})).bytes());
    assert_eq!(wire.head().status(), 200);
    let question = wire.event().expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["_meta"]["io.modelcontextprotocol/related-task"], json!({"taskId": id}));
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    let answer = Ask::post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).of_session(&session);
    assert_eq!(host.ask(&answer).status(), 202);
    let result = wire.event().expect("a result")["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("true"), "{result}");
}

/// A session of 2025-11-25 whose client declares these capabilities.
fn session(host: &WebHost, capabilities: Value) -> String {
    let client = json!({"name": "toolcell-tests", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
    host.ask(&Ask::request(0, "initialize", params)).field("mcp-session-id").unwrap().to_owned()
}

/// A task that asks, of a session whose client can be asked.
fn asking_task(host: &WebHost) -> Value {
    let begin = Ask::request(3, "tools/call", json!({"name": "confirm_delete", "arguments": {}, "task": {}}));
    let begun = host.ask(&begin.of_session(&session(host, json!({"elicitation": {}}))));
    begun.frame()["result"]["task"]["taskId"].clone()
}

/// A request of this session that waits for a task.
fn waits(session: &str, id: &Value) -> Ask {
    Ask::request(4, "tasks/result", json!({"taskId": id})).of_session(session)
}

/// A new session waits for the task, is asked its question, and answers; the task then ends.
fn is_asked_and_answers(host: &WebHost, id: &Value) {
    let able = session(host, json!({"elicitation": {}}));
    let mut wire = host.connect();
    wire.send(&waits(&able, id).bytes());
    assert_eq!(wire.head().status(), 200);
    let question = wire.event().expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    let answer = Ask::post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).of_session(&able);
    assert_eq!(host.ask(&answer).status(), 202);
    let result = wire.event().expect("a result")["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("true"), "{result}");
}

#[test]
fn a_task_asks_again_where_the_stream_of_its_question_was_lost() {
    let host = WebHost::with_manifest(&manifest(""));
    let id = asking_task(&host);
    {
        let mut lost = host.connect();
        lost.send(&waits(&session(&host, json!({"elicitation": {}})), &id).bytes());
        assert_eq!(lost.head().status(), 200);
        assert_eq!(lost.event().expect("a question")["method"], "elicitation/create");
    }
    is_asked_and_answers(&host, &id);
}

#[test]
fn clients_that_cannot_be_asked_wait_for_a_task_and_leave_its_question_to_one_that_can() {
    let host = WebHost::with_manifest(&manifest(""));
    let id = asking_task(&host);
    let able = session(&host, json!({"elicitation": {}}));
    let mut undeclared = host.connect();
    let hears = waits(&session(&host, json!({})), &id).with("accept", "text/event-stream");
    undeclared.send(&hears.bytes());
    let mut unheard = host.connect();
    unheard.send(&waits(&able, &id).with("accept", "application/json").bytes());
    is_asked_and_answers(&host, &id);
    assert_eq!(undeclared.head().status(), 200);
    for frame in [undeclared.event().expect("the result, and nothing before"), unheard.reply().frame()] {
        let text = frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{frame}"));
        assert!(text.contains("true"), "{frame}");
    }
}

/// A replica with state on this server.
fn replica(engine: &Engine) -> WebHost {
    let shared = format!(
        "version = 1\n[server]\nstate_key = \"file:state.key\"\n[http]\ndrain = \"20s\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"10s\"\n",
        engine.port()
    );
    let folder = Folder::with_manifest(&manifest("").replacen("version = 1\n", &shared, 1));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(folder.path().join("state.key"), Permissions::from_mode(0o600)).unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
}

#[test]
fn a_replica_that_is_asked_to_end_lets_its_tasks_end_first() {
    let engine = Engine::start(&[]);
    let [one, other] = [(); 2].map(|()| replica(&engine));
    let short = id_of(&one.ask(&call("slow_compute", json!({"seconds": 2}))));
    let long = id_of(&one.ask(&call("slow_compute", json!({"seconds": 600}))));
    let began = Instant::now();
    let process = one.into_process();
    process.terminate();
    let done = once(&other, &get(&short), &["completed", "failed"]);
    assert_eq!(done["result"]["content"][0]["text"], "computed it", "{done}");
    let lost = once(&other, &get(&long), &["completed", "failed"]);
    assert_eq!(lost["statusMessage"], "The task was lost: the host that ran it has ended");
    assert!(process.ends().status.success());
    assert!(began.elapsed() >= Duration::from_secs(20), "the other one had \"drain\"");
}

#[test]
fn without_others_a_task_that_ends_within_the_drain_is_kept_for_the_next_process() {
    let _alone = alone("one process takes over from another");
    let host = WebHost::with_manifest(&manifest(""));
    let id = id_of(&host.ask(&call("slow_compute", json!({"seconds": 1}))));
    let process = host.into_process();
    process.terminate();
    let next = WebHost::in_folder(process.ends_leaving_its_folder(), &["--http", "127.0.0.1:0"]);
    let done = once(&next, &get(&id), &["completed", "failed"]);
    assert_eq!(done["result"]["content"][0]["text"], "computed it", "{done}");
}

#[test]
fn any_replica_answers_for_any_task() {
    let engine = Engine::start(&[]);
    let [one, two, three] = [(); 3].map(|()| replica(&engine));
    let id = id_of(&one.ask(&call("multi_input", json!({}))));
    let asks = once(&two, &get(&id), &["input_required"]);
    assert_eq!(asks["inputRequests"].as_object().unwrap().len(), 2, "{asks}");
    for (replica, key) in [(&two, "first"), (&three, "second")] {
        let answer = json!({key: {"action": "accept", "content": {"name": key}}});
        let update = modern("tasks/update", json!({"taskId": id, "inputResponses": answer}));
        assert_eq!(replica.ask(&update).frame()["result"]["resultType"], "complete");
    }
    let done = once(&three, &get(&id), &["completed", "failed"]);
    let text = done["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("first") && text.contains("second"), "{text}");
    let cancelled = id_of(&one.ask(&call("slow_compute", json!({"seconds": 600}))));
    assert_eq!(two.ask(&modern("tasks/cancel", json!({"taskId": cancelled}))).status(), 200);
    assert_eq!(three.ask(&get(&cancelled)).frame()["result"]["status"], "cancelled");
    let mut listening = two.connect();
    let told = id_of(&one.ask(&call("say", json!({"seconds": 0.5, "what": "here"}))));
    listening.send(&modern("subscriptions/listen", json!({"notifications": {"taskIds": [told]}})).bytes());
    assert_eq!(listening.head().status(), 200);
    assert_eq!(listening.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    let until = Instant::now() + patience();
    while listening.event().unwrap()["params"]["status"] != "completed" {
        assert!(Instant::now() < until);
    }
    // What ran in a replica that ends has failed; what has ended is kept.
    let [killed, ended] = [&one, &two].map(|at| id_of(&at.ask(&call("slow_compute", json!({"seconds": 600})))));
    two.process().terminate();
    let lost = once(&three, &get(&ended), &["failed"]);
    assert_eq!(lost["statusMessage"], "The task was lost: the host that ran it has ended");
    drop(one.into_process().is_killed_leaving_its_folder());
    let lost = once(&three, &get(&killed), &["failed"]);
    assert_eq!(lost["error"]["code"], -32603, "{lost}");
    assert_eq!(three.ask(&get(&id)).frame()["result"]["status"], "completed");
}
