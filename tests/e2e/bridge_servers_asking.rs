//! What another MCP server asks the person in the middle of a call: passed on where the manifest
//! says so, and nothing else ever.

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, McpEra, McpScript, Scripted, events, result};

use super::bridge_servers::{added, empty, unasked};

/// The variable that the manifest sets.
const LINES: &str = "[components.far.env]\nELICITATION = \"pass\"\n";

fn list(_: &Value) -> Value {
    json!({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}], "resultType": "complete"})
}

fn question(id: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
}

/// A server with sessions. It asks, and for more than a bridge ever passes on.
fn session_server() -> HttpServer {
    let call = |call: &Value| {
        let roots = json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"});
        let sampling = json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
        let answer =
            json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": [{"type": "text", "text": "done"}]}});
        events(&[question("q"), roots, sampling, answer])
    };
    McpScript { era: McpEra::Session, list, call }.start()
}

/// The messages that it got in place of answers, by their ids.
fn answers(server: &HttpServer) -> Vec<(String, Value)> {
    let messages = server.seen().into_iter().filter_map(|seen| serde_json::from_slice::<Value>(&seen.body).ok());
    let answers = messages.filter(|message| message.get("method").is_none());
    let mut answers: Vec<_> = answers
        .map(|message| {
            let said = message.get("result").or(message.get("error")).cloned();
            (message["id"].as_str().unwrap().to_owned(), said.unwrap())
        })
        .collect();
    answers.sort_by(|one, other| one.0.cmp(&other.0));
    answers
}

/// The capabilities that the latest `initialize` declared.
fn declared(server: &HttpServer) -> Value {
    let mut messages = server.seen().into_iter().filter_map(|seen| serde_json::from_slice::<Value>(&seen.body).ok());
    let last = messages.rfind(|message| message["method"] == "initialize");
    last.unwrap()["params"]["capabilities"].clone()
}

#[test]
fn a_server_asks_the_person_where_the_manifest_says_so_and_for_nothing_else() {
    let server = session_server();
    let folder = empty();
    let shown = added(&folder, &server.url("/mcp"), &["--elicitation"]);
    assert!(shown.succeeded().contains("  passes   on what the server asks the person"), "{shown:?}");
    assert!(folder.read("toolcell.toml").contains(LINES), "{}", folder.read("toolcell.toml"));
    assert_eq!(declared(&server), json!({"elicitation": {"form": {}, "url": {}}}));
    unasked(&folder, "");
    let mut host = TestHost::in_folder(folder);
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    let mut call = |answer: Value| {
        let id = host.start_call("far_greet", json!({}));
        let asked = host.next_of("elicitation/create");
        assert_eq!(asked["params"]["message"], "The tool \"far_greet\" asks: Who?");
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        assert_eq!(host.answer_to(&id).text(), "done");
    };
    call(json!({"action": "accept", "content": {"name": "Ada"}}));
    let said = answers(&server);
    assert_eq!(said[0], ("q".to_owned(), json!({"action": "accept", "content": {"name": "Ada"}})));
    for (id, error) in &said[1..] {
        assert_eq!(error["code"], -32601, "{id}: {error}");
    }
    assert_eq!(declared(&server), json!({"elicitation": {"form": {}}}));
    call(json!({"action": "decline"}));
    assert_eq!(answers(&server)[1].1, json!({"action": "decline"}));
}

#[test]
fn without_the_line_and_with_a_caller_that_cannot_be_asked_nobody_is_asked() {
    let server = session_server();
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &[]).succeeded();
    unasked(&folder, "");
    let mut host = TestHost::in_folder(folder.clone());
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    assert_eq!(host.call("far_greet", json!({})).text(), "done");
    assert_eq!(declared(&server), json!({}));
    let (_, error) = &answers(&server)[0];
    assert_eq!(error["message"], "this bridge does not pass on what its server asks the person");

    folder.write("toolcell.toml", format!("{}\n{LINES}", folder.read("toolcell.toml")));
    unasked(&folder, "");
    let mut host = TestHost::in_folder(folder);
    host.initialize("2025-11-25");
    assert_eq!(host.call("far_greet", json!({})).text(), "done");
    assert_eq!(declared(&server), json!({}));
}

#[test]
fn a_modern_server_gets_the_answers_with_the_call_again() {
    let call = |call: &Value| {
        let params = &call["params"];
        match params["inputResponses"].as_object() {
            None if params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object() => {
                let asked = json!({"method": "elicitation/create", "params": question("")["params"]});
                result(
                    call,
                    &json!({"resultType": "input_required", "inputRequests": {"who?": asked}, "requestState": "sealed"}),
                )
            }
            None => {
                let asked = json!({"method": "sampling/createMessage", "params": {}});
                result(call, &json!({"resultType": "input_required", "inputRequests": {"s": asked}}))
            }
            Some(answers) => {
                let text = format!("{} {}", params["requestState"].as_str().unwrap(), answers["who?"]);
                result(call, &json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
            }
        }
    };
    let server = McpScript { era: McpEra::Modern, list, call }.start();
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &["--elicitation"]).succeeded();
    unasked(&folder, "");
    let said = "sealed {\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}";
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});

    let mut host = TestHost::in_folder(folder.clone());
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let id = host.start_call("far_greet", json!({}));
    let asked = host.next_of("elicitation/create");
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    assert_eq!(host.answer_to(&id).text(), said);

    // The caller's own call ends, and comes again with the answer.
    let mut host = TestHost::in_folder(folder.clone());
    let params = json!({"name": "far_greet", "arguments": {}, "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    let first = host.request("tools/call", params.clone());
    let requests = first["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap().clone();
    let mut again = params;
    again["requestState"] = first["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: answer});
    let second = host.request("tools/call", again);
    assert_eq!(second["result"]["content"][0]["text"], said, "{second}");

    // What is not a question to the person is not passed on.
    let mut host = TestHost::in_folder(folder);
    host.initialize("2025-11-25");
    let refused = host.call("far_greet", json!({}));
    assert!(refused.error_text().contains("the server asks for what a bridge does not pass on"), "{refused:?}");
}

#[test]
fn a_server_that_asks_without_end_or_wrongly_is_answered_with_errors() {
    let call = |call: &Value| -> Scripted {
        match call["params"]["name"].as_str().unwrap() {
            "wrong" => {
                let mut wrong = question("q");
                wrong["params"]["requestedSchema"] = json!({"type": "array"});
                let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": []}});
                events(&[wrong, answer])
            }
            _ => events(&(0..50).map(|number| question(&number.to_string())).collect::<Vec<_>>()),
        }
    };
    let list = |_: &Value| {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        json!({"tools": [tool("wrong"), tool("endless")]})
    };
    let server = McpScript { era: McpEra::Session, list, call }.start();
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &["--elicitation"]).succeeded();
    unasked(&folder, "");
    let mut host = TestHost::in_folder(folder);
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let _ = host.call("far_wrong", json!({}));
    let (_, error) = answers(&server).pop().unwrap();
    assert_eq!(error["code"], -32602, "{error}");
    let id = host.start_call("far_endless", json!({}));
    for _ in 0..8 {
        let asked = host.next_of("elicitation/create");
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}}));
    }
    let answer = host.answer_to(&id);
    assert!(answer.error_text().contains("asks for \"elicitation/create\" again and again"), "{answer:?}");
}
