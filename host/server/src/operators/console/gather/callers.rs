//! The views of callers and of calls that wait for a person.
use std::time::{Instant, SystemTime};

use serde_json::{Map, Value};
use tokio::runtime::Handle;
use toolcell_console::model::{
    Approvals, CallerDay, CallerRule, Callers, DecidedApproval, LoginRow, Moment, RefusedCaller, TokenRow,
    WaitingApproval,
};
use toolcell_policy as policy;
use toolcell_sandbox::ComponentDigest;

use super::tools::reach;
use super::written::WrittenManifest;
use super::{Sources, link};
use crate::catalog::Catalog;
use crate::catalog::caller_figures::{CallerFigures, DayOfCaller};
use crate::identity::TokenEntry;
use crate::identity::login::ListedLogin;
use crate::observing::activity::PendingApproval;
use crate::observing::refusals::{Reason, RecentRefusal, RecentRefusals, Refusal};

/// Hexadecimal digits of a token's hash by which forms name it: 64 bits, after `sha256:`.
const ID_CHARS: usize = 16;

impl Sources {
    /// The view "Callers", of names that contain the query. `Err` is one sentence: the file of
    /// tokens cannot be read.
    pub fn callers(&self, query: &str) -> Result<Callers, String> {
        let catalog = self.catalog();
        // The canonical form contains the whole rule.
        let rules: Map<String, Value> = serde_json::from_str(&catalog.callers().canonical()).unwrap_or_default();
        let tokens = self.tokens.as_ref().map(|file| file.read()).transpose()?;
        let written = self.written();
        let ordered = catalog.callers().rules().iter().filter_map(|rule| Some((rule, rules.get(rule.name())?)));
        let place = |name: &str| written.as_ref()?.place_of_caller_rule(catalog.callers(), name);
        let offers: Vec<_> = catalog.offers().filter(|offer| offer.tool().is_tool()).collect();
        let rule = |(rule, canonical): (&policy::CallerRule, _)| {
            // Further rules may apply to callers with its scopes.
            let matching = offers.iter().filter(|offer| rule.takes(&offer.called())).count() as u64;
            CallerRule { place: place(rule.name()), matching, ..caller_rule(rule.name(), canonical) }
        };
        let RecentRefusals { rows, beyond } = self.services.refusals.recent();
        let mut view = Callers {
            query: query.to_owned(),
            rules: ordered.map(rule).collect(),
            tokens: tokens.map(|entries| entries.iter().map(|entry| self.token(entry)).collect()),
            logins: self.logins(&catalog)?,
            days: self.services.caller_figures.by_day(SystemTime::now()).into_iter().map(day).collect(),
            fresh: None,
            refused: rows.into_iter().map(refused).collect(),
            refused_beyond: beyond,
        };
        narrow(&mut view);
        Ok(view)
    }

    /// Logins that callers have of their own; `None` where no tool uses one. `Err` is one sentence.
    fn logins(&self, catalog: &Catalog) -> Result<Option<Vec<LoginRow>>, String> {
        let policies = catalog.caller_logins();
        if policies.is_empty() {
            return Ok(None);
        }
        let listed = Handle::current().block_on(self.services.logins.list(&policies));
        let listed = listed.map_err(|error| format!("The logins of callers cannot be read: {error}."))?;
        let row = |found: ListedLogin| {
            let policy = policies.iter().find(|policy| policy.name() == found.login);
            let name = ComponentDigest::of(format!("{}\n{}", found.login, found.caller).as_bytes()).to_string();
            let id = name.rsplit(':').next().unwrap_or_default().chars().take(ID_CHARS).collect();
            LoginRow {
                id,
                state: found.state(policy.map(|policy| &**policy)),
                login: found.login,
                caller: found.caller,
            }
        };
        Ok(Some(listed.into_iter().map(row).collect()))
    }

    fn token(&self, entry: &TokenEntry) -> TokenRow {
        let known = self.authenticator.as_ref().and_then(|authenticator| authenticator.tokens.as_deref());
        TokenRow {
            id: token_id(entry),
            name: entry.name.clone(),
            scopes: entry.scopes.clone(),
            made: entry.made().map(Moment::from),
            expires: entry.expires().map(Moment::from),
            last_used: known.and_then(|tokens| tokens.last_use(&entry.hash)).map(Moment::from),
            revoked: known.is_some_and(|tokens| tokens.is_revoked(&entry.hash)),
            ended: entry.has_ended(SystemTime::now()),
        }
    }

    /// The view "Approvals".
    pub fn approvals(&self) -> Approvals {
        let (waiting, decided) = self.activity.approvals.list();
        // Read once for all of them, and only if any waits.
        let written = if waiting.is_empty() { None } else { self.written() };
        let catalog = self.catalog();
        Approvals {
            waiting: waiting
                .into_iter()
                .map(|(number, pending)| waits(&catalog, written.as_ref(), number, pending))
                .collect(),
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
}

/// Leaves what its query names, in letters of either case.
fn narrow(view: &mut Callers) {
    let wanted = view.query.trim().to_lowercase();
    let is_named = |name: &String| name.to_lowercase().contains(&wanted);
    view.rules.retain(|rule| is_named(&rule.name) || rule.who.iter().any(is_named));
    view.tokens.iter_mut().for_each(|tokens| tokens.retain(|token| is_named(&token.name)));
    view.logins.iter_mut().for_each(|logins| logins.retain(|login| is_named(&login.login) || is_named(&login.caller)));
    view.days.retain(|day| is_named(&day.caller));
    view.refused.retain(|refused| is_named(&refused.who));
}

fn day(used: DayOfCaller) -> CallerDay {
    let CallerFigures { calls, failed, fuel, bytes } = used.figures;
    CallerDay { caller: used.caller, day: used.start.into(), calls, failed, fuel, bytes }
}

/// A waiting call, with its grants and where they are written.
fn waits(
    catalog: &Catalog,
    written: Option<&WrittenManifest>,
    number: u64,
    pending: PendingApproval,
) -> WaitingApproval {
    let offer = catalog.offers().find(|offer| offer.tool().definition().name == pending.tool);
    let reach = offer.map(|offer| {
        let granted = written.and_then(|written| Some((written, written.grants(&offer)?)));
        reach(offer.grants(), granted.as_ref().map(|(written, grants)| (*written, grants.as_ref())))
    });
    WaitingApproval {
        key: number.to_string(),
        call: pending.call,
        tool: pending.tool,
        component: pending.component,
        caller: pending.caller,
        question: pending.question,
        arguments: pending.arguments.text,
        arguments_left_out: pending.arguments.left_out as u64,
        reach: reach.unwrap_or_default(),
        since: pending.since.into(),
        left: Some(pending.until.saturating_duration_since(Instant::now())),
        remember: pending.remember,
        run_calls_max: pending.run_calls_max,
    }
}

/// The name of a token in forms. It admits nobody.
pub fn token_id(entry: &TokenEntry) -> String {
    entry.hash.rsplit(':').next().unwrap_or_default().chars().take(ID_CHARS).collect()
}

/// Refusals of one kind, in words.
fn refused(row: RecentRefusal) -> RefusedCaller {
    let Refusal { reason, status, is_at_console } = row.refusal;
    let words = match reason {
        Reason::UnknownCredential if is_at_console => "an invalid token, link or session",
        Reason::MissingRight if is_at_console => "a token that is not an operator's",
        Reason::Host if is_at_console => "a host that the console does not answer to",
        Reason::Origin if is_at_console => "another page, or a form that is not from a page of the session",
        Reason::NoCredential => "no token",
        Reason::UnknownCredential => "a token that is not known",
        Reason::MissingRight => "a token that lacks a right",
        Reason::Host => "a host that the server does not answer to",
        Reason::Origin => "a web page that is not allowed",
        Reason::HiddenTool => "may not call it",
        Reason::UnknownTool => "an unknown tool or prompt",
    };
    let tool = row.tool.map(|tool| format!(" {tool:?}")).unwrap_or_default();
    let reason = format!("{}{tool}: {words}", reason.name());
    RefusedCaller { who: row.who, reason, status, count: row.count, last: row.last.into() }
}

fn caller_rule(name: &str, rule: &Value) -> CallerRule {
    let list = |key: &str| -> Vec<String> {
        let texts = rule.get(key).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names = list("names");
    let scopes = list("scopes");
    let who =
        names.iter().map(|name| format!("the caller {name}")).chain(scopes.iter().map(|it| format!("scope {it}")));
    let who: Vec<String> = who.collect();
    let rates = ["rate", "quota"].map(|key| rule.get(key).and_then(Value::as_str).map(str::to_owned));
    let conditions = rule.get("arguments").and_then(Value::as_object).into_iter().flatten();
    let conditions: Vec<&str> = conditions.map(|(tool, _)| tool.as_str()).collect();
    let conditions = (!conditions.is_empty()).then(|| format!("conditions on arguments of {}", conditions.join(", ")));
    let at_once = rule.get("concurrency").and_then(Value::as_u64).map(|count| format!("{count} at once"));
    CallerRule {
        name: name.to_owned(),
        who: if who.is_empty() { vec!["everybody else".to_owned()] } else { who },
        tools: list("tools"),
        matching: 0,
        prompts: list("prompts"),
        skills: list("skills"),
        bounds: rates.into_iter().chain([at_once, conditions]).flatten().collect::<Vec<_>>().join(", "),
        place: None,
    }
}
