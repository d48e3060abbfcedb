//! Grants of single tools: they narrow the component's, and never widen them.
//!
//! Promise: a tool has no more than its component.

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, TcpEcho};

use super::{Denied, assert_denied, assert_refused, came_to, folder};

#[test]
fn a_tool_may_have_fewer_mounts_and_less_access() {
    let tables = r#"
[{c}.filesystem]
"/data" = { path = "data", access = "write" }
"/more" = { path = "more" }

[{c}.tools.read_narrowed]
filesystem = {}

[{c}.tools.write_narrowed]
filesystem = { "/data" = { access = "read" } }
"#;
    let staged = folder("reach_files", tables);
    staged.write("data/a.txt", "alpha");
    staged.write("more/b.txt", "beta");
    let mut host = TestHost::recording_in(staged, &[]);
    assert_eq!(came_to(&host.call("read", json!({"path": "/more/b.txt"}))), Ok(json!("beta")));
    assert_eq!(came_to(&host.call("write", json!({"path": "/data/new.txt", "bytes": "x"}))), Ok(json!(1)));
    assert_eq!(came_to(&host.call("read_narrowed", json!({"path": "/data/a.txt"}))), Err("no-mount".to_owned()));
    assert_eq!(came_to(&host.call("read_narrowed", json!({"path": "/more/b.txt"}))), Err("no-mount".to_owned()));
    assert_eq!(
        came_to(&host.call("write_narrowed", json!({"path": "/more/b.txt", "bytes": "x"}))),
        Err("no-mount".to_owned())
    );
    let answer = host.call("write_narrowed", json!({"path": "/data/a.txt", "bytes": "x", "existing": true}));
    assert_eq!(came_to(&answer), Err("read-only".to_owned()));
    let denied = Denied {
        capability: "filesystem",
        asked: "write /data/a.txt",
        because: "tool \"write_narrowed\" may read there, not write",
        section: "components.reach_files.tools.write_narrowed.filesystem",
        allow: "\"/data\" = { access = \"write\" }",
    };
    assert_denied(&host, &answer, &denied);
    assert_eq!(host.folder().read("data/a.txt"), "alpha");
}

#[test]
fn a_tool_may_have_fewer_requests() {
    let server = HttpServer::start();
    let address = server.address();
    let tables = format!(
        "[{{c}}.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\n[{{c}}.tools.http_narrowed]\nnetwork = {{ http = [\"GET http://{address}/v1/*\"] }}\n\n[{{c}}.tools.http_follow]\nnetwork = {{}}\n"
    );
    let mut host = TestHost::recording(&super::manifest("reach_http", &tables));
    let mut asked = |tool: &str, method: &str, path: &str| {
        let answer = host.call(tool, json!({"method": method, "url": server.url(path)}));
        (came_to(&answer).map(|found| found["status"].clone()), answer)
    };
    assert_eq!(asked("http", "POST", "/v2/x").0, Ok(json!(200)));
    assert_eq!(asked("http_narrowed", "GET", "/v1/x").0, Ok(json!(200)));
    let seen = server.seen().len();
    for (tool, method, path) in
        [("http_narrowed", "GET", "/v2/x"), ("http_narrowed", "POST", "/v1/x"), ("http_follow", "GET", "/v1/x")]
    {
        let (found, answer) = asked(tool, method, path);
        assert_eq!(found, Err("response: ErrorCode::HttpRequestDenied".to_owned()), "{tool} {method} {path}");
        assert!(answer.denials()[0].contains(&format!("no rule of tool {tool:?} allows it")), "{:?}", answer.denials());
    }
    assert_eq!(server.seen().len(), seen);
    let record = host.recorded("a denial", |record| record["event"] == "call.denied");
    assert_eq!(record["section"], "components.reach_http.tools.http_narrowed.network", "{record}");
}

#[test]
fn a_tool_may_have_fewer_connections() {
    let server = TcpEcho::start();
    let addr = server.address();
    let tables = format!(
        "[{{c}}.network]\ntcp = [\"{addr}\"]\nprivate = [\"{addr}\"]\n\n[{{c}}.tools.tcp_narrowed]\nnetwork = {{ tcp = [] }}\n"
    );
    let mut host = TestHost::recording(&super::manifest("reach_sockets", &tables));
    let goal = json!({"addr": addr.to_string()});
    assert_eq!(came_to(&host.call("tcp", goal.clone())), Ok(json!("hello")));
    assert!(came_to(&host.call("tcp_narrowed", goal)).is_err());
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_tool_may_have_fewer_settings() {
    let tables = r#"
[{c}.env]
UNITS = "metric"
CITY = "Oslo"

[{c}.config]
theme = "dark"

[{c}.tools.settings_narrowed]
env = ["UNITS"]
config = []
"#;
    let mut host = TestHost::recording(&super::manifest("reach_settings", tables));
    let all = came_to(&host.call("settings", json!({}))).unwrap();
    assert_eq!((all["env"].as_array().unwrap().len(), all["config"].as_array().unwrap().len()), (2, 1));
    let fewer = came_to(&host.call("settings_narrowed", json!({}))).unwrap();
    assert_eq!((&fewer["env"], &fewer["config"]), (&json!([["UNITS", "metric"]]), &json!([])));
}

#[test]
fn a_tool_may_have_no_state() {
    let tables = "[{c}.keyvalue]\n\n[{c}.tools.keyvalue_narrowed]\nkeyvalue = false\n";
    let mut host = TestHost::recording(&super::manifest("reach_state", tables));
    assert_eq!(came_to(&host.call("keyvalue", json!({"op": "set", "key": "a", "value": "v"}))), Ok(Value::Null));
    let answer = host.call("keyvalue_narrowed", json!({"op": "get", "key": "a"}));
    assert_eq!(came_to(&answer), Err("open: access-denied".to_owned()));
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(record["section"], "components.reach_state.tools.keyvalue_narrowed", "{record}");
}

#[test]
fn a_tool_that_would_get_more_than_its_component_is_a_load_error() {
    let base = "[{c}.filesystem]\n\"/data\" = { path = \"components\" }\n\n[{c}.network]\nhttp = [\"GET https://a.example/v1/*\"]\n\n[{c}.env]\nUNITS = \"metric\"\n";
    for (fixture, line, word) in [
        ("exfiltrate", "network = { http = [\"https://a.example/v1/*\"] }", "does not lie within"),
        ("exfiltrate", "network = { http = [\"GET https://b.example/v1/*\"] }", "does not lie within"),
        ("exfiltrate", "network = { http = [\"GET https://a.example\"] }", "does not lie within"),
        ("exfiltrate", "network = { private = [\"10.0.0.0/8\"] }", "does not lie within"),
        ("exfiltrate", "env = [\"CITY\"]", "CITY"),
        ("exfiltrate", "secrets = [\"KEY\"]", "KEY"),
        ("exfiltrate", "keyvalue = true", "keyvalue"),
    ] {
        let without_files = base.split("[{c}.network]").nth(1).unwrap();
        let tables = format!("[{{c}}.network]{without_files}\n[{{c}}.tools.leak]\n{line}\n");
        assert_refused(&folder(fixture, &tables), &[word, "toolcell.toml"]);
    }
    let files = "[{c}.filesystem]\n\"/data\" = { path = \"components\" }\n\n[{c}.tools.read]\n";
    for (line, word) in [
        ("filesystem = { \"/data\" = { access = \"write\" } }", "adds nothing"),
        ("filesystem = { \"/other\" = { access = \"read\" } }", "/other"),
    ] {
        assert_refused(&folder("reach_files", &format!("{files}{line}\n")), &[word, "toolcell.toml"]);
    }
}
