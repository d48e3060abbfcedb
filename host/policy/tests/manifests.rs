//! What manifests mean, where a golden file would not show it: bounds, equivalence, places.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use toolcell_policy::{
    COMPONENTS_MAX, ComponentPolicy, DIAGNOSTICS_MAX, Diagnostic, Limit, Limits, MANIFEST_BYTES_MAX, Manifest, Server,
    Severity, Source, json_schema, parse,
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
        (Limit::Handles, "100_001", range),
    ] {
        assert_eq!(check(limit, written), expected, "{} = {written}", limit.spec().key);
    }
}

#[test]
fn the_servers_numbers_hold_within_the_bounds_of_the_schema() {
    let schema = json_schema();
    let get =
        |key: &str, field: &str| schema.pointer(&format!("/$defs/Server/properties/{key}/{field}")).unwrap().as_u64();
    let server = |key: &str, written: &str| {
        let text = format!("version = 1\n[server]\n{key} = {written}\n");
        let parsed = parse(&Source { name: "toolcell.toml", text: &text }).ok()?;
        Some(parsed.manifest.server().clone())
    };
    let value = |server: &Server, key: &str| match key {
        "page_size" => server.page_size() as u64,
        "in_flight_max" => server.in_flight_max() as u64,
        _ => server.pending_max() as u64,
    };
    for key in ["page_size", "in_flight_max", "pending_max"] {
        let (min, max) = (get(key, "minimum").unwrap(), get(key, "maximum").unwrap());
        assert_eq!(Some(value(&Server::default(), key)), get(key, "default"), "{key}");
        for fitting in [min, max] {
            assert_eq!(server(key, &fitting.to_string()).map(|server| value(&server, key)), Some(fitting), "{key}");
        }
        for outside in [i128::from(min) - 1, i128::from(max) + 1] {
            assert_eq!(server(key, &outside.to_string()), None, "{key} = {outside}");
        }
    }
    for (written, expected) in
        [("'4KiB'", Some(4 << 10)), ("'4095B'", None), ("'256MiB'", Some(256 << 20)), ("'257MiB'", None)]
    {
        assert_eq!(server("line_max", written).map(|server| server.line_bytes_max()), expected, "{written}");
    }
    assert_eq!(Server::default().line_bytes_max(), 16 << 20);
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
        "tools.t.limits = { queue = 64 }",
    ] {
        assert_eq!(component(same).canonical(), plain.canonical(), "{same}");
    }
    for other in ["prefix = 'x'", "limits.queue = 63", "tools.t.limits.queue = 63", "tools.u.limits.queue = 63"] {
        assert_ne!(component(other).canonical(), plain.canonical(), "{other}");
    }
    let (one, two) = ("tools.t.limits.queue = 1\n", "tools.u.limits.queue = 2\n");
    assert_eq!(component(&format!("{one}{two}")).canonical(), component(&format!("{two}{one}")).canonical());
}

#[test]
fn places_are_kept_for_whoever_finds_later_problems() {
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\nprefix = 'p_'\n[components.a.tools.t]\n";
    let manifest = manifest(text);
    let a = manifest.component("a").unwrap();
    let at = |span: std::ops::Range<usize>| text.get(span).unwrap();
    assert_eq!(at(a.name_span()), "a");
    assert_eq!(at(a.source_span()), "'a.wasm'");
    assert_eq!(at(a.prefix_span().unwrap()), "'p_'");
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
