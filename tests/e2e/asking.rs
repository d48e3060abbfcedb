//! A tool asks the person, the model or the client behind its caller: in both eras, and only within
//! its limits.

use std::time::Duration;

use serde_json::{Value, json};
use toolcell_tests::{Answer, Folder, TestHost, alone, manifest_of};

/// The capabilities of a client that answers every kind of question.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

fn name_form() -> Value {
    json!({"form": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}})
}

/// A host whose legacy client answers every kind of question. `limits` holds lines of the
/// component's table.
fn legacy(limits: &str) -> TestHost {
    let mut host = TestHost::recording(&asks_under(limits));
    host.initialize_declaring("2025-11-25", everything());
    host
}

fn asks_under(limits: &str) -> String {
    format!("{}\n[components.asks.limits]\n{limits}\n", manifest_of(&["good", "asks"]))
}

fn reply(host: &mut TestHost, request: &Value, result: &Value) {
    host.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
}

/// A modern call with these params, from a client that declares these capabilities.
fn modern(host: &mut TestHost, capabilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    host.request("tools/call", params)
}

fn asked_records(host: &TestHost) -> Vec<[String; 3]> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    let records = host.audit();
    let asked = records.iter().filter(|record| record["event"] == "call.asked");
    asked.map(|record| [text(record, "asked"), text(record, "key"), text(record, "answer")]).collect()
}

#[test]
fn a_legacy_client_is_asked_while_the_tool_waits() {
    let mut host = legacy("");
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}, {"where": {}}]}));
    let form = host.next_of("elicitation/create");
    assert_eq!(form["params"]["message"], "The tool \"ask\" asks: Who?");
    host.still_works();
    reply(&mut host, &form, &json!({"action": "accept", "content": {"name": "Ada"}}));
    let roots = host.next_of("roots/list");
    reply(&mut host, &roots, &json!({"roots": [{"uri": "file:///work", "name": "Work"}]}));
    assert_eq!(host.answer_to(&id).text(), "accepted {\"name\":\"Ada\"}; roots file:///work");
    assert_eq!(asked_records(&host), [["form", "who", "accepted"], ["roots", "where", "answered"]]);
}

#[test]
fn a_modern_client_is_given_the_questions_and_the_tool_runs_again_with_the_answers() {
    let mut host = TestHost::recording(&asks_under(""));
    let call = json!({"name": "ask", "arguments": {"rounds": [{"who": name_form()}, {"where": {}}]}});
    let first = modern(&mut host, &everything(), call.clone());
    assert_eq!(first["result"]["inputRequests"]["who"]["method"], "elicitation/create", "{first}");
    let mut retry = call.clone();
    retry["requestState"] = first["result"]["requestState"].clone();
    retry["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ada"}}});
    let second = modern(&mut host, &everything(), retry);
    assert_eq!(second["result"]["inputRequests"], json!({"where": {"method": "roots/list", "params": {}}}));
    let mut retry = call;
    retry["requestState"] = second["result"]["requestState"].clone();
    retry["inputResponses"] = json!({"where": {"roots": []}});
    assert_eq!(Answer::new(modern(&mut host, &everything(), retry)).text(), "accepted {\"name\":\"Ada\"}; roots ");
    let records = host.audit();
    let outcomes: Vec<&Value> =
        records.iter().filter(|record| record["event"] == "call.finished").map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["input_required", "input_required", "ok"]);
}

#[test]
fn a_tool_knows_what_can_be_asked() {
    let mut host = TestHost::with_manifest(&asks_under(""));
    for (capabilities, form, page, sampling) in [
        (json!({}), false, false, false),
        (json!({"elicitation": {}}), true, false, false),
        (json!({"elicitation": {"url": {}}, "sampling": {}}), false, true, true),
    ] {
        let reply = modern(&mut host, &capabilities, json!({"name": "can_ask", "arguments": {}}));
        let expected =
            json!({"form": form, "page": page, "sampling": sampling, "sampling_tools": false, "roots": false});
        assert_eq!(reply["result"]["structuredContent"], expected);
    }
}

#[test]
fn a_client_that_cannot_be_asked_is_no_obstacle_for_a_tool_that_gets_along() {
    let mut host = TestHost::with_manifest(&asks_under(""));
    host.initialize("2025-11-25");
    let said = host.call("ask", json!({"rounds": [{"who": name_form()}, {"where": {}}]})).text().to_owned();
    assert_eq!(said, "unsupported Kind::Form; unsupported Kind::Roots");
    let mut host = TestHost::with_manifest(&asks_under(""));
    let call = json!({"name": "ask", "arguments": {"rounds": [{"who": name_form()}]}});
    let error = modern(&mut host, &json!({}), call)["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"], json!({"requiredCapabilities": {"elicitation": {"form": {}}}}));
}

#[test]
fn questions_are_bounded_in_number_and_size() {
    let mut host = legacy("asks = 2\nask_bytes = \"256B\"");
    let three = json!({"a": {}, "b": {}, "c": {}});
    let long = json!({"d": {"form": {"type": "object", "properties": {}}, "message": "x".repeat(300)}});
    let id = host.start_call("ask", json!({"rounds": [three, long, {"e": {}}, {"f": {}}, {"g": {}}]}));
    for _ in 0..2 {
        let roots = host.next_of("roots/list");
        reply(&mut host, &roots, &json!({"roots": []}));
    }
    let over = "over limit: the call asks more questions than 2 (limit \"asks\")";
    let large = "over limit: a question is larger than 256B (limit \"ask_bytes\")";
    assert_eq!(host.answer_to(&id).text(), format!("{over}; {large}; roots ; roots ; {over}"));
    let mut host = legacy("asks = 0");
    let said = host.call("can_ask", json!({}));
    assert_eq!(said.structured()["roots"], false, "a tool that may not ask finds nobody to ask");
}

#[test]
fn answers_are_bounded_in_size() {
    let mut host = legacy("answer_bytes = \"256B\"");
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}]}));
    let form = host.next_of("elicitation/create");
    reply(&mut host, &form, &json!({"action": "accept", "content": {"name": "x".repeat(300)}}));
    let said = host.answer_to(&id).text().to_owned();
    assert_eq!(said, "failed: the client's answer to \"who\": it has 341 bytes, more than 256");
}

#[test]
fn waiting_is_bounded_and_the_question_is_taken_back() {
    let mut host = legacy("ask_wait = \"1s\"");
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}]}));
    let form = host.next_of("elicitation/create");
    assert_eq!(host.next_of("notifications/cancelled")["params"]["requestId"], form["id"]);
    assert_eq!(host.answer_to(&id).text(), "timed out");
    reply(&mut host, &form, &json!({"action": "decline"}));
    host.still_works();
    assert_eq!(asked_records(&host), [["form", "who", "timed_out"]]);
}

#[test]
fn the_deadline_stands_still_while_a_tool_waits_for_a_person() {
    let deadline = Duration::from_secs(2);
    let mut host = legacy(&format!("deadline = \"{}ms\"", deadline.as_millis()));
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}]}));
    let form = host.next_of("elicitation/create");
    // This sleep waits for nothing: it is the time that the person takes.
    std::thread::sleep(deadline * 2);
    reply(&mut host, &form, &json!({"action": "decline"}));
    assert_eq!(host.answer_to(&id).text(), "declined");
    let id = host.start_call("ask_and_hang", json!({"rounds": [{"who": name_form()}]}));
    let form = host.next_of("elicitation/create");
    reply(&mut host, &form, &json!({"action": "decline"}));
    let said = host.answer_to(&id).error_text().to_owned();
    assert_eq!(said, "deadline exceeded: the call took longer than 2s (limit \"deadline\")");
}

#[test]
fn a_cancelled_call_ends_the_wait() {
    let _alone = alone("its own stdout: over HTTP, the stream of a cancelled call ends with it");
    let mut host = legacy("");
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}]}));
    let form = host.next_of("elicitation/create");
    host.cancel(&id);
    assert_eq!(host.next_of("notifications/cancelled")["params"]["requestId"], form["id"]);
    let recorded = host.recorded("the cancelled question", |record| record["event"] == "call.asked");
    assert_eq!(recorded["answer"], "cancelled");
    host.still_works();
}

#[test]
fn a_client_that_leaves_ends_the_wait() {
    let _alone = alone("the end of its own input");
    let mut host = legacy("");
    let id = host.start_call("ask", json!({"rounds": [{"who": name_form()}]}));
    host.next_of("elicitation/create");
    host.close_input();
    assert_eq!(host.answer_to(&id).text(), "failed: the client is gone, so nobody can answer");
}

#[test]
fn a_guest_cannot_have_a_key_of_the_host() {
    let mut host = legacy("");
    let said = host.call("ask", json!({"rounds": [{"toolcell.approval": {}}]})).text().to_owned();
    assert_eq!(said, "invalid: the key \"toolcell.approval\" is not 1 to 64 of A-Z, a-z, 0-9, _ and -");
}

#[test]
fn a_component_built_against_the_first_version_of_the_contract_runs_as_it_did() {
    let mut host = TestHost::serving(&["contract_1_0"]);
    host.initialize("2025-11-25");
    let id = host.start("tools/call", json!({"name": "of_1_0", "arguments": {}, "_meta": {"progressToken": 7}}));
    assert_eq!(host.answer_to(&id).text(), "{} false {}");
    assert_eq!(host.next_of("notifications/progress")["params"]["message"], "halfway");
    assert_eq!(host.next_of("notifications/message")["params"]["data"], "from 1.0");
}

#[test]
fn a_component_built_against_the_second_version_of_the_contract_asks_as_it_did() {
    let mut host = TestHost::serving(&["contract_1_1"]);
    host.initialize_declaring("2025-11-25", everything());
    let id = host.start("tools/call", json!({"name": "of_1_1", "arguments": {}}));
    let asked = host.next_of("roots/list");
    reply(&mut host, &asked, &json!({"roots": []}));
    assert_eq!(host.answer_to(&id).text(), "[true, true, true, true] roots");
}

#[test]
fn a_component_built_against_the_third_version_of_the_contract_runs_as_it_did() {
    let mut host = TestHost::serving(&["contract_1_2"]);
    host.initialize_declaring("2025-11-25", json!({"sampling": {"tools": {}}}));
    assert_eq!(host.call("of_1_2", json!({})).text(), "true {}");
}

#[test]
fn a_guest_is_told_whether_its_clients_model_takes_tools() {
    for (sampling, revision, takes) in [
        (json!({"tools": {}}), "2025-11-25", true),
        (json!({}), "2025-11-25", false),
        (json!({"tools": {}}), "2025-06-18", false),
    ] {
        let mut host = TestHost::serving(&["asks"]);
        host.initialize_declaring(revision, json!({"sampling": sampling}));
        let can: Value = serde_json::from_str(host.call("can_ask", json!({})).text()).unwrap();
        assert_eq!(can["sampling_tools"], takes, "{sampling} {revision}");
        let mut host = TestHost::serving(&["asks"]);
        let can = modern(&mut host, &json!({"sampling": sampling}), json!({"name": "can_ask"}));
        assert_eq!(can["result"]["structuredContent"]["sampling_tools"], !sampling["tools"].is_null(), "{can}");
    }
}

#[test]
fn replicas_that_share_a_key_continue_each_others_calls() {
    let _alone = alone("it starts replicas of its own");
    let manifest = asks_under("").replace("version = 1\n", "version = 1\n[server]\nstate_key = \"env:STATE_KEY\"\n");
    let replica = |key: &str| TestHost::recording_in(Folder::with_manifest(&manifest), &[("STATE_KEY", key)]);
    let key = "a key that is long enough to be one".to_owned();
    let other = "another key that is long enough too".to_owned();
    let mut call = json!({"name": "ask", "arguments": {"rounds": [{"where": {}}]}});
    let first = modern(&mut replica(&key), &everything(), call.clone());
    call["requestState"] = first["result"]["requestState"].clone();
    call["inputResponses"] = json!({"where": {"roots": []}});
    assert_eq!(Answer::new(modern(&mut replica(&key), &everything(), call.clone())).text(), "roots ");
    let refused = modern(&mut replica(&other), &everything(), call);
    let message = "params.requestState is not one that this server gave out, or was changed. Processes that answer \
                   one client, or start anew for it, need the same state_key in [server]";
    assert_eq!(refused["error"], json!({"code": -32602, "message": message}));
}

/// The messages of the conformance suite's `input-required-result-*` scenarios, which it sends over
/// HTTP.
mod conformance {
    use super::*;

    fn call(host: &mut TestHost, tool: &str, more: &Value) -> Value {
        let mut params = json!({"name": tool, "arguments": {}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        modern(host, &json!({"elicitation": {}, "sampling": {}, "roots": {}}), params)
    }

    /// The suite's answer to a request.
    fn respond(request: &Value) -> Value {
        let text = json!({"type": "text", "text": "Hello there!"});
        match request["method"].as_str().unwrap() {
            "elicitation/create" => {
                let asked = &request["params"]["requestedSchema"]["properties"];
                let all = json!({"name": "Alice", "color": "blue", "ok": true});
                let content: serde_json::Map<String, Value> =
                    asked.as_object().unwrap().keys().map(|key| (key.clone(), all[key].clone())).collect();
                json!({"action": "accept", "content": content})
            }
            "sampling/createMessage" => {
                json!({"role": "assistant", "content": text, "model": "test-model", "stopReason": "endTurn"})
            }
            "roots/list" => json!({"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}),
            other => panic!("no input request {other}"),
        }
    }

    #[test]
    fn each_tool_that_asks_completes_after_its_rounds() {
        let mut host = TestHost::serving(&["conformance"]);
        for (name, rounds, methods) in [
            ("test_input_required_result_elicitation", 1, vec!["elicitation/create"]),
            ("test_input_required_result_sampling", 1, vec!["sampling/createMessage"]),
            ("test_input_required_result_list_roots", 1, vec!["roots/list"]),
            ("test_input_required_result_request_state", 1, vec!["elicitation/create"]),
            (
                "test_input_required_result_multiple_inputs",
                1,
                vec!["elicitation/create", "sampling/createMessage", "roots/list"],
            ),
            ("test_input_required_result_multi_round", 2, vec!["elicitation/create"]),
        ] {
            let mut reply = call(&mut host, name, &json!({}));
            for round in 0..rounds {
                let result = &reply["result"];
                assert_eq!(result["resultType"], "input_required", "{name}, round {round}: {reply}");
                let requests = result["inputRequests"].as_object().unwrap();
                let asked: Vec<&str> = requests.values().map(|request| request["method"].as_str().unwrap()).collect();
                assert_eq!(asked, methods, "{name}");
                let answers: Value = requests.iter().map(|(key, request)| (key.clone(), respond(request))).collect();
                let more = json!({"inputResponses": answers, "requestState": result["requestState"]});
                reply = call(&mut host, name, &more);
            }
            assert!(Answer::new(reply).text().contains("state-ok"), "{name}");
        }
    }

    #[test]
    fn answers_without_a_state_are_taken_and_what_is_not_asked_for_is_ignored() {
        let mut host = TestHost::serving(&["conformance"]);
        let name = "test_input_required_result_elicitation";
        let alice = json!({"action": "accept", "content": {"name": "Alice"}});
        let extra = json!({"inputResponses": {"user_name": alice, "another_unexpected": {"action": "accept"}}});
        assert_eq!(call(&mut host, name, &extra)["result"]["resultType"], "complete");
        let wrong = json!({"inputResponses": {"wrong_key": alice}});
        assert_eq!(call(&mut host, name, &wrong)["result"]["resultType"], "input_required");
        let absent = call(&mut host, name, &json!({"inputResponses": null}));
        assert_eq!(absent["result"]["resultType"], "input_required", "null in an optional member is its absence");
        for invalid in [json!({"user_name": 12345}), json!(7)] {
            assert_eq!(call(&mut host, name, &json!({"inputResponses": invalid}))["error"]["code"], -32602);
        }
    }

    #[test]
    fn a_tampered_state_is_refused() {
        let mut host = TestHost::serving(&["conformance"]);
        let name = "test_input_required_result_tampered_state";
        let first = call(&mut host, name, &json!({}));
        let state = format!("{}-TAMPERED", first["result"]["requestState"].as_str().unwrap());
        let more = json!({"inputResponses": {"confirm": {"action": "accept", "content": {"ok": true}}}, "requestState": state});
        assert_eq!(call(&mut host, name, &more)["error"]["code"], -32602);
    }

    #[test]
    fn only_what_the_client_declares_is_asked() {
        let mut host = TestHost::serving(&["conformance"]);
        let params = json!({"name": "test_input_required_result_capabilities", "arguments": {}});
        let reply = modern(&mut host, &json!({"sampling": {}}), params);
        let asked: Vec<&String> = reply["result"]["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(asked, ["greeting"]);
    }

    #[test]
    fn the_legacy_scenarios_get_what_they_ask_for() {
        let mut host = TestHost::serving(&["conformance"]);
        host.initialize_declaring("2025-11-25", everything());
        let id = host.start_call("test_elicitation", json!({"message": "Please provide your information"}));
        let asked = host.next_of("elicitation/create");
        let user = json!({"username": "testuser", "email": "test@example.com"});
        reply(&mut host, &asked, &json!({"action": "accept", "content": user}));
        assert!(host.answer_to(&id).text().contains("testuser"));
        let id = host.start_call("test_sampling", json!({"prompt": "Test prompt for sampling"}));
        let asked = host.next_of("sampling/createMessage");
        let message = json!({"role": "user", "content": {"type": "text", "text": "Test prompt for sampling"}});
        assert_eq!(asked["params"], json!({"messages": [message], "maxTokens": 100}));
        reply(&mut host, &asked, &respond(&asked));
        assert!(host.answer_to(&id).text().contains("Hello there!"));
        let id = host.start_call("test_elicitation_sep1034_defaults", json!({}));
        let asked = host.next_of("elicitation/create");
        let fields = &asked["params"]["requestedSchema"]["properties"];
        let defaults: Vec<&Value> =
            ["name", "age", "score", "status", "verified"].iter().map(|field| &fields[field]["default"]).collect();
        assert_eq!(defaults, [&json!("John Doe"), &json!(30), &json!(95.5), &json!("active"), &json!(true)]);
        reply(&mut host, &asked, &json!({"action": "accept", "content": {"age": 25, "score": 88, "verified": false}}));
        assert!(host.answer_to(&id).text().contains("25"));
        let id = host.start_call("test_elicitation_sep1330_enums", json!({}));
        let asked = host.next_of("elicitation/create");
        let fields = &asked["params"]["requestedSchema"]["properties"];
        assert_eq!(fields["legacyEnum"]["enumNames"][1], "Option Two");
        assert_eq!(fields["titledMulti"]["items"]["anyOf"][0], json!({"const": "value1", "title": "First Choice"}));
        reply(&mut host, &asked, &json!({"action": "accept", "content": {"titledMulti": ["value1", "value3"]}}));
        assert!(host.answer_to(&id).text().contains("value3"));
    }
}
