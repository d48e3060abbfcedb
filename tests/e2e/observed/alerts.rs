//! Requests that are refused before they are calls, in records that are few; alerts on what fails
//! or is denied again and again, and their signed messages; the level of the log in the manifest.
//!
//! Promise: alerts go where the manifest says.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, HttpServer, Scripted, Seen};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, Saving, TestHost, manifest_of, patience};

const KEY: &str = "a key of the tests, of 32 bytes.";

const CALLERS: &str = "
[http]
tokens = \"tokens.jsonl\"
[callers.ann]
tools = [\"*\"]
[callers.tom]
tools = [\"echo\"]
";

fn of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["event"] == event).collect()
}

/// A host of these fixtures whose callers have tokens, and those of ann and tom.
fn with_callers(fixtures: &[&str], more: &str) -> (WebHost, [String; 2]) {
    let folder = Folder::with_manifest(&format!("{}{CALLERS}{more}", manifest_of(fixtures)));
    let token = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let tokens = ["ann", "tom"].map(token);
    let options = ["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--metrics", "127.0.0.1:0"];
    (WebHost::in_folder(folder, &options), tokens)
}

#[test]
fn what_is_refused_is_recorded_together_and_counted() {
    let (host, [ann, tom]) = with_callers(&["good"], "");
    let list = || Ask::modern(1, "tools/list", json!({}));
    let status = |ask: &Ask| host.ask(ask).status();
    for _ in 0..20 {
        assert_eq!(status(&list()), 401);
    }
    for token in ["Bearer tc_wrong", "Bearer x", "Basic eDp5"] {
        assert_eq!(status(&list().with("authorization", token)), 401);
    }
    assert_eq!(status(&list().with("authorization", &ann).with("host", "evil.example")), 403);
    assert_eq!(status(&list().with("authorization", &ann).with("origin", "https://evil.example")), 403);
    let call = |token: &str, tool: &str| host.ask(&Ask::call(tool, json!({})).with("authorization", token));
    for (token, tool, times) in [(&tom, "add", 3), (&tom, "nowhere", 2), (&ann, "nowhere", 1)] {
        for _ in 0..times {
            assert_eq!(call(token, tool).error(), (200, -32602));
        }
    }
    let figures = host.process().figures();
    let counted = figures.counted("toolcell_refused_requests_total", &["reason"]);
    let expected = [
        ("no_credential", 20),
        ("unknown_credential", 3),
        ("host", 1),
        ("origin", 1),
        ("hidden_tool", 3),
        ("unknown_tool", 3),
    ];
    assert_eq!(counted, expected.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect());

    host.process().terminate();
    let folder = host.into_process().ends_leaving_its_folder();
    let text = folder.read("audit.jsonl");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = of_event(&records, "request.refused");
    let mut rows: Vec<_> = refused
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or("-");
            let count = record["count"].as_u64().unwrap();
            (text("reason"), text("caller"), text("address"), text("tool"), count)
        })
        .collect();
    rows.sort_unstable();
    let expected = [
        ("hidden_tool", "tom", "-", "add", 3),
        ("host", "-", "127.0.0.0/24", "-", 1),
        ("no_credential", "-", "127.0.0.0/24", "-", 20),
        ("origin", "-", "127.0.0.0/24", "-", 1),
        ("unknown_credential", "-", "127.0.0.0/24", "-", 3),
        ("unknown_tool", "ann", "-", "-", 1),
        ("unknown_tool", "tom", "-", "-", 2),
    ];
    assert_eq!(rows, expected);
    assert!(!text.contains("tc_wrong") && !text.contains("nowhere"), "{text}");
    let audit = |arguments: &[&str]| Command::in_folder(&folder, &[&["audit"], arguments].concat()).run();
    assert_eq!(audit(&["verify"]).code(), 0);
    let shown = audit(&["show", "--caller", "tom"]);
    let lines: Vec<&str> = shown.succeeded().lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("refused") && line.contains("hidden_tool, 3 since ")), "{lines:?}");
}

#[test]
fn the_audit_shows_callers_and_folds_what_is_loaded_again() {
    let (host, [ann, tom]) = with_callers(&["good"], "");
    for token in [&ann, &tom, &tom] {
        let reply = host.ask(&Ask::call("echo", json!({"text": "x"})).with("authorization", token));
        assert_eq!(reply.status(), 200);
    }
    host.process().terminate();
    let folder = host.into_process().ends_leaving_its_folder();
    let again = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    again.process().terminate();
    let folder = again.into_process().ends_leaving_its_folder();
    let show = |arguments: &[&str]| {
        let shown = Command::in_folder(&folder, &[&["audit", "show"], arguments].concat()).run();
        shown.succeeded().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = show(&[]);
    assert!(all[0].contains("OUTCOME") && all[0].contains("CALLER"), "{all:?}");
    let loads: Vec<&String> = all.iter().filter(|line| line.contains("component.loaded")).collect();
    assert!(loads.len() == 2 && loads[1].contains("as_before=1") && loads[1].contains("names=good"), "{loads:?}");
    let of = |caller: &str| show(&["--caller", caller]);
    assert_eq!((of("ann").len(), of("tom").len(), of("eve").len()), (2, 3, 0), "with their heads");
    assert!(of("tom")[1].contains("tom") && of("tom")[1].contains("echo"), "{:?}", of("tom"));
    let json = show(&["--caller", "tom", "--json"]);
    assert_eq!(json.len(), 4, "the start and the end of each: {json:?}");
    assert_eq!(show(&["--caller", "tom", "--outcome", "ok", "--since", "1h"]).len(), 3);
    assert_eq!(show(&["--caller", "tom", "--since", "2999-01-01T00:00:00+02:00"]).len(), 0);
}

/// A server that takes messages with these statuses, and with 204 from then on.
fn receiver(statuses: &'static [u16]) -> HttpServer {
    let left = Mutex::new(statuses.iter());
    HttpServer::scripted(move |_| {
        let status = left.lock().unwrap().next().copied().unwrap_or(204);
        Scripted::Whole(status, "text/plain", String::new())
    })
}

/// Waits for this many requests.
fn seen(server: &HttpServer, count: usize) -> Vec<Seen> {
    let end = Instant::now() + patience();
    loop {
        let seen = server.seen();
        if seen.len() >= count {
            return seen;
        }
        assert!(Instant::now() < end, "{} of {count} messages", seen.len());
        std::thread::yield_now();
    }
}

fn field(seen: &Seen, name: &str) -> String {
    let fields = seen.fields();
    fields.into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap_or_default()
}

/// The data of a message whose signature is right.
fn data(seen: &Seen) -> Value {
    let [id, time, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| field(seen, name));
    let signed = [id.as_bytes(), b".", time.as_bytes(), b".", &seen.body].concat();
    let tag = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes()), &signed, &tag).unwrap();
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((&body["type"], seen.method()), (&json!("toolcell.alert.raised"), "POST"));
    body["data"].clone()
}

fn alerting(fixtures: &[&str], table: &str, server: &HttpServer) -> TestHost {
    let folder = told_of_alerts(fixtures, table, &server.url("/hook"));
    TestHost::recording_with(folder, &["--metrics", "127.0.0.1:0"])
}

/// A folder whose manifest has messages sent to this address.
fn told_of_alerts(fixtures: &[&str], table: &str, url: &str) -> Folder {
    let alerts = format!("[alerts]\nurl = \"{url}\"\nsecret = \"file:key\"\n{table}\n");
    let folder = Folder::with_manifest(&format!("{}{alerts}", manifest_of(fixtures)));
    folder.write("key", KEY);
    std::fs::set_permissions(folder.path().join("key"), Permissions::from_mode(0o600)).unwrap();
    folder
}

#[test]
fn repeated_failure_raises_one_alert_with_a_signed_message() {
    let server = receiver(&[503]);
    let mut host = alerting(&["good", "quitter"], "private = true\ntool_failures = 3\ncaller_failures = 0", &server);
    host.call("echo", json!({"text": "x"}));
    for _ in 0..5 {
        host.call("trap", json!({}));
    }
    let alert = host.recorded("an alert", |record| record["event"] == "alert.raised");
    let expected = [("rule", json!("tool_failures")), ("subject", json!("trap")), ("count", json!(3))];
    expected.iter().for_each(|(key, value)| assert_eq!(&alert[*key], value, "{alert}"));
    host.will_say("alert: 3 failed calls of the tool trap within 300 s");
    // The first attempt was refused; the second is the same message.
    let seen = seen(&server, 2);
    assert_eq!(field(&seen[0], "webhook-id"), field(&seen[1], "webhook-id"));
    for message in &seen {
        let data = data(message);
        assert_eq!((&data["rule"], &data["subject"]), (&json!("tool_failures"), &json!("trap")), "{data}");
    }
    let sent = [("outcome", "sent")];
    let figures = host.figures_when("sent", |figures| figures.get("toolcell_alert_messages_total", &sent) > 0.0);
    assert_eq!(figures.get("toolcell_alerts_total", &[("rule", "tool_failures")]), 1.0);
    assert_eq!(of_event(&host.audit(), "alert.raised").len(), 1, "the cooldown lasts");
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn denials_and_refusals_raise_alerts_and_a_refused_message_is_not_sent_again() {
    let server = receiver(&[410]);
    let mut host =
        alerting(&["reach_http"], "private = true\ntool_denials = 2\ncaller_denials = 0\nrefusals = 2", &server);
    for _ in 0..2 {
        host.call("http", json!({"url": "http://example.com/"}));
    }
    let alert = host.recorded("an alert", |record| record["rule"] == "tool_denials");
    assert_eq!((&alert["subject"], &alert["count"]), (&json!("http"), &json!(2)));
    host.will_say("an alert was not delivered: its status is 410");
    assert_eq!(data(&seen(&server, 1)[0])["rule"], "tool_denials");
    for id in 0..2 {
        let _ = host.request("tools/call", json!({"name": format!("nowhere-{id}"), "arguments": {}}));
    }
    let alert = host.recorded("an alert", |record| record["rule"] == "refusals");
    assert_eq!(alert["subject"], "local", "{alert}");
    assert_eq!(data(&seen(&server, 2)[1])["rule"], "refusals");
}

#[test]
fn denials_of_one_caller_raise_an_alert_whatever_its_tools() {
    let server = receiver(&[]);
    let table = "private = true\ntool_denials = 0\ncaller_denials = 3";
    let mut host = alerting(&["reach_http", "reach_sockets"], table, &server);
    for _ in 0..2 {
        host.call("http", json!({"url": "http://example.com/"}));
    }
    host.call("tcp", json!({"addr": "192.0.2.1:80", "send": "x"}));
    let alert = host.recorded("an alert", |record| record["event"] == "alert.raised");
    let said = ["rule", "subject", "count"].map(|key| alert[key].clone());
    assert_eq!(said, [json!("caller_denials"), json!("local"), json!(3)]);
    assert_eq!(data(&seen(&server, 1)[0])["rule"], "caller_denials");
}

/// The first failure of a tool raises an alert.
const AT_ONCE: &str = "tool_failures = 1\ncaller_failures = 0";

fn messages(host: &TestHost, outcome: &str) -> f64 {
    let of = [("outcome", outcome)];
    let figures = host.figures_when(outcome, |figures| figures.get("toolcell_alert_messages_total", &of) > 0.0);
    figures.get("toolcell_alert_messages_total", &of)
}

#[test]
fn a_message_goes_to_no_private_address_that_the_manifest_does_not_allow() {
    let server = receiver(&[]);
    let url = server.url("/hook");
    let refused = Command::in_folder(&told_of_alerts(&["good"], AT_ONCE, &url), &["check"]).run();
    assert!(refused.failed_with(1).contains("plain http to this machine needs private = true"), "{refused:?}");
    let folder = told_of_alerts(&["good", "quitter"], AT_ONCE, &url.replacen("http:", "https:", 1));
    folder.write("root.pem", Authority::new().pem());
    let root = folder.path().join("root.pem").to_string_lossy().into_owned();
    let mut host = TestHost::recording_in(folder, &[("SSL_CERT_FILE", &root)]);
    host.call("trap", json!({}));
    host.will_say("an alert was not delivered: 127.0.0.1 is a loopback address");
    assert_eq!(server.connections(), 0);
    host.still_works();
}

#[test]
fn a_message_follows_no_redirect() {
    let elsewhere = receiver(&[]);
    let url = elsewhere.url("/hook");
    let server = HttpServer::scripted(move |_| Scripted::Bytes(307, vec![("location", url.clone())], Vec::new()));
    let mut host = alerting(&["good", "quitter"], &format!("private = true\n{AT_ONCE}"), &server);
    host.call("trap", json!({}));
    host.will_say("an alert was not delivered: its status is 307");
    assert_eq!(messages(&host, "failed"), 1.0);
    assert_eq!((server.seen().len(), elsewhere.connections()), (1, 0));
}

#[test]
fn a_receiver_that_never_answers_holds_no_call_up() {
    let server = HttpServer::scripted(|_| Scripted::As("/silent"));
    let mut host = alerting(&["good", "quitter"], &format!("private = true\n{AT_ONCE}"), &server);
    host.call("trap", json!({}));
    assert_eq!(seen(&server, 1).len(), 1);
    // The message waits for its answer for ten seconds. Calls, records and the end do not.
    for _ in 0..100 {
        host.still_works();
    }
    let _ = host.recorded("an alert", |record| record["event"] == "alert.raised");
    host.close_input();
    assert!(host.ends().status.success());
}

#[test]
fn a_caller_whose_calls_fail_raises_an_alert_with_its_name_and_others_do_not() {
    let alerts = "[alerts]\ntool_failures = 0\ncaller_failures = 3\n";
    let (host, [ann, tom]) = with_callers(&["good", "quitter"], alerts);
    let call = |token: &str, tool: &str| {
        let arguments = json!({"text": "x"});
        host.ask(&Ask::call(tool, arguments).with("authorization", token)).status()
    };
    for _ in 0..2 {
        assert_eq!(call(&ann, "trap"), 200);
    }
    for _ in 0..10 {
        assert_eq!(call(&tom, "echo"), 200);
    }
    let alerts = || host.process().figures().get("toolcell_alerts_total", &[("rule", "caller_failures")]);
    assert_eq!(alerts(), 0.0, "two failures, and ten calls that succeed");
    assert_eq!(call(&ann, "trap"), 200);
    let alert = host.process().recorded("an alert", |record| record["event"] == "alert.raised");
    assert_eq!((&alert["rule"], &alert["subject"]), (&json!("caller_failures"), &json!("ann")), "{alert}");
    assert_eq!(alerts(), 1.0);
}

#[test]
fn the_manifest_says_how_much_is_logged_until_somebody_else_does() {
    let manifest = |level: &str| format!("{}\n[server]\nlog = \"{level}\"\n", manifest_of(&["good"]));
    let mut host = TestHost::with_manifest(&manifest("warn"));
    host.still_works();
    assert_eq!(host.status()["log"], "warn");
    host.folder().save(Saving::InPlace, "toolcell.toml", manifest("debug"));
    let _ = host.reload();
    assert_eq!(host.status_when("debug", |status| status["log"] == "debug")["log"], "debug");
    let level = Command::in_folder(host.folder(), &["log-level", "error"]).run();
    assert!(level.succeeded().contains("error, debug before"), "{level:?}");
    host.folder().save(Saving::InPlace, "toolcell.toml", manifest("warn"));
    let _ = host.reload();
    assert_eq!(host.status()["log"], "error", "log-level wins");
    let mut told = TestHost::with_options(Folder::with_manifest(&manifest("warn")), &["--log", "debug"]);
    told.still_works();
    assert_eq!(told.status()["log"], "debug", "--log wins");
}
