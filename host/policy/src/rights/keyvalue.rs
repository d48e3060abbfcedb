//! State between calls (`wasi:keyvalue`).

use serde_json::json;

use super::used::{Narrower, around_named, needed_names};
use super::{Example, Importer, Narrowing, Right, wider};
use crate::capabilities::ReachRow;
use crate::diagnostic::Diagnostic;
use crate::edit::{self, Change, ManifestEntry};
use crate::grants::{Capability, KEYVALUE, KeyValue, RuleRef};
use crate::quantity::{show_bytes, show_count};
use crate::table::keys;

const IMPORTS: &[&str] = &["wasi:keyvalue/"];

/// State between calls. The section itself is the right, without a name.
pub(crate) static STATE: Right = Right {
    section: "keyvalue",
    named: Some(Capability::KeyValue),
    stands_alone: true,
    keys: keys! {
        /// State between calls (`wasi:keyvalue`); the table alone grants it.
        "keyvalue": Table(&KEYVALUE), {};
    },
    keys_of_tool: keys! {
        /// False takes the component's state away.
        "keyvalue": Flag, {"examples": [false]};
    },
    keys_of_request: keys! {
        /// State between calls.
        "keyvalue": Flag, {};
    },
    narrowing: Some(Narrowing::Flag),
    read: |_, entry, _, grants, problems| {
        let Some(section) = entry.section(problems) else { return };
        let keyvalue = KeyValue::read(Some(&section), problems);
        let value = keyvalue.value_bytes();
        let quota = keyvalue.quota_bytes();
        if let Some(entry) = section.get("value").filter(|_| value > quota) {
            let message =
                format!("value of {} can never be reached: quota is {}", show_bytes(value), show_bytes(quota));
            let problem = Diagnostic::warning("limits::unreachable", message).at(entry.span);
            problems.add(problem.hint("raise quota or lower value"));
        }
        grants.keyvalue = Some(keyvalue);
    },
    narrow: |right, entry, grants, problems| {
        match entry.boolean(problems) {
            Some(false) => grants.keyvalue = None,
            Some(true) if grants.keyvalue.is_none() => problems.add(wider(
                "the component is not granted keyvalue",
                entry.span.clone(),
                &format!("add [{}]", grants.subject.section(right.section)),
            )),
            Some(true) | None => {}
        }
        true
    },
    read_request: |_, entry, requested, problems| {
        if entry.boolean(problems) == Some(true) {
            requested.named.insert(Capability::KeyValue, vec![String::new()]);
        }
    },
    beyond: |_, requested, grants| {
        let is_beyond = grants.keyvalue().is_some() && !requested.has(Capability::KeyValue, "");
        is_beyond.then(|| grants.keyvalue_span()).into_iter().collect()
    },
    canonical: |_, grants| {
        json!(grants.keyvalue().map(|state| {
            json!({
                "quota": state.quota_bytes(), "entries": state.entries(), "value": state.value_bytes(),
                "per_caller": state.per_caller(),
            })
        }))
    },
    reach: |right, grants| {
        let row = |state: &KeyValue| {
            let each = if state.per_caller() { " for each caller" } else { "" };
            let text = format!("{} in {} entries{each}", show_bytes(state.quota_bytes()), show_count(state.entries()));
            ReachRow::new(Capability::KeyValue, text, grants.place(right.section))
        };
        grants.keyvalue().map(row).into_iter().collect()
    },
    lock_lines: |_, grants| {
        let line = |state: &KeyValue| {
            let whose = if state.per_caller() { "each caller's own" } else { "shared by its callers" };
            let quota = show_bytes(state.quota_bytes());
            let value = show_bytes(state.value_bytes());
            format!("key-value store, {whose}: {quota} in {} entries of {value}", state.entries())
        };
        grants.keyvalue().map(line).into_iter().collect()
    },
    what: "state between calls",
    imports: IMPORTS,
    verbs: &["keyvalue"],
    ask_forms: &["keyvalue"],
    evidence: Some(Capability::KeyValue),
    narrower: |right, used| {
        let is_unused = used.grants.keyvalue().is_some() && needed_names(used.uses, Capability::KeyValue).is_empty();
        let rule = || RuleRef::new(right.section, used.grants.keyvalue_span());
        let narrower =
            || Narrower { rule: rule(), instead: Vec::new(), change: Change::Section { section: right.section } };
        is_unused.then(narrower).into_iter().collect()
    },
    neighbours: |right, grants, _| {
        let rule = RuleRef::new(&format!("[{}]", grants.subject().section(right.section)), grants.keyvalue_span());
        grants.keyvalue().map(|_| around_named(&rule, Capability::KeyValue, "")).into_iter().collect()
    },
    explain: |right, grants, ask, _| {
        ask.name(Capability::KeyValue)?;
        let section = format!("[{}]", grants.subject().section(right.section));
        Some(grants.open_keyvalue().map(|_| RuleRef::new(&section, grants.keyvalue_span())))
    },
    line: |_| "quota = \"1MiB\"".to_owned(),
    forms: &["keyvalue"],
    help: "  keyvalue                    state between calls, 1 MiB\n",
    entry: |right, verb, rest| {
        let is_this = verb == "keyvalue" && rest.is_empty();
        is_this.then(|| ManifestEntry {
            section: right.section,
            key: "quota".to_owned(),
            value: edit::Value::from("1MiB"),
        })
    },
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::Tool,
        what: "state between calls",
        grant: "keyvalue = {}",
        right: "keyvalue",
    }),
    ..Right::NONE
};
