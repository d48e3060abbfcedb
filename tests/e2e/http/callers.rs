//! Rules for callers: the tools that each sees and calls, the rates, and the effect of a changed
//! manifest on each.
//!
//! Promise: a caller learns of its own tools only.
//! Promise: a withdrawn right is gone at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{
    Command, Folder, LIST_CHANGED, Saving, TestHost, alone, fixture_bytes, is_told_to_wait, manifest_of, patience,
};

/// The beginning of every row: three callers with tokens, and rules for them.
const RULES: &str = "
[http]
tokens = \"tokens.jsonl\"
[callers.ann]
tools = [\"*\"]
[callers.adders]
scopes = [\"add\"]
tools = [\"add\", \"good/request\"]
[callers.talkers]
scopes = [\"talk\"]
tools = [\"echo\"]
";

/// A folder with this manifest and a token for each of these callers, with their scopes.
fn folder(manifest: &str, callers: &[(&str, &[&str])]) -> (Folder, Vec<String>) {
    let folder = Folder::with_manifest(manifest);
    let token = |(name, scopes): &(&str, &[&str])| {
        let mut arguments = vec!["token", "new", *name];
        scopes.iter().for_each(|scope| arguments.extend(["--scope", *scope]));
        format!("Bearer {}", Command::in_folder(&folder, &arguments).run().succeeded().trim())
    };
    let tokens = callers.iter().map(token).collect();
    (folder, tokens)
}

fn serving(folder: Folder) -> WebHost {
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

fn by(token: &str, ask: Ask) -> Ask {
    ask.with("authorization", token)
}

fn listed(host: &WebHost, token: &str) -> (Vec<String>, Value) {
    let reply = host.ask(&by(token, Ask::modern(1, "tools/list", json!({}))));
    let result = &reply.frame()["result"];
    let names = result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), result["cacheScope"].clone())
}

fn echo(host: &WebHost, token: &str) -> Reply {
    host.ask(&by(token, Ask::call("echo", json!({"text": "x"}))))
}

/// A stream that tells a caller of changes, after its acknowledgement.
fn subscribed(host: &WebHost, token: &str) -> Wire {
    let mut wire = host.connect();
    wire.send(&by(token, Ask::listen(5)).bytes());
    assert_eq!(wire.head().status(), 200);
    assert_eq!(wire.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    wire
}

#[test]
fn each_caller_lists_and_calls_its_own_tools_and_others_are_unknown() {
    let callers: [(&str, &[&str]); 5] =
        [("ann", &[]), ("adam", &["add"]), ("ada", &["talk", "add"]), ("tom", &["talk", "x"]), ("eve", &["x"])];
    let (folder, tokens) = folder(&format!("{}{RULES}", manifest_of(&["good", "nosy"])), &callers);
    let host = serving(folder);
    let (all, scope) = listed(&host, &tokens[0]);
    assert!(all.len() > 8 && scope == "private", "{all:?} {scope}");
    for (token, sees) in tokens[1..].iter().zip([&["add", "request"][..], &["echo", "add", "request"], &["echo"], &[]])
    {
        assert_eq!(listed(&host, token), (sees.iter().map(ToString::to_string).collect(), json!("private")));
        for tool in &all {
            let reply = host.ask(&by(token, Ask::call(tool, json!({"never": "fits"}))));
            let hidden = reply.frame()["error"]["message"] == format!("Unknown tool: {tool}");
            assert_eq!(hidden, !sees.contains(&tool.as_str()), "{tool}: {reply:?}");
        }
        let hidden = "clocks";
        let unknown = "nowhere";
        let [hidden, unknown] = [hidden, unknown].map(|tool| {
            let reply = host.ask(&by(token, Ask::call(tool, json!({}))));
            (reply.error(), reply.frame()["error"]["message"].as_str().unwrap().replace(tool, "TOOL"))
        });
        assert_eq!(hidden, unknown, "a hidden tool is told from an unknown one by nothing");
        assert_eq!(hidden, ((200, -32602), "Unknown tool: TOOL".to_owned()));
    }
    assert_eq!(echo(&host, &tokens[3]).frame()["result"]["content"][0]["text"], "x");
    // Behind a wall, calls whose arguments do not fit have begun as well.
    let echoes = |record: &Value| record["event"] == "call.finished" && record["tool"] == "echo";
    let ended = |record: &Value| echoes(record) && record["outcome"] == "ok";
    let end = host.process().recorded("its end", ended);
    let of_end = |record: &Value| ["id", "replica"].iter().all(|member| record[member] == end[member]);
    let started = |record: &Value| record["event"] == "call.started" && of_end(record);
    assert_eq!(host.process().recorded("a call", started)["caller"], "tom");
}

#[test]
fn a_legacy_session_lists_and_calls_what_its_caller_sees() {
    let (folder, tokens) = folder(&format!("{}{RULES}", manifest_of(&["good"])), &[("tom", &["talk"])]);
    let host = serving(folder);
    let token = &tokens[0];
    let opened = host.ask(&by(token, Ask::initialize("2025-11-25")));
    let session = opened.field("mcp-session-id").unwrap().to_owned();
    let ask = |method: &str, params: Value| host.ask(&by(token, Ask::request(3, method, params)).of_session(&session));
    let list = ask("tools/list", json!({})).frame();
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{list}");
    let hidden = ask("tools/call", json!({"name": "add", "arguments": {}})).frame();
    assert_eq!((&hidden["error"]["code"], &hidden["error"]["message"]), (&json!(-32602), &json!("Unknown tool: add")));
}

#[test]
fn pages_are_those_of_what_the_caller_sees() {
    let manifest = format!("{}\n[server]\npage_size = 1\n{RULES}", manifest_of(&["good"]));
    let (folder, tokens) = folder(&manifest, &[("ada", &["talk", "add"]), ("adam", &["add"])]);
    let host = serving(folder);
    let page = |token: &str, params: Value| host.ask(&by(token, Ask::modern(1, "tools/list", params))).frame();
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let frame = page(&tokens[0], params);
        names.push(frame["result"]["tools"][0]["name"].clone());
        let Some(cursor) = frame["result"]["nextCursor"].as_str() else { break };
        let other = page(&tokens[1], json!({"cursor": cursor}));
        assert_eq!(other["error"]["code"], -32602, "another caller's list has another cursor: {other}");
        params = json!({"cursor": cursor});
    }
    assert_eq!(names, ["echo", "add", "request"]);
}

#[test]
fn a_caller_calls_no_oftener_and_no_more_at_once_than_its_rule_says() {
    let rules = "[http]\ntokens = \"tokens.jsonl\"\n[callers.default]\ntools = [\"*\"]\nrate = \"3/h\"\n";
    let (folder, tokens) = folder(&format!("{}{rules}", manifest_of(&["good"])), &[("ann", &[]), ("bob", &[])]);
    let host = serving(folder);
    for token in &tokens {
        // All tools count together.
        let began = Instant::now();
        for tool in ["request", "clocks", "request"] {
            let reply = host.ask(&by(token, Ask::call(tool, json!({})))).frame();
            assert_eq!(reply["result"]["isError"], false, "{reply}");
        }
        let reply = echo(&host, token).frame();
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        let said = "too many calls: more than 3/h by this caller (\"rate\" in [callers]); try again in ";
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(is_told_to_wait(text, said, 20 * 60, began), "{text}");
    }
}

#[test]
fn calls_past_a_callers_places_are_refused_and_others_go_on() {
    let rules = "[http]\ntokens = \"tokens.jsonl\"\n[callers.default]\ntools = [\"*\"]\nconcurrency = 1\n";
    let manifest = manifest_of(&["good", "loops"]).replace("fuel = ", "queue = 0\nfuel = ");
    let manifest = format!("{}{rules}", manifest.replace("deadline = \"5s\"", "deadline = \"10m\""));
    let (folder, tokens) = folder(&manifest, &[("ann", &[]), ("bob", &[])]);
    let host = serving(folder);
    let mut busy = host.connect();
    busy.send(&by(&tokens[0], Ask::call("sleep_hour", json!({}))).bytes());
    host.begins("sleep_hour");
    let reply = echo(&host, &tokens[0]).frame();
    let said = "busy: 1 calls of this caller run and 0 wait; try again (\"concurrency\" or \"concurrency_shared\" in [callers])";
    assert_eq!(reply["result"]["content"][0]["text"], said, "{reply}");
    assert_eq!(echo(&host, &tokens[1]).frame()["result"]["content"][0]["text"], "x");
    busy.stream().shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
    // A place that replicas share comes free a moment after the record.
    let end = Instant::now() + patience();
    while echo(&host, &tokens[0]).frame()["result"]["content"][0]["text"] != "x" {
        assert!(Instant::now() < end, "the place never came free");
    }
}

#[test]
fn changed_rules_hold_for_the_next_request_and_only_those_concerned_are_told() {
    let manifest = manifest_of(&["good"]);
    let rules = RULES;
    let (folder, tokens) =
        folder(&format!("{manifest}{rules}"), &[("ann", &[]), ("adam", &["add"]), ("tom", &["talk"])]);
    let host = serving(folder);
    let mut told = tokens.iter().map(|token| subscribed(&host, token)).collect::<Vec<_>>();
    assert_eq!(listed(&host, &tokens[2]).0, ["echo"]);
    let changed = rules.replace("tools = [\"echo\"]", "tools = [\"echo\", \"clocks\"]");
    host.process().folder().save(Saving::RenamedOver, "toolcell.toml", format!("{manifest}{changed}"));
    assert_eq!(told[2].event().unwrap()["method"], LIST_CHANGED);
    assert_eq!(listed(&host, &tokens[2]).0, ["echo", "clocks"]);
    assert_eq!(host.ask(&by(&tokens[2], Ask::call("clocks", json!({})))).frame()["result"]["isError"], false);
    let replaced = host.process().recorded("a reload", |record| record["event"] == "catalog.replaced");
    assert!(replaced["summary"].as_str().unwrap().contains("rules for callers changed: talkers"), "{replaced}");
    // For the other callers nothing changed: their next notification is about another change.
    let changed =
        format!("{manifest}{}", changed.replace("[\"*\"]", "[]").replace("[\"add\", \"good/request\"]", "[]"));
    host.process().folder().save(Saving::RenamedOver, "toolcell.toml", &changed);
    for wire in &mut told[..2] {
        assert_eq!(wire.event().unwrap()["method"], LIST_CHANGED);
    }
    for token in &tokens[..2] {
        assert_eq!(listed(&host, token).0, [""; 0]);
    }
    let ended = host.into_process();
    ended.terminate();
    for wire in &mut told {
        assert_eq!(wire.event().unwrap()["result"]["resultType"], "complete", "one notification each");
    }
}

#[test]
fn each_caller_has_a_namespace_of_its_own_in_a_store() {
    let manifest = manifest_of(&["reach_state"]);
    let name = "reach_state";
    let store = format!("\n[components.{name}.keyvalue]\nper_caller = true\n[http]\ntokens = \"tokens.jsonl\"\n");
    let (folder, tokens) = folder(&format!("{manifest}{store}"), &[("ann", &[]), ("bob", &[])]);
    let host = serving(folder);
    let did = |token: &str, op: Value| {
        let frame = host.ask(&by(token, Ask::call("keyvalue", op))).frame();
        frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{frame}")).to_owned()
    };
    let get = json!({"op": "get", "key": "a"});
    let set = json!({"op": "set", "key": "a", "value": "of ann"});
    let none = did(&tokens[1], get.clone());
    did(&tokens[0], set);
    assert!(did(&tokens[0], get.clone()).contains("of ann"));
    assert_eq!(did(&tokens[1], get), none, "to others it is not there");
}

#[test]
fn over_http_without_tokens_everybody_is_anyone() {
    for rule in ["anyone", "default"] {
        let host = WebHost::with_manifest(&format!("{}[callers.{rule}]\ntools = [\"echo\"]\n", manifest_of(&["good"])));
        let list = host.ask(&Ask::modern(1, "tools/list", json!({}))).frame();
        assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{rule}: {list}");
        assert_eq!(host.ask(&Ask::call("add", json!({}))).error(), (200, -32602), "{rule}");
        host.still_works();
    }
}

#[test]
fn over_stdio_the_caller_is_local() {
    let _alone = alone("its own stdio");
    let manifest = |rules: &str| format!("{}{rules}", manifest_of(&["good"]));
    let mut host =
        TestHost::with_manifest(&manifest("[http]\ntokens = \"tokens.jsonl\"\n[callers.ann]\ntools = [\"echo\"]\n"));
    assert!(host.list().len() > 5, "whoever starts it may everything, unless a rule says otherwise");
    let mut host = TestHost::with_manifest(&manifest("[callers.local]\ntools = [\"echo\"]\n"));
    assert_eq!(host.list().len(), 1);
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
    let hidden = host.request("tools/call", json!({"name": "add", "arguments": {}}));
    assert_eq!(hidden["error"]["message"], "Unknown tool: add");
}

#[test]
fn what_a_caller_sees_can_be_asked_without_being_it() {
    let folder = Folder::with_manifest(&format!("{}{RULES}", manifest_of(&["good"])));
    let sees = |arguments: &[&str]| {
        let listed = Command::in_folder(&folder, &[&["list", "--json"], arguments].concat()).run().json();
        let tools = listed["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["definition"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = sees(&[]);
    assert_eq!(sees(&["--caller", "ann"]), all);
    assert_eq!(sees(&["--caller", "x", "--scope", "talk", "--scope", "add"]), ["echo", "add", "request"]);
    assert_eq!(sees(&["--caller", "x"]), [""; 0]);
    let table = Command::in_folder(&folder, &["list", "--caller", "x", "--scope", "talk"]).run();
    assert_eq!(table.succeeded().lines().count(), 1);
}

#[test]
fn a_rule_for_a_tool_that_there_is_not_is_an_error_with_its_place() {
    let folder = Folder::with_manifest(&format!("{}[callers.local]\ntools = [\"ecoh\"]\n", manifest_of(&["good"])));
    let checked = Command::in_folder(&folder, &["check"]).run();
    let said = checked.failed_with(1);
    for held in ["callers::unknown_tool", "there is no tool \"ecoh\"", "tools = [\"ecoh\"]", "did you mean \"echo\"?"] {
        assert!(said.contains(held), "no {held:?} in\n{said}");
    }
}

/// Asserts that the host lists this many tools. Replicas see a file that was changed by another a
/// moment later.
fn lists(host: &mut TestHost, tools: usize) {
    let end = Instant::now() + patience();
    let mut in_a_row = 0;
    while in_a_row < host.replica_count() {
        let listed = host.list().len();
        in_a_row = if listed == tools { in_a_row + 1 } else { 0 };
        assert!(in_a_row > 0 || host.replica_count() > 1 && Instant::now() < end, "{listed} tools\n{}", host.said());
    }
}

/// Waits until a component is quarantined, at each replica. One that has not seen the change would
/// take an approval for one of what it has.
fn is_quarantined(host: &TestHost) {
    let end = Instant::now() + patience();
    let quarantines = || host.audit().iter().filter(|record| record["event"] == "component.quarantined").count();
    while quarantines() < host.replica_count() {
        assert!(Instant::now() < end, "no quarantine");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_may_call_is_pinned_and_a_caller_more_is_quarantined() {
    let manifest = |rules: &str| format!("{}{rules}", manifest_of(&["good"]));
    let rule = |tools: &str| format!("[callers.default]\ntools = [{tools}]\n[callers.local]\ntools = [{tools}]\n");
    let folder = Folder::with_manifest(&manifest(&rule("\"echo\", \"add\"")));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    assert!(folder.read("toolcell.lock").contains("be called by everybody else"));
    folder.write("toolcell.toml", manifest(&rule("\"echo\", \"add\", \"clocks\"")));
    let differs = Command::in_folder(&folder, &["diff"]).run();
    assert!(differs.stdout.contains("tool clocks may now: be called by the name local"), "{differs:?}");
    folder.write("toolcell.toml", manifest(&rule("\"echo\", \"add\"")));
    let mut host = TestHost::recording_with(folder, &["--locked"]);
    assert_eq!(host.list().len(), 2);
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest(&rule("\"echo\", \"add\", \"clocks\"")));
    is_quarantined(&host);
    assert_eq!(host.list().len(), 2, "a caller more waits for an approval");
    let approved = Command::in_folder(host.folder(), &["approve", "good"]).run();
    let _ = approved.succeeded();
    lists(&mut host, 3);
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest(&rule("\"echo\"")));
    let _ = host.recorded("less", |record| {
        record["event"] == "catalog.replaced"
            && record["summary"].as_str().unwrap().contains("rules for callers")
            && record["generation"].as_u64() >= Some(3)
    });
    lists(&mut host, 1);
}

#[test]
fn a_right_is_gone_before_anything_is_loaded_and_back_where_the_manifest_is_refused() {
    let _alone = alone("the moment at which one process has read its manifest");
    let good = format!("{}{RULES}", manifest_of(&["good"]));
    let (folder, tokens) = folder(&good, &[("ann", &[]), ("tom", &["talk"])]);
    let host = serving(folder);
    let [ann, tom] = [&tokens[0], &tokens[1]];
    assert_eq!(echo(&host, ann).frame()["result"]["content"][0]["text"], "x");
    // Its list never ends, so the limits of loading end it, and the manifest is refused.
    let spins = "[components.spins]\nsource = \"components/list_spins.wasm\"\n\
                 limits = { fuel = 20_000_000_000, deadline = \"20s\" }\n";
    let less = good.replace("[callers.ann]\ntools = [\"*\"]", "[callers.ann]\ntools = [\"add\"]") + spins;
    host.process().folder().write("components/list_spins.wasm", fixture_bytes("list_spins"));
    host.process().folder().save(Saving::RenamedOver, "toolcell.toml", less);
    let until = |what: &str, text: &Value, member: &str| {
        let end = Instant::now() + patience();
        while echo(&host, ann).frame().pointer(member) != Some(text) {
            assert!(Instant::now() < end, "{what}");
        }
    };
    until("the right is not gone", &json!("Unknown tool: echo"), "/error/message");
    assert_eq!(echo(&host, tom).frame()["result"]["content"][0]["text"], "x", "who keeps a right has it meanwhile");
    until("the right does not come back", &json!("x"), "/result/content/0/text");
    let refused = |record: &Value| record["event"] == "catalog.refused";
    assert_eq!(host.process().recorded("the refusal", refused)["generation"], 1);
    assert_eq!(host.process().status()["generation"], 1);
}
