//! A hostile guest has a secret and tries every way to carry it out. The output names the secret
//! and holds no part of it.
//!
//! Promise: a secret that guests hold is taken out of all that they say.

use serde_json::json;
use toolcell_tests::TestHost;
use toolcell_tests::loopback::HttpServer;

use super::folder;

const FIXTURE: &str = "exfiltrate";

/// A value that appears nowhere by chance.
const VALUE: &str = "s3cr3t-8d1f7c2a94";

/// A host whose guest holds the secret TOKEN, and may send requests to a server that gets the
/// secret KEY.
fn serving(server: &HttpServer) -> TestHost {
    let address = server.address();
    let tables = format!(
        r#"
[{{c}}.network]
http = ["http://{address}"]
private = ["{address}"]

[{{c}}.secrets]
TOKEN = {{ from = "env:TEST_TOKEN", expose = true }}
KEY = {{ from = "env:TEST_KEY", header = "X-Key", for = "http://{address}/api/*" }}
"#
    );
    TestHost::recording_in(folder(FIXTURE, &tables), &[("TEST_TOKEN", VALUE), ("TEST_KEY", "an0ther-secret-77")])
}

#[test]
fn a_secret_that_the_guest_holds_reaches_nobody_but_the_servers_it_may_talk_to() {
    let server = HttpServer::start();
    let mut host = serving(&server);
    host.initialize("2025-06-18");
    let ways = host.call("leak_ways", json!({})).structured().clone();
    let ways: Vec<&str> = ways["ways"].as_array().unwrap().iter().map(|way| way.as_str().unwrap()).collect();
    assert!(ways.len() >= 14, "{ways:?}");
    for from in ["env", "config"] {
        for way in ways.iter().filter(|way| !["url", "header"].contains(way)) {
            let sent = json!({"name": "leak", "arguments": {"from": from, "name": "TOKEN", "way": way}, "_meta": {"progressToken": 1}});
            let reply = host.request("tools/call", sent).to_string();
            assert!(!reply.contains(VALUE), "{from} by {way}: {reply}");
            assert!(!reply.contains("nothing to leak"), "{from} by {way}: {reply}");
            for frame in host.kept() {
                assert!(!frame.to_string().contains(VALUE), "{from} by {way}: {frame}");
            }
        }
    }
    let _ = host.recorded("the calls", |record| record["event"] == "call.finished");
    assert!(!host.folder().read("audit.jsonl").contains(VALUE));
    assert!(!host.said().contains(VALUE), "{}", host.said());
}

#[test]
fn bytes_of_a_result_are_looked_through_as_well() {
    let server = HttpServer::start();
    let mut host = serving(&server);
    let answer = host.call("leak", json!({"from": "env", "name": "TOKEN", "way": "blob"}));
    // Base64 of the value, at each of the three offsets it can have in a longer text.
    for encoded in ["czNjcjN0LThkMWY3YzJhOTQ", "MzY3IzdC04ZDFmN2MyYTk0", "zM2NyM3QtOGQxZjdjMmE5N"] {
        assert!(!answer.everything().contains(encoded), "{}", answer.everything());
    }
}

#[test]
fn a_secret_that_the_host_adds_is_not_even_seen_by_the_guest() {
    let server = HttpServer::start();
    let mut host = serving(&server);
    let halves = json!(["an0ther-", "secret-77"]);
    let found = host.call("seen", json!({"url": server.url("/api/echo"), "part": halves})).structured().clone();
    assert_eq!((&found["status"], &found["seen"]), (&json!(200), &json!(false)), "{found}");
    assert_eq!(server.only_seen().values("x-key"), ["an0ther-secret-77"]);
    // The guest does see text that is not secret.
    let found =
        host.call("seen", json!({"url": server.url("/api/echo"), "part": ["/api", "/echo"]})).structured().clone();
    assert_eq!(found["seen"], true);
    // The text it saw cannot be carried further: it is redacted before the next request leaves the
    // host.
    for way in ["url", "header"] {
        let leak = json!({"from": "echo", "url": server.url("/api/echo"), "way": way, "out": server.url("/elsewhere")});
        let answer = host.call("leak", leak);
        assert!(answer.text().starts_with("sent"), "{}", answer.text());
        let out = server.seen().pop().unwrap();
        assert!(out.target().starts_with("/elsewhere"), "{}", out.head);
        assert!(!out.head.contains("an0ther"), "{}", out.head);
    }
}

#[test]
fn another_component_and_another_tool_get_no_secret_of_this_one() {
    let server = HttpServer::start();
    let staged = serving(&server);
    let manifest = staged.folder().read("toolcell.toml");
    drop(staged);
    let staged = folder(FIXTURE, "");
    let other = "\n[components.other]\nsource = \"components/exfiltrate.wasm\"\nprefix = \"other_\"\n\n[components.exfiltrate.tools.leak]\nsecrets = []\n";
    staged.write("toolcell.toml", manifest + other);
    let mut host = TestHost::recording_in(staged, &[("TEST_TOKEN", VALUE), ("TEST_KEY", "an0ther-secret-77")]);
    for tool in ["leak", "other_leak"] {
        for from in ["env", "config"] {
            let answer = host.call(tool, json!({"from": from, "name": "TOKEN", "way": "text"}));
            assert!(answer.text().starts_with("nothing to leak"), "{tool} {from}: {}", answer.text());
        }
    }
}
