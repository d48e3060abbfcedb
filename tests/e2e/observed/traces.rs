//! Traces of calls: the spans that a collector on loopback gets, and the trace they belong to.
//! Calls go on whatever the collector does.
//!
//! Promise: a client's trace context is data.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, Collector, HttpServer, Manner, Span};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, Saving, TestHost, fixture_bytes, manifest_of, patience};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

fn manifest(fixtures: &[&str], endpoint: &str, lines: &str) -> String {
    let traces = format!("[traces]\nendpoint = \"{endpoint}\"\n{lines}");
    format!("{}\n{traces}\n[metrics]\nlisten = \"127.0.0.1:0\"\n", manifest_of(fixtures))
}

fn serving(fixtures: &[&str], endpoint: &str, lines: &str) -> TestHost {
    TestHost::recording(&manifest(fixtures, endpoint, lines))
}

/// Calls a tool with this `_meta`.
fn call(host: &mut TestHost, tool: &str, arguments: Value, meta: Value) -> Value {
    host.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

/// The span of the request for this tool.
fn of_tool<'s>(spans: &'s [Span], tool: &str) -> &'s Span {
    let name = format!("tools/call {tool}");
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

#[test]
fn a_call_is_a_part_of_its_clients_trace_and_its_parts_are_parts_of_it() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "service = \"acme-tools\"\n");
    let meta = json!({"traceparent": traceparent("01"), "tracestate": "vendor=1", "baggage": "user=7"});
    call(&mut host, "echo", json!({"text": "x"}), meta);
    let spans = collector.spans_when(4);
    let request = of_tool(&spans, "echo");
    assert_eq!((request.trace.as_str(), request.parent.as_str(), request.kind), (TRACE, PARENT, 2));
    assert_eq!((request.state.as_str(), request.failed), ("vendor=1", false));
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "echo"),
        ("jsonrpc.request.id", "1"),
        ("network.transport", "pipe"),
        ("toolcell.era", "modern"),
        ("toolcell.caller", "local"),
        ("toolcell.component", "good"),
        ("toolcell.generation", "1"),
        ("toolcell.call", "1"),
        ("toolcell.outcome", "ok"),
        ("service.name", "acme-tools"),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(request.attributes.get(key).map(String::as_str), Some(value), "{key}: {request:#?}");
    }
    let parts: BTreeSet<&str> = spans.iter().filter(|span| span.parent == request.id).map(|span| &*span.name).collect();
    assert_eq!(parts, BTreeSet::from(["instantiate", "queue", "run"]));
    for part in spans.iter().filter(|span| span.parent == request.id) {
        assert_eq!(part.trace, TRACE);
        assert!(
            request.started <= part.started && part.started <= part.ended && part.ended <= request.ended,
            "{spans:#?}"
        );
    }
    assert_eq!(
        host.audit().iter().find_map(|record| record["trace"].as_str().map(str::to_owned)).as_deref(),
        Some(TRACE)
    );
}

#[test]
fn what_a_guest_asks_of_others_is_a_part_of_its_call() {
    let collector = Collector::start(Manner::Takes);
    let server = HttpServer::start();
    let url = server.url("/echo?secret=1");
    let address = server.address();
    let granted =
        format!("[components.reach_http.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n");
    let manifest = format!("{}\n{granted}", manifest(&["reach_http"], &collector.url(), ""));
    let mut host = TestHost::with_manifest(&manifest);
    host.call("http", json!({"url": url}));
    host.call("http", json!({"url": server.url("/status/503")}));
    host.call("http", json!({"url": server.url("/cut")}));
    host.call("http", json!({"url": "http://example.com/"}));
    let spans = collector.spans_when(4 * 4 + 3);
    let made: Vec<&Span> = spans.iter().filter(|span| span.kind == 3).collect();
    let requests: BTreeSet<&str> = spans.iter().filter(|span| span.kind == 2).map(|span| &*span.id).collect();
    assert!(made.iter().all(|span| requests.contains(&*span.parent) && span.name == "GET"), "{made:#?}");
    let said = |span: &Span| {
        let keys = ["server.address", "server.port", "http.response.status_code", "error.type"];
        keys.map(|key| span.attributes.get(key).cloned().unwrap_or_default()).join(" ")
    };
    let of = |status: &str| format!("127.0.0.1 {} {status}", server.port());
    let mut expected = [of("200 "), of("503 503"), of("200 ")];
    expected.sort();
    let mut seen: Vec<String> = made.iter().map(|span| said(span)).collect();
    seen.sort();
    assert_eq!(seen, expected, "{made:#?}");
    assert!(!format!("{spans:?}").contains("secret=1"));
}

#[test]
fn the_guest_continues_the_hosts_span() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "");
    let meta = json!({"traceparent": traceparent("01"), "tracestate": "vendor=1", "baggage": "user=7"});
    let reply = call(&mut host, "request", json!({}), meta).to_string();
    let spans = collector.spans_when(4);
    let own = format!("00-{TRACE}-{}-01", of_tool(&spans, "request").id);
    assert!(reply.contains(&own) && reply.contains("vendor=1") && reply.contains("user=7"), "no {own} in {reply}");
    let not_traced = call(&mut host, "request", json!({}), json!({"traceparent": traceparent("00")})).to_string();
    assert!(not_traced.contains(&traceparent("00")), "what the host does not trace goes on as it came: {not_traced}");
}

#[test]
fn what_is_no_trace_context_begins_a_trace_of_its_own() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "");
    let long = format!("{}{}", traceparent("01"), "-0".repeat(10_000));
    let wrong = [
        json!({"traceparent": "00-0-0-01"}),
        json!({"traceparent": long}),
        json!({"traceparent": 5}),
        json!({"traceparent": traceparent("01").to_uppercase()}),
        json!({"traceparent": format!("ff-{TRACE}-{PARENT}-01")}),
        json!({"traceparent": format!("00-{}-{PARENT}-01", "0".repeat(32))}),
        json!({"traceparent": format!("00-{TRACE}-{PARENT}-01\r\nx: y")}),
        json!({"tracestate": "vendor=1"}),
        json!({}),
    ];
    for meta in &wrong {
        call(&mut host, "echo", json!({"text": "x"}), meta.clone());
    }
    let odd = json!({"traceparent": traceparent("01"), "tracestate": "no state\u{7}", "baggage": "x".repeat(10_000)});
    call(&mut host, "echo", json!({"text": "x"}), odd);
    let spans = collector.spans_when(4 * (wrong.len() + 1));
    let requests: Vec<&Span> = spans.iter().filter(|span| span.kind == 2).collect();
    let own: BTreeSet<&str> =
        requests.iter().filter(|span| span.trace != TRACE).map(|span| span.trace.as_str()).collect();
    assert_eq!((requests.len(), own.len()), (wrong.len() + 1, wrong.len()), "each begins its own: {requests:#?}");
    assert!(requests.iter().all(|span| span.state.is_empty()), "{requests:#?}");
    assert!(requests.iter().all(|span| span.parent.is_empty() == (span.trace != TRACE)), "{requests:#?}");
}

#[test]
fn how_a_call_failed_is_on_its_span() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good", "quitter", "loops"], &collector.url(), "");
    for (tool, arguments) in
        [("trap", json!({})), ("spin", json!({})), ("says_error", json!({})), ("echo", json!({"text": 5}))]
    {
        host.call(tool, arguments);
    }
    let meta = json!({"progressToken": "runs"});
    let arguments = json!({"steps": 10_000, "step_ms": 1});
    let slow = host.start("tools/call", json!({"name": "slow", "arguments": arguments, "_meta": meta}));
    host.next_of("notifications/progress");
    host.cancel(&slow);
    let spans = collector.spans_when(1 + 4 * 4);
    for (tool, outcome) in [
        ("trap", "trap"),
        ("spin", "out_of_fuel"),
        ("says_error", "tool_error"),
        ("echo", "invalid_input"),
        ("slow", "cancelled"),
    ] {
        let span = of_tool(&spans, tool);
        let said = ["error.type", "toolcell.outcome"].map(|key| span.attributes.get(key).map(String::as_str));
        assert_eq!((said, span.failed), ([Some(outcome); 2], true), "{span:#?}");
    }
}

#[test]
fn a_generation_that_is_swapped_in_is_traced_as_the_one_before() {
    let collector = Collector::start(Manner::Takes);
    let traces = format!("[traces]\nendpoint = \"{}\"\n", collector.url());
    let folder =
        Folder::with_manifest(&format!("version = 1\n{traces}[components.tool]\nsource = \"components/tool.wasm\"\n"));
    folder.write("components/tool.wasm", fixture_bytes("versioned_a"));
    let mut host = TestHost::in_folder(folder);
    host.call("version", json!({}));
    host.folder().save_fixture(Saving::RenamedOver, "components/tool.wasm", "versioned_b");
    host.serves_generation(2);
    host.call("version", json!({}));
    let spans = collector.spans_when(8);
    let generations: BTreeSet<&str> =
        spans.iter().filter_map(|span| span.attributes.get("toolcell.generation")).map(String::as_str).collect();
    assert_eq!(generations, BTreeSet::from(["1", "2"]));
    host.folder().write(
        "toolcell.toml",
        host.folder().read("toolcell.toml").replace("traces", "metrics").replace("endpoint", "#"),
    );
    host.will_say("changed, and in effect from the next start: ");
    assert!(host.said().contains("[traces]"), "{}", host.said());
}

#[test]
fn requests_that_call_no_tool_are_spans_too() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "");
    let meta = json!({"traceparent": traceparent("01")});
    host.request("tools/list", json!({"_meta": meta}));
    host.request("tools/call", json!({"name": "unknown", "arguments": {}, "_meta": meta}));
    host.request("chosen/method", json!({"_meta": meta}));
    let spans = collector.spans_when(3);
    for (name, error) in [("tools/list", None), ("tools/call", Some("-32602")), ("other", Some("-32601"))] {
        let span = spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
        assert_eq!((span.trace.as_str(), span.parent.as_str(), span.kind), (TRACE, PARENT, 2));
        assert_eq!((span.attributes.get("error.type").map(String::as_str), span.failed), (error, error.is_some()));
        assert_eq!(span.attributes["mcp.method.name"], name);
    }
    assert!(!format!("{spans:?}").contains("chosen"), "what a client calls a method is its own");
}

#[test]
fn only_what_is_sampled_is_sent_and_the_client_decides_for_its_own_trace() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "sample = 0\n");
    for _ in 0..20 {
        call(&mut host, "echo", json!({"text": "x"}), json!({}));
    }
    call(&mut host, "echo", json!({"text": "x"}), json!({"traceparent": traceparent("00")}));
    call(&mut host, "add", json!({"a": 1, "b": 2}), json!({"traceparent": traceparent("01")}));
    let spans = collector.spans_when(4);
    assert!(spans.len() == 4 && spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    assert_eq!(of_tool(&spans, "add").parent, PARENT);
}

#[test]
fn over_http_the_headers_hold_where_the_message_says_nothing() {
    let collector = Collector::start(Manner::Takes);
    let folder = Folder::with_manifest(&manifest(&["good"], &collector.url(), ""));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let modern = Ask::call("echo", json!({"text": "x"})).with("traceparent", &traceparent("01"));
    assert_eq!(host.ask(&modern).status(), 200);
    let session = host.session("2025-11-25");
    let legacy = Ask::request(7, "tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    let legacy = legacy.with("traceparent", &traceparent("01")).with("tracestate", "vendor=1");
    assert_eq!(host.ask(&legacy.of_session(&session)).status(), 200);
    let twice = Ask::call("clocks", json!({})).with("traceparent", &traceparent("01"));
    assert_eq!(host.ask(&twice.and("traceparent", &traceparent("01"))).status(), 200);
    let spans = collector.spans_when(13);
    let echo = of_tool(&spans, "echo");
    let add = of_tool(&spans, "add");
    let clocks = of_tool(&spans, "clocks");
    assert_eq!((echo.trace.as_str(), echo.parent.as_str()), (TRACE, PARENT));
    assert_eq!((add.trace.as_str(), add.parent.as_str(), add.state.as_str()), (TRACE, PARENT, "vendor=1"));
    assert_eq!(add.attributes["toolcell.era"], "legacy");
    assert_eq!(echo.attributes["network.transport"], "tcp");
    assert_ne!(clocks.trace, TRACE, "two headers are none");
}

#[test]
fn a_collector_over_tls_has_to_be_the_one_it_is_named_and_gets_the_headers_it_wants() {
    let authority = Authority::new();
    let collector = Collector::secure(&authority.identity(&["127.0.0.1"]));
    let other = Collector::secure(&authority.identity(&["collector.example"]));
    let folder = |endpoint: &str| {
        let folder = Folder::with_manifest(&manifest(&["good"], endpoint, ""));
        folder.write("root.pem", authority.pem());
        folder
    };
    let taken = folder(&collector.url());
    let root = taken.path().join("root.pem").to_string_lossy().into_owned();
    let variables =
        [("SSL_CERT_FILE", root.as_str()), ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-test")];
    let mut host = TestHost::recording_in(taken, &variables);
    host.call("echo", json!({"text": "x"}));
    assert_eq!(collector.spans_when(4).len(), 4);
    let heads = collector.heads();
    assert!(heads.iter().all(|head| head.contains("authorization: bearer of-the-test")), "{heads:?}");
    let mut host = TestHost::recording_in(folder(&other.url()), &variables);
    host.call("echo", json!({"text": "x"}));
    let _ = host.figures_when("that the spans are lost", |figures| {
        figures.counted("toolcell_spans_total", &["outcome"]).contains_key("refused")
    });
    assert_eq!(other.spans(), []);
}

#[test]
fn a_machine_without_roots_reaches_a_collector_without_tls() {
    let collector = Collector::start(Manner::Takes);
    let folder = Folder::with_manifest(&manifest(&["good"], &collector.url(), ""));
    let mut host = TestHost::recording_in(folder, &[("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/dev/null")]);
    host.call("echo", json!({"text": "x"}));
    assert_eq!(collector.spans_when(4).len(), 4);
}

#[test]
fn what_waits_is_sent_before_the_process_ends() {
    let collector = Collector::start(Manner::Takes);
    let mut host = serving(&["good"], &collector.url(), "");
    for _ in 0..50 {
        host.call("echo", json!({"text": "x"}));
    }
    host.close_input();
    assert!(host.ends().status.success());
    assert_eq!(collector.spans().len(), 200);
}

#[test]
fn a_collector_that_is_away_or_silent_or_refuses_delays_nothing() {
    let away = "http://127.0.0.1:9".to_owned();
    let [silent, refuses] = [Manner::Silent, Manner::Refuses].map(Collector::start);
    for (what, endpoint) in [("away", away), ("silent", silent.url()), ("refuses", refuses.url())] {
        let mut host = serving(&["good"], &endpoint, "");
        let began = Instant::now();
        // More spans than may wait, so that the collector that does not answer makes the host drop
        // some.
        for _ in 0..1_500 {
            assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
        }
        assert!(began.elapsed() < patience(), "{what}: {:?}", began.elapsed());
        let figures = host.figures_when("that spans are lost", |figures| {
            let lost = figures.counted("toolcell_spans_total", &["outcome"]);
            lost.contains_key("dropped") || lost.contains_key("refused")
        });
        assert_eq!(figures.get("toolcell_spans_total", &[("outcome", "taken")]), 0.0);
        assert!(figures.get("toolcell_spans_waiting", &[]) <= 4_096.0);
        // One that never answers takes a batch each time. On a busy machine it needs more calls
        // until too many wait.
        let began = Instant::now();
        let is_dropped =
            |host: &TestHost| host.figures().counted("toolcell_spans_total", &["outcome"]).contains_key("dropped");
        while what == "silent" && !is_dropped(&host) {
            assert!(began.elapsed() < patience(), "nothing was dropped");
            for _ in 0..100 {
                assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
            }
        }
        let began = Instant::now();
        host.close_input();
        assert!(host.ends().status.success(), "{what}");
        let took = began.elapsed().as_secs_f64();
        assert!(took < 10.0, "{what}: the end took {took} s");
    }
}

#[test]
fn without_a_collector_nothing_is_traced() {
    let mut host =
        TestHost::with_options(Folder::with_manifest(&manifest_of(&["good"])), &["--metrics", "127.0.0.1:0"]);
    let reply = call(&mut host, "request", json!({}), json!({"traceparent": traceparent("01")})).to_string();
    assert!(reply.contains(&traceparent("01")), "the guest has its client's: {reply}");
    assert_eq!(host.figures().find("toolcell_spans_waiting", &[]), None);
}

#[test]
fn a_call_that_a_tool_makes_is_a_part_of_the_trace_beneath_its_own() {
    let collector = Collector::start(Manner::Takes);
    let endpoint = collector.url();
    let manifest = manifest(&["good", "calls"], &endpoint, "").replacen(
        "source = \"components/calls.wasm\"\n",
        "source = \"components/calls.wasm\"\ncalls = ['echo']\n",
        1,
    );
    let mut host = TestHost::recording(&manifest);
    let arguments = json!({"tool": "echo", "arguments": {"text": "x"}});
    call(&mut host, "relay", arguments, json!({"traceparent": traceparent("01")}));
    let spans = collector.spans_when(8);
    let outer = of_tool(&spans, "relay");
    let inner = of_tool(&spans, "echo");
    assert_eq!((outer.trace.as_str(), outer.parent.as_str()), (TRACE, PARENT));
    assert_eq!((inner.trace.as_str(), &inner.parent), (TRACE, &outer.id));
    assert!(outer.started <= inner.started && inner.ended <= outer.ended, "{spans:#?}");
    for request in [outer, inner] {
        let parts = spans.iter().filter(|span| span.parent == request.id && !span.name.starts_with("tools/call"));
        let parts: BTreeSet<&str> = parts.map(|span| &*span.name).collect();
        assert_eq!(parts, BTreeSet::from(["instantiate", "queue", "run"]), "{}", request.name);
    }
}
