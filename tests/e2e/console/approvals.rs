//! Calls that wait for an operator: who is asked, what the page says of their reach, and what an
//! answer does.
use serde_json::{Value, json};
use toolcell_tests::{Saving, manifest_of};

use super::{MARKUP, Operator};

/// A console whose operators approve calls of `good`.
fn approving(how: &str) -> Operator {
    let manifest = manifest_of(&["good"]).replace("version = 1\n", &format!("version = 1\n[server]\n{how}\n"));
    Operator::of(&format!("{manifest}approval = \"always\"\nremember = \"1h\"\n"))
}

#[test]
fn a_call_of_a_client_that_cannot_ask_waits_for_an_operator() {
    let mut operator = approving("approve_in = [\"client\", \"console\"]");
    operator.host.initialize("2025-11-25");
    for (answer, decision) in [("decline", "decline"), ("allow", "allow"), ("remember", "remember")] {
        let id = operator.host.start_call("echo", json!({"text": MARKUP}));
        let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
        assert!(!page.contains(MARKUP) && page.contains("&lt;script&gt;"), "{page}");
        let key = Operator::key(&page, "/approvals/answer");
        let _ = operator.decides("/approvals/answer", &format!("key={key}&answer={answer}"));
        let ended = operator.host.answer_to(&id);
        match answer {
            "decline" => assert_eq!(ended.error_text(), "an operator declined: \"echo\" was not run"),
            _ => assert_eq!(ended.text(), MARKUP),
        }
        let is_done = |record: &Value| record["decision"] == decision && record["done"] == true;
        assert!(operator.host.recorded("it", is_done)["subject"].as_str().unwrap().contains("echo"));
        let page = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
        assert!(page.contains("does not wait any more"), "{page}");
    }
    assert_eq!(operator.host.call("echo", json!({"text": "again"})).text(), "again", "it is remembered");
}

#[test]
fn a_call_whose_arguments_are_not_shown_whole_can_only_be_declined() {
    let mut operator = approving("approve_in = [\"console\"]");
    operator.host.initialize("2025-11-25");
    // More than a client shows, and all of it on the page.
    let long = format!("{}END", "x".repeat(20_000));
    let id = operator.host.start_call("echo", json!({"text": long}));
    let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    let further = "lets further calls of <bdi>echo</bdi> by <bdi>local</bdi> run as well, whatever their arguments";
    assert!(page.contains("xEND") && page.contains(further) && !page.contains("not shown whole"), "{page}");
    let key = Operator::key(&page, "/approvals/answer");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
    assert_eq!(operator.host.answer_to(&id).text(), long);

    let id = operator.host.start_call("echo", json!({"text": "x".repeat(70_000)}));
    let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    assert!(page.contains("not shown whole: ") && page.contains("value=\"decline\""), "{page}");
    assert!(!page.contains("value=\"allow\"") && !page.contains("value=\"remember\""), "{page}");
    let key = Operator::key(&page, "/approvals/answer");
    for answer in ["allow", "remember"] {
        let page = operator.decides("/approvals/answer", &format!("key={key}&answer={answer}"));
        assert!(page.contains("it can only be declined") && page.contains("value=\"decline\""), "{page}");
        assert_eq!(
            operator.host.recorded("it", |record| {
                record["event"] == "console.decided" && record["decision"] == answer && record["done"] == false
            })["done"],
            false
        );
    }
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=decline"));
    assert_eq!(operator.host.answer_to(&id).error_text(), "an operator declined: \"echo\" was not run");
}

#[test]
fn whoever_answers_first_decides() {
    let mut operator = approving("approve_in = [\"client\", \"console\"]");
    operator.host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let id = operator.host.start_call("echo", json!({"text": "a"}));
    let asked = operator.host.next_of("elicitation/create");
    let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    let key = Operator::key(&page, "/approvals/answer");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
    assert_eq!(operator.host.answer_to(&id).text(), "a");
    operator.host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    let id = operator.host.start_call("echo", json!({"text": "b"}));
    let asked = operator.host.next_of("elicitation/create");
    operator.host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    assert!(operator.host.answer_to(&id).is_error());
    assert!(!operator.page("/approvals").contains("action=\"/approvals/answer\""), "nothing waits");
}

/// The capabilities of a modern client that can be asked.
fn that_can_ask() -> Value {
    json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}})
}

/// Starts a call of a client that declares nothing, or `more`.
fn starts(operator: &mut Operator, text: &str, more: &Value) -> Value {
    let mut params = json!({"name": "echo", "arguments": {"text": text}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    operator.host.start("tools/call", params)
}

#[test]
fn a_modern_client_that_cannot_ask_waits_for_an_operator_too() {
    let mut operator = approving("approve_in = [\"client\", \"console\"]");
    for (answer, declined) in [("allow", false), ("decline", true)] {
        let id = starts(&mut operator, "hello", &json!({}));
        let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
        let key = Operator::key(&page, "/approvals/answer");
        let page = operator.decides("/approvals/answer", &format!("key={key}&answer={answer}"));
        assert!(page.contains("No call waits for a person."), "{page}");
        let ended = operator.host.answer_to(&id);
        match declined {
            true => assert_eq!(ended.error_text(), "an operator declined: \"echo\" was not run"),
            false => assert_eq!(ended.text(), "hello"),
        }
    }
    // One that can be asked is asked alone: its call ends with the question.
    let id = starts(&mut operator, "hello", &that_can_ask());
    assert_eq!(operator.host.reply_to(&id)["result"]["resultType"], "input_required");
}

#[test]
fn where_only_the_console_is_asked_no_client_is() {
    for is_modern in [false, true] {
        let mut operator = approving("approve_in = [\"console\"]");
        if !is_modern {
            operator.host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
        }
        let more = if is_modern { that_can_ask() } else { json!({}) };
        let id = starts(&mut operator, "hello", &more);
        let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
        let key = Operator::key(&page, "/approvals/answer");
        let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
        assert_eq!(operator.host.answer_to(&id).text(), "hello");
        assert_eq!(operator.host.kept(), Vec::<Value>::new(), "the client got its answer and nothing else");
        let asked = operator.host.recorded("the question", |record| record["event"] == "call.asked");
        assert_eq!(asked["answer"], "accepted");
        assert!(asked["detail"].as_str().unwrap().starts_with("by the console's session "), "{asked}");
    }
}

#[test]
fn a_call_leaves_the_queue_when_its_time_is_over() {
    let manifest =
        manifest_of(&["good"]).replace("version = 1\n", "version = 1\n[server]\napprove_in = [\"console\"]\n");
    let ask_wait = "approval = \"always\"\n\n[components.good.limits]\nask_wait = \"1s\"\n";
    let mut operator = Operator::of(&format!("{manifest}{ask_wait}"));
    operator.host.initialize("2025-11-25");
    let said = operator.host.call("echo", json!({"text": "hello"})).error_text().to_owned();
    assert_eq!(said, "nobody approved \"echo\" within 1s: it was not run (limit \"ask_wait\")");
    let asked = operator.host.recorded("the question", |record| record["event"] == "call.asked");
    assert_eq!(asked["answer"], "timed_out");
    assert!(operator.page("/approvals").contains("No call waits for a person."));
    let page = operator.decides("/approvals/answer", "key=1&answer=allow");
    assert!(page.contains("does not wait any more"), "{page}");
}

#[test]
fn a_call_that_waits_shows_what_it_may_reach_and_where_that_is_granted() {
    let manifest =
        manifest_of(&["good"]).replace("version = 1\n", "version = 1\n[server]\napprove_in = [\"console\"]\n");
    let granted = "approval = \"always\"\n\n[components.good.env]\nUNITS = \"metric\"\n";
    let mut operator = Operator::of(&format!("{manifest}{granted}"));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("echo", json!({"text": "hello"}));
    let page = operator.page_with("/approvals", "What it may reach: 1");
    let written = operator.host.folder().read("toolcell.toml");
    let line = 1 + written.lines().position(|line| line == "UNITS = \"metric\"").unwrap();
    let place = format!("toolcell.toml</bdi>:{line}</span>");
    assert!(page.contains("<bdi>UNITS</bdi>") && page.contains(&place), "{place}: {page}");
    assert!(!page.contains("<span class=\"dim\">default</span>"), "{page}");
    // The grant moves within the file, and the page follows.
    let moved = format!("# Another line.\n{written}");
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", &moved);
    operator.page_with("/approvals", &format!("toolcell.toml</bdi>:{}</span>", line + 1));
    // A manifest that cannot be read says nothing about where the grant stands.
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", "version = ");
    let page = operator.page_with("/approvals", "not in the manifest as it is now");
    assert!(page.contains("<bdi>UNITS</bdi>") && !page.contains("toolcell.toml</bdi>:"), "{page}");
    let key = Operator::key(&page, "/approvals/answer");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
    assert_eq!(operator.host.answer_to(&id).text(), "hello");
}

/// An operator who ends a call that waits for a person learns that it did not run, and so do its
/// caller, the audit and the console.
#[test]
fn a_call_that_is_ended_while_it_waits_for_a_person_did_not_run_and_that_is_said() {
    let mut operator = approving("approve_in = [\"client\", \"console\"]");
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("echo", json!({"text": "hello"}));
    let _ = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    let page = operator.decides("/calls/stop", "call=1");
    let told = "Call 1 of &quot;echo&quot; waited for a person&#39;s approval: it ends, and does not run.";
    assert!(page.contains(told) || page.contains(&told.replace("&#39;", "'")), "{page}");
    let said = "the operator ended the call while it waited for a person's approval: it did not run";
    assert_eq!(operator.host.answer_to(&id).error_text(), said);
    let asked = operator.host.recorded("the question", |record| record["event"] == "call.asked");
    assert_eq!((&asked["asked"], &asked["answer"]), (&json!("approval"), &json!("cancelled")));
    assert_eq!(asked["detail"], said);
    let ended = operator.host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!((&ended["outcome"], &ended["detail"]), (&json!("cancelled"), &json!(said)));
    let page = operator.page_with("/approvals", "No call waits for a person.");
    let session = operator.decided("stop")["session"].as_str().unwrap().to_owned();
    let row = format!(
        "<bdi>cancelled</bdi>: it did not run</div></td><td role=\"cell\" data-label=\"By\"><div><bdi>the console's session {session}, by ending the call</bdi>"
    );
    assert!(page.contains(&row), "{row}: {page}");
    operator.host.still_answers();
}

#[test]
fn a_call_that_its_caller_ends_while_it_waits_for_a_person_is_shown_as_one_that_did_not_run() {
    let mut operator = approving("approve_in = [\"console\"]");
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("echo", json!({"text": "hello"}));
    let _ = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    operator.host.cancel(&id);
    let asked = operator.host.recorded("the question", |record| record["event"] == "call.asked");
    let said = "the call was cancelled while it waited for a person's approval: it did not run";
    assert_eq!((&asked["answer"], &asked["detail"]), (&json!("cancelled"), &json!(said)));
    let ended = operator.host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!((&ended["outcome"], &ended["detail"]), (&json!("cancelled"), &json!(said)));
    let page = operator.page_with("/approvals", "<bdi>cancelled</bdi>: it did not run");
    assert!(page.contains("<bdi>the caller</bdi>") && page.contains("No call waits for a person."), "{page}");
}

/// A guest that waits for an answer has begun, and its question is not said to have timed out.
#[test]
fn a_call_that_is_ended_while_its_guest_waits_for_an_answer_says_so() {
    let mut operator = Operator::of(&manifest_of(&["good", "asks"]).replace("deadline = \"5s\"", "deadline = \"1h\""));
    operator.host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let form = json!({"form": {"type": "object", "properties": {"name": {"type": "string"}}}});
    let id = operator.host.start_call("ask", json!({"rounds": [{"who": form}]}));
    let asked = operator.host.next_of("elicitation/create");
    let _ = operator.page_with("/", "asks</span>");
    let page = operator.decides("/calls/stop", "call=1");
    assert!(page.contains("is being ended."), "{page}");
    let said = "the operator ended the call while it waited for an answer to its question";
    assert_eq!(operator.host.answer_to(&id).error_text(), said);
    assert_eq!(operator.host.next_of("notifications/cancelled")["params"]["requestId"], asked["id"]);
    let question = operator.host.recorded("the question", |record| record["event"] == "call.asked");
    let recorded = (&question["asked"], &question["answer"], &question["detail"]);
    assert_eq!(recorded, (&json!("form"), &json!("cancelled"), &json!("the operator ended the call")));
    let ended = operator.host.recorded("the end", |record| record["event"] == "call.finished");
    assert_eq!((&ended["outcome"], &ended["detail"]), (&json!("cancelled"), &json!(said)));
    operator.host.still_works();
}

/// A console whose operators approve calls of `add`, which tools of `calls` may make.
fn approving_nested() -> Operator {
    let manifest =
        manifest_of(&["good", "calls"]).replace("version = 1\n", "version = 1\n[server]\napprove_in = [\"console\"]\n");
    Operator::of(&format!("{manifest}calls = ['add']\n[components.good.tools.add]\napproval = \"always\"\n"))
}

#[test]
fn a_call_that_a_tool_makes_is_shown_with_its_run_and_allowed_for_as_many_as_the_operator_says() {
    for is_modern in [false, true] {
        let mut operator = approving_nested();
        if !is_modern {
            operator.host.initialize("2025-11-25");
        }
        let storm = json!({"tool": "add", "arguments": {"a": 1, "b": 1}, "times": 4});
        let id = operator.host.start_call("storm", storm);
        let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
        let question = "Allow the tool &quot;storm&quot; to call the tool &quot;add&quot; of the component \
                        &quot;good&quot;? Calls that this run has made so far: 0.";
        assert!(page.contains(question), "{page}");
        assert!(page.contains("value=\"run\"") && page.contains("name=\"calls\""), "{page}");
        let key = Operator::key(&page, "/approvals/answer");
        for calls in ["0", "101", "many", ""] {
            let page = operator.decides("/approvals/answer", &format!("key={key}&answer=run&calls={calls}"));
            assert!(page.contains("At most 100 calls of one run can be allowed."), "{calls}: {page}");
        }
        let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=run&calls=3"));
        let page = operator.page_with("/approvals", "made so far: 3.");
        let next = Operator::key(&page, "/approvals/answer");
        assert_ne!(next, key);
        let _ = operator.decides("/approvals/answer", &format!("key={next}&answer=decline"));
        let answer = operator.host.answer_to(&id);
        let refused = "an operator declined: \"add\" was not run";
        assert_eq!(serde_json::from_str::<Value>(answer.text()).unwrap(), json!({"ok": 3, "refused": {refused: 1}}));
        let asked = operator.host.recorded("the grant", |record| record["answer"] == "granted");
        assert_eq!(asked["detail"], "for this run; 1 left");
    }
}

#[test]
fn a_call_of_a_client_is_not_allowed_for_a_run() {
    let mut operator = approving("approve_in = [\"console\"]");
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("echo", json!({"text": "a"}));
    let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    assert!(!page.contains("value=\"run\""), "{page}");
    let key = Operator::key(&page, "/approvals/answer");
    let page = operator.decides("/approvals/answer", &format!("key={key}&answer=run&calls=3"));
    assert!(page.contains("At most 0 calls of one run can be allowed."), "{page}");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=decline"));
    assert!(operator.host.answer_to(&id).is_error());
}
