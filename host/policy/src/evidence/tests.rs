//! Evidence, what it makes of manifests, and the width of rules.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::diagnostic::Source;
use crate::parse;

fn manifest(text: &str) -> crate::Manifest {
    parse(&Source { name: "toolcell.toml", text }).unwrap_or_else(|problems| panic!("{text}\n{problems:?}")).manifest
}

/// Evidence of whole calls: one call of the tool for each list of uses.
fn recorded(uses: &[(&str, &str)]) -> Evidence {
    let mut evidence = Evidence::default();
    for (tool, used) in uses {
        evidence.call("c", Seen::Everything);
        if !used.is_empty() {
            evidence.add(GrantUse::parse("c", tool, used).unwrap_or_else(|error| panic!("{used}: {error}")));
        }
    }
    evidence
}

fn narrowed(text: &str, uses: &[(&str, &str)]) -> Narrowed {
    let source = Source { name: "toolcell.toml", text };
    narrow(&source, &manifest(text), &recorded(uses), &|path| path.starts_with("d") && !path.ends_with(".txt")).unwrap()
}

const HEAD: &str = "version = 1\n\n[components.c]\nsource = \"c.wasm\"\n";

/// The manifest with these tables, narrowed for uses of one tool.
fn one(tables: &str, uses: &[&str]) -> String {
    let text = format!("{HEAD}{tables}");
    let uses: Vec<(&str, &str)> = uses.iter().map(|used| ("t", *used)).collect();
    let narrowed = narrowed(&text, &uses);
    assert!(narrowed.notes.is_empty(), "{:?}", narrowed.notes);
    narrowed.text.strip_prefix(HEAD).unwrap_or(&narrowed.text).to_owned()
}

#[test]
fn a_rule_becomes_what_was_used_of_it() {
    for (rule, uses, expected) in [
        ("https://a.example", vec!["GET https://a.example/x"], "\"GET https://a.example/x\""),
        (
            "https://*.example",
            vec!["GET https://a.example/x", "POST https://a.example/x", "GET https://b.example/y"],
            "\"GET,POST https://a.example/x\", \"GET https://b.example/y\"",
        ),
        (
            "GET,POST https://a.example/v1/*",
            vec![
                "GET https://a.example/v1/users/ann",
                "GET https://a.example/v1/users/bob",
                "GET https://a.example/v1/users/cyd",
                "GET https://a.example/v1/users/dan",
                "GET https://a.example/v1/now",
            ],
            "\"GET https://a.example/v1/now\", \"GET https://a.example/v1/users/{}\"",
        ),
        ("GET https://a.example/x", vec!["GET https://a.example/x?q=1"], "\"GET https://a.example/x\""),
        ("https://a.example", vec!["GET https://a.example/..%2fx"], "\"GET https://a.example\""),
        ("https://a.example", vec!["BREW https://a.example/x"], "\"https://a.example/x\""),
        ("https://a.example", vec!["GET https://a.example/a*b/c"], "\"GET https://a.example/{}/c\""),
        (
            "GET https://a.example/v1/*/now",
            vec!["GET https://a.example/v1/x/now"],
            "\"GET https://a.example/v1/x/now\"",
        ),
        ("GET https://a.example/**", vec!["GET https://a.example/"], "\"GET https://a.example/\""),
    ] {
        let tables = format!("[components.c.network]\nhttp = [\"{rule}\"]\n");
        let expected = format!("[components.c.network]\nhttp = [{expected}]\n");
        assert_eq!(one(&tables, &uses), expected, "{rule}");
    }
}

#[test]
fn many_hosts_or_paths_keep_a_rule_for_all_of_them() {
    let many: Vec<String> = (0..20).map(|number| format!("GET https://h{number}.example/v1/{number}/x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let text = one("[components.c.network]\nhttp = [\"https://*.example\"]\n", &many);
    assert_eq!(text, "[components.c.network]\nhttp = [\"GET https://*.example/v1/{}/x\"]\n");
    let many: Vec<String> = (0..20).map(|depth| format!("GET https://a.example/v1{}", "/x".repeat(depth))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let text = one("[components.c.network]\nhttp = [\"https://a.example\"]\n", &many);
    assert_eq!(text, "[components.c.network]\nhttp = [\"GET https://a.example/*\"]\n");
}

#[test]
fn what_nobody_used_goes_with_all_that_needs_it() {
    let tables = "keyvalue = {}\ncalls = [\"a_*\", \"b\"]\n\n[components.c.network]\n# the API\nhttp = [\n    \"https://a.example\", # of Ann\n    \"http://127.0.0.1:8080\",\n]\ntcp = [\"db.example.com:1-65535\", \"*.example.org:1\"]\nprivate = [\"127.0.0.1:8080\"]\n\n[components.c.secrets]\nKEY = { from = \"env:KEY\", header = \"A\", value = \"{}\", for = \"http://127.0.0.1:8080\" }\n\n[components.c.env]\nUNITS = \"metric\"\nCITY = \"Oslo\"\n\n[components.c.config]\ntheme = \"dark\"\n";
    let uses = ["GET https://a.example/x", "tcp db.example.com:5432", "lookup db.example.com", "env UNITS", "call a_1"];
    let text = format!("{HEAD}{tables}");
    let all: Vec<(&str, &str)> = uses.iter().map(|used| ("t", *used)).collect();
    let narrowed = narrowed(&text, &all);
    assert_eq!(
        narrowed.text,
        format!(
            "{HEAD}calls = [\"a_1\"]\n\n[components.c.network]\n# the API\nhttp = [\n    \"GET https://a.example/x\", # of Ann\n]\ntcp = [\"db.example.com:5432\"]\n\n[components.c.env]\nUNITS = \"metric\"\n"
        )
    );
    let rules: Vec<&str> = narrowed.findings.iter().map(|finding| finding.rule.text()).collect();
    assert!(rules.contains(&"KEY") && rules.contains(&"127.0.0.1:8080") && rules.contains(&"CITY"), "{rules:?}");
    manifest(&narrowed.text);
}

#[test]
fn mounts_become_read_only_or_a_folder_that_no_link_leads_to() {
    let data = "[components.c.filesystem]\n\"/data\" = { path = \"data\", access = \"write\", quota = \"1MiB\" }\n\"/x\" = { path = \"x\" }\n";
    assert_eq!(
        one(data, &["read /data/in/a.txt", "read /data/in/b.txt", "read /x/y/z"]),
        "[components.c.filesystem]\n\"/data/in\" = { path = \"data/in\", access = \"read\" }\n\"/x\" = { path = \"x\" }\n",
    );
    assert_eq!(
        one(data, &["create /data/in/a.txt"]),
        "[components.c.filesystem]\n\"/data\" = { path = \"data\", access = \"write\", quota = \"1MiB\" }\n",
    );
    assert_eq!(
        one(data, &["read /data/a.txt", "read /x/y"]),
        "[components.c.filesystem]\n\"/data\" = { path = \"data\", access = \"read\" }\n\"/x\" = { path = \"x\" }\n",
    );
}

#[test]
fn a_tools_own_table_becomes_narrower_with_its_own_uses() {
    let text = format!(
        "{HEAD}[components.c.network]\nhttp = [\"https://a.example\"]\n[components.c.env]\nA = \"1\"\nB = \"2\"\n[components.c.tools.t]\nnetwork = {{ http = [\"GET https://a.example/v1/*\"] }}\nenv = [\"A\", \"B\"]\n"
    );
    let narrowed = narrowed(
        &text,
        &[("t", "GET https://a.example/v1/x"), ("other", "GET https://a.example/v2"), ("other", "env A")],
    );
    assert!(narrowed.notes.is_empty(), "{:?}", narrowed.notes);
    let expected = text
        .replace("[\"https://a.example\"]", "[\"GET https://a.example/v1/x\", \"GET https://a.example/v2\"]")
        .replace("https://a.example/v1/*", "https://a.example/v1/x")
        .replace("B = \"2\"\n", "")
        .replace("[\"A\", \"B\"]", "[\"A\"]");
    assert_eq!(narrowed.text, expected);
}

#[test]
fn what_the_component_loses_no_tool_names_any_more() {
    let text = format!(
        "{HEAD}calls = [\"a_*\"]\n[components.c.filesystem]\n\"/x\" = {{ path = \"x\" }}\n\"/y\" = {{ path = \"y\", access = \"write\" }}\n[components.c.tools.t]\nfilesystem = {{ \"/x\" = {{}}, \"/y\" = {{ access = \"write\" }} }}\ncalls = [\"a_1\", \"a_2\"]\n"
    );
    let narrowed = narrowed(&text, &[("t", "read /y/1"), ("t", "call a_1"), ("other", "call a_3")]);
    assert!(narrowed.notes.is_empty(), "{:?}", narrowed.notes);
    let expected = text
        .replace("\"a_*\"", "\"a_1\", \"a_3\"")
        .replace("\"a_1\", \"a_2\"]", "\"a_1\"]")
        .replace("\"/x\" = { path = \"x\" }\n", "")
        .replace("{ path = \"y\", access = \"write\" }", "{ path = \"y\", access = \"read\" }")
        .replace("{ \"/x\" = {}, \"/y\" = { access = \"write\" } }", "{ \"/y\" = { access = \"read\" } }");
    assert_eq!(narrowed.text, expected);
}

#[test]
fn evidence_is_bounded_and_what_is_beyond_counts_as_unknown() {
    let mut evidence = Evidence::default();
    evidence.call("c", Seen::Everything);
    for number in 0..=USES_MAX {
        evidence.add(GrantUse::new("c", "t", Ask::Named(Capability::Env, number.to_string())));
    }
    assert_eq!(evidence.of("c").unwrap().uses().count(), USES_MAX);
    assert!(evidence.of("c").unwrap().unknown(Capability::Env).is_some());
    let mut evidence = Evidence::default();
    evidence.call("c", Seen::Everything);
    evidence.add(GrantUse::new("c", "t", Ask::Named(Capability::Env, "x".repeat(USE_BYTES_MAX))));
    assert!(evidence.of("c").unwrap().unknown(Capability::Env).is_some());
    for number in 0..=COMPONENTS_MAX {
        evidence.call(&number.to_string(), Seen::Everything);
    }
    assert_eq!(evidence.components.len(), COMPONENTS_MAX);
}

#[test]
fn nothing_is_said_where_uses_are_not_known() {
    let text = format!(
        "{HEAD}keyvalue = {{}}\n[components.c.network]\nhttp = [\"https://a.example\"]\n[components.c.filesystem]\n\"/data\" = {{ path = \"data\" }}\n[components.d]\nsource = \"d.wasm\"\nkeyvalue = {{}}\n"
    );
    let source = Source { name: "toolcell.toml", text: &text };
    let run = |evidence: &Evidence| narrow(&source, &manifest(&text), evidence, &|_| false).unwrap();
    let mut evidence = Evidence::default();
    evidence.call("c", Seen::HostSide);
    evidence.add(GrantUse::parse("c", "t", "GET https://a.example/x").unwrap());
    let found = run(&evidence);
    assert!(
        found.text.contains("GET https://a.example/x")
            && !found.text.contains("[components.c]\nsource = \"c.wasm\"\nkeyvalue"),
        "{}",
        found.text
    );
    assert_eq!(
        found.notes,
        [
            "c: filesystem stays as it is: what 1 of 1 calls used is not recorded",
            "d: it was not called, so nothing is known of what its tools need",
        ]
    );
    evidence.call("c", Seen::Nothing);
    assert_eq!(run(&evidence).text, text, "one call is unknown");
    let mut evidence = Evidence::default();
    evidence.call("c", Seen::Everything);
    evidence.left_out("c", 2);
    let found = run(&evidence);
    assert_eq!(found.text, text);
    assert!(found.notes[0].contains("2 uses were not recorded one by one"), "{:?}", found.notes);
}

/// Parts of requests that rules and uses are made of.
fn url() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec!["a.example", "b.example", "x.a.example", "192.0.2.1:8080"]);
    let path = prop::collection::vec(prop::sample::select(vec!["v1", "x", "y", "*", "", "%2F", "a*b", "é"]), 0..4);
    let method = prop::sample::select(vec!["GET", "POST", "DELETE", "BREW"]);
    (method, host, path).prop_map(|(method, host, path)| format!("{method} https://{host}/{}", path.join("/")))
}

fn rule() -> impl Strategy<Value = String> {
    let methods = prop::sample::select(vec!["", "GET ", "GET,POST "]);
    let host = prop::sample::select(vec!["a.example", "*.example", "*", "b.example"]);
    let path = prop::sample::select(vec!["", "/v1/*", "/*/x", "/v1/{}", "/x", "/", "/v1/**"]);
    (methods, host, path).prop_map(|(methods, host, path)| format!("{methods}https://{host}{path}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_use_stays_allowed_and_nothing_else_becomes_so(
        rules in prop::collection::vec(rule(), 1..4),
        urls in prop::collection::vec(url(), 0..30),
        own in prop::collection::vec(rule(), 0..2),
    ) {
        let list = |rules: &[String]| format!("{rules:?}");
        let text = format!("{HEAD}[components.c.network]\nhttp = {}\n[components.c.tools.t]\nnetwork = {{ http = {} }}\n", list(&rules), list(&own));
        let Ok(before) = parse(&Source { name: "toolcell.toml", text: &text }) else { return Ok(()) };
        let before = before.manifest;
        let mut evidence = Evidence::default();
        for (number, url) in urls.iter().enumerate() {
            let tool = if number % 2 == 0 { "t" } else { "other" };
            evidence.call("c", Seen::HostSide);
            if let Ok(used) = GrantUse::parse("c", tool, url) {
                evidence.add(used);
            }
        }
        let source = Source { name: "toolcell.toml", text: &text };
        let found = narrow(&source, &before, &evidence, &|_| false).unwrap();
        let after = manifest(&found.text);
        let policy = before.component("c").unwrap();
        let narrowed = after.component("c").unwrap();
        prop_assert!(narrow::lies_within(narrowed.grants(), policy.grants()), "{}", found.text);
        for url in &urls {
            for tool in ["t", "other"] {
                let Ok(ask) = Ask::parse(url) else { continue };
                let was = policy.tool_grants(tool).explain(&ask).is_allowed();
                let is = narrowed.tool_grants(tool).explain(&ask).is_allowed();
                prop_assert!(was || !is, "{url} is allowed now: {}", found.text);
            }
        }
        for used in evidence.of("c").into_iter().flat_map(ComponentUse::uses) {
            prop_assert!(!used.is_allowed(policy) || used.is_allowed(narrowed), "{}: {}", used.ask, found.text);
        }
    }
}

#[test]
fn a_wide_rule_is_named_before_a_narrow_one_and_an_exact_one_not_at_all() {
    let text = format!(
        "{HEAD}keyvalue = {{}}\n[components.c.network]\nhttp = [\"GET https://exact.example/v1/now\", \"GET https://b.example/v1/*\", \"https://*.wide.example\"]\n[components.c.env]\nUNITS = \"metric\"\n"
    );
    let mut evidence = recorded(&[
        ("t", "GET https://exact.example/v1/now"),
        ("t", "GET https://b.example/v1/now"),
        ("t", "GET https://api.wide.example/v1/now"),
        ("t", "env UNITS"),
    ]);
    evidence.call("c", Seen::Everything);
    let found = fuzz(&manifest(&text), &evidence, None);
    let rules: Vec<&str> = found.rules.iter().map(|rule| rule.rule.text()).collect();
    assert_eq!(rules, ["https://*.wide.example", "GET https://b.example/v1/*", "[components.c.keyvalue]"]);
    assert!(found.rules[0].is_used && !found.rules[2].is_used && !found.is_cut);
    let kinds: BTreeSet<&str> = found.rules[0].requests.iter().map(|request| request.kind).collect();
    assert_eq!(kinds, BTreeSet::from(["host", "method", "path"]), "{:?}", found.rules[0].requests);
    assert!(found.rules[1].requests.iter().all(|request| request.asked.starts_with("GET https://b.example/v1/")));
    assert_eq!(found.rules[2].requests, [WideRequest { kind: "unused", asked: "keyvalue".to_owned() }]);
}

#[test]
fn no_rule_reaches_another_host_port_scheme_or_folder_however_it_is_spelled() {
    let text = format!(
        "{HEAD}[components.c.network]\nhttp = [\"GET https://api.example.com/v1/repos/*\", \"http://192.0.2.9:8080\"]\ntcp = [\"db.example.com:5432\"]\nprivate = [\"192.0.2.9:8080\"]\n[components.c.filesystem]\n\"/data/in\" = {{ path = \"data\" }}\n"
    );
    let found = fuzz(&manifest(&text), &Evidence::default(), None);
    for rule in &found.rules {
        for request in &rule.requests {
            let asked = request.asked.as_str();
            let fits = match rule.right {
                "http" if rule.rule.text().starts_with("GET") => {
                    asked.starts_with("GET https://api.example.com/v1/repos/")
                }
                "http" => asked.split_once(' ').is_some_and(|(_, url)| url.starts_with("http://192.0.2.9:8080/")),
                "tcp" => asked == "tcp db.example.com:5432",
                _ => asked == "read /data/in" || asked.starts_with("read /data/in/"),
            };
            assert!(fits, "{} allows {asked} ({})", rule.rule, request.kind);
        }
    }
    assert!(found.tried > 150, "{}", found.tried);
}

#[test]
fn what_scripts_may_call_stays() {
    let text = "version = 1\n[components.c]\nsource = \"c.wasm\"\n[code]\ncalls = [\"*\"]\n";
    let mut evidence = Evidence::default();
    evidence.call("code", Seen::Everything);
    evidence.add(GrantUse::parse("code", "run_code", "call c_one").unwrap());
    let source = Source { name: "toolcell.toml", text };
    let narrowed = narrow(&source, &manifest(text), &evidence, &|_| false).unwrap();
    assert_eq!((narrowed.text.as_str(), narrowed.findings.len(), narrowed.notes.len()), (text, 0, 0));
}

#[test]
fn a_call_of_a_tool_that_there_is_not_is_no_reason_for_a_rule() {
    let text = format!("{HEAD}calls = [\"*\"]\n");
    let mut evidence = recorded(&[("t", "call weather_now"), ("t", "call wether_now"), ("t", "keyvalue")]);
    assert!(evidence.has_calls_of_tools() && !recorded(&[("t", "keyvalue")]).has_calls_of_tools());
    evidence.retain_calls_of_tools(|name| name == "weather_now");
    let source = Source { name: "toolcell.toml", text: &text };
    let narrowed = narrow(&source, &manifest(&text), &evidence, &|_| false).unwrap();
    assert_eq!(narrowed.text, format!("{HEAD}calls = [\"weather_now\"]\n"));
}
