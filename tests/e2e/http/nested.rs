//! Calls that tools make, behind replicas: a run that waits for a person goes on at any of them,
//! for the caller whose it is.
//!
//! Promise: a nested call is a call.

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{manifest_of, modern_meta};

use super::known::{bearer, with_tokens};

fn replicas(engine: &Engine) -> ([WebHost; 3], [String; 2]) {
    let manifest = format!(
        "{}calls = ['add', 'keyvalue']\n[components.good.tools.add]\napproval = \"always\"\n\
         [components.reach_state.keyvalue]\n",
        manifest_of(&["good", "reach_state", "calls"])
    );
    with_tokens(engine, &manifest)
}

/// The calls of a run: one that counts, and two that a person is asked about, with one between.
fn calls() -> Value {
    let count = json!({"tool": "keyvalue", "arguments": {"op": "increment", "key": "n"}});
    let add = |number: u64| json!({"tool": "add", "arguments": {"a": number, "b": 0}});
    json!({"calls": [count, add(1), count, add(2)]})
}

/// A call of `relay_each`, with what `more` brings.
fn relaying(token: &str, more: &Value) -> Ask {
    let mut params = json!({"name": "relay_each", "arguments": calls(), "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    bearer(Ask::call("relay_each", json!({})).saying(&body), token)
}

fn accepting(round: &Value) -> Value {
    let asked = round["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{round}"));
    let accept = json!({"action": "accept", "content": {}});
    let responses: serde_json::Map<String, Value> = asked.keys().map(|key| (key.clone(), accept.clone())).collect();
    json!({"requestState": round["result"]["requestState"], "inputResponses": responses})
}

#[test]
fn a_run_goes_on_at_any_replica_and_at_one_of_them_alone() {
    let engine = Engine::start(&[]);
    let ([one, other, third], [ann, bob]) = replicas(&engine);
    let first = one.ask(&relaying(&ann, &json!({}))).frame();
    let answer = accepting(&first);
    // Another caller who has the state has nothing.
    let stolen = other.ask(&relaying(&bob, &answer)).frame();
    assert_eq!(stolen["error"]["message"], "params.requestState belongs to another caller", "{stolen}");
    let second = other.ask(&relaying(&ann, &answer)).frame();
    let replayed = third.ask(&relaying(&ann, &answer)).frame();
    let said = replayed["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{replayed}"));
    assert!(said.starts_with("this run cannot go on: it went on already"), "{said}");
    // The replica that keeps nothing of it may be gone by then.
    drop(other);
    let last = third.ask(&relaying(&ann, &accepting(&second))).frame();
    let ends = &last["result"]["structuredContent"];
    let counts = [&ends[0]["ok"]["structured"]["ok"], &ends[2]["ok"]["structured"]["ok"]];
    assert_eq!(counts, [&json!(1), &json!(2)], "{last}");
}

#[test]
fn two_replicas_that_get_one_answer_at_once_run_it_once() {
    let engine = Engine::start(&[]);
    let (replicas, [ann, _]) = replicas(&engine);
    let first = replicas[0].ask(&relaying(&ann, &json!({}))).frame();
    let answer = accepting(&first);
    let mut wires: Vec<_> = replicas.iter().map(WebHost::connect).collect();
    wires.iter_mut().for_each(|wire| wire.send(&relaying(&ann, &answer).bytes()));
    let replies: Vec<Value> = wires.iter_mut().map(|wire| wire.reply().frame()).collect();
    let went_on = replies.iter().filter(|reply| reply["result"]["resultType"] == "input_required").count();
    assert_eq!(went_on, 1, "{replies:#?}");
}

#[test]
fn a_call_beneath_another_counts_against_what_replicas_share() {
    let engine = Engine::start(&[]);
    let manifest =
        format!("{}calls = ['echo']\n[components.good.limits]\nrate = \"3/min\"\n", manifest_of(&["good", "calls"]));
    let (replicas, [ann, _]) = with_tokens(&engine, &manifest);
    let relay = |replica: &WebHost| {
        let arguments = json!({"tool": "echo", "arguments": {"text": "x"}});
        let reply = replica.ask(&bearer(Ask::call("relay", arguments), &ann)).frame();
        reply["result"]["structuredContent"].clone()
    };
    for replica in &replicas {
        assert_eq!(relay(replica)["ok"]["texts"], json!(["x"]));
    }
    for replica in &replicas {
        assert_eq!(relay(replica)["refused"], "Busy");
    }
}
