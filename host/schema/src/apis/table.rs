//! The table of APIs and clients, out of `apis.json`: whose rules there are.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::ApiRule;

/// The table that the binary holds. A test reads the same file, so it is never empty.
pub(super) static TABLE: LazyLock<ApiTable> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// The table's text.
const TEXT: &str = include_str!("../../apis.json");

/// All rules, and all whose rules they are.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ApiTable {
    apis: BTreeMap<String, Api>,
    rules: Vec<RuleRow>,
}

/// An API or a client.
#[derive(Debug, Deserialize)]
struct Api {
    name: String,
}

/// One rule.
#[derive(Debug, Deserialize)]
pub(super) struct RuleRow {
    pub(super) code: ApiRule,
    /// A short name of the fault.
    pub(super) finds: String,
    /// Keywords that break it by being there.
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// The most that is taken: a number, or characters.
    #[serde(default)]
    pub(super) most: Option<u64>,
    /// True if schemas of results are held to it as well.
    #[serde(default)]
    pub(super) results: bool,
    pub(super) clients: Vec<Client>,
    /// The form that clients get where the served one avoids it.
    #[serde(default)]
    pub(super) served: Option<String>,
    /// Advice.
    pub(super) instead: String,
}

/// One API or client with a rule.
#[derive(Debug, Deserialize)]
pub(super) struct Client {
    /// Its key among the APIs.
    pub(super) api: String,
    /// Its answer to the fault, up to its name.
    pub(super) does: String,
    /// Characters that it takes; `None` where nothing is counted.
    #[serde(default)]
    pub(super) past: Option<usize>,
}

impl ApiTable {
    /// The row of a rule. A test holds that each has one.
    pub(super) fn rule(&self, rule: ApiRule) -> Option<&RuleRow> {
        self.rules.iter().find(|row| row.code == rule)
    }

    /// The name of an API.
    pub(super) fn name(&self, api: &str) -> &str {
        self.apis.get(api).map_or("", |api| api.name.as_str())
    }

    /// The names of all with this rule.
    pub(super) fn who(&self, rule: ApiRule) -> Vec<&str> {
        let clients = self.rule(rule).into_iter().flat_map(|row| &row.clients);
        clients.map(|client| self.name(&client.api)).collect()
    }

    /// The names of those that take fewer characters.
    pub(super) fn who_past(&self, rule: ApiRule, characters: usize) -> Vec<&str> {
        let clients = self.rule(rule).into_iter().flat_map(|row| &row.clients);
        let past = clients.filter(|client| client.past.is_some_and(|past| characters > past));
        past.map(|client| self.name(&client.api)).collect()
    }
}
