//! The metrics: exact counts after calls of every kind, the effect of a reload, and who may read
//! them. Hostile readers do not slow calls down.
//!
//! Promise: metrics tell nothing of callers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, Figures, Folder, Saving, TestHost, fixture_bytes, manifest_of};

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

const TABLES: &str = r#"
[components.good.tools.slow.limits]
concurrency = 1
queue = 0
[components.good.tools.add.limits]
rate = "1/h"
[components.loops.limits]
fuel = 20_000_000
[components.loops.tools.sleep_hour.limits]
deadline = "300ms"
[components.hungry.limits]
memory = "8MiB"
"#;

fn serving(fixtures: &[&str], tables: &str) -> TestHost {
    let folder = Folder::with_manifest(&format!("{}{tables}", manifest_of(fixtures)));
    TestHost::with_options(folder, &METRICS)
}

/// Calls of each tool by outcome, without zeros.
fn calls(figures: &Figures) -> BTreeMap<String, u64> {
    figures.counted("toolcell_calls_total", &["tool", "outcome"])
}

fn counts(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn every_call_is_counted_once_by_how_it_ended() {
    let mut host = serving(&["good", "loops", "quitter", "hungry", "liar", "reach_http"], TABLES);
    assert_eq!(calls(&host.figures()), counts(&[]));
    for _ in 0..3 {
        host.call("echo", json!({"text": "x"}));
    }
    host.call("echo", json!({"text": 5}));
    host.call("says_error", json!({}));
    host.call("add", json!({"a": 1, "b": 2}));
    host.call("add", json!({"a": 1, "b": 2}));
    host.call("spin", json!({}));
    host.call("sleep_hour", json!({}));
    host.call("trap", json!({}));
    host.call("grow_steadily", json!({}));
    host.call("long_text", json!({"bytes": 65_537}));
    host.call("http", json!({"url": "http://example.com/"}));
    let slow = host.start_call("slow", json!({"steps": 10_000, "step_ms": 1}));
    let of_slow = [("tool", "slow"), ("component", "good")];
    let is_busy = |figures: &Figures| figures.find("toolcell_calls_running", &of_slow).is_some_and(|count| count > 0.0);
    let busy = host.figures_when("running", is_busy);
    assert_eq!(busy.get("toolcell_calls_waiting", &of_slow), 0.0);
    host.call("slow", json!({"steps": 1, "step_ms": 0}));
    host.cancel(&slow);
    let ended = [("tool", "slow"), ("component", "good"), ("outcome", "cancelled")];
    let is_ended = |figures: &Figures| figures.find("toolcell_calls_total", &ended).is_some_and(|count| count > 0.0);
    let figures = host.figures_when("cancelled", is_ended);
    assert_eq!(
        calls(&figures),
        counts(&[
            ("add ok", 1),
            ("add rate_limited", 1),
            ("echo invalid_input", 1),
            ("echo ok", 3),
            ("grow_steadily out_of_memory", 1),
            ("http ok", 1),
            ("long_text limit_exceeded", 1),
            ("says_error tool_error", 1),
            ("sleep_hour deadline", 1),
            ("slow busy", 1),
            ("slow cancelled", 1),
            ("spin out_of_fuel", 1),
            ("trap trap", 1),
        ])
    );
    let ran = figures.counted("toolcell_call_duration_seconds_count", &["tool"]);
    let names = ["add", "grow_steadily", "http", "long_text", "says_error", "sleep_hour", "slow", "spin", "trap"];
    let expected: Vec<_> = names.into_iter().map(|name| (name, 1)).chain([("echo", 3)]).collect();
    assert_eq!(ran, counts(&expected), "what never ran took no time");
    assert_eq!(figures.counted("toolcell_call_memory_peak_bytes_count", &["tool"]), ran);
    assert_eq!(
        figures.counted("toolcell_denials_total", &["component", "capability"]),
        counts(&[("reach_http http", 1)])
    );
    assert_eq!(figures.get("toolcell_calls_running", &of_slow), 0.0);
    let of = |tool: &'static str, component: &'static str| [("tool", tool), ("component", component)];
    assert_eq!(figures.get("toolcell_call_fuel_total", &of("spin", "loops")), 20_000_000.0);
    let late = figures.get("toolcell_call_duration_seconds_sum", &of("sleep_hour", "loops"));
    assert!((0.3..60.0).contains(&late), "{late} s of at least 0.3");
    let peak = figures.get("toolcell_call_memory_peak_bytes_sum", &of("grow_steadily", "hungry"));
    assert!((4.0e6..=f64::from(8 << 20)).contains(&peak), "{peak} bytes of at most 8 MiB");
}

#[test]
fn labels_are_names_of_the_catalog_and_words_of_this_program() {
    let mut host = serving(&["good"], "");
    host.call("echo", json!({"text": "chosen"}));
    host.request("tools/call", json!({"name": "chosen", "arguments": {}}));
    host.request("tools/call", json!({"name": "echo", "arguments": {}, "_meta": {"traceparent": "chosen"}}));
    let figures = host.figures();
    let known = [
        "code",
        "component",
        "digest",
        "era",
        "le",
        "method",
        "outcome",
        "part",
        "reason",
        "rule",
        "signer",
        "source",
        "tool",
        "version",
    ];
    assert_eq!(figures.labels(), BTreeSet::from(known));
    assert_eq!(figures.values_of("tool"), BTreeSet::from(["echo"]), "those that were called");
    assert_eq!(figures.values_of("component"), BTreeSet::from(["good"]));
    assert_eq!(figures.get("toolcell_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    assert!(figures.get("process_resident_memory_bytes", &[]) > 1e6);
    assert!(figures.get("process_open_fds", &[]) > 3.0);
    assert!(figures.get("process_start_time_seconds", &[]) > 1.7e9);
}

#[test]
fn past_so_many_tools_further_ones_count_together_and_the_page_is_bounded() {
    let many: String = (0..60)
        .map(|number| format!("[components.c{number}]\nsource = \"components/good.wasm\"\nprefix = \"c{number}_\"\n"))
        .collect();
    let mut host = serving(&["good"], &format!("[metrics]\ntools = 3\n{many}"));
    let idle = host.figures();
    assert_eq!(idle.values_of("tool"), BTreeSet::new(), "a tool that nobody calls has no series");
    for number in 0..60 {
        for _ in 0..=number % 2 {
            assert_eq!(host.call(&format!("c{number}_echo"), json!({"text": "x"})).text(), "x");
        }
        // Each is seen by itself, so that the order is known.
        if number < 4 {
            let _ = host.figures();
        }
    }
    let figures = host.figures();
    assert_eq!(figures.values_of("tool"), BTreeSet::from(["(other)", "c0_echo", "c1_echo", "c2_echo"]));
    let expected = [("(other) ok", 86), ("c0_echo ok", 1), ("c1_echo ok", 2), ("c2_echo ok", 1)];
    assert_eq!(calls(&figures), counts(&expected));
    assert_eq!(
        figures.get("toolcell_call_duration_seconds_count", &[("tool", "(other)"), ("component", "(other)")]),
        86.0
    );
    // Some 70 of each tool, one of each component, and those of the process.
    assert!(figures.series() < 4 * 80 + 61 + 120, "{} series", figures.series());
}

/// That of the machine, or the one that `make lint ARGS=--get` took out of its package.
fn promtool() -> Option<PathBuf> {
    let cache = std::env::var_os("TOOLCELL_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache/toolcell")))?;
    let cached = cache.join(format!("clients/promtool-{}/promtool", std::env::consts::ARCH));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("promtool"));
    installed.chain([cached]).find(|program| program.is_file())
}

#[test]
fn the_older_text_form_is_for_those_who_do_not_accept_the_other() {
    let mut host = serving(&["good"], "");
    host.call("echo", json!({"text": "x"}));
    let reply = Wire::to(host.metrics_address()).ask(&Ask::bare("GET", "/metrics").with("accept", "*/*"));
    assert_eq!(reply.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let page = std::str::from_utf8(reply.body()).unwrap();
    assert!(!page.contains("# EOF") && !page.contains("# UNIT"), "{page}");
    assert!(
        page.contains("# TYPE toolcell_calls_total counter\n") && page.contains("# TYPE toolcell_build_info gauge\n")
    );
    let Some(promtool) = promtool() else {
        eprintln!("left out: promtool is not there; `make lint ARGS=--get` gets it");
        return;
    };
    let mut check = std::process::Command::new(promtool);
    let check = check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn().unwrap();
    check.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    assert!(
        said.status.success(),
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
}

#[test]
fn every_request_is_counted_by_its_method_and_its_error() {
    let mut host = serving(&["good"], "");
    host.list();
    host.call("echo", json!({"text": "x"}));
    host.request("tools/call", json!({"name": "unknown", "arguments": {}}));
    host.request("tools/call", json!({"name": "echo", "arguments": []}));
    host.request("tools/list", json!({"cursor": "wrong"}));
    host.request("chosen/method", json!({}));
    host.initialize("2025-11-25");
    host.still_answers();
    host.list();
    let figures = host.figures();
    assert_eq!(
        figures.counted("toolcell_requests_total", &["era", "method"]),
        counts(&[
            ("legacy initialize", 1),
            ("legacy ping", 1),
            ("legacy tools/list", 1),
            ("modern other", 1),
            ("modern tools/call", 3),
            ("modern tools/list", 2),
        ])
    );
    assert_eq!(
        figures.counted("toolcell_request_errors_total", &["code", "method"]),
        counts(&[("-32601 other", 1), ("-32602 tools/call", 2), ("-32602 tools/list", 1)])
    );
    assert_eq!(calls(&figures), counts(&[("echo ok", 1)]));
}

#[test]
fn calls_that_wait_are_seen_waiting_and_how_long_they_waited() {
    let tables =
        "[components.good.tools.slow.limits]\nconcurrency = 1\nqueue = 4\nqueue_wait = \"1m\"\ndeadline = \"1m\"\n";
    let mut host = serving(&["good"], tables);
    let of_slow = [("tool", "slow"), ("component", "good")];
    let calls: Vec<_> = (0..3).map(|_| host.start_call("slow", json!({"steps": 100, "step_ms": 10}))).collect();
    let _ = host.figures_when("two wait", |figures| {
        let count = |name| figures.find(name, &of_slow).unwrap_or_default();
        count("toolcell_calls_waiting") > 1.5 && count("toolcell_calls_running") > 0.5
    });
    calls.iter().for_each(|id| assert!(!host.answer_to(id).is_error()));
    let figures = host.figures();
    assert_eq!(figures.get("toolcell_call_wait_seconds_count", &of_slow), 2.0);
    let waited = figures.get("toolcell_call_wait_seconds_sum", &of_slow);
    assert!(waited >= 1.5, "the second waited for one call of 1 s, the third for two: {waited} s");
    assert_eq!(figures.get("toolcell_calls_waiting", &of_slow), 0.0);
}

#[test]
fn a_reload_keeps_the_counts_of_tools_that_stay_and_drops_those_of_tools_that_go() {
    let folder = Folder::with_manifest("version = 1\n[components.tool]\nsource = \"components/tool.wasm\"\n");
    folder.write("components/tool.wasm", fixture_bytes("versioned_c"));
    let mut host = TestHost::with_options(folder, &METRICS);
    host.call("version", json!({}));
    host.call("extra", json!({}));
    let before = host.figures();
    assert_eq!(before.values_of("tool"), BTreeSet::from(["extra", "version"]));
    assert_eq!(before.get("toolcell_generation", &[]), 1.0);
    host.folder().save_fixture(Saving::RenamedOver, "components/tool.wasm", "versioned_a");
    host.serves_generation(2);
    host.call("version", json!({}));
    let after = host.figures();
    assert_eq!(calls(&after), counts(&[("version ok", 2)]));
    assert_eq!(after.values_of("tool"), BTreeSet::from(["version"]));
    assert_eq!((after.get("toolcell_generation", &[]), after.get("toolcell_tools", &[])), (2.0, 2.0));
    host.folder().save(Saving::RenamedOver, "components/tool.wasm", "broken");
    host.will_say("not reloaded: ");
    let figures = host.figures_when("refused", |figures| {
        figures.counted("toolcell_reloads_total", &["outcome"]).contains_key("refused")
    });
    let reloads = figures.counted("toolcell_reloads_total", &["outcome"]);
    assert_eq!((reloads.get("replaced"), reloads.get("refused")), (Some(&1), Some(&1)));
    assert_eq!(calls(&figures), counts(&[("version ok", 2)]), "what does not load changes nothing");
    host.folder().save_fixture(Saving::RenamedOver, "components/tool.wasm", "versioned_c");
    host.serves_generation(3);
    assert_eq!(calls(&host.figures()), counts(&[("version ok", 2)]), "a tool that comes back begins anew");
}

#[test]
fn what_the_transport_holds_is_on_the_page() {
    let folder = Folder::with_manifest(&format!("{}\n[metrics]\nlisten = \"127.0.0.1:0\"\n", manifest_of(&["good"])));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let mut kept = host.connect();
    for _ in 0..2 {
        assert_eq!(kept.ask(&Ask::call("echo", json!({"text": "x"}))).status(), 200);
    }
    let _session = host.session("2025-11-25");
    assert_eq!(host.ask(&Ask::bare("GET", "/mcp").with("host", "evil.example.com")).status(), 403);
    let mut stream = host.connect();
    stream.send(&Ask::listen(1).bytes());
    assert_eq!(stream.head().status(), 200);
    let figures = host
        .process()
        .figures_when("its connections closed", |figures| figures.get("toolcell_http_connections", &[]) < 2.5);
    let responses = figures.counted("toolcell_http_responses_total", &["status"]);
    assert_eq!(responses, counts(&[("200", 4), ("202", 1), ("403", 1)]));
    let load = ["connections", "sessions", "streams", "requests_in_progress"];
    let load = load.map(|what| figures.get(&format!("toolcell_http_{what}"), &[]));
    assert_eq!(load, [2.0, 1.0, 1.0, 0.0]);
    drop(stream);
    let _ = host.process().figures_when("the stream's end", |figures| figures.get("toolcell_http_streams", &[]) < 0.5);
}

#[test]
fn records_that_are_missing_are_counted() {
    let manifest = format!("{}\n[audit]\nfile = \"/dev/full\"\nrequired = false\n", manifest_of(&["good"]));
    let mut host = TestHost::with_options(Folder::with_manifest(&manifest), &METRICS);
    let before = host.figures().get("toolcell_audit_failures_total", &[]);
    host.call("echo", json!({"text": "x"}));
    assert_eq!(host.figures().get("toolcell_audit_failures_total", &[]) - before, 2.0, "its start and its end");
}

#[test]
fn the_page_is_read_by_whom_it_is_for_and_by_nobody_else() {
    let tables = "[metrics]\nlisten = \"127.0.0.1:0\"\nhosts = [\"toolcell.internal\"]\n";
    let host = TestHost::with_manifest(&format!("{}\n{tables}", manifest_of(&["good"])));
    let address = host.metrics_address();
    let page = || Ask::bare("GET", "/metrics");
    for (what, ask, status) in [
        ("as it is", page(), 200),
        ("by its address", page().with("host", &address.to_string()), 200),
        ("by a name of the manifest", page().with("host", "toolcell.internal:9464"), 200),
        ("its head", Ask::bare("HEAD", "/metrics"), 200),
        ("a name that was made to point here", page().with("host", "evil.example.com"), 403),
        ("a page elsewhere", page().with("origin", "https://evil.example.com"), 403),
        ("no host", page().without("host"), 403),
        ("another path", Ask::bare("GET", "/mcp"), 404),
        ("a change", Ask::bare("POST", "/metrics"), 405),
        ("a long head", page().with("x", &"x".repeat(10_000)), 431),
    ] {
        let mut wire = Wire::to(address);
        wire.send(&ask.bytes());
        assert_eq!(wire.head().status(), status, "{what}");
    }
}

#[test]
fn an_address_that_others_reach_has_to_be_meant() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let said = Command::in_folder(&folder, &["serve", "--metrics", "0.0.0.0:0"]).run();
    let said = said.failed_with(1);
    assert!(said.contains("could be read from other machines") && said.contains("public = true"), "{said}");
    let meant = Folder::with_manifest(&format!("{}[metrics]\npublic = true\n", manifest_of(&["good"])));
    let public = TestHost::with_options(meant, &["--metrics", "0.0.0.0:0"]);
    let port = public.metrics_address().port();
    let mut wire = Wire::to(([127, 0, 0, 1], port).into());
    assert_eq!(wire.ask(&Ask::bare("GET", "/metrics")).status(), 200, "the manifest says so, of this page alone");
    let taken = TestHost::with_options(folder, &METRICS);
    let address = taken.metrics_address().to_string();
    let said = Command::in_folder(taken.folder(), &["serve", "--metrics", &address]).run();
    assert!(said.failed_with(1).contains("the metrics cannot be served at"), "{said:?}");
}

#[test]
fn connections_that_say_nothing_keep_no_reader_waiting() {
    let host = serving(&["good"], "");
    let address = host.metrics_address();
    let silent: Vec<Wire> = (0..200).map(|_| Wire::to(address)).collect();
    let began = std::time::Instant::now();
    assert_eq!(Wire::to(address).ask(&Ask::bare("GET", "/metrics")).status(), 200);
    let waited = began.elapsed();
    assert!(waited < std::time::Duration::from_secs(4), "{waited:?}: as long as silent ones are borne");
    drop(silent);
}

#[test]
fn readers_that_never_finish_take_nothing_from_calls_and_little_from_other_readers() {
    let mut host = serving(&["good"], "");
    let address = host.metrics_address();
    let mut slow: Vec<Wire> = (0..7).map(|_| Wire::to(address)).collect();
    slow.iter_mut().for_each(|wire| wire.send(b"GET /metrics HTTP/1.1\r\nhost: local"));
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
    assert_eq!(
        host.figures().get("toolcell_calls_total", &[("tool", "echo"), ("component", "good"), ("outcome", "ok")]),
        1.0
    );
    // Each gets the answer that it was too slow, and is closed.
    for wire in &mut slow {
        let closed = std::io::Read::read_to_end(wire.stream(), &mut Vec::new());
        assert!(closed.is_ok() || closed.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    }
}
