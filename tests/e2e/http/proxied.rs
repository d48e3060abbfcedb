//! Behind nginx, with the documented configuration: two replicas in turns, no affinity, streams
//! without delay, one replica replaced while the other goes on. Without an nginx the tests are
//! skipped, and stderr says so.

use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolcell_tests::nginx::{self, Nginx};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Folder, alone, manifest_of, modern_meta};

use crate::clients::{converse, python_client};

/// The name in clients' requests.
const NAME: &str = "tools.example.com";

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A host with that name and this key, which records its calls.
fn replica(key: &str) -> WebHost {
    let manifest = manifest_of(&["good", "asks", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\"");
    let manifest = manifest.replacen("version = 1\n", "version = 1\n[server]\nstate_key = \"file:state.key\"\n", 1);
    let folder = Folder::with_manifest(&format!("{manifest}\n[http]\nhosts = [\"{NAME}\"]\n"));
    folder.write("state.key", key);
    std::fs::set_permissions(folder.path().join("state.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
}

fn addresses<const N: usize>(replicas: [&WebHost; N]) -> [SocketAddr; N] {
    replicas.map(WebHost::address)
}

/// nginx in front of these replicas. `None` if there is no nginx.
fn proxy(replicas: [&WebHost; 2]) -> Option<Nginx> {
    nginx::installed().map(|program| Nginx::before(&program, &addresses(replicas), |shown| shown))
}

fn named(ask: Ask) -> Ask {
    ask.with("host", NAME)
}

fn echo(text: &str) -> Ask {
    named(Ask::call("echo", json!({"text": text})))
}

/// The outcomes of this tool's calls, as this replica recorded them.
fn outcomes(replica: &WebHost, tool: &str) -> Vec<String> {
    let of_tool = |record: &Value| record["event"] == "call.finished" && record["tool"] == tool;
    let records = replica.process().audit();
    records.iter().filter(|record| of_tool(record)).map(|record| record["outcome"].as_str().unwrap().into()).collect()
}

#[test]
fn requests_of_one_client_go_to_all_replicas() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let one = replica(KEY);
    let other = replica(KEY);
    let Some(nginx) = proxy([&one, &other]) else { return };
    let mut kept = Wire::to(nginx.address());
    for at in 0..10 {
        let text = at.to_string();
        assert_eq!(kept.ask(&echo(&text)).frame()["result"]["content"][0]["text"], text);
        assert_eq!(Wire::to(nginx.address()).ask(&echo(&text)).frame()["result"]["content"][0]["text"], text);
    }
    for replica in [&one, &other] {
        assert_eq!(outcomes(replica, "echo").len(), 10, "they take turns");
    }
    let elsewhere = Wire::to(nginx.address()).ask(&echo("x").with("host", "evil.example.com"));
    assert_eq!(elsewhere.status(), 403, "the name that was asked for goes on to the replica");
    let large = Wire::to(nginx.address()).ask(&echo(&"x".repeat(2 << 20)));
    assert_eq!(large.frame()["result"]["isError"], true, "what is too large is for the tool's limits to say");
}

/// A call of a tool that asks for a name. With `state` it is the second round and brings the
/// answer.
fn round(state: Option<&Value>) -> Ask {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let mut params = json!({"name": "ask", "arguments": {"rounds": [{"who": {"form": form}}]}, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    if let Some(state) = state {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ada"}}});
    }
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    named(Ask::call("ask", json!({})).saying(&body))
}

#[test]
fn a_question_is_put_by_one_replica_and_its_answer_taken_by_another() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let one = replica(KEY);
    let other = replica(KEY);
    let Some(nginx) = proxy([&one, &other]) else { return };
    let mut wire = Wire::to(nginx.address());
    let asked = wire.ask(&round(None)).frame();
    assert_eq!(asked["result"]["inputRequests"]["who"]["method"], "elicitation/create", "{asked}");
    let answered = wire.ask(&round(Some(&asked["result"]["requestState"]))).frame();
    assert_eq!(answered["result"]["content"][0]["text"], "accepted {\"name\":\"Ada\"}", "{answered}");
    let mut each = [outcomes(&one, "ask"), outcomes(&other, "ask")];
    each.sort();
    assert_eq!(each, [["input_required"], ["ok"]]);
}

#[test]
fn replicas_that_share_no_key_refuse_one_anothers_questions() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let one = replica(KEY);
    let other = replica(&KEY.to_ascii_uppercase());
    let Some(nginx) = proxy([&one, &other]) else { return };
    let mut wire = Wire::to(nginx.address());
    let asked = wire.ask(&round(None)).frame();
    let refused = wire.ask(&round(Some(&asked["result"]["requestState"])));
    assert_eq!(refused.error().1, -32602, "{refused:?}");
}

#[test]
fn events_pass_as_they_come_and_so_does_the_clients_leave() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let one = replica(KEY);
    let other = replica(KEY);
    let Some(nginx) = proxy([&one, &other]) else { return };
    let mut params = json!({"name": "slow", "arguments": {"steps": 1_000, "step_ms": 20}, "_meta": modern_meta()});
    params["_meta"]["progressToken"] = json!("p");
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    let mut wire = Wire::to(nginx.address());
    wire.send(&named(Ask::call("slow", json!({})).saying(&body)).bytes());
    assert_eq!(wire.head().status(), 200);
    for step in [1.0, 2.0, 3.0] {
        assert_eq!(wire.event().unwrap()["params"]["progress"].as_f64(), Some(step));
    }
    assert!(outcomes(&one, "slow").is_empty() && outcomes(&other, "slow").is_empty(), "it runs still");
    wire.stream().shutdown(Shutdown::Both).unwrap();
    // The first replica was asked, since each nginx begins with the first.
    assert_eq!(one.outcome("slow"), "cancelled");
}

#[test]
fn a_subscription_through_it_is_told_of_another_list() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let one = replica(KEY);
    let other = replica(KEY);
    let Some(nginx) = proxy([&one, &other]) else { return };
    let mut wires: Vec<Wire> = (0..4).map(|_| Wire::to(nginx.address())).collect();
    for wire in &mut wires {
        wire.send(&named(Ask::listen(1)).bytes());
        assert_eq!(wire.head().status(), 200);
        assert_eq!(wire.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    }
    for replica in [&one, &other] {
        let folder = replica.process().folder();
        let manifest = folder.read("toolcell.toml");
        folder.write("toolcell.toml", manifest.replace("[components.good]", "[components.good]\nprefix = \"new_\""));
    }
    for wire in &mut wires {
        assert_eq!(wire.event().unwrap()["method"], "notifications/tools/list_changed");
    }
}

#[test]
fn a_replica_is_replaced_and_no_request_is_lost() {
    let _alone = alone("it starts replicas and a balancer of its own");
    let old = replica(KEY);
    let other = replica(KEY);
    let new = replica(KEY);
    let Some(mut nginx) = proxy([&old, &other]) else { return };
    let address = nginx.address();
    let is_over = AtomicBool::new(false);
    let ask = |client: usize| {
        let mut answered = 0;
        while !is_over.load(Ordering::Relaxed) || answered == 0 {
            let text = format!("{client}: {answered}");
            let ask = match answered % 8 {
                0 => named(Ask::call("slow", json!({"steps": 1, "step_ms": 50}))),
                _ => echo(&text),
            };
            let frame = Wire::to(address).ask(&ask).frame();
            let said = if answered % 8 == 0 { "1 steps done" } else { &text };
            assert_eq!(frame["result"]["content"][0]["text"], said, "{frame}");
            answered += 1;
        }
        answered
    };
    let ask = &ask;
    let (answered, ended) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|client| scope.spawn(move || ask(client))).collect();
        // The clients must end even if an assertion here fails.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            old.begins("slow");
            nginx.goes_before(&addresses([&other]));
            old.process().terminate();
            let ended = old.into_process().ends();
            nginx.goes_before(&addresses([&new, &other]));
            new.begins("slow");
            ended
        }));
        is_over.store(true, Ordering::Relaxed);
        let answered: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        (answered, ended.unwrap())
    });
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(answered > 8, "{answered} requests");
    let cancelled = |replica: &WebHost| outcomes(replica, "slow").iter().any(|outcome| outcome != "ok");
    assert!(!cancelled(&other) && !cancelled(&new));
}

#[test]
fn the_python_sdk_needs_no_affinity() {
    let _alone = alone("it starts replicas and a balancer of its own");
    for mode in ["auto", "2026-07-28"] {
        let one = replica(KEY);
        let other = replica(KEY);
        let Some(nginx) = proxy([&one, &other]) else { return };
        let mut client = python_client("behind_proxy.py");
        client.args(["--url", &format!("http://{}/mcp", nginx.address())]);
        for replica in [&one, &other] {
            client.arg("--manifest").arg(replica.process().folder().manifest());
        }
        converse(&mut client, mode);
        for replica in [&one, &other] {
            assert!(outcomes(replica, "echo").len() > 1, "both are asked");
        }
    }
}
