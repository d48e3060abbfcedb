//! A decision on an HTTP request: by the last of many rules, as for every request that a guest
//! makes.
use std::hint::black_box;
use std::sync::Arc;

use criterion::Criterion;
use toolcell_policy::{Grants, Source, parse};

/// Rules of the tool.
const RULES: usize = 100;

/// Requests as the guest makes them; true if the last rule allows them.
const ASKED: [(&str, [&str; 4], bool); 3] = [
    ("allowed by the last rule", ["GET", "https", "api99.example.com", "/v1/berlin/now"], true),
    ("denied for its path", ["GET", "https", "api99.example.com", "/v2/berlin/now"], false),
    ("denied for its host", ["GET", "https", "api.example.org", "/v1/berlin/now"], false),
];

/// Measures decisions with their normal form and their permit, or the denial with the line that
/// would allow it.
pub fn measure(criterion: &mut Criterion) {
    let grants = grants();
    let mut group = criterion.benchmark_group("policy");
    for (name, [method, scheme, authority, target], is_allowed) in ASKED {
        let decide = || grants.network().http_request(black_box(method), scheme, black_box(authority), target);
        assert_eq!(decide().is_ok(), is_allowed, "{name}");
        group.bench_function(format!("{RULES} HTTP rules, {name}"), |bencher| bencher.iter(decide));
    }
    group.finish();
}

fn grants() -> Arc<Grants> {
    let rules: Vec<String> = (0..RULES).map(|rule| format!("'GET https://api{rule}.example.com/v1/*/now'")).collect();
    let rules = rules.join(", ");
    let text = format!("version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.network]\nhttp = [{rules}]\n");
    parse(&Source { name: "toolcell.toml", text: &text }).unwrap().manifest.component("a").unwrap().tool_grants("a")
}
