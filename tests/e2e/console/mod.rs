//! The console: who gets in, what the views show, what operators decide, and what it costs calls.
//!
//! Promise: the console is its operators' only.

mod approvals;
mod callers;
mod changes;
mod decided;
mod heard;
mod logins;
mod markup;
mod now;
mod recording;
mod refused;
mod sign_in;
mod tls;
mod tools;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::web::{Ask, Reply, Wire};
use toolcell_tests::{Command, Folder, TestHost, manifest_of, patience};

/// Markup that runs a script where it is not escaped.
const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>";

/// Every view.
const VIEWS: [&str; 7] = ["/", "/tools", "/denials", "/changes", "/approvals", "/audit", "/callers"];

/// A host with a console, and the session of an operator.
struct Operator {
    host: TestHost,
    address: SocketAddr,
    link: String,
    cookie: String,
    csrf: String,
}

impl Operator {
    /// Serves this manifest with a console that decides.
    fn of(manifest: &str) -> Self {
        Self::deciding(Folder::with_manifest(&format!("{manifest}\n[console]\ndecide = true\n")), &[])
    }

    fn deciding(folder: Folder, options: &[&str]) -> Self {
        let host = TestHost::recording_with(folder, &[&["--console", "127.0.0.1:0"], options].concat());
        host.will_say("console at ");
        let said = host.said();
        let link = said.split("console at ").nth(1).unwrap().split(' ').next().unwrap();
        let (address, link) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let address = address.parse().unwrap();
        let (cookie, csrf) = Default::default();
        let mut operator = Self { host, address, link: format!("/{link}"), cookie, csrf };
        let entered = operator.ask(&operator.get(&operator.link));
        assert_eq!(entered.status(), 303, "{entered:?}");
        let cookie = entered.field("set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        operator.cookie = cookie.split(';').next().unwrap().to_owned();
        let page = operator.page("/");
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap();
        operator.csrf = csrf.split('"').next().unwrap().to_owned();
        operator
    }

    fn get(&self, path: &str) -> Ask {
        let ask = Ask::bare("GET", path).with("host", &self.address.to_string());
        if self.cookie.is_empty() { ask } else { ask.with("cookie", &self.cookie) }
    }

    /// A form of this page, with its token.
    fn form(&self, path: &str, fields: &str) -> Ask {
        let ask = Ask::bare("POST", path).with("host", &self.address.to_string()).with("cookie", &self.cookie);
        let ask = ask.with("origin", &format!("http://{}", self.address));
        ask.with("content-type", "application/x-www-form-urlencoded").saying(&format!("csrf={}&{fields}", self.csrf))
    }

    fn ask(&self, ask: &Ask) -> Reply {
        Wire::to(self.address).ask(ask)
    }

    fn page(&self, path: &str) -> String {
        let reply = self.ask(&self.get(path));
        assert_eq!(reply.status(), 200, "{path}: {reply:?}");
        markup_of(&reply)
    }

    /// The page once it has these words.
    fn page_with(&self, path: &str, words: &str) -> String {
        let end = Instant::now() + patience();
        loop {
            let page = self.page(path);
            if page.contains(words) {
                return page;
            }
            assert!(Instant::now() < end, "{path} never had {words:?}: {page}");
            std::thread::yield_now();
        }
    }

    /// Waits until the first call has a bar for its time, its fuel and its memory each.
    fn shows_use_of_call_1(&self) {
        let end = Instant::now() + patience();
        loop {
            let page = self.page("/");
            let row =
                page.split("id=\"call-1\"").nth(1).and_then(|rest| rest.split("</tr>").next()).unwrap_or_default();
            if row.matches("<svg class=\"bar\"").count() == 3 {
                break;
            }
            assert!(Instant::now() < end, "{page}");
            std::thread::yield_now();
        }
    }

    /// Sends a form, and gives the page that follows.
    fn decides(&self, path: &str, fields: &str) -> String {
        let reply = self.ask(&self.form(path, fields));
        assert_eq!(reply.status(), 303, "{reply:?}");
        self.page(reply.field("location").unwrap())
    }

    /// The record of a decision.
    fn decided(&self, decision: &str) -> Value {
        let is_it = |record: &Value| record["event"] == "console.decided" && record["decision"] == decision;
        self.host.recorded(decision, is_it)
    }

    /// The key in the first form of this action.
    fn key(page: &str, action: &str) -> String {
        let form = page.split(&format!("action=\"{action}\"")).nth(1).unwrap_or_else(|| panic!("no {action}: {page}"));
        form.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }
}

/// A page without the places where a line may end: they are not part of a name.
fn markup_of(reply: &Reply) -> String {
    let page = String::from_utf8(reply.body().to_vec()).unwrap();
    page.replace("<wbr>", "").replace("<bdi class=\"long\">", "<bdi>")
}

fn good() -> Operator {
    Operator::of(&manifest_of(&["good"]))
}

#[test]
fn a_link_lets_in_once_and_every_page_has_its_headers() {
    let operator = good();
    for link in [operator.link.clone(), format!("/enter/{}", "0".repeat(64)), "/enter/".to_owned()] {
        let reply = operator.ask(&operator.get(&link).without("cookie"));
        assert_eq!((reply.status(), reply.field("set-cookie")), (403, None), "{link}");
    }
    let strangers = [operator.get("/").without("cookie"), operator.get("/").with("cookie", &"a=b; ".repeat(9))];
    for ask in strangers {
        assert_eq!(operator.ask(&ask).status(), 403);
    }
    // Each digit becomes another one, whatever the cookie is.
    let (name, value) = operator.cookie.split_once('=').unwrap();
    let other = value.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect::<String>();
    let other = format!("{name}={other}");
    assert_eq!(operator.ask(&operator.get("/").with("cookie", &other)).status(), 403);
    let given = Command::in_folder(operator.host.folder(), &["console"]).run();
    let link = given.succeeded().trim().split_once("/enter/").unwrap().1.to_owned();
    assert_eq!(operator.ask(&operator.get(&format!("/enter/{link}"))).status(), 303);
    let reply = operator.ask(&operator.get("/"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(reply.field(name), Some(value), "{name}");
    }
    let policy = reply.field("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert_eq!(reply.field("access-control-allow-origin"), None);
    assert_eq!(operator.decided("enter")["done"], true);
}

#[test]
fn a_request_of_another_page_or_without_its_token_does_nothing() {
    let mut operator = Operator::of(&unhurried(&["good"]));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("slow", json!({"steps": 1, "step_ms": 3_000}));
    let _ = operator.page_with("/", "action=\"/calls/stop\"");
    let stop = operator.form("/calls/stop", "call=1");
    let without = stop.clone().saying("call=1");
    for (ask, status) in [
        (stop.clone().with("origin", "http://evil.example"), 403),
        (stop.clone().with("origin", "null"), 403),
        (stop.clone().without("origin"), 403),
        (stop.clone().with("sec-fetch-site", "same-site"), 403),
        (stop.clone().with("host", "evil.example"), 403),
        (stop.clone().with("content-type", "text/plain"), 415),
        (stop.clone().without("cookie"), 403),
        (without, 403),
        (stop.clone().saying(&format!("csrf={}&call=1", "0".repeat(64))), 403),
        (stop.clone().saying(&format!("csrf={}&call=1&x={}", operator.csrf, "x".repeat(300_000))), 413),
        (operator.get("/").with("host", "evil.example"), 403),
        (operator.get("/").with("origin", "http://evil.example"), 403),
        (Ask::bare("DELETE", "/").with("host", &operator.address.to_string()), 405),
    ] {
        let reply = operator.ask(&ask);
        assert_eq!(reply.status(), status, "{ask:?}: {reply:?}");
        assert_eq!(reply.field("access-control-allow-origin"), None);
    }
    assert!(!operator.host.answer_to(&id).is_error(), "the call went on");
}

#[test]
fn a_console_that_only_shows_decides_nothing() {
    let operator = Operator::deciding(Folder::with_manifest(&manifest_of(&["good"])), &[]);
    VIEWS.iter().for_each(|view| drop(operator.page(view)));
    assert!(!operator.page("/tools/echo").contains("/tools/echo/try"));
    for path in [
        "/calls/stop",
        "/denials/apply",
        "/denials/mute",
        "/denials/unmute",
        "/changes/read",
        "/changes/approve",
        "/approvals/answer",
        "/callers/tokens/new",
        "/callers/tokens/revoke",
        "/tools/echo/try",
    ] {
        let refused = operator.ask(&operator.form(path, "call=1&key=1&answer=allow&name=ann&component=good"));
        assert_eq!(refused.status(), 403, "{path}");
        assert!(String::from_utf8_lossy(refused.body()).contains("This console only shows."), "{path}");
    }
    let page = operator.page("/audit");
    assert!(page.contains("action=\"/audit/verify\"") && page.contains("not checked"), "{page}");
    let page = operator.decides("/audit/verify", "");
    assert!(page.contains("The chain of records is whole.") && page.contains("chain whole"), "{page}");
    let is_decision = |record: &Value| record["event"].as_str().unwrap().starts_with("console.");
    let decided = operator.host.audit().into_iter().filter(is_decision);
    let decided: Vec<Value> = decided.map(|record| record["decision"].clone()).collect();
    assert_eq!(decided, ["enter"], "nothing was done");
    let left = operator.ask(&operator.form("/sign-out", ""));
    assert!(left.field("set-cookie").unwrap().contains("Max-Age=0"), "{left:?}");
    assert_eq!(operator.ask(&operator.get("/")).status(), 403, "the session is over");
}

#[test]
fn an_operator_ends_a_call_and_its_client_is_told() {
    let mut operator = Operator::of(&unhurried(&["good"]));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("slow", json!({"steps": 1_000, "step_ms": 20}));
    let _ = operator.page_with("/", "action=\"/calls/stop\"");
    let _ = operator.decides("/calls/stop", "call=1");
    assert_eq!(operator.host.answer_to(&id).error_text(), "the operator ended the call");
    let ended = operator.host.recorded("an end", |record| record["event"] == "call.finished");
    assert_eq!((&ended["outcome"], &ended["detail"]), (&json!("cancelled"), &json!("the operator ended the call")));
    let decided = operator.decided("stop");
    assert_eq!((&decided["subject"], &decided["done"]), (&json!("1"), &json!(true)));
    let page = operator.decides("/calls/stop", "call=1");
    assert!(page.contains("does not run any more"), "{page}");
    operator.host.still_works();
}

/// A guest that asks all the time sees that it was cancelled before the host ends it.
#[test]
fn a_guest_that_gives_up_when_the_operator_ends_its_call_does_not_word_the_end() {
    let mut operator = Operator::of(&unhurried(&["good"]));
    operator.host.initialize("2025-11-25");
    for call in 1..=5 {
        let id = operator.host.start_call("slow", json!({"steps": u32::MAX, "step_ms": 0}));
        let _ = operator.page_with("/", "action=\"/calls/stop\"");
        let _ = operator.decides("/calls/stop", &format!("call={call}"));
        assert_eq!(operator.host.answer_to(&id).error_text(), "the operator ended the call");
        let ended =
            operator.host.recorded("an end", |record| record["event"] == "call.finished" && record["id"] == call);
        assert_eq!((&ended["outcome"], &ended["detail"]), (&json!("cancelled"), &json!("the operator ended the call")));
    }
    operator.host.still_works();
}

/// A manifest whose calls may compute for an hour.
fn unhurried(components: &[&str]) -> String {
    manifest_of(components)
        .replace("fuel = 20_000_000", "fuel = 1_000_000_000_000_000")
        .replace("deadline = \"5s\"", "deadline = \"1h\"")
}

#[test]
fn a_call_that_computes_is_shown_with_what_it_has_used() {
    let mut operator = Operator::of(&unhurried(&["loops"]));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("call_host", json!({}));
    operator.shows_use_of_call_1();
    operator.host.cancel(&id);
    operator.host.still_answers();
}

#[test]
fn what_was_denied_is_grouped_muted_and_allowed() {
    let server = HttpServer::start();
    let mut operator = Operator::of(&manifest_of(&["good", "reach_http"]));
    operator.host.initialize("2025-11-25");
    let url = json!({"url": format!("http://{}/x", server.address())});
    let denied = operator.host.call("http", url.clone());
    let _ = operator.host.call("http", url.clone());
    assert!(denied.structured().get("ok").is_none(), "{denied:?}");
    let asked = format!("GET http://{}/x", server.address());
    let page = operator.page("/denials");
    assert!(page.contains(&asked) && page.contains("components.reach_http.network"), "{page}");
    let key = Operator::key(&page, "/denials/mute");
    assert!(page.contains("<span class=\"badge\">1</span>"), "{page}");
    let page = operator.decides("/denials/mute", &format!("key={key}"));
    let (shown, muted) = page.split_once("<details id=\"muted\">").unwrap();
    assert!(!shown.contains(&asked) && shown.contains("Nothing was denied."), "{shown}");
    assert!(muted.contains(&asked) && muted.contains("action=\"/denials/unmute\""), "{muted}");
    assert!(!page.contains("class=\"badge\""), "{page}");
    let page = operator.decides("/denials/unmute", &format!("key={key}"));
    assert!(page.contains(&asked) && !page.contains("<details id=\"muted\">"), "{page}");
    assert_eq!(operator.decided("unmute")["subject"], format!("reach_http: {asked}"));
    let page = operator.decides("/denials/apply", &format!("key={key}"));
    // The watcher may load the manifest before the order does.
    assert!(page.contains("The rule is written. "), "{page}");
    operator.host.serves_generation(2);
    let manifest = operator.host.folder().read("toolcell.toml");
    assert!(manifest.contains(&format!("http = [\"{asked}\"]")), "{manifest}");
    assert!(page.contains("1 allowed since") && page.contains("The grants that serve now allow it."), "{page}");
    assert!(!page.contains("This would allow it:") && !page.contains("class=\"badge\""), "{page}");
    assert!(operator.host.call("http", url).structured().get("ok").is_some());
    assert_eq!(operator.decided("grant")["done"], true);
    let other = format!("http://{}/other", server.address());
    let _ = operator.host.call("http", json!({"url": other}));
    let page = operator.page("/denials");
    assert!(page.contains("<span class=\"badge\">1</span>") && page.contains("This would allow it:"), "{page}");
    let page = operator.page("/changes");
    let row = page.split("data-label=\"Generation\"><div>2</div>").nth(1).and_then(|rest| rest.split("</tr>").next());
    assert!(row.is_some_and(|row| row.contains(">replaced</span>") && row.contains("reach_http")), "{page}");
}

#[test]
fn approvals_in_a_console_need_one_that_decides() {
    for (console, said) in [("", "none is served"), ("[console]\nlisten = \"127.0.0.1:0\"\n", "it only shows")] {
        let manifest = format!("version = 1\n[server]\napprove_in = [\"console\"]\n{console}");
        let folder = Folder::with_manifest(&manifest);
        let served = Command::in_folder(&folder, &["serve"]).run();
        assert!(served.stderr.contains(said), "{served:?}");
    }
}

#[test]
fn a_tool_is_tried_like_a_client_calls_it() {
    let operator = good();
    let page = operator.page("/tools/echo");
    assert!(page.contains("action=\"/tools/echo/try\""), "{page}");
    let tried = operator.ask(&operator.form("/tools/echo/try", "argument-0=%3Cb%3Ehello"));
    let page = String::from_utf8_lossy(tried.body()).into_owned();
    assert!(tried.status() == 200 && page.contains("&lt;b&gt;hello"), "{page}");
    let started = operator.host.recorded("a call", |record| record["event"] == "call.started");
    assert_eq!((&started["caller"], &started["tool"]), (&json!("console"), &json!("echo")));
    assert_eq!(operator.decided("try")["detail"], "ok");
    let wrong = operator.ask(&operator.form("/tools/add/try", "argument-0=x"));
    assert!(String::from_utf8_lossy(wrong.body()).contains("is not a number"), "{wrong:?}");
    assert_eq!(operator.ask(&operator.form("/tools/none/try", "")).status(), 404);
}

#[test]
fn records_are_searched_shown_checked_and_exported() {
    let mut operator = good();
    operator.host.initialize("2025-11-25");
    for number in 0..3 {
        let _ = operator.host.call("echo", json!({"text": number.to_string()}));
    }
    let _ = operator.host.call("says_error", json!({}));
    let page = operator.page("/audit?tool=says_error&caller=local&outcome=tool_error&since=1h");
    assert!(page.contains("tool_error") && !page.contains(">echo<"), "{page}");
    assert!(operator.page("/audit?since=never").contains("is not a time"));
    let page = operator.page("/audit/calls/now.4");
    assert!(page.contains("call.started") && page.contains("call.finished"), "{page}");
    assert_eq!(operator.ask(&operator.get("/audit/calls/now.99")).status(), 404);
    let lines = operator.page("/audit/export.jsonl?tool=echo");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() == 6 && lines.iter().all(|line| line["tool"] == "echo"), "{lines:?}");
    let table = operator.page("/audit/export.csv");
    assert!(
        table.starts_with("seq,time,event,id,tool,caller,") && table.contains("\"says_error\",\"local\""),
        "{table}"
    );
    let page = operator.decides("/audit/verify", "");
    assert!(page.contains("The chain of records is whole."), "{page}");
}

#[test]
fn the_page_of_a_call_has_its_usage_denials_and_trace() {
    let server = HttpServer::start();
    let mut operator = Operator::of(&manifest_of(&["good", "reach_http"]));
    operator.host.initialize("2025-11-25");
    let answer = operator.host.call("http", json!({"url": format!("http://{}/x", server.address())}));
    assert!(answer.result()["_meta"].get("toolcell/usage").is_none(), "{answer:?}");
    let page = operator.page("/audit/calls/now.1");
    let usage = tools::rows(&page, "What the call used");
    let keys: Vec<&str> = usage.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(keys, ["fuel", "memory", "deadline", "log", "output", "egress", "ingress"], "{page}");
    assert!(usage[0][1].starts_with(|digit: char| digit.is_ascii_digit()) && usage[0][3].ends_with('%'), "{usage:?}");
    let denials = page.split_once("<h2>Denials</h2>").unwrap().1.split_once("<h2>").unwrap().1;
    assert!(denials.contains(&format!("GET http://{}/x", server.address())), "{denials}");
    let trace = tools::rows(&page, "Parts of the call's time");
    let parts: Vec<&str> = trace.iter().map(|row| row[0].as_str()).collect();
    assert!(["queue", "instantiate", "run"].iter().all(|part| parts.contains(part)), "{parts:?}");
}

#[test]
fn a_call_is_shown_with_the_parts_of_its_time_and_what_it_printed() {
    let mut operator = Operator::of(&manifest_of(&["good", "noisy"]));
    operator.host.initialize("2025-11-25");
    let _ = operator.host.call("echo", json!({"text": "quiet"}));
    let _ = operator.host.call("stderr_escapes", json!({}));
    let page = operator.page("/audit/calls/now.2");
    for part in ["queue", "instantiate", "run", "evil"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'), "{page}");
    let page = operator.page("/audit/calls/now.1");
    assert!(page.contains("instantiate") && page.contains("It printed nothing."), "{page}");
}

#[test]
fn tokens_are_made_and_revoked() {
    let manifest = format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"]));
    let operator = Operator::of(&manifest);
    operator.host.folder().write("tokens.jsonl", "");
    let made = operator.ask(&operator.form("/callers/tokens/new", "name=ann&scopes=read+write"));
    let page = String::from_utf8_lossy(made.body()).into_owned();
    assert!(page.contains("toolcell_"), "{page}");
    let entry: Value = serde_json::from_str(operator.host.folder().read("tokens.jsonl").trim()).unwrap();
    assert_eq!((&entry["name"], &entry["scopes"]), (&json!("ann"), &json!(["read", "write"])));
    assert!(!operator.page("/callers").contains("toolcell_"), "it is shown once");
    let id = &entry["hash"].as_str().unwrap()["sha256:".len()..][..16];
    let _ = operator.decides("/callers/tokens/revoke", &format!("id={id}"));
    assert_eq!(operator.host.folder().read("tokens.jsonl"), "");
    assert_eq!(operator.decided("revoke")["done"], true);
}

#[test]
fn nothing_that_a_component_says_is_markup() {
    let named = format!("[components.good.tools.echo]\ntitle = {MARKUP:?}\ndescription = {MARKUP:?}\n");
    let mut operator = Operator::of(&format!("{}{named}", manifest_of(&["reach_http", "good"])));
    operator.host.initialize("2025-11-25");
    let _ = operator.host.call("echo", json!({"text": MARKUP}));
    let _ = operator.host.call("http", json!({"url": format!("http://127.0.0.1:9/{MARKUP}")}));
    let tried = operator.ask(&operator.form("/tools/echo/try", "argument-0=%3Cscript%3Ealert(1)%3C%2Fscript%3E"));
    let mut pages: HashMap<String, String> = HashMap::new();
    pages.insert("try".to_owned(), String::from_utf8(tried.body().to_vec()).unwrap());
    for path in VIEWS.into_iter().chain(["/tools/echo", "/audit/calls/now.1", "/audit/calls/now.2"]) {
        pages.insert(path.to_owned(), operator.page(path));
    }
    for (path, page) in &pages {
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{path}: {page}");
    }
    assert!(pages["/tools"].contains("&lt;script&gt;"));
}

/// The bytes of a stream until they have these words.
fn hears(wire: &mut Wire, words: &str) -> String {
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains(words) {
        let more = wire.next_bytes();
        assert!(!more.is_empty(), "the stream ended: {}", String::from_utf8_lossy(&heard));
        heard.extend(more);
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn viewers_are_bounded_and_calls_do_not_wait_for_those_that_never_read() {
    let mut operator = good();
    operator.host.initialize("2025-11-25");
    let events = operator.get("/events?view=now");
    let mut viewers = Vec::new();
    for _ in 0..16 {
        let mut wire = Wire::to(operator.address);
        wire.send(&events.bytes());
        let head = wire.head();
        assert_eq!((head.status(), head.field("content-type")), (200, Some("text/event-stream")));
        viewers.push(wire);
    }
    assert_eq!(operator.ask(&events).status(), 503, "a seventeenth");
    assert_eq!(operator.ask(&operator.get("/events?view=now").without("cookie")).status(), 403);
    assert_eq!(operator.ask(&operator.get("/events?view=none")).status(), 404);
    // One that sends half a request holds a connection, and nothing else.
    let mut slow = Wire::to(operator.address);
    slow.send(b"GET / HTTP/1.1\r\nhost: 127.0");
    let began = Instant::now();
    for number in 0..200 {
        let text = number.to_string();
        assert_eq!(operator.host.call("echo", json!({"text": text})).text(), text);
    }
    assert!(began.elapsed() < Duration::from_secs(60));
    let _ = hears(&mut viewers[0], "event: update");
    drop(viewers);
    // Their places are free again.
    let end = Instant::now() + patience();
    loop {
        let mut wire = Wire::to(operator.address);
        wire.send(&events.bytes());
        if wire.head().status() == 200 {
            break;
        }
        assert!(Instant::now() < end, "no place came free");
        std::thread::yield_now();
    }
}
