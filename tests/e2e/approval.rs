//! Calls that a person confirms through the client before they run.
//!
//! Promise: a person decides a question once.

use serde_json::{Value, json};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of};

fn asking() -> Value {
    json!({"elicitation": {}})
}

/// The manifest of a tool whose calls need approval. `how` holds lines of the component's table.
fn confirmed(how: &str) -> String {
    format!("{}{how}\n", manifest_of(&["good"]))
}

fn legacy(how: &str) -> TestHost {
    let mut host = TestHost::recording(&confirmed(how));
    host.initialize_declaring("2025-11-25", asking());
    host
}

fn decide(host: &mut TestHost, action: &str) -> Value {
    let asked = host.next_of("elicitation/create");
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}}));
    asked
}

fn modern(host: &mut TestHost, capabilities: &Value, arguments: Value, more: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    let mut params = json!({"name": "echo", "arguments": arguments, "_meta": meta});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host.request("tools/call", params)
}

fn approving(reply: &Value) -> Value {
    json!({"requestState": reply["result"]["requestState"], "inputResponses": {"toolcell.approval": {"action": "accept"}}})
}

/// The answers to approvals and the outcomes of calls, as the audit records them.
fn recorded(host: &TestHost) -> (Vec<String>, Vec<String>) {
    let records = host.audit();
    let of = |event: &str, key: &str| -> Vec<String> {
        let found = records.iter().filter(|record| record["event"] == event);
        found.map(|record| record[key].as_str().unwrap().to_owned()).collect()
    };
    assert!(of("call.asked", "asked").iter().all(|asked| asked == "approval"));
    (of("call.asked", "answer"), of("call.finished", "outcome"))
}

#[test]
fn a_call_runs_once_the_person_has_seen_and_allowed_it() {
    let mut host = legacy("approval = \"always\"");
    let id = host.start_call("echo", json!({"text": "hello"}));
    let asked = decide(&mut host, "accept");
    let message = "Allow the tool \"echo\" of the component \"good\" to run?\nArguments: {\"text\":\"hello\"}";
    assert_eq!(asked["params"]["message"], message);
    assert_eq!(asked["params"]["requestedSchema"], json!({"type": "object", "properties": {}}));
    assert_eq!(host.answer_to(&id).text(), "hello");
    assert_eq!(recorded(&host), (vec!["accepted".to_owned()], vec!["ok".to_owned()]));
}

#[test]
fn a_call_that_the_person_does_not_allow_does_not_run() {
    let mut host = legacy("approval = \"always\"");
    for (action, said) in [
        ("decline", "the person declined: \"echo\" was not run"),
        ("cancel", "the person did not decide: \"echo\" was not run"),
    ] {
        let id = host.start_call("echo", json!({"text": "hello"}));
        decide(&mut host, action);
        assert_eq!(host.answer_to(&id).error_text(), said);
    }
    let (answers, outcomes) = recorded(&host);
    assert_eq!(answers, ["declined", "dismissed"]);
    assert_eq!(outcomes, ["not_approved", "not_approved"]);
}

#[test]
fn a_client_that_cannot_ask_is_told_so() {
    let mut host = TestHost::recording(&confirmed("approval = \"always\""));
    host.initialize("2025-11-25");
    let said = host.call("echo", json!({"text": "hello"})).error_text().to_owned();
    let cannot = "the tool \"echo\" needs a person's approval, and this client cannot be asked for it: it does not \
                  declare elicitation with forms";
    assert_eq!(said, cannot);
    assert_eq!(recorded(&host), (vec!["unsupported".to_owned()], vec!["not_approved".to_owned()]));
    let mut host = TestHost::recording(&confirmed("approval = \"always\""));
    let error = modern(&mut host, &json!({}), json!({"text": "hello"}), &json!({}))["error"].clone();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32021), &json!(cannot)));
    assert_eq!(error["data"], json!({"requiredCapabilities": {"elicitation": {"form": {}}}}));
    assert_eq!(recorded(&host).1, ["not_approved"]);
}

#[test]
fn nobody_is_waited_for_without_end() {
    let mut host = legacy("approval = \"always\"\n[components.good.limits]\nask_wait = \"1s\"");
    let id = host.start_call("echo", json!({"text": "hello"}));
    let asked = host.next_of("elicitation/create");
    assert_eq!(host.next_of("notifications/cancelled")["params"]["requestId"], asked["id"]);
    let said = host.answer_to(&id).error_text().to_owned();
    assert_eq!(said, "nobody approved \"echo\" within 1s: it was not run (limit \"ask_wait\")");
}

#[test]
fn in_the_modern_era_the_call_comes_again_with_the_approval_of_that_very_call() {
    let mut host = TestHost::recording(&confirmed("approval = \"always\""));
    let hello = json!({"text": "hello"});
    let other = json!({"text": "other"});
    let first = modern(&mut host, &asking(), hello.clone(), &json!({}));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let elsewhere = modern(&mut host, &asking(), other, &approving(&first));
    assert_eq!(elsewhere["error"]["code"], -32602, "what was approved is the arguments as well");
    let approved = modern(&mut host, &asking(), hello.clone(), &approving(&first));
    assert_eq!(Answer::new(approved).text(), "hello");
    let again = Answer::new(modern(&mut host, &asking(), hello, &approving(&first)));
    assert_eq!(again.error_text(), "the approval of \"echo\" was used already: it was for one call");
    let (answers, outcomes) = recorded(&host);
    assert_eq!(answers, ["pending", "accepted", "refused"]);
    assert_eq!(outcomes, ["input_required", "ok", "not_approved"]);
}

#[test]
fn a_person_decides_once_whatever_the_decision_was() {
    for (action, said, answer) in [
        ("decline", "the person declined: \"echo\" was not run", "declined"),
        ("cancel", "the person did not decide: \"echo\" was not run", "dismissed"),
    ] {
        let mut host = TestHost::recording(&confirmed("approval = \"always\""));
        let hello = json!({"text": "hello"});
        let first = modern(&mut host, &asking(), hello.clone(), &json!({}));
        let mut refusal = approving(&first);
        refusal["inputResponses"]["toolcell.approval"]["action"] = json!(action);
        let refused = Answer::new(modern(&mut host, &asking(), hello.clone(), &refusal));
        assert_eq!(refused.error_text(), said);
        for again in [&approving(&first), &refusal, &approving(&first)] {
            let again = Answer::new(modern(&mut host, &asking(), hello.clone(), again));
            assert_eq!(again.error_text(), "the approval of \"echo\" was used already: it was for one call");
        }
        let (answers, outcomes) = recorded(&host);
        assert_eq!(answers, ["pending", answer, "refused", "refused", "refused"]);
        assert_eq!(outcomes, ["input_required", "not_approved", "not_approved", "not_approved", "not_approved"]);
    }
}

#[test]
fn an_approval_that_nobody_asked_for_is_none() {
    let mut host = TestHost::recording(&confirmed("approval = \"always\""));
    let unasked = json!({"inputResponses": {"toolcell.approval": {"action": "accept"}}});
    let reply = modern(&mut host, &asking(), json!({"text": "hello"}), &unasked);
    assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
}

#[test]
fn an_approval_holds_for_as_long_as_the_manifest_says_and_not_for_other_tools() {
    let mut host = legacy("approval = \"always\"\nremember = \"10m\"");
    let id = host.start_call("echo", json!({"text": "one"}));
    let asked = decide(&mut host, "accept");
    let message = asked["params"]["message"].as_str().unwrap();
    let says = "If you allow it, further calls run without asking for 10m, whatever their arguments.";
    assert!(message.ends_with(says), "{message}");
    assert_eq!(host.answer_to(&id).text(), "one");
    assert_eq!(host.call("echo", json!({"text": "two"})).text(), "two");
    let id = host.start_call("add", json!({"a": 1, "b": 2}));
    decide(&mut host, "decline");
    let _ = host.answer_to(&id).error_text();
    assert_eq!(recorded(&host).0, ["accepted", "remembered", "declined"]);
}

#[test]
fn tools_that_say_that_they_only_read_need_no_approval_where_destructive_ones_do() {
    let mut host = legacy("approval = \"destructive\"");
    let id = host.start_call("echo", json!({"text": "hello"}));
    decide(&mut host, "accept");
    assert_eq!(host.answer_to(&id).text(), "hello", "a tool that says nothing may destroy");
    assert!(!host.call("add", json!({"a": 1, "b": 2})).is_error());
    let mut host = legacy("approval = \"never\"\n[components.good.tools.add]\napproval = \"always\"");
    assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
    let id = host.start_call("add", json!({"a": 1, "b": 2}));
    decide(&mut host, "accept");
    assert!(!host.answer_to(&id).is_error(), "the tool's own line wins");
}

#[test]
fn what_misleads_is_written_out_for_the_person() {
    let mut host = legacy("approval = \"always\"");
    let id = host.start_call("echo", json!({"text": format!("a\u{202e}b{}", "x".repeat(2_000))}));
    let asked = decide(&mut host, "decline");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("a\\u{202e}b") && message.contains("characters left out)"), "{message}");
    let _ = host.answer_to(&id).error_text();
}

#[test]
fn check_names_the_tools_whose_calls_a_person_approves() {
    let folder =
        Folder::with_manifest(&confirmed("approval = \"never\"\n[components.good.tools.add]\napproval = \"always\""));
    let check = Command::in_folder(&folder, &["check"]).run();
    assert!(check.succeeded().contains("\na person approves each call: add\n"), "{}", check.stdout);
}

#[test]
fn a_call_made_by_hand_needs_no_further_approval() {
    let folder = Folder::with_manifest(&confirmed("approval = \"always\""));
    let run = Command::in_folder(&folder, &["call", "echo", "{\"text\":\"hello\"}"]).run();
    assert_eq!(run.succeeded().trim(), "hello");
}
