//! The cost of one policy decision on a request. The policy is pure, so this program calls it in
//! process, with nothing around it.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use toolcell_policy::{Grants, Network, Source, parse};

use crate::goals::{Goal, Measured};
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;

/// Rules of the tool.
const RULES: usize = 100;

/// Decisions in a round. A round lasts several hundred ticks of the clock.
const DECISIONS: u32 = 1_000;

/// A request as a method, a scheme, an authority and a target, and true if it is allowed.
type Asked = (&'static str, [&'static str; 4], bool);

/// Requests of a guest. The last rule allows the first request; no rule allows the others.
const ASKED: [Asked; 3] = [
    ("allowed by the last rule", ["GET", "https", "api99.example.com", "/v1/berlin/now"], true),
    ("denied for its path", ["GET", "https", "api99.example.com", "/v2/berlin/now"], false),
    ("denied for its host", ["GET", "https", "api.example.org", "/v1/berlin/now"], false),
];

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 2 },
    Column { key: "min_us", heading: "min", decimals: 2 },
    Column { key: "max_us", heading: "max", decimals: 2 },
];

const NOTE: &str = "\
Of rounds of 1000 decisions: from a request's parts as the guest gives them, with their normal form, to the permit, or to the
denial with the line that would allow it. The goal is for the slowest.";

/// Measures.
///
/// # Errors
/// The policy decides wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let grants = grants()?;
    let mut rows = Vec::new();
    let mut slowest = None;
    for (name, parts, is_allowed) in ASKED {
        let took = decide(grants.network(), parts, is_allowed, options.count(1_000, 10))?;
        slowest = [slowest, took.median()].into_iter().flatten().reduce(f64::max);
        rows.push(Row { name: name.to_owned(), values: vec![took.median(), took.quantile(0.0), took.quantile(1.0)] });
    }
    let measured = slowest.into_iter().map(|value| Measured::alone(Goal::Decision, value)).collect();
    let title = "Policy: a decision on a request, 100 HTTP rules";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

fn grants() -> anyhow::Result<std::sync::Arc<Grants>> {
    let rules: Vec<String> = (0..RULES).map(|rule| format!("'GET https://api{rule}.example.com/v1/*/now'")).collect();
    let text = format!(
        "version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.network]\nhttp = [{}]\n",
        rules.join(", ")
    );
    let parsed = parse(&Source { name: "toolcell.toml", text: &text });
    let parsed = parsed.map_err(|problems| anyhow!("the manifest has {} problems", problems.len()))?;
    Ok(parsed.manifest.component("a").context("no such component")?.tool_grants("a"))
}

fn decide(
    network: &Network,
    [method, scheme, authority, target]: [&str; 4],
    is_allowed: bool,
    rounds: usize,
) -> anyhow::Result<Samples> {
    let decide = || black_box(network.http_request(black_box(method), scheme, black_box(authority), target));
    ensure!(decide().is_ok() == is_allowed, "{method} {scheme}://{authority}{target} is decided wrongly");
    let mut took = Samples::default();
    for _ in 0..rounds {
        let begun = Instant::now();
        for _ in 0..DECISIONS {
            drop(decide());
        }
        took.push_us(begun.elapsed() / DECISIONS);
    }
    Ok(took)
}
