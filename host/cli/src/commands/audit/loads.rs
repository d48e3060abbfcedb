//! Records of loaded components, folded: each start and each reload has one for every component.
use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell_policy::Style;

use super::row;

/// Components whose last load is remembered; a manifest has at most a thousand.
const KNOWN_MAX: usize = 10_000;

/// Names of unchanged components that are shown.
const NAMES_SHOWN: usize = 5;

/// Consecutive loads, and what was loaded before.
#[derive(Default)]
pub struct Loads {
    /// Digests of bytes and policy, by name.
    known: BTreeMap<String, (String, String)>,
    changed: Vec<Value>,
    /// The first unchanged one, and the names of the first few.
    unchanged: Option<(Value, Vec<String>)>,
    unchanged_count: usize,
}

impl Loads {
    /// Adds the next record of a load.
    pub fn add(&mut self, record: &Value) {
        let [name, digest, policy] = ["name", "digest", "policy_digest"].map(|key| row::text(record, key));
        let now = (digest, policy);
        if self.known.get(&name) == Some(&now) {
            let (_, names) = self.unchanged.get_or_insert_with(|| (record.clone(), Vec::new()));
            if names.len() < NAMES_SHOWN {
                names.push(name);
            }
            self.unchanged_count += 1;
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(name, now);
        self.changed.push(record.clone());
    }

    /// The rows: one for each new or changed component, and one for all others.
    pub fn rows(&mut self, style: Style) -> Vec<String> {
        let mut rows: Vec<String> =
            std::mem::take(&mut self.changed).iter().map(|load| row::other(load, style)).collect();
        let count = std::mem::take(&mut self.unchanged_count);
        if let Some((first, names)) = self.unchanged.take() {
            let more = if count > names.len() { ", …" } else { "" };
            let folded = json!({
                "time": first.get("time"), "event": "component.loaded", "generation": first.get("generation"),
                "as_before": count, "names": format!("{}{more}", names.join(", ")),
            });
            rows.push(row::other(&folded, style));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, digest: &str) -> Value {
        json!({"time": "2026-01-12T15:00:00.000000Z", "event": "component.loaded", "generation": 2, "name": name,
               "digest": digest, "policy_digest": "p", "tools": ["a", "b"]})
    }

    #[test]
    fn what_is_loaded_again_as_it_was_is_one_row() {
        let mut loads = Loads::default();
        let names: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
        names.iter().for_each(|name| loads.add(&load(name, "1")));
        assert_eq!(loads.rows(Style::Plain).len(), 8, "all are new");
        assert_eq!(loads.rows(Style::Plain).len(), 0);
        names.iter().for_each(|name| loads.add(&load(name, if name == "c3" { "2" } else { "1" })));
        let rows = loads.rows(Style::Plain);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows[0].contains("name=c3") && rows[0].contains("digest=2"), "{rows:?}");
        assert!(rows[1].contains("generation=2") && rows[1].contains("as_before=7"), "{rows:?}");
        assert!(rows[1].contains("names=c0, c1, c2, c4, c5, …"), "{rows:?}");
    }
}
