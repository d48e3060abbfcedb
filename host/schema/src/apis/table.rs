//! The table of APIs and clients in `apis.json`, and their rules.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::ApiRule;

/// The embedded table. A test parses the same file, so parsing does not fail here.
pub(super) static TABLE: LazyLock<ApiTable> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// The table's text.
const TEXT: &str = include_str!("../../apis.json");

/// All rules, APIs and clients.
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
    /// A short name of the finding.
    pub(super) finds: String,
    /// Keywords that break it.
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// The largest number, or length in characters, that is accepted.
    #[serde(default)]
    pub(super) most: Option<u64>,
    /// True if it also applies to schemas of results.
    #[serde(default)]
    pub(super) results: bool,
    pub(super) clients: Vec<Client>,
    /// What the served form has instead, if it avoids the finding.
    #[serde(default)]
    pub(super) served: Option<String>,
    /// Advice to the author.
    pub(super) instead: String,
}

/// One API or client with a rule.
#[derive(Debug, Deserialize)]
pub(super) struct Client {
    pub(super) api: String,
    /// What it does about the finding: the words before its name.
    pub(super) does: String,
    /// How many characters it accepts; `None` if nothing is counted.
    #[serde(default)]
    pub(super) past: Option<usize>,
}

impl ApiTable {
    /// The row of a rule. A test checks that each has one.
    pub(super) fn rule(&self, rule: ApiRule) -> Option<&RuleRow> {
        self.rules.iter().find(|row| row.code == rule)
    }

    /// The name of an API.
    pub(super) fn name(&self, api: &str) -> &str {
        self.apis.get(api).map_or("", |api| api.name.as_str())
    }

    /// The names of all that have this rule.
    pub(super) fn who(&self, rule: ApiRule) -> Vec<&str> {
        let clients = self.rule(rule).into_iter().flat_map(|row| &row.clients);
        clients.map(|client| self.name(&client.api)).collect()
    }

    /// The names of those that accept fewer characters than this.
    pub(super) fn who_past(&self, rule: ApiRule, characters: usize) -> Vec<&str> {
        let clients = self.rule(rule).into_iter().flat_map(|row| &row.clients);
        let past = clients.filter(|client| client.past.is_some_and(|past| characters > past));
        past.map(|client| self.name(&client.api)).collect()
    }
}
