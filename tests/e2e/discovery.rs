//! `discovery = "search"`: the list that clients see, `find_tools`, and `call_tool` as the real
//! call to callers' rules, approvals, the audit, limits, progress and headers.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, TestHost, manifest_of};

/// A manifest of these fixtures whose clients search; `server` and `more` hold lines of `[server]`
/// and the rest of the text.
fn searched(fixtures: &[&str], server: &str, more: &str) -> String {
    let manifest = manifest_of(fixtures);
    format!("{}\n[server]\ndiscovery = \"search\"\n{server}\n{more}", manifest)
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn found(answer: &Value) -> Vec<&str> {
    names(answer["tools"].as_array().unwrap())
}

fn inner(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn a_client_of_each_revision_finds_and_calls_what_is_not_listed() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let pinned = "[components.good.tools.echo]\nlisted = true\n";
        let mut host = TestHost::recording(&searched(&["good", "loops"], "", pinned));
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let listed = host.list();
        assert_eq!(names(&listed), ["find_tools", "call_tool", "echo"], "{revision}");
        let answer = host.call("find_tools", json!({"query": "adding numbers"}));
        let text: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(found(&text)[0], "add", "{revision}: {text}");
        assert!(text["tools"][0]["inputSchema"]["properties"]["a"].is_object(), "{text}");
        if ["2025-06-18", "2025-11-25", MODERN_REVISION].contains(&revision) {
            assert_eq!(answer.structured(), &text);
            assert!(text["tools"][0]["outputSchema"].is_object() && text["tools"][0]["icons"].is_null(), "{text}");
        }
        let sum = host.call("call_tool", inner("add", json!({"a": 2, "b": 3})));
        assert!(sum.text().contains('5') && !sum.is_error(), "{revision}: {sum:?}");
        assert_eq!(host.call("add", json!({"a": 2, "b": 3})).text(), sum.text(), "its own name works as well");
        assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
        let _ = host.recorded("the real name", |record| record["event"] == "call.finished" && record["tool"] == "add");
        let calls: Vec<Value> = host.audit();
        assert!(calls.iter().all(|record| record["tool"] != "call_tool"), "{calls:?}");
    }
}

#[test]
fn over_http_headers_say_call_tool_and_everything_else_the_real_name() {
    let folder = Folder::with_manifest(&searched(&["good"], "", ""));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let found_ = host.ask(&Ask::call("find_tools", json!({"query": "give text back"}))).frame();
    assert_eq!(found(&found_["result"]["structuredContent"])[0], "echo", "{found_}");
    let call = Ask::call("call_tool", inner("echo", json!({"text": "hello"})));
    assert_eq!(host.ask(&call).frame()["result"]["content"][0]["text"], "hello");
    assert_eq!(host.ask(&call.with("mcp-name", "echo")).error(), (400, -32020), "the header repeats the body");
    let _ = host
        .process()
        .recorded("the real name", |record| record["event"] == "call.finished" && record["tool"] == "echo");
    let session = host.session("2025-11-25");
    let legacy = json!({"name": "call_tool", "arguments": inner("echo", json!({"text": "there"}))});
    let legacy = host.ask(&Ask::request(7, "tools/call", legacy).of_session(&session));
    assert_eq!(legacy.frame()["result"]["content"][0]["text"], "there", "{legacy:?}");
}

#[test]
fn a_caller_finds_and_calls_what_it_may_and_learns_of_nothing_else() {
    let rules = "[http]\ntokens = \"tokens.jsonl\"\n[callers.tom]\ntools = [\"echo\", \"slow\"]\n";
    let folder = Folder::with_manifest(&searched(&["good"], "", rules));
    let token = format!("Bearer {}", Command::in_folder(&folder, &["token", "new", "tom"]).run().succeeded().trim());
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let ask =
        |tool: &str, arguments: Value| host.ask(&Ask::call(tool, arguments).with("authorization", &token)).frame();
    let every_word = "add small numbers text back sleeps steps progress clocks embed request echo tool";
    let answer = ask("find_tools", json!({"query": every_word, "limit": 20}));
    let answer = &answer["result"]["structuredContent"];
    let mut seen = found(answer);
    seen.sort_unstable();
    assert_eq!((seen, &answer["matched"]), (vec!["echo", "slow"], &json!(2)), "{answer}");
    let [hidden, unknown] = ["add", "nowhere"].map(|tool| {
        let answer = ask("call_tool", inner(tool, json!({})));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().replace(tool, "TOOL")
    });
    assert_eq!(hidden, unknown, "a hidden tool is told from an unknown one by nothing");
    assert!(hidden.starts_with("Unknown tool: TOOL"), "{hidden}");
    assert_eq!(ask("call_tool", inner("echo", json!({"text": "x"})))["result"]["content"][0]["text"], "x");
}

#[test]
fn a_tool_for_views_alone_is_neither_found_nor_called_by_call_tool() {
    let for_views = "[components.good.tools.echo]\nvisibility = [\"app\"]\n";
    let mut host = TestHost::with_manifest(&searched(&["good"], "", for_views));
    let answer = host.call("find_tools", json!({"query": "echo gives text back", "limit": 20}));
    assert!(!found(answer.structured()).contains(&"echo"), "{answer:?}");
    let described = host.list()[0]["description"].as_str().unwrap().to_owned();
    assert!(!described.contains("echo"), "{described}");
    let by_search = host.call("call_tool", inner("echo", json!({"text": "x"}))).error_text().to_owned();
    assert!(by_search.starts_with("Unknown tool: echo"), "{by_search}");
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x", "a view calls it by its name");
}

#[test]
fn a_person_confirms_the_real_call_in_both_eras() {
    let manifest =
        searched(&["good"], "", "").replace("[components.good]\n", "[components.good]\napproval = \"always\"\n");
    let mut host = TestHost::recording(&manifest);
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let id = host.start_call("call_tool", inner("echo", json!({"text": "hello"})));
    let asked = host.next_of("elicitation/create");
    let message = "Allow the tool \"echo\" of the component \"good\" to run?\nArguments: {\"text\":\"hello\"}";
    assert_eq!(asked["params"]["message"], message);
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}}));
    assert_eq!(host.answer_to(&id).text(), "hello");

    let mut host = TestHost::recording(&manifest);
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let call = |more: Value, text: &str| {
        let mut params = json!({"name": "call_tool", "arguments": inner("echo", json!({"text": text})), "_meta": meta});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let asked = host.request("tools/call", call(json!({}), "hello"));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let accepted = json!({
        "requestState": asked["result"]["requestState"],
        "inputResponses": {"toolcell.approval": {"action": "accept"}},
    });
    let other = host.request("tools/call", call(accepted.clone(), "other"));
    assert_eq!(other["error"]["code"], -32602, "the state is of the real arguments: {other}");
    let done = host.request("tools/call", call(accepted, "hello"));
    assert_eq!(done["result"]["content"][0]["text"], "hello", "{done}");
}

#[test]
fn progress_cancellation_and_limits_are_those_of_the_real_tool() {
    let limits = "[components.good.tools.echo.limits]\nrate = \"1/min\"\n";
    let mut host = TestHost::recording(&searched(&["good", "loops"], "", limits));
    let mut params = json!({"name": "call_tool", "arguments": inner("slow", json!({"steps": 3, "step_ms": 1}))});
    params["_meta"] = json!({"progressToken": "p"});
    let id = host.start("tools/call", params);
    assert_eq!(host.next_of("notifications/progress")["params"]["progressToken"], "p");
    assert!(!host.answer_to(&id).is_error());
    let id = host.start_call("call_tool", inner("nap_forever", json!({})));
    let _ = host.recorded("its start", |record| record["event"] == "call.started" && record["tool"] == "nap_forever");
    host.cancel(&id);
    let ended = |record: &Value| record["event"] == "call.finished" && record["tool"] == "nap_forever";
    assert_eq!(host.recorded("its end", ended)["outcome"], "cancelled");
    assert_eq!(host.call("call_tool", inner("echo", json!({"text": "x"}))).text(), "x");
    assert!(host.call("echo", json!({"text": "x"})).is_error(), "both ways draw on one rate");
}

#[test]
fn arguments_that_fit_no_tool_are_answered_for_the_model() {
    let mut host = TestHost::with_manifest(&searched(&["good"], "find_query = \"64B\"\nfind_results = 3", ""));
    let long = "a".repeat(65);
    for (tool, arguments, says) in [
        ("call_tool", json!({}), "- /name must be the name of a tool, a string"),
        ("call_tool", json!({"name": "echo", "args": {}}), "- there may be /name and /arguments, and no /args"),
        ("call_tool", json!({"name": "echo", "arguments": "{}"}), "/arguments must be an object"),
        ("call_tool", json!({"name": 5}), "input schema of call_tool"),
        ("call_tool", inner("call_tool", json!({})), "Unknown tool: call_tool"),
        ("call_tool", inner("find_tools", json!({"query": "x"})), "Unknown tool: find_tools"),
        ("call_tool", inner("echo", json!({"text": 5})), "input schema of echo"),
        ("find_tools", json!({}), "query"),
        ("find_tools", json!({"query": ""}), "/query"),
        ("find_tools", json!({"query": "x", "limit": 4}), "/limit"),
        ("find_tools", json!({"query": "x", "limit": 0}), "/limit"),
        ("find_tools", json!({"query": long}), "64"),
        ("find_tools", json!({"query": "é".repeat(33)}), "(limit \"find_query\")"),
        ("find_tools", json!({"query": "x".repeat(100_000)}), "(limit \"find_query\")"),
    ] {
        let answer = host.call(tool, arguments.clone());
        assert!(answer.error_text().contains(says), "{tool} {arguments:.80}: {}", answer.error_text());
    }
    assert_eq!(host.call("call_tool", json!({"name": "echo", "arguments": {"text": "x"}})).text(), "x");
    let none = host.call("find_tools", json!({"query": "zeppelin"}));
    assert_eq!(none.structured(), &json!({"tools": [], "matched": 0}));
}

#[test]
fn answers_and_the_texts_that_are_searched_are_bounded() {
    let mut host =
        TestHost::with_manifest(&searched(&["good", "loops"], "find_results = 2\nfind_output = \"1KiB\"", ""));
    let many = host.call("find_tools", json!({"query": "sleeps computes waits forever", "limit": 2}));
    assert_eq!(found(many.structured()).len(), 2, "{many:?}");
    assert!(many.structured()["matched"].as_u64().unwrap() > 2, "{many:?}");
    let spacious = "[components.good.tools.echo]\ndescription = \"DESCRIPTION\"\n";
    let words = format!("{} zeppelin", "text ".repeat(300));
    let spacious = spacious.replace("DESCRIPTION", words.trim());
    let mut host = TestHost::with_manifest(&searched(&["good"], "find_output = \"1KiB\"", &spacious));
    let large = host.call("find_tools", json!({"query": "zeppelin"}));
    assert_eq!(large.structured(), &json!({"tools": [], "matched": 1, "tooLarge": 1}));
    let mut host = TestHost::with_manifest(&searched(&["good"], "find_text = \"1KiB\"", &spacious));
    assert_eq!(host.call("find_tools", json!({"query": "zeppelin"})).structured()["matched"], 0);
}

#[test]
fn tools_of_these_names_are_refused_while_clients_search() {
    for (tool, discovery, refused) in
        [("find_tools", "search", true), ("call_tool", "search", true), ("find_tools", "list", false)]
    {
        let program = "[components.p]\nsource = \"components/program.wasm\"\n";
        let tool_of = format!("[components.p.tools.{tool}]\ndescription = \"x\"\nargs = [\"keep\"]\n");
        let manifest = format!("version = 1\n[server]\ndiscovery = \"{discovery}\"\n{program}{tool_of}");
        let folder = Folder::with_manifest(&manifest);
        let checked = Command::in_folder(&folder, &["check"]).run();
        assert_eq!(!checked.status.success(), refused, "{checked:?}");
        let says = format!("component \"p\" has a tool \"{tool}\", and with discovery = \"search\" the host has one");
        assert_eq!(checked.stderr.contains(&says), refused, "{checked:?}");
    }
    let listed = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\nlisted = true\n";
    let refused = Command::in_folder(&Folder::with_manifest(listed), &["check"]).run();
    assert!(!refused.status.success() && refused.stderr.contains("all tools are listed"), "{refused:?}");
}

#[test]
fn clients_hear_of_a_change_only_if_the_list_that_they_see_changes() {
    let manifest = searched(&["good"], "find_description = \"Finds a tool.\"", "");
    let mut host = TestHost::with_manifest(&manifest);
    host.initialize("2025-11-25");
    let listed = host.list();
    assert_eq!(names(&listed), ["find_tools", "call_tool"]);
    let said = listed[0]["description"].as_str().unwrap();
    assert!(said.contains("Finds a tool.") && !said.contains("good"), "{said}");
    let more = manifest.replace("[server]", "[components.loops]\nsource = \"components/loops.wasm\"\n[server]");
    host.folder().write("components/loops.wasm", toolcell_tests::fixture_bytes("loops"));
    host.folder().write("toolcell.toml", &more);
    host.will_say("generation 2");
    let found_now = host.call("find_tools", json!({"query": "nap"}));
    assert_eq!(found(found_now.structured()), ["nap_forever"]);
    assert!(host.kept().iter().all(|frame| frame["method"] != "notifications/tools/list_changed"));
    host.folder().write("toolcell.toml", more.replace("loops.wasm\"\n", "loops.wasm\"\nlisted = true\n"));
    host.next_of("notifications/tools/list_changed");
    assert!(names(&host.list()).contains(&"nap_forever"));
}

#[test]
fn find_tools_says_what_is_behind_it_and_clients_hear_of_it() {
    let manifest = searched(&["good"], "", "");
    let mut host = TestHost::with_manifest(&manifest);
    host.initialize("2025-11-25");
    let said = host.list()[0]["description"].as_str().unwrap().to_owned();
    assert!(said.contains("good") && !said.contains("loops"), "{said}");
    let more = manifest.replace("[server]", "[components.loops]\nsource = \"components/loops.wasm\"\n[server]");
    host.folder().write("components/loops.wasm", toolcell_tests::fixture_bytes("loops"));
    host.folder().write("toolcell.toml", &more);
    host.next_of("notifications/tools/list_changed");
    let said = host.list()[0]["description"].as_str().unwrap().to_owned();
    assert!(said.contains("good") && said.contains("loops"), "{said}");
}
