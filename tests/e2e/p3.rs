//! Components of WASI 0.3: what the manifest says of them, each interface under the same rights,
//! limits and records as 0.2, and every way in which tasks, streams and futures are misused.
//!
//! Promise: waiting ends.
//! Promise: no path leads out of a mount.
//! Promise: a request goes where its rule says.
//! Promise: a socket goes where a rule says.

use std::time::Duration;

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, NameServer, Named, TcpEcho, UdpEcho};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of};

/// A manifest that serves this fixture with WASI 0.3, and these further tables. `{c}` in them
/// stands for `components.FIXTURE`.
fn manifest(fixture: &str, tables: &str) -> String {
    let manifest = manifest_of(&["good", fixture]).replace("fuel = 20_000_000", "fuel = 200_000_000");
    format!("{manifest}wasi = \"0.3\"\n{}", tables.replace("{c}", &format!("components.{fixture}")))
}

fn host(fixture: &str, tables: &str) -> TestHost {
    TestHost::recording(&manifest(fixture, tables))
}

fn result(host: &mut TestHost, tool: &str, arguments: Value) -> Value {
    host.call(tool, arguments).structured()["result"].clone()
}

/// The value of a function's result, or the text of its error.
fn outcome(answer: &Answer) -> Result<Value, String> {
    if answer.is_error() {
        let error = &answer.result()["structuredContent"];
        return Err(error["error"].as_str().unwrap().to_owned());
    }
    Ok(answer.structured()["result"].clone())
}

const HANDLES: &str = "too many handles: the tool held more than 1_000 at once (limit \"handles\")";
const OUT_OF_FUEL: &str = "out of fuel: the call used its whole budget of 200_000_000 units (limit \"fuel\")";

#[test]
fn the_manifest_says_which_components_may_have_wasi_0_3() {
    let folder = Folder::with_manifest(&manifest_of(&["p3"]));
    let said = Command::in_folder(&folder, &["check"]).run().failed_with(1).to_owned();
    for words in [
        "component \"p3\" needs WASI 0.3: wasi:cli/",
        "write wasi = \"0.3\" into [components.p3], or build it for WASI 0.2",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let folder = Folder::with_manifest(&format!("{}wasi = \"0.3\"\n", manifest_of(&["good"])));
    let said = Command::in_folder(&folder, &["check"]).run().failed_with(1).to_owned();
    assert!(said.contains("component \"good\" does not use WASI 0.3"), "{said}");
    let folder = Folder::with_manifest(&manifest("p3", ""));
    let said = Command::in_folder(&folder, &["check"]).run().succeeded().to_owned();
    assert!(said.contains("waits_many"), "{said}");
    let folder = Folder::with_manifest(&manifest_of(&["p3_program"]));
    assert!(Command::in_folder(&folder, &["check"]).run().failed_with(1).contains("needs WASI 0.3"));
}

#[test]
fn clocks_random_bytes_and_the_environment_are_those_of_0_2() {
    let mut host = host("p3", "args = ['x']\nstdin = 'typed in'\nenv = { A = '1' }\n");
    let time = result(&mut host, "time", json!({}));
    assert!(time[0].as_i64().unwrap() > 1_700_000_000 && time[1] == true, "{time}");
    assert_eq!(result(&mut host, "waits", json!({"nanoseconds": 1000})), true);
    assert_eq!(result(&mut host, "waits_many", json!({"count": 100, "nanoseconds": 1000})), 100);
    assert_eq!(result(&mut host, "random", json!({"count": 100})), json!([100, 100, true]));
    assert_eq!(result(&mut host, "random", json!({"count": 1_000_000_000})), json!([8192, 8192, true]), "fewer");
    assert_eq!(result(&mut host, "environment", json!({})), json!([["A", "1"]]));
    assert_eq!(result(&mut host, "arguments", json!({})), json!(["x"]));
    assert_eq!(result(&mut host, "is_terminal", json!({})), false);
    assert_eq!(result(&mut host, "reads", json!({})), "typed in");
    let exits = host.call("exits", json!({"code": 3}));
    assert!(exits.error_text().contains("status 3"), "{}", exits.error_text());
    host.still_works();
}

#[test]
fn nothing_is_there_without_a_grant() {
    let mut host = host("p3", "");
    assert_eq!(result(&mut host, "environment", json!({})), json!([]));
    assert_eq!(result(&mut host, "arguments", json!({})), json!([]));
    assert_eq!(result(&mut host, "reads", json!({})), "");
    let server = HttpServer::start();
    let url = server.url("/secret");
    let answer = host.call("fetch", json!({"method": "GET", "url": url, "body": null}));
    assert_eq!(outcome(&answer), Err("ErrorCode::HttpRequestDenied".to_owned()));
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(record["capability"], "http", "{record}");
    assert_eq!(server.connections(), 0);
    let mut files = self::host("p3_files", "");
    assert_eq!(result(&mut files, "folders", json!({})), json!([]));
}

#[test]
fn what_is_printed_is_the_calls_log_and_bounded() {
    let mut host = host("p3", "[{c}.limits]\nlog = \"1KiB\"\n");
    assert_eq!(result(&mut host, "prints", json!({"text": "a line of 0.3\n", "pieces": 2})), true);
    host.will_say("a line of 0.3");
    assert_eq!(
        result(&mut host, "prints", json!({"text": "x".repeat(1000), "pieces": 100})),
        true,
        "dropped, not failed"
    );
    let endless = host.call("prints", json!({"text": "x", "pieces": u32::MAX}));
    assert_eq!(endless.error_text(), OUT_OF_FUEL);
    host.still_works();
}

#[test]
fn a_program_gets_its_input_and_its_output_is_the_answer() {
    let tools = "[{c}.tools.show]\ndescription = 'd'\ninput = { x = 'x' }\nargs = ['show', '{x}']\nstdin = 'in {x}'\nenv = { X = '{x}' }\n\
                 [{c}.tools.exit_early]\ndescription = 'd'\nargs = ['exit']\n\
                 [{c}.tools.fail]\ndescription = 'd'\nargs = ['fail']\n\
                 [{c}.tools.spam]\ndescription = 'd'\nargs = ['spam']\n";
    let mut host = host("p3_program", tools);
    let shown = host.call("show", json!({"x": "y z"}));
    assert_eq!(shown.text(), r#"["show", "y z"] [("X", "y z")] "in y z""#);
    let exited = host.call("exit_early", json!({}));
    assert!(
        exited.error_text().contains('3') && exited.error_text().contains("why it ends"),
        "{}",
        exited.error_text()
    );
    let failed = host.call("fail", json!({}));
    assert!(failed.error_text().contains("why it fails"), "{}", failed.error_text());
    let output = host.call("spam", json!({}));
    assert!(output.error_text().contains("(limit \"output\")"), "{}", output.error_text());
    host.still_works();
}

#[test]
fn tasks_streams_and_futures_are_handles_and_end_with_their_call() {
    let mut host = host("p3", "stdin = 'never read'\n");
    for (tool, arguments) in [
        ("waits_many", json!({"count": 10_000, "nanoseconds": 3_600_000_000_000_u64})),
        ("holds_outputs", json!({"count": 10_000})),
    ] {
        assert_eq!(host.call(tool, arguments).error_text(), HANDLES, "{tool}");
        host.still_works();
    }
    assert_eq!(result(&mut host, "forgets_input", json!({"count": 10_000})), 10_000, "dropped ones are given back");
    assert_eq!(result(&mut host, "holds_outputs", json!({"count": 50})), 50, "left behind");
    assert_eq!(result(&mut host, "reads", json!({})), "never read");
    host.still_works();
}

#[test]
fn a_wait_ends_at_the_deadline_and_when_its_call_is_cancelled() {
    let hour = json!({"nanoseconds": 3_600_000_000_000_u64});
    let mut short = host("p3", "[{c}.limits]\ndeadline = \"200ms\"\n");
    let text = "deadline exceeded: the call took longer than 200ms (limit \"deadline\")";
    assert_eq!(short.call("waits", hour.clone()).error_text(), text);
    short.still_works();
    let mut host = host("p3", "[{c}.limits]\ndeadline = \"1h\"\n");
    host.still_works();
    let running = host.start_call("waits", hour);
    let started = host.recorded("the start", |record| record["event"] == "call.started" && record["tool"] == "waits");
    host.cancel(&running);
    let ended = host.recorded("the end", |record| record["event"] == "call.finished" && record["id"] == started["id"]);
    assert_eq!(ended["outcome"], "cancelled");
    host.still_works();
}

/// A host whose guest may send any request to this server, under these limits.
fn fetching(server: &HttpServer, limits: &str) -> TestHost {
    let address = server.address();
    let tables = format!(
        "[{{c}}.network]\nhttp = [\"GET,POST http://{address}/open/*\", \"http://{address}/endless\", \
         \"http://{address}/silent\", \"http://{address}/echo\"]\nprivate = [\"{address}\"]\n\n[{{c}}.limits]\n{limits}\n"
    );
    host("p3", &tables)
}

fn get(url: String) -> Value {
    json!({"method": "GET", "url": url, "body": null})
}

#[test]
fn requests_go_where_the_rules_say_and_nowhere_else() {
    let server = HttpServer::start();
    let mut host = fetching(&server, "");
    let answer = outcome(&host.call("fetch", get(server.url("/open/x")))).unwrap();
    assert_eq!(answer[0], 200, "{answer}");
    let body = json!({"method": "POST", "url": server.url("/open/y"), "body": "sent as a stream"});
    assert_eq!(outcome(&host.call("fetch", body)).unwrap()[0], 200);
    let seen = server.seen();
    assert_eq!((seen[0].method(), seen[0].target()), ("GET", "/open/x"));
    assert_eq!((seen[1].method(), seen[1].target()), ("POST", "/open/y"));
    assert_eq!(seen[1].values("content-length"), ["16"], "a body that is ready has a length");
    let denied = host.call("fetch", get(server.url("/closed")));
    assert_eq!(outcome(&denied), Err("ErrorCode::HttpRequestDenied".to_owned()));
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(record["capability"], "http", "{record}");
    assert!(record["asked"].as_str().unwrap().ends_with("/closed"), "{record}");
    assert_eq!(server.seen().len(), 2);
    host.still_works();
}

#[test]
fn what_the_host_keeps_of_an_unsent_request_is_bounded() {
    let server = HttpServer::start();
    let mut host = fetching(&server, "");
    let mut fetched = |bytes: usize| outcome(&host.call("fetch", get(format!("http://{}/x", "a".repeat(bytes)))));
    assert_eq!(fetched((8 << 10) + 1), Err("authority".to_owned()));
    assert_ne!(fetched(8 << 10), Err("authority".to_owned()));
}

#[test]
fn requests_and_their_bytes_are_counted_and_end_with_their_call() {
    let server = HttpServer::start();
    let mut host = fetching(&server, "http_requests = 3\negress = \"64KiB\"\ningress = \"64KiB\"\ndeadline = \"5s\"\n");
    assert_eq!(outcome(&host.call("fetch_head", json!({"url": server.url("/open/head")}))), Ok(json!(200)));
    assert_eq!(result(&mut host, "fetch_and_drop", json!({"url": server.url("/silent"), "count": 10})), 10);
    let endless = outcome(&host.call("sends_endlessly", json!({"url": server.url("/open/sink")})));
    assert!(endless.is_err(), "{endless:?}");
    host.still_works();
    let silent = fetching(&server, "deadline = \"300ms\"\n").call("fetch", get(server.url("/silent")));
    assert_eq!(silent.error_text(), "deadline exceeded: the call took longer than 300ms (limit \"deadline\")");
}

/// A read-only folder, a writable one with little room, and what is in them.
fn filled() -> TestHost {
    let tables = r#"
[{c}.filesystem]
"/data" = { path = "data" }
"/out" = { path = "out", access = "write", quota = "64KiB" }
"/tmp" = { scratch = "64KiB" }
"#;
    let folder = Folder::with_manifest(&manifest("p3_files", tables));
    for (path, text) in [
        ("data/a.txt", "alpha"),
        ("data/sub/b.txt", "beta"),
        ("out/c.txt", "gamma"),
        ("outside/secret.txt", "the secret"),
    ] {
        folder.write(path, text);
    }
    TestHost::recording_in(folder, &[])
}

fn assert_table(host: &mut TestHost, rows: &[(&str, Value, Result<Value, &str>)]) {
    for (tool, arguments, expected) in rows {
        let found = outcome(&host.call(tool, arguments.clone()));
        assert_eq!(found, expected.clone().map_err(str::to_owned), "{tool} {arguments}");
    }
}

#[test]
fn files_are_those_of_the_mounts_and_no_others() {
    let mut host = filled();
    let none = || Ok(Value::Null);
    assert_eq!(result(&mut host, "folders", json!({})), json!(["/data", "/out", "/tmp"]));
    assert_table(
        &mut host,
        &[
            ("read", json!({"path": "/data/a.txt"}), Ok(json!("alpha"))),
            ("read", json!({"path": "/data/sub/../a.txt"}), Ok(json!("alpha"))),
            ("read", json!({"path": "/data/missing"}), Err("NoEntry")),
            ("read", json!({"path": "/data/../outside/secret.txt"}), Err("NotPermitted")),
            ("read", json!({"path": "/data/sub"}), Err("IsDirectory")),
            ("read", json!({"path": "/etc/passwd"}), Err("no-mount")),
            ("listing", json!({"path": "/data"}), Ok(json!(["a.txt", "sub"]))),
            ("listing", json!({"path": "/data/a.txt"}), Err("NotDirectory")),
            ("stat", json!({"path": "/data/a.txt"}), Ok(json!(["file", 5, 1]))),
            ("write", json!({"path": "/out/new.txt", "text": "one"}), none()),
            ("append", json!({"path": "/out/new.txt", "text": " two"}), none()),
            ("read", json!({"path": "/out/new.txt"}), Ok(json!("one two"))),
            ("sync", json!({"path": "/out/new.txt"}), none()),
            ("touch", json!({"path": "/out/new.txt", "seconds": 1_000_000}), none()),
            ("touch", json!({"path": "/out/new.txt", "seconds": -1}), Err("Overflow")),
            ("make_folder", json!({"path": "/out/deep"}), none()),
            ("rename", json!({"path": "/out/new.txt", "to": "/out/deep/moved.txt"}), none()),
            (
                "same",
                json!({"path": "/out/deep/moved.txt", "other": "/out/deep/../deep/moved.txt"}),
                Ok(json!([true, true])),
            ),
            ("same", json!({"path": "/out/deep/moved.txt", "other": "/out/c.txt"}), Ok(json!([false, false]))),
            ("symlink", json!({"path": "c.txt", "to": "/out/inner"}), none()),
            ("readlink", json!({"path": "/out/inner"}), Ok(json!("c.txt"))),
            ("symlink", json!({"path": "../outside/secret.txt", "to": "/out/leads"}), Err("NotPermitted")),
            ("link", json!({"path": "/out/c.txt", "to": "/out/twin"}), none()),
            ("rename", json!({"path": "/out/c.txt", "to": "/tmp/c.txt"}), Err("CrossDevice")),
            ("remove", json!({"path": "/out/deep/moved.txt"}), none()),
            ("remove_folder", json!({"path": "/out/deep"}), none()),
            ("write", json!({"path": "/tmp/own", "text": "gone after the call"}), none()),
            ("read", json!({"path": "/tmp/own"}), Err("NoEntry")),
        ],
    );
    host.still_works();
}

#[test]
fn what_a_mount_does_not_allow_is_denied_and_recorded() {
    let mut host = filled();
    let before = outcome(&host.call("stat", json!({"path": "/data/a.txt"})));
    for (tool, arguments) in [
        ("write", json!({"path": "/data/a.txt", "text": "x"})),
        ("append", json!({"path": "/data/a.txt", "text": "x"})),
        ("set_size", json!({"path": "/data/a.txt", "size": 0})),
        ("make_folder", json!({"path": "/data/new"})),
        ("remove", json!({"path": "/data/a.txt"})),
        ("rename", json!({"path": "/data/a.txt", "to": "/data/b.txt"})),
        ("touch", json!({"path": "/data/a.txt", "seconds": 1})),
    ] {
        let answer = host.call(tool, arguments);
        assert_eq!(outcome(&answer), Err("ReadOnly".to_owned()), "{tool}");
        assert!(!answer.denials().is_empty(), "{tool}");
    }
    let record = host.recorded("a denial", |record| record["event"] == "call.denied");
    assert_eq!(record["capability"], "filesystem", "{record}");
    assert_eq!(outcome(&host.call("stat", json!({"path": "/data/a.txt"}))), before);
}

#[test]
fn a_mount_s_quota_and_a_call_s_handles_bound_streams_of_files() {
    let mut host = filled();
    let full = outcome(&host.call("fills", json!({"path": "/out/full"}))).unwrap_err();
    assert!(
        full.starts_with("InsufficientSpace after 49152"),
        "three pieces fit next to the file that is there: {full}"
    );
    assert_eq!(
        outcome(&host.call("set_size", json!({"path": "/out/full", "size": 1_u64 << 40}))),
        Err("InsufficientSpace".into())
    );
    assert_eq!(outcome(&host.call("remove", json!({"path": "/out/full"}))), Ok(Value::Null));
    assert_eq!(outcome(&host.call("forgets_reads", json!({"path": "/data/a.txt", "count": 5_000}))), Ok(json!(5_000)));
    assert_eq!(outcome(&host.call("forgets_write", json!({"path": "/out/left", "size": 1000}))), Ok(Value::Null));
    assert_eq!(outcome(&host.call("read", json!({"path": "/out/left"}))), Ok(json!("x".repeat(1000))));
    let many = host.call("opens_many", json!({"path": "/data/a.txt", "count": 10_000}));
    let refused = if many.is_error() { outcome(&many).unwrap_or_default() } else { Value::Null };
    assert_eq!(refused, Value::Null, "the host has room for fewer files than the call has handles");
    host.still_works();
}

fn dialing(names: &NameServer, rules: &str, limits: &str) -> TestHost {
    let dns = names.address();
    let tables = format!("[server]\ndns = [\"{dns}\"]\n\n[{{c}}.network]\n{rules}\n\n[{{c}}.limits]\n{limits}\n");
    host("p3_sockets", &tables)
}

#[test]
fn a_connection_goes_where_a_rule_says_and_nowhere_else() {
    let here = [Named::at(&["127.0.0.1"])];
    let names = NameServer::answering(&[("echo.example", &here), ("other.example", &here)]);
    let server = TcpEcho::start();
    let beside = TcpEcho::start();
    let address = server.address();
    let port = address.port();
    let rules = format!("tcp = [\"echo.example:{port}\", \"{address}\"]\nprivate = [\"127.0.0.1\"]");
    let mut host = dialing(&names, &rules, "");
    assert_eq!(outcome(&host.call("resolve", json!({"name": "echo.example"}))), Ok(json!(["127.0.0.1"])));
    let said = "a text that comes back";
    assert_eq!(outcome(&host.call("echoes", json!({"address": address.to_string(), "text": said}))), Ok(json!(said)));
    let by_name = json!({"name": "echo.example", "port": port, "text": said});
    assert_eq!(outcome(&host.call("echo_name", by_name)), Ok(json!(said)));
    let long = "x".repeat(50_000);
    assert_eq!(outcome(&host.call("echoes", json!({"address": address.to_string(), "text": long}))), Ok(json!(long)));
    let twice = host.call("takes_twice", json!({"address": address.to_string()}));
    assert_eq!(outcome(&twice), Ok(json!([true, true])));
    assert_eq!(server.connections(), 4);
    for (tool, arguments, asked) in [
        ("resolve", json!({"name": "other.example"}), "lookup other.example"),
        ("echoes", json!({"address": beside.address().to_string(), "text": "x"}), "tcp 127.0.0.1:"),
        ("bind", json!({"address": "127.0.0.1:8080"}), "bind "),
        ("listen", json!({}), "listen "),
    ] {
        let answer = host.call(tool, arguments);
        assert_eq!(outcome(&answer), Err("AccessDenied".to_owned()), "{tool}");
        // In the text of the error.
        let told = answer.result()["content"].to_string();
        assert!(told.contains("denied: ") && told.contains(asked), "{tool}: {told}");
    }
    assert_eq!(outcome(&host.call("bind", json!({"address": "0.0.0.0:0"}))), Ok(Value::Null));
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(record["section"], "components.p3_sockets.network", "{record}");
    assert_eq!((beside.connections(), names.asked_for("other.example")), (0, 0));
    host.still_works();
}

#[test]
fn sockets_and_their_bytes_are_counted_and_end_with_their_call() {
    let names = NameServer::answering(&[]);
    let server = TcpEcho::start();
    let address = server.address();
    let rules = format!("tcp = [\"{address}\"]\nprivate = [\"{address}\"]");
    let limits = "egress = \"64KiB\"\nsockets = 4\ndeadline = \"2s\"";
    let mut host = dialing(&names, &rules, limits);
    let flooded = outcome(&host.call("floods", json!({"address": address.to_string()}))).unwrap_err();
    assert!(flooded.starts_with("ConnectionBroken after "), "{flooded}");
    assert_eq!(outcome(&host.call("makes", json!({"count": 4}))), Ok(json!(4)));
    let many = outcome(&host.call("makes", json!({"count": 5}))).unwrap_err();
    assert!(many.contains("as many sockets as it may"), "{many}");
    let waited = host.call("waits", json!({"address": address.to_string()}));
    assert_eq!(waited.error_text(), "deadline exceeded: the call took longer than 2s (limit \"deadline\")");
    host.still_works();
}

#[test]
fn packets_go_where_a_rule_says_and_are_counted() {
    let names = NameServer::answering(&[]);
    let server = UdpEcho::start();
    let beside = UdpEcho::start();
    let address = server.address().to_string();
    let rules = format!("udp = [\"{address}\"]\nprivate = [\"127.0.0.1\"]");
    let mut host = dialing(&names, &rules, "egress = \"64KiB\"\ndeadline = \"5s\"");
    for connect in [false, true] {
        let arguments = json!({"address": address, "texts": ["one", "two"], "connect": connect});
        assert_eq!(outcome(&host.call("packets", arguments)), Ok(json!(["one", "two"])), "{connect}");
        let elsewhere = json!({"address": beside.address().to_string(), "texts": ["x"], "connect": connect});
        let answer = host.call("packets", elsewhere);
        assert_eq!(outcome(&answer), Err("AccessDenied".to_owned()), "{connect}");
        let told = answer.result()["content"].to_string();
        assert!(told.contains("denied: ") && told.contains("udp 127.0.0.1:"), "{told}");
    }
    assert_eq!(outcome(&host.call("one_of_many", json!({"address": address, "tasks": 100}))), Ok(json!("for one")));
    assert_eq!(outcome(&host.call("gives_up", json!({"address": address, "count": 100}))), Ok(json!("the last")));
    let refusals = result(&mut host, "udp_refusals", json!({"address": address}));
    assert_eq!(
        refusals,
        json!([
            "InvalidState",
            "InvalidState",
            "InvalidState",
            "InvalidArgument",
            "fine",
            "fine",
            "InvalidArgument",
            "DatagramTooLarge",
            "InvalidState",
            "fine",
            "AccessDenied",
            "InvalidArgument"
        ])
    );
    let flooded = result(&mut host, "floods_packets", json!({"address": address, "size": 1000}));
    assert!(flooded.as_str().unwrap().ends_with(" after 65"), "{flooded}");
    let waited = host.call("waits_for_packet", json!({}));
    assert_eq!(waited.error_text(), "deadline exceeded: the call took longer than 5s (limit \"deadline\")");
    let record = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(record["section"], "components.p3_sockets.network", "{record}");
    assert_eq!(beside.datagrams(), 0);
    host.still_works();
}

/// Answers the next question with this choice, after `wait`.
fn choose(host: &mut TestHost, wait: Duration, choice: &str) -> String {
    let asked = host.next_of("elicitation/create");
    std::thread::sleep(wait);
    let result = json!({"action": "accept", "content": {"allow": choice}});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    asked["params"]["message"].as_str().unwrap().to_owned()
}

/// True for an error with this code, next to what was denied.
fn is_refused(answer: &Answer, code: &str) -> bool {
    let content = answer.result()["content"].to_string();
    answer.is_error() && content.contains("denied: ") && content.contains(code)
}

#[test]
fn a_person_is_asked_about_what_no_rule_allows_while_the_deadline_stands_still() {
    let server = HttpServer::start();
    let mut host = host("p3", "ungranted = \"ask\"\n[{c}.limits]\ndeadline = \"1s\"\n");
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let url = server.url("/x");
    let id = host.start_call("fetch", get(url.clone()));
    let message = choose(&mut host, Duration::from_millis(1500), "once");
    assert!(message.contains(&format!("GET {url}\n")), "{message}");
    assert_eq!(outcome(&host.answer_to(&id)).unwrap()[0], 200);
    let id = host.start_call("fetch", get(url));
    choose(&mut host, Duration::ZERO, "no");
    let answer = host.answer_to(&id);
    assert!(is_refused(&answer, "HttpRequestDenied"), "{answer:?}");
    let denied = host.recorded("the denial", |record| record["event"] == "call.denied");
    assert_eq!(denied["capability"], "http", "{denied}");
    assert_eq!(server.seen().len(), 1);
    host.still_works();
}

#[test]
fn a_person_is_asked_about_sockets_by_address_and_by_name() {
    let names = NameServer::answering(&[("localhost", &[Named::at(&["127.0.0.1"])])]);
    let tcp = TcpEcho::start();
    let udp = UdpEcho::start();
    let port = tcp.address().port();
    let dns = names.address();
    let mut host = host("p3_sockets", &format!("ungranted = \"ask\"\n\n[server]\ndns = [\"{dns}\"]\n"));
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let by_address = json!({"address": tcp.address().to_string(), "text": "one"});
    let packet = |connect: bool| json!({"address": udp.address().to_string(), "texts": ["two"], "connect": connect});
    for (tool, arguments, asked, answer) in [
        ("echoes", by_address.clone(), format!("tcp 127.0.0.1:{port}"), json!("one")),
        (
            "echo_name",
            json!({"name": "localhost", "port": port, "text": "one"}),
            format!("tcp localhost:{port}"),
            json!("one"),
        ),
        ("packets", packet(true), format!("udp 127.0.0.1:{}", udp.address().port()), json!(["two"])),
    ] {
        let id = host.start_call(tool, arguments);
        let message = choose(&mut host, Duration::ZERO, "once");
        assert!(message.contains(&asked), "{tool}: {message}");
        assert_eq!(outcome(&host.answer_to(&id)), Ok(answer), "{tool}");
    }
    for (tool, arguments) in [("echoes", by_address), ("packets", packet(true))] {
        let id = host.start_call(tool, arguments);
        choose(&mut host, Duration::ZERO, "no");
        let answer = host.answer_to(&id);
        assert!(is_refused(&answer, "AccessDenied"), "{tool}: {answer:?}");
    }
    let answer = host.call("packets", packet(false));
    assert!(is_refused(&answer, "AccessDenied"), "nobody is asked: {answer:?}");
    assert_eq!((tcp.connections(), udp.datagrams()), (2, 1));
    host.still_works();
}
