//! Calls of other tools (`toolcell:mcp/calling`).

use serde_json::json;

use super::used::{Narrower, NeededRules, around_call, rules_for};
use super::values::{ENTRIES_MAX, REQUESTS_MAX, check_requested};
use super::{ADDS_NOTHING, Example, Importer, Narrowing, Right, wider};
use crate::capabilities::ReachRow;
use crate::diagnostic::{Diagnostic, Span};
use crate::edit::{self, Change, ManifestEntry};
use crate::grants::{CallRule, Capability, Grants};
use crate::read::{Entry, Problems};
use crate::table::keys;

const IMPORTS: &[&str] = &["toolcell:mcp/calling"];

/// Calls of other tools.
pub(crate) static CALLS: Right = Right {
    section: "calls",
    named: Some(Capability::Call),
    keys: keys! {
        /// Tools that its tools may call during a call, as its caller: names as clients see them,
        /// `weather_*` for all that begin so. None by default.
        "calls": List(&Text), {"maxItems": ENTRIES_MAX, "examples": [["weather_*", "notes_read"]]};
    },
    keys_of_tool: keys! {
        /// The tools among the component's `calls` that this tool may call.
        "calls": List(&Text), {"maxItems": ENTRIES_MAX, "examples": [["weather_now"], []]};
    },
    keys_of_request: keys! {
        /// Names of tools, or `weather_*`.
        "calls": List(&Text), {};
    },
    narrowing: Some(Narrowing::List),
    read: |_, entry, _, grants, problems| grants.calls = rules(entry, ENTRIES_MAX, problems),
    narrow: |_, entry, grants, problems| {
        let granted = std::mem::take(&mut grants.calls);
        for rule in rules(entry, ENTRIES_MAX, problems) {
            if granted.iter().any(|other| rule.lies_within(other)) {
                grants.calls.push(rule);
                continue;
            }
            let message = format!("the component may not call {:?}", rule.rule().text());
            problems.add(wider(&message, rule.rule().span(), ADDS_NOTHING));
        }
        true
    },
    read_request: |_, entry, requested, problems| {
        let mut names: Vec<String> = Vec::new();
        for rule in rules(entry, REQUESTS_MAX, problems) {
            check_requested(rule.rule().text(), rule.rule().span(), problems);
            if !names.iter().any(|name| name == rule.rule().text()) {
                names.push(rule.rule().text().to_owned());
            }
        }
        requested.named.insert(Capability::Call, names);
    },
    beyond: |_, requested, grants| {
        let requested: Vec<CallRule> = requested
            .names(Capability::Call)
            .iter()
            .filter_map(|text| CallRule::parse(text, Span::default()))
            .collect();
        let is_beyond = |rule: &&CallRule| !requested.iter().any(|other| rule.lies_within(other));
        grants.calls().iter().filter(is_beyond).map(|rule| rule.rule().span()).collect()
    },
    canonical: |_, grants| {
        let mut texts: Vec<&str> = grants.calls().iter().map(|rule| rule.rule().text()).collect();
        texts.sort_unstable();
        texts.dedup();
        json!(texts)
    },
    reach: |_, grants| {
        let row = |rule: &CallRule| ReachRow::new(Capability::Call, rule.to_string(), Some(rule.rule().span()));
        grants.calls().iter().map(row).collect()
    },
    lock_lines: |_, grants| grants.calls().iter().map(|rule| format!("call {rule}")).collect(),
    what: "calls of other tools",
    imports: IMPORTS,
    uses: |right, grants| vec![right.used(grants.calls().first().map(|rule| rule.rule().span()))],
    verbs: &["call"],
    ask_forms: &["call TOOL"],
    evidence: Some(Capability::Call),
    own_table: |_, grants| {
        let spans = |grants: &Grants| grants.calls().iter().map(|rule| rule.rule().span()).collect::<Vec<_>>();
        grants.wider.as_ref().is_some_and(|wider| spans(wider) != spans(grants))
    },
    narrower: |right, used| {
        let narrower = |needed: NeededRules<'_, CallRule>| {
            let rule = needed.rule.rule().clone();
            let new = needed.instead?;
            let old = rule.text().to_owned();
            let change = Change::Rules { section: right.section, key: "", old, new: new.clone() };
            Some(Narrower { rule, instead: new, change })
        };
        rules_for(used.grants.calls(), used.uses).into_iter().filter_map(narrower).collect()
    },
    neighbours: |_, grants, uses| grants.calls().iter().map(|rule| around_call(rule, uses)).collect(),
    explain: |_, grants, ask, notes| {
        let verdict = grants.call(ask.name(Capability::Call)?).cloned();
        if verdict.is_ok() {
            notes.push("the caller must see the tool as well, and its own rules and limits hold".to_owned());
        }
        Some(verdict)
    },
    needed: |_, needs| {
        let names: Vec<String> = needs.names(Capability::Call).iter().map(|name| format!("{name:?}")).collect();
        if names.is_empty() { Vec::new() } else { vec![format!("calls = [{}]", names.join(", "))] }
    },
    forms: &["call TOOL"],
    help: "  call TOOL                   a tool, by the name clients see: \"call weather_*\"\n",
    entry: |_, verb, rest| {
        (verb == "call" && !rest.is_empty()).then(|| ManifestEntry {
            section: "calls",
            key: String::new(),
            value: edit::Value::Array(edit::Array::from_iter([rest])),
        })
    },
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::Tool,
        what: "calls of other tools",
        grant: "calls = [\"weather_*\"]",
        right: "call weather_now",
    }),
    ..Right::NONE
};

/// The patterns of a list. What no name can match is noted and left out.
fn rules(entry: &Entry<'_>, most: usize, problems: &mut Problems) -> Vec<CallRule> {
    let texts = entry.strings(most, problems).unwrap_or_default();
    let rule = |(text, span): (&str, Span)| {
        CallRule::parse(text, span.clone()).or_else(|| {
            let problem = Diagnostic::error("calls::name", format!("{text:?} names no tools")).at(span);
            problems.refuse(problem.hint("write a name as `toolcell list` shows it, or its beginning and a star"))
        })
    };
    texts.into_iter().filter_map(rule).collect()
}
