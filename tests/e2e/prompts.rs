//! Prompts, those of the manifest and those of components, and completion of their arguments.

use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{
    Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, Saving, TestHost, is_told_to_wait, manifest_of,
};

/// Prompts of the manifest.
const TEXTS: &str = r#"
[prompts.review]
title = "Code review"
description = "Looks for mistakes."
text = "Review this {language}: {code}"
[prompts.review.arguments.code]
description = "The code."
required = true
[prompts.review.arguments.language]
values = ["Rust", "Ruby", "Python"]
[prompts.greet]
file = "greet.md"
"#;

fn folder(more: &str) -> Folder {
    let folder = Folder::with_manifest(&format!("{}{TEXTS}{more}", manifest_of(&["good"])));
    folder.write("greet.md", "Good morning.\n");
    folder
}

fn names(reply: &Value) -> Vec<&str> {
    let prompts = reply["result"]["prompts"].as_array().unwrap_or_else(|| panic!("no prompts in {reply}"));
    prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect()
}

fn said(reply: &Value) -> &str {
    reply["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

fn get(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn completing(prompt: &str, argument: &str, value: &str) -> Value {
    json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": value}})
}

#[test]
fn a_prompt_of_the_manifest_is_listed_and_got_in_every_revision() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::in_folder(folder(""));
        let greeting = match revision {
            MODERN_REVISION => host.request("server/discover", json!({})),
            legacy => host.initialize(legacy),
        };
        let capabilities = &greeting.get("result").unwrap_or(&greeting)["capabilities"];
        assert_eq!(capabilities["prompts"], json!({"listChanged": true}), "{revision} {greeting}");
        assert_eq!(capabilities["completions"], json!({}), "{revision} {greeting}");
        let listed = host.request("prompts/list", json!({}));
        assert_eq!(names(&listed), ["review", "greet"], "{revision}");
        let review = &listed["result"]["prompts"][0];
        assert_eq!(review["description"], "Looks for mistakes.");
        assert_eq!(review["arguments"][0], json!({"name": "code", "description": "The code.", "required": true}));
        assert_eq!(review.get("title").is_some(), revision >= "2025-06-18", "{revision} {review}");
        let got = host.request("prompts/get", get("review", json!({"code": "{language}", "language": "Rust"})));
        assert_eq!(said(&got), "Review this Rust: {language}", "{revision}: what is put in is not looked at");
        assert_eq!(got["result"]["messages"][0]["role"], "user");
        assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Good morning.\n");
        for (params, message) in [
            (get("review", json!({})), "Missing argument of the prompt review: code"),
            (get("review", json!({"code": 7})), "params.arguments.code must be a string"),
            (get("review", json!({"code": "", "colour": ""})), "Unknown argument of the prompt review: colour"),
            (get("nothing", json!({})), "Unknown prompt: nothing"),
            (json!({}), "params.name must be a string"),
        ] {
            let error = host.request("prompts/get", params)["error"].clone();
            assert_eq!(error, json!({"code": -32602, "message": message}), "{revision}");
        }
        let call = host.request("tools/call", json!({"name": "prompt/review", "arguments": {"code": "x"}}));
        assert_eq!(call["error"]["message"], "Unknown tool: prompt/review", "a prompt is no tool");
        if revision == MODERN_REVISION {
            let result = &listed["result"];
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("public")), "{listed}");
        }
    }
}

#[test]
fn without_prompts_their_methods_do_not_exist() {
    let mut host = TestHost::serving(&["good"]);
    let greeting = host.initialize("2025-11-25");
    assert_eq!(greeting["result"]["capabilities"].get("prompts"), None, "{greeting}");
    for method in ["prompts/list", "prompts/get", "completion/complete"] {
        assert_eq!(host.request(method, json!({}))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn prompts_are_paged_and_told_of_over_http() {
    let pages = manifest_of(&["good"]).replace("version = 1\n", "version = 1\n[server]\npage_size = 1\n");
    let folder = Folder::with_manifest(&format!("{pages}{TEXTS}"));
    folder.write("greet.md", "Hello.");
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let first = host.ask(&Ask::modern(1, "prompts/list", json!({}))).frame();
    assert_eq!(names(&first), ["review"]);
    let cursor = first["result"]["nextCursor"].as_str().unwrap().to_owned();
    let second = host.ask(&Ask::modern(2, "prompts/list", json!({"cursor": cursor}))).frame();
    assert_eq!((names(&second), second["result"].get("nextCursor")), (vec!["greet"], None));
    let wrong = host.ask(&Ask::modern(3, "tools/list", json!({"cursor": cursor}))).frame();
    assert_eq!(wrong["error"]["code"], -32602, "a cursor is of one list: {wrong}");
    let params = get("review", json!({"code": "x"}));
    let named = Ask::modern(4, "prompts/get", params.clone()).with("mcp-name", "review");
    assert_eq!(said(&host.ask(&named).frame()), "Review this : x");
    let other = Ask::modern(5, "prompts/get", params).with("mcp-name", "greet");
    assert_eq!(host.ask(&other).error(), (400, -32020), "the header is another prompt");
}

#[test]
fn a_changed_prompt_is_told_and_a_changed_file_is_read_again() {
    let mut host = TestHost::in_folder(folder(""));
    host.initialize("2025-11-25");
    host.folder().save(Saving::RenamedOver, "greet.md", "Good evening.\n");
    let _ = host.reload();
    assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Good evening.\n");
    let manifest = host.folder().read("toolcell.toml").replace("title = \"Code review\"\n", "");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest);
    let told = host.next_of("notifications/prompts/list_changed");
    assert!(told.get("params").is_none(), "{told}");
    host.folder().save(Saving::RenamedOver, "greet.md", "{who}");
    let failed = host.reload();
    assert!(failed.to_string().contains("has no such argument"), "{failed}");
    assert_eq!(
        said(&host.request("prompts/get", json!({"name": "greet"}))),
        "Good evening.\n",
        "the old one serves on"
    );
}

#[test]
fn the_list_is_empty_once_the_last_prompt_is_gone() {
    for revision in ["2025-11-25", MODERN_REVISION] {
        let mut host = TestHost::in_folder(folder(""));
        if revision == MODERN_REVISION {
            let _ = host.start("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
            host.next_of("notifications/subscriptions/acknowledged");
        } else {
            host.initialize(revision);
        }
        host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest_of(&["good"]));
        host.next_of("notifications/prompts/list_changed");
        assert_eq!(names(&host.request("prompts/list", json!({}))), [""; 0], "{revision}");
        let gone = host.request("prompts/get", json!({"name": "greet"}));
        assert_eq!(gone["error"]["code"], -32602, "{revision} {gone}");
        let params = completing("review", "language", "R");
        assert_eq!(host.request("completion/complete", params)["error"]["code"], -32602, "{revision}");
    }
}

#[test]
fn a_modern_client_hears_of_the_first_prompt() {
    let mut host = TestHost::with_manifest(&manifest_of(&["good"]));
    let _ = host.start("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
    host.next_of("notifications/subscriptions/acknowledged");
    host.folder().write("greet.md", "Good morning.\n");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", format!("{}{TEXTS}", manifest_of(&["good"])));
    host.next_of("notifications/prompts/list_changed");
    assert_eq!(names(&host.request("prompts/list", json!({}))), ["review", "greet"]);
}

#[test]
fn a_modern_client_hears_of_prompts_where_it_asked_for_that() {
    let mut host = TestHost::in_folder(folder(""));
    let _ = host.start("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
    let acknowledged = host.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"promptsListChanged": true}));
    let manifest = host.folder().read("toolcell.toml").replace("title = \"Code review\"\n", "");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest);
    let told = host.next_of("notifications/prompts/list_changed");
    assert!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].is_number(), "{told}");
}

#[test]
fn each_prompt_that_is_got_is_recorded_and_counts_against_its_rate() {
    let manifest = manifest_of(&["good"]).replace("rate = \"1000000/s\"", "rate = \"2/h\"\narguments = \"64B\"");
    let folder = Folder::with_manifest(&format!("{manifest}{TEXTS}"));
    folder.write("greet.md", "Hello.");
    let mut host = TestHost::recording_in(folder, &[]);
    host.initialize("2025-11-25");
    let large = host.request("prompts/get", get("review", json!({"code": "x".repeat(100)})));
    assert!(large["error"]["message"].as_str().unwrap().contains("(limit \"arguments\")"), "{large}");
    for _ in 0..2 {
        assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Hello.");
    }
    let often = host.request("prompts/get", json!({"name": "greet"}));
    assert_eq!(often["error"]["code"], -32603, "{often}");
    assert!(often["error"]["message"].as_str().unwrap().contains("(limit \"rate\")"), "{often}");
    let records = host.audit();
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    let started = of("call.started");
    assert_eq!((&started[1]["tool"], &started[1]["component"]), (&json!("prompt/greet"), &json!("manifest.prompts")));
    let outcomes: Vec<&Value> = of("call.finished").iter().map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["limit_exceeded", "ok", "ok", "rate_limited"]);
}

#[test]
fn a_text_does_not_grow_past_the_output() {
    let more = format!("[prompts.twice]\ntext = \"{}\"\narguments.x = {{}}\n", "{x}".repeat(1_000));
    let mut host = TestHost::in_folder(folder(&more));
    host.initialize("2025-11-25");
    let grown = host.request("prompts/get", get("twice", json!({"x": "y".repeat(1_000)})));
    assert!(grown["error"]["message"].as_str().unwrap().contains("(limit \"output\")"), "{grown}");
}

#[test]
fn callers_see_the_prompts_that_their_rules_name() {
    let rules = "\n[callers.local]\ntools = [\"*\"]\nprompts = [\"greet\"]\n";
    let mut host = TestHost::in_folder(folder(rules));
    let listed = host.request("prompts/list", json!({}));
    assert_eq!((names(&listed), &listed["result"]["cacheScope"]), (vec!["greet"], &json!("private")));
    let hidden = host.request("prompts/get", get("review", json!({"code": "x"})));
    assert_eq!(hidden["error"]["message"], "Unknown prompt: review");
    let hidden = host.request("completion/complete", completing("review", "language", ""));
    assert_eq!(hidden["error"]["message"], "Unknown prompt: review");
    let none = "\n[callers.local]\ntools = [\"*\"]\n";
    let mut host = TestHost::in_folder(folder(none));
    assert_eq!(names(&host.request("prompts/list", json!({}))), [""; 0], "without a key there are none");
    let wrong = Command::in_folder(&folder("\n[callers.local]\ntools = []\nprompts = [\"reviw\"]\n"), &["check"]).run();
    assert!(wrong.stderr.contains("did you mean \"review\"?"), "{wrong:?}");
}

#[test]
fn prompts_are_pinned_and_one_that_drifts_serves_as_it_was() {
    let folder = folder("");
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let lock = folder.read("toolcell.lock");
    assert!(lock.contains("manifest.prompts") && lock.contains("prompt/review"), "{lock}");
    let mut host = TestHost::with_options(folder, &["--locked"]);
    host.initialize("2025-11-25");
    host.folder().save(Saving::RenamedOver, "greet.md", "Obey me.\n");
    let _ = host.reload();
    assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Good morning.\n");
    let status = host.status();
    assert_eq!(status["quarantined"][0]["component"], "manifest.prompts", "{status}");
    let _ = Command::in_folder(host.folder(), &["approve", "manifest.prompts"]).run().succeeded();
    let _ = host.reload();
    assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Obey me.\n");
}

#[test]
fn known_values_are_completed_by_the_host_itself() {
    let mut host = TestHost::in_folder(folder(""));
    for revision in ["2025-11-25", MODERN_REVISION] {
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let found = host.request("completion/complete", completing("review", "language", "ru"));
        let completion = &found["result"]["completion"];
        assert_eq!(*completion, json!({"values": ["Rust", "Ruby"], "total": 2, "hasMore": false}), "{revision}");
        let found = host.request("completion/complete", completing("review", "code", "x"));
        assert_eq!(found["result"]["completion"]["values"], json!([]), "nobody knows any");
        for params in [
            completing("nothing", "a", ""),
            completing("review", "colour", ""),
            json!({"ref": {"type": "ref/tool", "name": "echo"}, "argument": {"name": "a", "value": ""}}),
            json!({"ref": {"type": "ref/resource", "uri": "a:b"}, "argument": {"name": "a", "value": ""}}),
            json!({"ref": {"type": "ref/prompt", "name": "review"}}),
        ] {
            let error = host.request("completion/complete", params.clone())["error"].clone();
            assert_eq!(error["code"], -32602, "{revision} {params}: {error}");
        }
    }
}

#[test]
fn variables_of_addresses_are_completed_from_the_manifest() {
    let more = "[components.good.resources]\n\"note:///{topic}\" = { tool = \"echo\", argument = \"text\", \
                values = { topic = [\"disk\", \"dns\"] } }\n";
    let mut host = TestHost::in_folder(folder(more));
    host.initialize("2025-11-25");
    let of = |name: &str| json!({"ref": {"type": "ref/resource", "uri": "note:///{topic}"}, "argument": {"name": name, "value": "di"}});
    let found = host.request("completion/complete", of("topic"));
    assert_eq!(found["result"]["completion"]["values"], json!(["disk"]), "{found}");
    assert_eq!(host.request("completion/complete", of("other"))["error"]["code"], -32602);
}

#[test]
fn completions_have_a_rate_of_their_own() {
    let manifest = manifest_of(&["good"]).replace("[defaults.limits]", "[defaults.limits]\ncompletion_rate = \"2/h\"");
    let folder = Folder::with_manifest(&format!("{manifest}{TEXTS}"));
    folder.write("greet.md", "Hello.");
    let mut host = TestHost::in_folder(folder);
    host.initialize("2025-11-25");
    let began = Instant::now();
    for _ in 0..2 {
        let found = host.request("completion/complete", completing("review", "language", "p"));
        assert_eq!(found["result"]["completion"]["values"], json!(["Python"]));
    }
    let refused = host.request("completion/complete", completing("review", "language", "p"));
    let message = "too many completions: more than 2/h (limit \"completion_rate\"); try again in ";
    assert_eq!(refused["error"]["code"], -32603);
    let said_then = refused["error"]["message"].as_str().unwrap();
    assert!(is_told_to_wait(said_then, message, 30 * 60, began), "{refused}");
    assert_eq!(said(&host.request("prompts/get", json!({"name": "greet"}))), "Hello.", "prompts have their own");
}

#[test]
fn prompts_of_a_component_are_got_by_running_it() {
    for revision in ["2025-11-25", MODERN_REVISION] {
        for walls in ["best", "none"] {
            let walled = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
            let manifest = manifest_of(&["good", "prompts"]).replace("version = 1\n", &walled);
            let mut host = TestHost::recording(&format!("{manifest}prefix = \"p_\"\n"));
            if revision != MODERN_REVISION {
                host.initialize(revision);
            }
            let listed = host.request("prompts/list", json!({}));
            assert!(names(&listed).contains(&"p_test_simple_prompt"), "{listed}");
            assert_eq!(host.list().iter().filter(|tool| tool["name"].as_str().unwrap().contains("test_")).count(), 0);
            let got = host.request("prompts/get", get("p_every_kind", json!({"mood": "glad"})));
            assert_eq!(got["result"]["description"], "Made for every_kind.", "{got}");
            let messages = got["result"]["messages"].as_array().unwrap();
            let kinds: Vec<_> = messages.iter().map(|message| message["content"]["type"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["text", "image", "audio", "resource_link", "resource"]);
            assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&json!("assistant"), &json!("user")));
            assert_eq!(said(&got), "glad");
            for (name, code, part) in [
                ("p_refuses", -32602, "not on a Monday"),
                ("p_fails", -32603, "the well is dry"),
                ("p_loops", -32603, "(limit \"fuel\")"),
            ] {
                let error = host.request("prompts/get", json!({"name": name}))["error"].clone();
                assert_eq!(error["code"], code, "{name} {error}");
                assert!(error["message"].as_str().unwrap().contains(part), "{name} {error}");
            }
            host.still_works();
            let records = host.audit();
            let finished = records.iter().filter(|record| record["event"] == "call.finished");
            let outcomes: Vec<_> = finished.filter(|record| record["tool"] == "prompt/p_loops").collect();
            assert_eq!(outcomes[0]["outcome"], "out_of_fuel", "{revision} {walls}");
        }
    }
}

#[test]
fn prompts_are_shown_by_inspect_and_list() {
    let folder = Folder::with_manifest(&manifest_of(&["prompts"]));
    let inspected = Command::in_folder(&folder, &["inspect", "components/prompts.wasm"]).run();
    let inspected = inspected.succeeded();
    for part in [
        "\n  toolcell:mcp/completion@1.3.0\n",
        "\nprompts\n  test_simple_prompt\n      The prompt test_simple_prompt.\n",
        "\n      argument  arg1 (required)\n      argument  arg2 (required)\n",
        "\n  every_kind\n      The prompt every_kind.\n      argument  mood: glad, sad\n",
    ] {
        assert!(inspected.contains(part), "no {part:?} in {inspected}");
    }
    let inspected = Command::in_folder(&folder, &["inspect", "components/prompts.wasm", "--json"]).run().json();
    let kinds = inspected["prompts"].as_array().unwrap().iter().find(|one| one["name"] == "every_kind").unwrap();
    let mood =
        json!({"name": "mood", "description": "The argument mood.", "required": false, "values": ["glad", "sad"]});
    assert_eq!(kinds["arguments"], json!([mood]));
    let listed = Command::in_folder(&folder, &["list"]).run();
    assert!(listed.succeeded().contains("The prompt every_kind. [prompt of prompts]\n"), "{listed:?}");
}

#[test]
fn a_prompt_asks_as_a_tool_does_in_both_eras() {
    let mut host = TestHost::serving(&["prompts"]);
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let mut params = json!({"name": "test_input_required_result_prompt", "_meta": capabilities});
    let first = host.request("prompts/get", params.clone());
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    params["requestState"] = first["result"]["requestState"].clone();
    params["inputResponses"] = json!({"user_context": {"action": "accept", "content": {"context": "tea"}}});
    let second = host.request("prompts/get", params.clone());
    assert!(said(&second).contains("tea"), "{second}");
    params["name"] = json!("test_simple_prompt");
    assert_eq!(host.request("prompts/get", params)["error"]["code"], -32602, "a state is of one call");
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let id = host.start("prompts/get", json!({"name": "test_input_required_result_prompt"}));
    let asked = host.next_of("elicitation/create");
    host.send(
        &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"context": "milk"}}}),
    );
    assert!(said(host.answer_to(&id).reply()).contains("milk"));
}

#[test]
fn a_component_completes_what_nobody_else_knows() {
    let manifest = format!(
        "{}[components.prompts.resources]\n\"x:///{{id}}\" = {{ tool = \"echo\" }}\n",
        manifest_of(&["good", "prompts"])
    );
    assert!(Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run().code() != 0, "no tool reads it");
    let mut host = TestHost::recording(&manifest_of(&["prompts"]));
    host.initialize("2025-11-25");
    let mut params = completing("test_prompt_with_arguments", "arg1", "par");
    params["context"] = json!({"arguments": {"arg2": "x"}});
    let found = host.request("completion/complete", params);
    let values = json!(["prompt test_prompt_with_arguments arg1 par arg2=x"]);
    assert_eq!(found["result"]["completion"], json!({"values": values, "total": 1, "hasMore": false}), "{found}");
    let found = host.request("completion/complete", completing("every_kind", "mood", "s"));
    assert_eq!(found["result"]["completion"]["values"], json!(["sad"]), "what the list names is not asked for");
    let found = host.request("completion/complete", completing("test_prompt_with_arguments", "arg1", "endless"));
    let completion = &found["result"]["completion"];
    assert_eq!((completion["values"].as_array().unwrap().len(), &completion["hasMore"]), (100, &json!(true)));
    let failed = host.request("completion/complete", completing("test_prompt_with_arguments", "arg1", "fail"));
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    let records = host.audit();
    let runs = records.iter().filter(|record| record["event"] == "call.started").count();
    assert_eq!(runs, 3, "the host alone answered one");
    assert!(host.list().is_empty(), "it has no tool");
}
