//! Calls that become tasks, over stdio: in both eras, under cancellation, reloads and kill -9,
//! bounded in number, size and life.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{Folder, Saving, TestHost, alone, manifest_of, patience};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A manifest whose tools become tasks in each way. `lines` are further lines.
fn manifest(lines: &str) -> String {
    let rules = [
        ("slow_compute", "200ms"),
        ("failing_job", "always"),
        ("protocol_error_job", "0ms"),
        ("confirm_delete", "0ms"),
        ("multi_input", "0ms"),
        ("test_tool_with_task", "400ms"),
        ("say", "0ms"),
        ("large", "0ms"),
    ];
    let rules: String =
        rules.iter().map(|(tool, rule)| format!("[components.tasks.tools.{tool}]\ntask = \"{rule}\"\n")).collect();
    format!("{}\n{rules}{lines}\n", manifest_of(&["good", "tasks"]))
}

fn host(lines: &str) -> TestHost {
    TestHost::with_manifest(&manifest(lines))
}

/// The meta of a client that can take tasks and answer forms.
fn declared() -> Value {
    json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}}})
}

/// A modern request of that client.
fn ask(host: &mut TestHost, method: &str, mut params: Value) -> Value {
    params["_meta"] = declared();
    host.request(method, params)
}

fn call(host: &mut TestHost, tool: &str, arguments: Value) -> Value {
    ask(host, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Begins a task, and returns its name.
fn begin(host: &mut TestHost, tool: &str, arguments: Value) -> String {
    let reply = call(host, tool, arguments);
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    reply["result"]["taskId"].as_str().unwrap().to_owned()
}

fn get(host: &mut TestHost, id: &str) -> Value {
    ask(host, "tasks/get", json!({"taskId": id}))
}

/// The task once it has one of these statuses.
fn once(host: &mut TestHost, id: &str, statuses: &[&str]) -> Value {
    let until = Instant::now() + patience();
    loop {
        let reply = get(host, id);
        let status = reply["result"]["status"].as_str().unwrap_or_else(|| panic!("no task: {reply}"));
        if statuses.contains(&status) {
            return reply["result"].clone();
        }
        assert!(Instant::now() < until, "still {status}, not {statuses:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn code(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {reply}"))
}

#[test]
fn a_long_call_is_answered_with_a_task_that_has_its_result() {
    let mut host = host("");
    let extensions = ask(&mut host, "server/discover", json!({}))["result"]["capabilities"]["extensions"].clone();
    assert_eq!(extensions[EXTENSION], json!({}));
    let created = call(&mut host, "slow_compute", json!({"seconds": 1, "label": "seven"}))["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(3_600_000), &json!(1_000)));
    assert!(created["createdAt"].as_str().unwrap().ends_with('Z'), "{created}");
    for absent in ["task", "result", "error", "inputRequests", "requestState"] {
        assert!(created.get(absent).is_none(), "{absent}: {created}");
    }
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(id.len(), 32);
    let working = get(&mut host, id)["result"].clone();
    assert_eq!((&working["resultType"], &working["taskId"]), (&json!("complete"), &json!(id)));
    host.still_works();
    let done = once(&mut host, id, &["completed", "failed", "cancelled"]);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["content"][0]["text"], "computed seven");
    assert!(done["result"]["_meta"].get(RELATED).is_none(), "{done}");
    let short = call(&mut host, "slow_compute", json!({"seconds": 0}));
    assert!(short["result"]["resultType"] == "complete" || short["result"]["resultType"] == "task", "{short}");
    let never = call(&mut host, "greet", json!({"name": "Ada"}));
    assert_eq!(never["result"]["content"][0]["text"], "Hello, Ada!");
}

#[test]
fn a_failure_of_the_tool_is_a_result_and_one_of_the_protocol_is_none() {
    let mut host = host("");
    let id = begin(&mut host, "failing_job", json!({}));
    let done = once(&mut host, &id, &["completed", "failed"]);
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(true)));
    let id = begin(&mut host, "protocol_error_job", json!({}));
    let failed = once(&mut host, &id, &["completed", "failed"]);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32021)));
    assert!(failed.get("result").is_none() && failed["statusMessage"].is_string(), "{failed}");
}

#[test]
fn who_cannot_take_a_task_gets_none_and_what_is_no_task_is_an_error() {
    let mut host = host("");
    let plain = host.call("slow_compute", json!({"seconds": 0.5})).text().to_owned();
    assert_eq!(plain, "computed it");
    let refused = host.request("tools/call", json!({"name": "failing_job", "arguments": {}}));
    let needed = json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
    assert_eq!((code(&refused), &refused["error"]["data"]), (-32021, &needed));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = || json!({"taskId": "0123456789abcdef0123456789abcdef", "inputResponses": {}});
        assert_eq!(code(&host.request(method, params())), -32021, "{method}");
        assert_eq!(code(&ask(&mut host, method, params())), -32602, "{method}");
        assert_eq!(code(&ask(&mut host, method, json!({"inputResponses": {}}))), -32602, "{method}");
    }
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(code(&ask(&mut host, method, json!({"taskId": "a"}))), -32601, "{method}");
    }
    let listen = host.request("subscriptions/listen", json!({"notifications": {"taskIds": ["a"]}}));
    assert_eq!(code(&listen), -32021);
    let hint = ask(&mut host, "tools/call", json!({"name": "greet", "arguments": {}, "task": {"ttl": 60_000}}));
    assert_eq!(hint["result"]["resultType"], "complete", "2026-07-28 knows no such request: {hint}");
    let mut without = TestHost::serving(&["good"]);
    assert_eq!(code(&ask(&mut without, "tasks/get", json!({"taskId": "a"}))), -32602, "an earlier start had tasks");
}

#[test]
fn a_task_asks_and_goes_on_once_all_is_answered() {
    let mut host = host("");
    let id = begin(&mut host, "multi_input", json!({}));
    let asks = once(&mut host, &id, &["input_required", "failed"]);
    let requests = asks["inputRequests"].as_object().unwrap().clone();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(requests["first"]["method"], "elicitation/create");
    let answer = |host: &mut TestHost, responses: Value| {
        let reply = ask(host, "tasks/update", json!({"taskId": id, "inputResponses": responses}));
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
        assert!(reply["result"].get("taskId").is_none());
    };
    answer(&mut host, json!({"nobody": {"action": "accept"}}));
    answer(&mut host, json!({"first": {"action": "accept", "content": {"name": "Ada"}}}));
    let left = get(&mut host, &id)["result"].clone();
    assert_eq!(left["status"], "input_required");
    assert_eq!(left["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"]);
    answer(&mut host, json!({"second": {"action": "decline"}, "first": {"action": "cancel"}}));
    let done = once(&mut host, &id, &["completed", "failed"]);
    let text = done["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Ada") && text.contains("Declined"), "{text}");
}

#[test]
fn what_is_asked_before_a_call_is_a_task_is_asked_in_rounds() {
    let mut host = host("");
    let first = call(&mut host, "test_tool_with_task", json!({}))["result"].clone();
    if first["resultType"] == "task" {
        // On a busy machine the tool asked when it was a task already.
        let id = first["taskId"].as_str().unwrap().to_owned();
        assert_eq!(once(&mut host, &id, &["input_required"])["status"], "input_required");
        return;
    }
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert!(first.get("taskId").is_none());
    let again = json!({
        "name": "test_tool_with_task", "arguments": {}, "requestState": first["requestState"],
        "inputResponses": {"user_name": {"action": "accept", "content": {"name": "Ada"}}},
    });
    let second = ask(&mut host, "tools/call", again)["result"].clone();
    assert_eq!(second["resultType"], "task", "{second}");
    assert!(second.get("requestState").is_none());
    let done = once(&mut host, second["taskId"].as_str().unwrap(), &["completed", "failed"]);
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"), "{done}");
}

#[test]
fn a_cancelled_task_stops_and_stays_cancelled() {
    let mut host = TestHost::recording(&manifest(""));
    let id = begin(&mut host, "slow_compute", json!({"seconds": 600}));
    for _ in 0..2 {
        let reply = ask(&mut host, "tasks/cancel", json!({"taskId": id}));
        assert_eq!(reply["result"]["resultType"], "complete");
        assert!(reply["result"].get("status").is_none(), "{reply}");
    }
    let cancelled = get(&mut host, &id)["result"].clone();
    assert_eq!((&cancelled["status"], cancelled.get("result")), (&json!("cancelled"), None));
    let finished = host.recorded("its end", |record| record["event"] == "call.finished");
    assert_eq!(finished["outcome"], "cancelled");
    let asks = begin(&mut host, "confirm_delete", json!({}));
    once(&mut host, &asks, &["input_required"]);
    ask(&mut host, "tasks/cancel", json!({"taskId": asks}));
    let cancelled = get(&mut host, &asks)["result"].clone();
    assert!(cancelled["status"] == "cancelled" && cancelled.get("inputRequests").is_none(), "{cancelled}");
    host.still_works();
}

#[test]
fn who_listens_hears_of_a_task_and_reads_what_the_tool_says() {
    let mut host = host("");
    let id = begin(&mut host, "say", json!({"what": "counting\u{1b}[31m", "seconds": 1}));
    let listen =
        host.start("subscriptions/listen", json!({"_meta": declared(), "notifications": {"taskIds": [id, "none"]}}));
    let acknowledged = host.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id, "none"]}));
    let mut statuses = Vec::new();
    loop {
        let news = host.next_of("notifications/tasks")["params"].clone();
        assert_eq!((&news["taskId"], &news["_meta"]["io.modelcontextprotocol/subscriptionId"]), (&json!(id), &listen));
        statuses.push(news["status"].as_str().unwrap().to_owned());
        if news["status"] == "completed" {
            assert_eq!(news["result"]["content"][0]["text"], "said");
            break;
        }
        if let Some(message) = news["statusMessage"].as_str() {
            assert!(message.starts_with("counting") && !message.contains('\u{1b}'), "{message:?}");
        }
    }
    assert!(statuses.iter().rev().skip(1).all(|status| status == "working"), "{statuses:?}");
    // One who comes later hears how it ended.
    host.start("subscriptions/listen", json!({"_meta": declared(), "notifications": {"taskIds": [id]}}));
    host.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(host.next_of("notifications/tasks")["params"]["status"], "completed");
    let spoken = begin(&mut host, "say", json!({"what": "half", "seconds": 600}));
    let until = Instant::now() + patience();
    while get(&mut host, &spoken)["result"]["statusMessage"] != "half" {
        assert!(Instant::now() < until, "it says nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A host with a session of 2025-11-25.
fn legacy(lines: &str) -> (TestHost, Value) {
    let mut host = host(lines);
    let opened = host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    (host, opened["capabilities"]["tasks"].clone())
}

fn legacy_begin(host: &mut TestHost, tool: &str, arguments: Value, ttl: u64) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "task": {"ttl": ttl}});
    let reply = host.request("tools/call", params);
    assert!(reply["result"]["task"].is_object(), "{reply}");
    reply["result"]["task"].clone()
}

#[test]
fn a_legacy_client_says_which_calls_are_tasks_and_waits_for_their_results() {
    let (mut host, capability) = legacy("[tasks]\nttl_max = \"2h\"");
    assert_eq!(capability, json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
    let support: Vec<(String, Value)> = host
        .list()
        .into_iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["execution"]["taskSupport"].clone()))
        .collect();
    let of = |name: &str| support.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert_eq!(
        (of("slow_compute"), of("failing_job"), of("greet")),
        (json!("optional"), json!("required"), Value::Null)
    );
    let task = legacy_begin(&mut host, "slow_compute", json!({"seconds": 0.5, "label": "five"}), 90_000);
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(90_000), &json!(1_000))
    );
    let id = task["taskId"].clone();
    let waited = host.start("tasks/result", json!({"taskId": id}));
    host.still_works();
    let result = host.reply_to(&waited)["result"].clone();
    assert_eq!(result["content"][0]["text"], "computed five");
    assert_eq!(result["_meta"][RELATED], json!({"taskId": id}));
    assert_eq!(host.next_of("notifications/tasks/status")["params"]["status"], "completed");
    assert_eq!(host.request("tasks/get", json!({"taskId": id}))["result"]["status"], "completed");
    assert_eq!(code(&host.request("tasks/cancel", json!({"taskId": id}))), -32602, "it has ended");
    let failed = legacy_begin(&mut host, "failing_job", json!({}), 9_000_000_000);
    assert_eq!(failed["ttl"], 7_200_000, "no longer than the manifest allows");
    let result = host.request("tasks/result", json!({"taskId": failed["taskId"]}));
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(host.request("tasks/get", json!({"taskId": failed["taskId"]}))["result"]["status"], "failed");
    let listed = host.request("tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!([&listed[0]["taskId"], &listed[1]["taskId"]], [&id, &failed["taskId"]]);
    assert_eq!(host.call("slow_compute", json!({"seconds": 0.5})).text(), "computed it", "it requested no task");
    for (params, expected) in [
        (json!({"name": "failing_job", "arguments": {}}), -32601),
        (json!({"name": "greet", "arguments": {}, "task": {}}), -32601),
        (json!({"name": "slow_compute", "arguments": {}, "task": {"ttl": "1h"}}), -32602),
        (json!({"name": "slow_compute", "arguments": {}, "task": {"ttl": -1}}), -32602),
        (json!({"name": "slow_compute", "arguments": {}, "task": 7}), -32602),
    ] {
        assert_eq!(code(&host.request("tools/call", params.clone())), expected, "{params}");
    }
}

#[test]
fn messages_of_a_legacy_task_name_it() {
    let (mut host, _) = legacy("");
    let params = json!({
        "name": "say", "arguments": {"seconds": 0.5}, "task": {"ttl": 60_000}, "_meta": {"progressToken": 9}
    });
    let task = host.request("tools/call", params)["result"]["task"].clone();
    let said = host.next_of("notifications/progress");
    assert_eq!(said["params"]["_meta"], json!({RELATED: {"taskId": task["taskId"]}}), "{said}");
}

#[test]
fn a_legacy_client_is_asked_while_it_waits_for_the_result() {
    let (mut host, _) = legacy("");
    let task = legacy_begin(&mut host, "confirm_delete", json!({}), 60_000);
    let id = task["taskId"].clone();
    let until = Instant::now() + patience();
    while host.request("tasks/get", json!({"taskId": id}))["result"]["status"] != "input_required" {
        assert!(Instant::now() < until, "it does not ask");
        std::thread::sleep(Duration::from_millis(10));
    }
    // One that gives up is asked again the next time.
    let given_up = host.start("tasks/result", json!({"taskId": id}));
    let first = host.next_of("elicitation/create");
    host.cancel(&given_up);
    assert_eq!(host.next_of("notifications/cancelled")["params"]["requestId"], first["id"]);
    let waited = host.start("tasks/result", json!({"taskId": id}));
    let question = host.next_of("elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED], json!({"taskId": id}));
    assert_eq!(question["params"]["message"], "The tool \"confirm_delete\" asks: Delete it?");
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    let result = host.reply_to(&waited)["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("true"), "{result}");
    let cancelled = legacy_begin(&mut host, "slow_compute", json!({"seconds": 600}), 60_000);
    let waited = host.start("tasks/result", json!({"taskId": cancelled["taskId"]}));
    let reply = host.request("tasks/cancel", json!({"taskId": cancelled["taskId"]}));
    assert_eq!(reply["result"]["status"], "cancelled");
    assert_eq!(code(&host.reply_to(&waited)), -32603);
    let failed = legacy_begin(&mut host, "protocol_error_job", json!({}), 60_000);
    let result = host.request("tasks/result", json!({"taskId": failed["taskId"]}));
    assert_eq!(result["result"]["isError"], true, "a legacy client that cannot be asked is told the tool: {result}");
}

#[test]
fn the_newest_wait_for_a_task_is_asked_and_once_it_ends_the_one_before_it() {
    let (mut host, _) = legacy("");
    let id = legacy_begin(&mut host, "confirm_delete", json!({}), 60_000)["taskId"].clone();
    let first = host.start("tasks/result", json!({"taskId": id}));
    let mut question = host.next_of("elicitation/create");
    let second = host.start("tasks/result", json!({"taskId": id}));
    for _ in 0..2 {
        let next = host.next_of("elicitation/create");
        let withdrawn = host.next_of("notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"], "one question is open at a time");
        question = next;
        host.cancel(&second);
    }
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    let result = host.reply_to(&first)["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("true"), "{result}");
}

#[test]
fn lists_of_tasks_have_pages_and_older_revisions_have_no_tasks() {
    let (mut host, _) = legacy("[server]\npage_size = 2");
    let begun: Vec<Value> =
        (0..5).map(|_| legacy_begin(&mut host, "say", json!({}), 60_000)["taskId"].clone()).collect();
    let mut listed = Vec::new();
    let mut params = json!({});
    loop {
        let page = host.request("tasks/list", params)["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match &page["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({"cursor": cursor}),
        }
    }
    assert_eq!(listed, begun);
    for cursor in [json!("no cursor"), json!(7), json!("+1")] {
        assert_eq!(code(&host.request("tasks/list", json!({"cursor": cursor}))), -32602, "{cursor}");
    }
    let mut older = TestHost::with_manifest(&manifest(""));
    let opened = older.initialize("2025-06-18");
    assert!(opened["capabilities"].get("tasks").is_none());
    assert!(older.list().iter().all(|tool| tool.get("execution").is_none()));
    for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"] {
        assert_eq!(code(&older.request(method, json!({"taskId": "a"}))), -32601, "{method}");
    }
    let ignored = json!({"name": "slow_compute", "arguments": {}, "task": {"ttl": 1}});
    assert_eq!(older.request("tools/call", ignored)["result"]["isError"], false);
}

#[test]
fn a_task_runs_on_through_a_reload() {
    let mut host = host("");
    let id = begin(&mut host, "slow_compute", json!({"seconds": 2, "label": "old"}));
    let changed = manifest("").replace("[components.tasks]\n", "[components.tasks]\nprefix = \"new_\"\n");
    host.folder().write("toolcell.toml", changed);
    let until = Instant::now() + patience();
    while !host.list().iter().any(|tool| tool["name"] == "new_greet") {
        assert!(Instant::now() < until, "it is not reloaded");
    }
    let done = once(&mut host, &id, &["completed", "failed"]);
    assert_eq!(done["result"]["content"][0]["text"], "computed old");
}

#[test]
fn a_reload_that_takes_the_last_tool_with_tasks_away_leaves_the_tasks() {
    let (mut host, _) = legacy("");
    let ended = legacy_begin(&mut host, "say", json!({}), 600_000)["taskId"].clone();
    let running = legacy_begin(&mut host, "slow_compute", json!({"seconds": 600}), 600_000)["taskId"].clone();
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest_of(&["good", "tasks"]));
    host.serves_generation(2);
    let result = host.request("tasks/result", json!({"taskId": ended}))["result"].clone();
    assert_eq!(result["content"][0]["text"], "said", "{result}");
    assert_eq!(host.request("tasks/get", json!({"taskId": running}))["result"]["status"], "working");
    assert_eq!(host.request("tasks/list", json!({}))["result"]["tasks"].as_array().map(Vec::len), Some(2));
    let cancelled = host.request("tasks/cancel", json!({"taskId": running}));
    assert!(cancelled["result"].is_object(), "{cancelled}");
    let found = ask(&mut host, "server/discover", json!({}))["result"]["capabilities"].clone();
    assert!(found["extensions"].get(EXTENSION).is_none(), "no further call becomes a task: {found}");
}

#[test]
fn results_survive_the_host_and_tasks_that_ran_in_it_have_failed() {
    let mut host = host("");
    let done = begin(&mut host, "say", json!({}));
    once(&mut host, &done, &["completed"]);
    let running = begin(&mut host, "slow_compute", json!({"seconds": 600}));
    let cancelled = begin(&mut host, "slow_compute", json!({"seconds": 600}));
    ask(&mut host, "tasks/cancel", json!({"taskId": cancelled}));
    let asking = begin(&mut host, "confirm_delete", json!({}));
    once(&mut host, &asking, &["input_required"]);
    let folder = host.is_killed_leaving_its_folder();
    let mut host = TestHost::in_folder(folder);
    let kept = get(&mut host, &done)["result"].clone();
    assert_eq!((&kept["status"], &kept["result"]["content"][0]["text"]), (&json!("completed"), &json!("said")));
    assert_eq!(get(&mut host, &cancelled)["result"]["status"], "cancelled");
    for id in [&running, &asking] {
        let lost = get(&mut host, id)["result"].clone();
        assert_eq!((&lost["status"], &lost["error"]["code"]), (&json!("failed"), &json!(-32603)), "{lost}");
        assert_eq!(lost["statusMessage"], "The task was lost: the host that ran it has ended");
    }
    // Another host next to this one does not take its tasks, and one after it does.
    let mut beside = TestHost::in_folder(Folder::with_manifest(&manifest("")));
    assert_eq!(code(&get(&mut beside, &done)), -32602);
    let last = begin(&mut host, "slow_compute", json!({"seconds": 600}));
    let folder = host.ends_leaving_its_folder();
    let mut host = TestHost::in_folder(folder);
    assert_eq!(get(&mut host, &done)["result"]["status"], "completed");
    assert_eq!(get(&mut host, &last)["result"]["status"], "failed");
}

#[test]
fn processes_beside_each_other_answer_for_each_other_s_tasks() {
    let _alone = alone("the files of tasks of two processes");
    let folder = Folder::with_manifest(&manifest(""));
    let mut one = TestHost::in_folder(folder.clone());
    let mut other = TestHost::in_folder(folder.clone());
    let said = begin(&mut one, "say", json!({}));
    assert_eq!(once(&mut other, &said, &["completed"])["result"]["content"][0]["text"], "said");
    let asks = begin(&mut one, "multi_input", json!({}));
    once(&mut other, &asks, &["input_required"]);
    let responses = json!({"first": {"action": "accept", "content": {"name": "Ada"}}, "second": {"action": "decline"}});
    let taken = ask(&mut other, "tasks/update", json!({"taskId": asks, "inputResponses": responses}));
    assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
    let done = once(&mut one, &asks, &["completed", "failed"]);
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"), "{done}");
    assert_eq!(get(&mut other, &asks)["result"]["result"], done["result"]);
    let stopped = begin(&mut one, "slow_compute", json!({"seconds": 600}));
    ask(&mut other, "tasks/cancel", json!({"taskId": stopped}));
    once(&mut one, &stopped, &["cancelled"]);
    // Each of ten has a task, and one of them is killed: nobody misses what it answered.
    let mut hosts: Vec<TestHost> = (0..10).map(|_| TestHost::in_folder(folder.clone())).collect();
    let tasks: Vec<String> = hosts.iter_mut().map(|host| begin(host, "say", json!({}))).collect();
    for (host, task) in hosts.iter_mut().zip(&tasks) {
        once(host, task, &["completed"]);
    }
    let lost = begin(&mut hosts[4], "slow_compute", json!({"seconds": 600}));
    drop(hosts.remove(4));
    once(&mut hosts[0], &lost, &["failed"]);
    for (number, host) in hosts.iter_mut().enumerate() {
        for task in &tasks {
            assert_eq!(get(host, task)["result"]["status"], "completed", "{number}");
        }
    }
}

#[test]
fn tasks_are_bounded_in_number_size_and_life() {
    let lines = "[components.tasks.limits]\ntask_deadline = \"600ms\"\n[tasks]\ncaller_max = 3\nresult = \"32KiB\"\nttl = \"8s\"";
    let mut host = host(lines);
    let large = begin(&mut host, "large", json!({"bytes": 40_000}));
    let failed = once(&mut host, &large, &["completed", "failed"]);
    let text = failed["error"]["message"].as_str().unwrap_or_else(|| panic!("{failed}")).to_owned();
    assert!(text.starts_with("The result of the task has 40") && text.ends_with("at most 32768 are kept"), "{text}");
    let late = begin(&mut host, "slow_compute", json!({"seconds": 600}));
    let ended = once(&mut host, &late, &["completed", "failed"]);
    let text = ended["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("deadline exceeded: the call took longer than 600ms"), "{text}");
    // The third fits, the fourth does not.
    let mut replies = Vec::new();
    let until = Instant::now() + patience();
    loop {
        let reply = call(&mut host, "say", json!({}));
        if reply.get("error").is_some() {
            replies.push(reply);
            break;
        }
        assert!(Instant::now() < until, "there is no bound");
    }
    let text = replies[0]["error"]["message"].as_str().unwrap();
    assert_eq!(
        (code(&replies[0]), text.starts_with("This caller has as many tasks as it may")),
        (-32603, true),
        "{text}"
    );
    // What is over makes room.
    while get(&mut host, &large).get("error").is_none() {
        assert!(Instant::now() < until, "it is kept for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(code(&get(&mut host, &large)), -32602);
    let until = Instant::now() + patience();
    while call(&mut host, "say", json!({})).get("error").is_some() {
        assert!(Instant::now() < until, "there is no room again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ten_thousand_tasks_at_once_are_bounded_and_all_end() {
    const TASKS: usize = 10_000;
    let _alone = alone("the memory of ten thousand tasks");
    let lines =
        "[components.tasks.limits]\nqueue = 10_000\nqueue_wait = \"10m\"\n[tasks]\ncaller_max = 10_000\nttl = \"2h\"";
    let mut host = TestHost::with_manifest(
        &manifest(lines).replace("[components.tasks]\n", "[components.tasks]\ntask = \"0ms\"\n"),
    );
    host.still_works();
    let before = host.resident_bytes();
    let params = json!({"name": "greet", "arguments": {"name": "Ada"}, "_meta": declared()});
    let mut ids = std::collections::BTreeSet::new();
    // Sent in pieces, so that the host's answers are read.
    for _ in 0..TASKS / 100 {
        let started: Vec<Value> = (0..100).map(|_| host.start("tools/call", params.clone())).collect();
        for id in started {
            let reply = host.reply_to(&id);
            assert_eq!(reply["result"]["resultType"], "task", "{reply}");
            ids.insert(reply["result"]["taskId"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(ids.len(), TASKS);
    let grown = host.resident_bytes().saturating_sub(before);
    assert!(grown < 400 << 20, "ten thousand tasks took {grown} bytes");
    assert_eq!(code(&ask(&mut host, "tools/call", json!({"name": "greet", "arguments": {}}))), -32603, "one more");
    host.still_works();
    for id in &ids {
        let done = once(&mut host, id, &["completed", "failed"]);
        assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!", "{done}");
    }
}
