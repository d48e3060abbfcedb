//! The views of callers and of calls that wait for a person.
use std::time::Instant;

use serde_json::{Map, Value};
use toolcell_console::model::{Approvals, CallerRule, Callers, DecidedApproval, Reach, TokenRow, WaitingApproval};
use toolcell_mcp::{Caller, Catalog as _};

use super::{Sources, link};
use crate::activity::PendingApproval;
use crate::catalog::Catalog;
use crate::http::TokenEntry;

/// Characters of a token's hash by which forms name it: 64 bits, behind `sha256:`.
const ID_CHARS: usize = 16;

impl Sources {
    /// The view "Callers". `Err` is one sentence: the file of tokens cannot be read.
    pub fn callers(&self) -> Result<Callers, String> {
        let catalog = self.catalog();
        // The canonical form has all of a rule.
        let rules: Map<String, Value> = serde_json::from_str(&catalog.callers().canonical()).unwrap_or_default();
        let tokens = self.tokens.as_ref().map(|file| file.read()).transpose()?;
        let ordered = catalog.callers().rules().iter().filter_map(|rule| Some((rule.name(), rules.get(rule.name())?)));
        Ok(Callers {
            rules: ordered.map(|(name, rule)| caller_rule(&catalog, name, rule)).collect(),
            tokens: tokens.map(|entries| entries.iter().map(token).collect()),
            ..Callers::default()
        })
    }

    /// The view "Approvals".
    pub fn approvals(&self) -> Approvals {
        let (waiting, decided) = self.activity.approvals.list();
        let catalog = self.catalog();
        Approvals {
            waiting: waiting.into_iter().map(|(number, pending)| self.waiting(&catalog, number, pending)).collect(),
            decided: decided
                .into_iter()
                .map(|decided| DecidedApproval {
                    at: decided.at.into(),
                    call: Some(link(decided.call)),
                    tool: decided.tool,
                    caller: decided.caller,
                    answer: decided.answer.to_owned(),
                    by: decided.by,
                })
                .collect(),
        }
    }

    fn waiting(&self, catalog: &Catalog, number: u64, pending: PendingApproval) -> WaitingApproval {
        let tool = catalog.offers().find(|offer| offer.tool().definition().name == pending.tool);
        let reach: Vec<Reach> = tool.map(|offer| super::tools::reach(offer.grants(), None)).unwrap_or_default();
        WaitingApproval {
            key: number.to_string(),
            call: pending.call,
            tool: pending.tool,
            component: pending.component,
            caller: pending.caller,
            question: pending.question,
            arguments: pending.arguments,
            reach,
            since: pending.since.into(),
            left: Some(pending.until.saturating_duration_since(Instant::now())),
            remember: pending.remember,
        }
    }
}

/// The name of a token in forms. It lets nobody in.
pub fn token_id(entry: &TokenEntry) -> String {
    entry.hash.rsplit(':').next().unwrap_or_default().chars().take(ID_CHARS).collect()
}

fn token(entry: &TokenEntry) -> TokenRow {
    TokenRow { id: token_id(entry), name: entry.name.clone(), scopes: entry.scopes.clone(), ..TokenRow::default() }
}

fn caller_rule(catalog: &Catalog, name: &str, rule: &Value) -> CallerRule {
    let list = |key: &str| -> Vec<String> {
        let texts = rule.get(key).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (names, scopes) = (list("names"), list("scopes"));
    let someone = Caller::new(names.first().map_or("", String::as_str), scopes.iter().map(String::as_str));
    let view = catalog.view(&someone);
    let seen = view.as_deref().unwrap_or(catalog.tools());
    let who =
        names.iter().map(|name| format!("the caller {name}")).chain(scopes.iter().map(|it| format!("scope {it}")));
    let who: Vec<String> = who.collect();
    let rate = rule.get("rate").and_then(Value::as_str).map(str::to_owned);
    let at_once = rule.get("concurrency").and_then(Value::as_u64).map(|count| format!("{count} at once"));
    CallerRule {
        name: name.to_owned(),
        who: if who.is_empty() { vec!["everybody else".to_owned()] } else { who },
        tools: list("tools"),
        matching: seen.tools().iter().filter(|tool| tool.is_tool()).count() as u64,
        prompts: list("prompts"),
        skills: list("skills"),
        bounds: [rate, at_once].into_iter().flatten().collect::<Vec<_>>().join(", "),
        place: None,
    }
}
