//! The meaning of manifests where a golden file would not show it: bounds, equivalence, places.
//!
//! Promise: no line of the manifest is silently without effect.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use toolcell_policy::quantity::{Per, Rate};
use toolcell_policy::{
    COMPONENTS_MAX, ComponentPolicy, DIAGNOSTICS_MAX, Diagnostic, InstancePolicy, Limit, Limits, LoadLimit,
    MANIFEST_BYTES_MAX, Manifest, Server, Severity, Source, Spec, Unit, parse,
};

fn manifest(text: &str) -> Manifest {
    parse(&Source { name: "toolcell.toml", text }).unwrap().manifest
}

fn problems(text: &str) -> Vec<Diagnostic> {
    parse(&Source { name: "toolcell.toml", text }).unwrap_err()
}

/// One component with these lines in its table.
fn component(lines: &str) -> ComponentPolicy {
    let manifest = manifest(&format!("version = 1\n[components.a]\nsource = \"a.wasm\"\n{lines}"));
    manifest.component("a").unwrap().clone()
}

/// The value a limit has when written so, or the codes of the problems.
fn check(limit: Limit, written: &str) -> Result<u64, Vec<&'static str>> {
    let key = limit.spec().key;
    let text = format!("version = 1\ncomponents.a = {{ source = \"a.wasm\", limits = {{ {key} = {written} }} }}\n");
    match parse(&Source { name: "toolcell.toml", text: &text }) {
        Ok(parsed) => Ok(parsed.manifest.component("a").unwrap().limits().get(limit)),
        Err(problems) => Err(problems.iter().map(Diagnostic::code).collect()),
    }
}

#[test]
fn limits_are_read_in_their_units_and_within_their_bounds() {
    let range = Err(vec!["limits::range"]);
    let unit = Err(vec!["limits::unit"]);
    for (limit, written, expected) in [
        (Limit::Fuel, "1", Ok(1)),
        (Limit::Fuel, "0", range.clone()),
        (Limit::Fuel, "1_000_000_000_000_000", Ok(1_000_000_000_000_000)),
        (Limit::Fuel, "1_000_000_000_000_001", range.clone()),
        (Limit::Fuel, "-9223372036854775809", range.clone()),
        (Limit::Fuel, "1e9", Err(vec!["manifest::type"])),
        (Limit::Deadline, "\"1ms\"", Ok(1)),
        (Limit::Deadline, "\"0ms\"", range.clone()),
        (Limit::Deadline, "\"1h\"", Ok(3_600_000)),
        (Limit::Deadline, "\"1h1ms\"", range.clone()),
        (Limit::Memory, "\"64KiB\"", Ok(65_536)),
        (Limit::Memory, "\"65535B\"", range.clone()),
        (Limit::Memory, "\"4GiB\"", Ok(4 << 30)),
        (Limit::Memory, "67108864", unit.clone()),
        (Limit::Log, "\"0B\"", Ok(0)),
        (Limit::Queue, "0", Ok(0)),
        (Limit::Concurrency, "0", range.clone()),
        (Limit::QueueWait, "5", unit.clone()),
        (Limit::QueueWait, "\"\"", unit),
        (Limit::Handles, "100_001", range.clone()),
        (Limit::Rate, "\"600/min\"", Ok(Rate { count: 600, per: Per::Minute }.number())),
        (Limit::Rate, "\"1/h\"", Ok(Rate { count: 1, per: Per::Hour }.number())),
        (Limit::Rate, "\"0/h\"", range.clone()),
        (Limit::Rate, "\"0/s\"", range.clone()),
        (Limit::Rate, "\"1000000/s\"", Ok(Rate::MOST.number())),
        (Limit::Rate, "\"1000000/h\"", Ok(Rate { count: 1_000_000, per: Per::Hour }.number())),
        (Limit::Rate, "\"1000001/h\"", range.clone()),
        (Limit::Rate, "\"99999999999999999999/s\"", range),
        (Limit::Progress, "20", Err(vec!["limits::unit"])),
        (Limit::Progress, "\"20/week\"", Err(vec!["limits::unit"])),
        (Limit::Progress, "true", Err(vec!["manifest::type"])),
    ] {
        assert_eq!(check(limit, written), expected, "{} = {written}", limit.spec().key);
    }
}

#[test]
fn the_servers_numbers_hold_within_their_bounds() {
    let server = |spec: &Spec, written: &str| {
        let quote = if spec.unit == Unit::Count { "" } else { "'" };
        let text = format!("version = 1\n[server]\n{} = {quote}{written}{quote}\n", spec.key);
        let parsed = parse(&Source { name: "toolcell.toml", text: &text }).ok()?;
        Some(value(parsed.manifest.server(), spec))
    };
    fn value(server: &Server, spec: &Spec) -> u64 {
        let value = match spec.key {
            "page_size" => server.page_size(),
            "find_query" => server.find_query_bytes(),
            "find_results" => server.find_results(),
            "find_output" => server.find_output_bytes(),
            "find_text" => server.find_text_bytes(),
            "line_max" => server.line_bytes_max(),
            "in_flight_max" => server.in_flight_max(),
            "pending_max" => server.pending_max(),
            "subscriptions_max" => server.subscriptions_max(),
            "watched_max" => server.watched_max(),
            "caller_watched_max" => server.caller_watched_max(),
            "drain" => return u64::try_from(server.drain().as_millis()).unwrap(),
            "calls" => server.calls(),
            "stack" => server.stack_bytes(),
            "prewarm_memory" => return server.prewarm_memory_bytes(),
            "wall_idle" => return u64::try_from(server.wall_idle().as_millis()).unwrap(),
            other => panic!("{other}"),
        };
        value as u64
    }
    for spec in Server::limits() {
        assert!(spec.min <= spec.default && spec.default <= spec.max && !spec.reason.is_empty(), "{}", spec.key);
        assert_eq!(value(&Server::default(), spec), spec.default, "{}", spec.key);
        for fitting in [spec.min, spec.max] {
            assert_eq!(server(spec, &spec.show(fitting)), Some(fitting), "{} = {fitting}", spec.key);
        }
        for outside in [i128::from(spec.min) - 1, i128::from(spec.max) + 1] {
            let unit = match spec.unit {
                Unit::Bytes => "B",
                Unit::Millis => "ms",
                _ => "",
            };
            assert_eq!(server(spec, &format!("{outside}{unit}")), None, "{} = {outside}", spec.key);
        }
    }
}

#[test]
fn instances_are_made_per_call_or_kept_per_caller() {
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    let per_caller = |idle, lifetime| InstancePolicy::PerCaller { idle, lifetime };
    for (lines, instance, prewarm) in [
        ("", InstancePolicy::PerCall, 4),
        ("prewarm = 0", InstancePolicy::PerCall, 0),
        ("prewarm = 64\ninstance = 'per-call'", InstancePolicy::PerCall, 64),
        ("instance = 'per-caller'", per_caller(minutes(5), minutes(60)), 0),
        (
            "instance = 'per-caller'\ninstance_idle = '1s'\ninstance_lifetime = '24h'",
            per_caller(Duration::from_secs(1), minutes(24 * 60)),
            0,
        ),
        ("instance = 'per-caller'\ninstance_lifetime = '1m'", per_caller(minutes(5), minutes(1)), 0),
    ] {
        let component = component(lines);
        assert_eq!((component.instance(), component.prewarm()), (instance, prewarm), "{lines}");
    }
}

#[test]
fn instances_are_refused_numbers_outside_their_bounds_and_rules_that_never_apply() {
    for (lines, expected) in [
        ("prewarm = -1", vec!["limits::range"]),
        ("prewarm = 65", vec!["limits::range"]),
        ("prewarm = '4'", vec!["manifest::type"]),
        ("instance = 'per-tool'", vec!["components::instance"]),
        ("instance = true", vec!["manifest::type"]),
        ("instance = 'per-tool'\nprewarm = 1\ninstance_idle = '1s'", vec!["components::instance"]),
        ("instance_idle = '1m'", vec!["components::instance"]),
        ("instance = 'per-call'\ninstance_lifetime = '1m'", vec!["components::instance"]),
        ("instance = 'per-caller'\nprewarm = 0", vec!["components::instance"]),
        ("instance = 'per-caller'\ninstance_idle = '999ms'", vec!["limits::range"]),
        ("instance = 'per-caller'\ninstance_idle = 60", vec!["limits::unit"]),
        ("instance = 'per-caller'\ninstance_lifetime = '24h1ms'", vec!["limits::range"]),
    ] {
        let found = problems(&format!("version = 1\n[components.a]\nsource = 'a.wasm'\n{lines}\n"));
        assert_eq!(found.iter().map(Diagnostic::code).collect::<Vec<_>>(), expected, "{lines}");
    }
}

#[test]
fn loading_is_bounded_per_component_and_not_per_tool() {
    let manifest = manifest(
        "version = 1
         [defaults.load]
         tools = 10
         compile_time = '30s'
         [components.a]
         source = 'a.wasm'
         load = { tools = 20, definition = '1KiB' }
         [components.b]
         source = 'b.wasm'",
    );
    let values = |name: &str| {
        let load = manifest.component(name).unwrap().load();
        LoadLimit::ALL.map(|limit| load.show(limit))
    };
    assert_eq!(values("a"), ["128MiB", "30s", "4GiB", "20", "1KiB"]);
    assert_eq!(values("b"), ["128MiB", "30s", "4GiB", "10", "256KiB"]);
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\ntools.t.load = { tools = 1 }\n";
    assert_eq!(problems(text).iter().map(Diagnostic::code).collect::<Vec<_>>(), ["manifest::unknown_key"]);
}

#[test]
fn texts_for_people_and_models_are_bounded() {
    let long = "a".repeat(129);
    let lines = "a".repeat((16 << 10) + 1);
    for (line, fits) in [
        (format!("name = '{}'", &long[..128]), true),
        (format!("name = '{long}'"), false),
        ("name = ' '".to_owned(), false),
        ("title = \"a\\nb\"".to_owned(), false),
        ("instructions = \"a\\n\\tb\"".to_owned(), true),
        (format!("instructions = '{}'", &lines[..16 << 10]), true),
        (format!("instructions = '{lines}'"), false),
    ] {
        let text = format!("version = 1\n[server]\n{line}\n");
        let parsed = parse(&Source { name: "toolcell.toml", text: &text });
        assert_eq!(parsed.is_ok(), fits, "{line}");
    }
}

#[test]
fn the_most_specific_limit_wins() {
    let manifest = manifest(
        "version = 1
         [defaults.limits]
         fuel = 1
         handles = 101
         queue = 1
         [components.a]
         source = 'a.wasm'
         limits = { handles = 102, queue = 2 }
         tools.t.limits = { queue = 3 }
         [components.b]
         source = 'b.wasm'",
    );
    let values = |limits: &Limits| (limits.fuel(), limits.handles(), limits.queue(), limits.concurrency());
    let a = manifest.component("a").unwrap();
    assert_eq!(values(manifest.default_limits()), (1, 101, 1, 16));
    assert_eq!(values(a.limits()), (1, 102, 2, 16));
    assert_eq!(values(a.tool_limits("t")), (1, 102, 3, 16));
    assert_eq!(values(a.tool_limits("other")), (1, 102, 2, 16));
    assert_eq!(values(manifest.component("b").unwrap().limits()), (1, 101, 1, 16));
}

#[test]
fn the_place_of_a_limit_is_in_the_most_specific_table_that_sets_it() {
    let text = "version = 1
         [defaults.limits]
         fuel = 1
         queue = 1
         [components.a]
         source = 'a.wasm'
         limits = { queue = 2 }
         [components.a.tools.t.limits]
         queue = 3
         handles = 100
         [components.b]
         source = 'b.wasm'";
    let manifest = manifest(text);
    let place = |component: &str, tool: &str, limit: Limit| {
        let place = manifest.component(component).unwrap().tool_limit_place(tool, limit)?;
        let line = Source { name: "", text }.position(place.span().start).line;
        assert_eq!(text.get(place.span()), Some(limit.spec().key));
        Some((place.limit(), line, place.table().to_string()))
    };
    let expected = |limit, line, table: &str| Some((limit, line, table.to_owned()));
    for tool in ["t", "other"] {
        assert_eq!(place("a", tool, Limit::Fuel), expected(Limit::Fuel, 3, "defaults.limits"));
        assert_eq!(place("a", tool, Limit::Deadline), None);
    }
    assert_eq!(place("a", "t", Limit::Queue), expected(Limit::Queue, 9, "components.a.tools.t.limits"));
    assert_eq!(place("a", "t", Limit::Handles), expected(Limit::Handles, 10, "components.a.tools.t.limits"));
    assert_eq!(place("a", "other", Limit::Queue), expected(Limit::Queue, 7, "components.a.limits"));
    assert_eq!(place("a", "other", Limit::Handles), None);
    assert_eq!(place("b", "t", Limit::Queue), expected(Limit::Queue, 4, "defaults.limits"));
}

#[test]
fn components_stand_in_the_order_of_the_file() {
    let manifest =
        manifest("version = 1\ncomponents.z.source = 'z'\ncomponents.a.source = 'a'\ncomponents.m.source = 'm'\n");
    assert_eq!(manifest.components().iter().map(ComponentPolicy::name).collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn the_same_policy_has_the_same_canonical_form() {
    let plain = component("");
    for same in [
        "# comment\n",
        "limits = { memory = \"65536KiB\", deadline = \"0h30s\" }",
        "limits = {}\ntools.t = {}",
        "prewarm = 4\ninstance = 'per-call'",
        "tools.t.limits = { queue = 64 }",
    ] {
        assert_eq!(component(same).canonical(), plain.canonical(), "{same}");
    }
    for other in [
        "prefix = 'x'",
        "prewarm = 3",
        "instance = 'per-caller'",
        "limits.queue = 63",
        "tools.t.limits.queue = 63",
        "tools.u.limits.queue = 63",
    ] {
        assert_ne!(component(other).canonical(), plain.canonical(), "{other}");
    }
    let one = "tools.t.limits.queue = 1\n";
    let two = "tools.u.limits.queue = 2\n";
    assert_eq!(component(&format!("{one}{two}")).canonical(), component(&format!("{two}{one}")).canonical());
}

#[test]
fn places_are_kept_for_whoever_finds_later_problems() {
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.tools.t]\n";
    let manifest = manifest(text);
    let a = manifest.component("a").unwrap();
    let at = |span: std::ops::Range<usize>| text.get(span).unwrap();
    assert_eq!(at(a.name_span()), "a");
    assert_eq!(at(a.source_span()), "'a.wasm'");
    assert_eq!(at(a.tools().first().unwrap().name_span()), "t");
}

#[test]
fn a_manifest_is_bounded_in_length_depth_and_number() {
    let long = " ".repeat(MANIFEST_BYTES_MAX + 1);
    let codes = |text: &str| problems(text).iter().map(Diagnostic::code).collect::<Vec<_>>();
    assert_eq!(codes(&long), ["manifest::too_large"]);

    let deep = format!("version = 1\na = {}{}", "[".repeat(3_000), "]".repeat(3_000));
    assert!(codes(&deep).iter().all(|code| *code == "manifest::syntax"));

    let with = |count: usize| {
        let components = (0..count).map(|number| format!("c{number}.source = 'c.wasm'\n"));
        format!("version = 1\n[components]\n{}", components.collect::<String>())
    };
    assert_eq!(manifest(&with(COMPONENTS_MAX)).components().len(), COMPONENTS_MAX);
    assert_eq!(codes(&with(COMPONENTS_MAX + 1)), ["components::too_many"]);
}

#[test]
fn problems_are_bounded_and_the_rest_is_counted() {
    let keys: String = (0..DIAGNOSTICS_MAX + 7).map(|number| format!("key{number} = 1\n")).collect();
    let found = problems(&format!("version = 1\n{keys}[components.a]\nsource = 'a.wasm'\n"));
    assert_eq!(found.len(), DIAGNOSTICS_MAX + 1);
    let last = found.last().unwrap();
    assert_eq!((last.code(), last.message()), ("manifest::more", "7 more problems are not shown"));
}

#[test]
fn problems_come_in_the_order_of_the_file_with_warnings_among_them() {
    let found = problems(
        "version = 1\n[components.a]\nsource = 1\n[components.b]\nsource = 'b'\nlimits = { output = '32MiB' }\nx = 1\n",
    );
    let found: Vec<_> = found.iter().map(|problem| (problem.severity(), problem.code())).collect();
    assert_eq!(
        found,
        [
            (Severity::Error, "manifest::type"),
            (Severity::Warning, "limits::unreachable"),
            (Severity::Error, "manifest::unknown_key"),
        ]
    );
}

#[test]
fn the_grants_that_the_page_shows_are_a_manifest() {
    let page = include_str!("../../docs/grants.md");
    let (_, section) = page.split_once("## What a tool may reach").unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let manifest = manifest(&format!("version = 1\n[components.weather]\nsource = 'weather.wasm'\n{block}"));
    let weather = manifest.component("weather").unwrap();
    assert_eq!(weather.grants().files().len(), 3);
    assert_eq!(weather.tool_grants("weather_find").reach().len(), 4);
    let (_, table) = section.split_once("| rule | allows |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for line in table.lines().skip(2) {
        let rules = line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        for rule in rules.filter(|rule| !matches!(*rule, "tcp" | "udp")) {
            let key = if rule.contains("://") { "http" } else { "tcp" };
            let private =
                if rule.contains("192.0.2") { ", private = ['192.0.2.0/24']" } else { ", private = ['2001:db8::/32']" };
            let private = if rule.contains("192.0.2") || rule.contains("2001") { private } else { "" };
            component(&format!("network = {{ {key} = ['{rule}']{private} }}"));
        }
    }
}

#[test]
fn a_wait_within_a_request_that_outlasts_it_is_pointed_out() {
    for (lines, expected) in [
        ("http_time = '10s'", 0),
        ("http_first_byte = '40s'", 1),
        ("http_first_byte = '40s'\nhttp_time = '1m'", 0),
        ("http_connect = '2m'\nhttp_first_byte = '2m'", 2),
    ] {
        let text = format!("version = 1\n[components.a]\nsource = 'a'\n[components.a.limits]\n{lines}\n");
        let warnings = parse(&Source { name: "m", text: &text }).unwrap().warnings;
        assert_eq!(warnings.len(), expected, "{lines}");
    }
}
