//! Settings (`wasi:config`).

use serde_json::json;

use super::used::around_named;
use super::values::{ENTRIES_MAX, kept, named, text};
use super::{Example, Importer, Narrowing, Right};
use crate::capabilities::ReachRow;
use crate::edit;
use crate::grants::{Capability, RuleRef};
use crate::names::toml_key;
use crate::table::keys;

const IMPORTS: &[&str] = &["wasi:config/"];

/// Settings.
pub(crate) static CONFIG: Right = Right {
    section: "config",
    named: Some(Capability::Config),
    keys: keys! {
        /// Settings (`wasi:config`), by name.
        "config": Named(&Text), {"propertyNames": {"pattern": "^[^=\\s]+$"}, "maxProperties": ENTRIES_MAX};
    },
    keys_of_tool: keys! {
        /// The component's settings that this tool has.
        "config": List(&Text), {"examples": [["theme"]]};
    },
    keys_of_request: keys! {
        /// Names of settings.
        "config": List(&Text), {};
    },
    narrowing: Some(Narrowing::Names),
    read: |_, entry, _, grants, problems| {
        let entries = named(entry, problems).into_iter();
        grants.config =
            entries.filter_map(|entry| Some((entry.key.to_owned(), text(&entry, problems, false)?))).collect();
    },
    narrow: |_, entry, grants, problems| {
        let granted = std::mem::take(&mut grants.config);
        let named = kept(entry, "setting", granted.iter().map(|(name, _)| name.as_str()), problems);
        grants.config = granted.iter().filter(|(name, _)| named.contains(&name.as_str())).cloned().collect();
        true
    },
    beyond: |right, requested, grants| {
        let is_beyond = grants.config().iter().any(|(name, _)| !requested.has(Capability::Config, name));
        grants.place(right.section).filter(|_| is_beyond).into_iter().collect()
    },
    canonical: |_, grants| {
        crate::canonical::sorted(grants.config().iter().map(|(name, value)| (name.as_str(), json!(value))))
    },
    reach: |right, grants| {
        let row =
            |(name, _): &(String, _)| ReachRow::new(Capability::Config, name.clone(), grants.place(right.section));
        grants.config().iter().map(row).collect()
    },
    lock_lines: |_, grants| grants.config().iter().map(|(name, value)| format!("config {name} = {value:?}")).collect(),
    what: "settings",
    imports: IMPORTS,
    verbs: &["config"],
    ask_forms: &["config KEY"],
    evidence: Some(Capability::Config),
    narrower: |right, used| {
        let place = used.grants.place(right.section).unwrap_or_default();
        let settings = used.grants.config().iter().map(|(name, _)| RuleRef::new(name, place.clone()));
        super::values::unused(right, Capability::Config, settings, used)
    },
    neighbours: |right, grants, _| {
        let place = grants.place(right.section).unwrap_or_default();
        let around =
            |(name, _): &(String, String)| around_named(&RuleRef::new(name, place.clone()), Capability::Config, name);
        grants.config().iter().map(around).collect()
    },
    explain: |right, grants, ask, _| {
        let key = ask.name(Capability::Config)?;
        let place = grants.place(right.section);
        Some(match grants.config().iter().find(|(name, _)| name == key).and(place) {
            Some(span) => Ok(RuleRef::new(key, span)),
            None => super::secrets::exposed(grants, key).ok_or_else(|| right.denied(grants, key)),
        })
    },
    line: |key| format!("{} = \"VALUE\"", toml_key(key)),
    forms: &["config KEY = VALUE"],
    help: "  config KEY = VALUE          a setting\n",
    value: |_, value| Some(edit::Value::from(value.unwrap_or_default())),
    blank: " = VALUE",
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::Tool,
        what: "settings",
        grant: "config = { name = \"value\" }",
        right: "config name = value",
    }),
    ..Right::NONE
};
