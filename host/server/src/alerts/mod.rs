//! Alerts on repeated failure or denial of a tool or a caller. Must not hold: what fails, or why.
//!
//! A failure costs a lock and a look into a table. What is raised is a line of the log, a count, a
//! record of the audit, and a message that another task sends: no call waits for it.
mod counts;
mod message;
mod webhook;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use toolcell_audit::{AlertRaised, Clipped, Event, Outcome, Sink};
use toolcell_policy::AlertsPolicy;

use crate::error::StartError;
use crate::secrets;
use counts::Counts;
use webhook::Webhook;

/// A rule of `[alerts]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertRule {
    /// Failed calls of a tool.
    ToolFailures,
    /// Denied requests of a tool.
    ToolDenials,
    /// Failed calls of a caller.
    CallerFailures,
    /// Denied requests of tools in a caller's calls.
    CallerDenials,
    /// Refused requests of a caller or a range of addresses.
    Refusals,
}

/// Counts failures and denials, and raises alerts.
pub struct Alerts {
    policy: AlertsPolicy,
    sink: Arc<Sink>,
    /// In the order of [`AlertRule::ALL`].
    counts: [Mutex<Counts>; AlertRule::ALL.len()],
    raised: [AtomicU64; AlertRule::ALL.len()],
    webhook: Option<Webhook>,
}

/// An alert that is raised.
#[derive(Clone, Copy, Debug)]
struct Alert<'a> {
    rule: AlertRule,
    /// The tool, caller or range of addresses.
    subject: &'a str,
    /// The number within the window.
    count: u64,
    window_seconds: u64,
}

impl AlertRule {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ToolFailures, Self::ToolDenials, Self::CallerFailures, Self::CallerDenials, Self::Refusals];

    /// The name in records, metrics and the manifest: `tool_failures`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToolFailures => "tool_failures",
            Self::ToolDenials => "tool_denials",
            Self::CallerFailures => "caller_failures",
            Self::CallerDenials => "caller_denials",
            Self::Refusals => "refusals",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::ToolFailures => "failed calls of the tool",
            Self::ToolDenials => "denied requests of the tool",
            Self::CallerFailures => "failed calls of the caller",
            Self::CallerDenials => "denied requests in calls of the caller",
            Self::Refusals => "refused requests of",
        }
    }
}

impl Alerts {
    /// Alerts of a policy. Reads the key that signs messages; relative paths start from `folder`.
    pub fn start(
        policy: &AlertsPolicy,
        folder: &Path,
        sink: &Arc<Sink>,
        runtime: &Handle,
    ) -> Result<Arc<Self>, StartError> {
        let refused = |(problem, hint): (String, String)| {
            StartError::refused(format!("[alerts]: {problem}")).hint_if(Some(hint).filter(|hint| !hint.is_empty()))
        };
        let webhook = match policy.url().zip(policy.secret()) {
            None => None,
            Some((url, source)) => {
                let (secret, _) = secrets::text(source, folder).map_err(refused)?;
                Some(Webhook::start(url, &secret, policy.private(), runtime).map_err(refused)?)
            }
        };
        Ok(Arc::new(Self {
            policy: policy.clone(),
            sink: Arc::clone(sink),
            counts: AlertRule::ALL.map(|_| Mutex::default()),
            raised: [const { AtomicU64::new(0) }; AlertRule::ALL.len()],
            webhook,
        }))
    }

    /// A call ended.
    pub fn ended(&self, tool: &str, caller: &str, outcome: Outcome) {
        if is_failure(outcome) {
            self.note(AlertRule::ToolFailures, tool);
            self.note(AlertRule::CallerFailures, caller);
        }
    }

    /// A request of a guest was denied.
    pub fn denied(&self, tool: &str, caller: &str) {
        self.note(AlertRule::ToolDenials, tool);
        self.note(AlertRule::CallerDenials, caller);
    }

    /// A request was refused before it was a call.
    pub fn refused(&self, who: &str) {
        self.note(AlertRule::Refusals, who);
    }

    /// The number of alerts of each rule.
    pub fn raised(&self) -> impl Iterator<Item = (AlertRule, u64)> {
        AlertRule::ALL.into_iter().zip(&self.raised).map(|(rule, count)| (rule, count.load(Ordering::Relaxed)))
    }

    /// The number of messages by what became of them: `sent`, `failed`, `dropped`.
    pub fn messages(&self) -> [(&'static str, u64); 3] {
        self.webhook.as_ref().map_or([("sent", 0), ("failed", 0), ("dropped", 0)], Webhook::counts)
    }

    fn threshold(&self, rule: AlertRule) -> u64 {
        match rule {
            AlertRule::ToolFailures => self.policy.tool_failures(),
            AlertRule::ToolDenials => self.policy.tool_denials(),
            AlertRule::CallerFailures => self.policy.caller_failures(),
            AlertRule::CallerDenials => self.policy.caller_denials(),
            AlertRule::Refusals => self.policy.refusals(),
        }
    }

    fn note(&self, rule: AlertRule, subject: &str) {
        let threshold = self.threshold(rule);
        let place = AlertRule::ALL.iter().position(|known| *known == rule);
        let Some((counts, raised)) = place.and_then(|place| self.counts.get(place).zip(self.raised.get(place))) else {
            return;
        };
        if threshold == 0 {
            return;
        }
        let (window, cooldown) = (self.policy.window(), self.policy.cooldown());
        let bounds = counts::Thresholds { threshold, window, cooldown };
        let count = counts.lock().unwrap_or_else(PoisonError::into_inner).note(subject, &bounds, Instant::now());
        if let Some(count) = count {
            raised.fetch_add(1, Ordering::Relaxed);
            self.raise(&Alert { rule, subject, count, window_seconds: window.as_secs() });
        }
    }

    fn raise(&self, alert: &Alert<'_>) {
        let Alert { rule, subject, count, window_seconds } = *alert;
        let shown = toolcell_mcp::sanitize::line(subject);
        tracing::warn!(rule = rule.name(), "alert: {count} {} {shown} within {window_seconds} s", rule.words());
        let event =
            || Event::AlertRaised(AlertRaised { rule: rule.name(), subject: Clipped(subject), count, window_seconds });
        if let Err(error) = self.sink.record(event) {
            tracing::error!("an alert is missing in the audit: {error}");
        }
        if let Some(webhook) = &self.webhook {
            webhook.send(alert);
        }
    }
}

/// True for ends of a call that are no answer of its tool.
const fn is_failure(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::InvalidOutput
            | Outcome::Trap
            | Outcome::OutOfFuel
            | Outcome::OutOfMemory
            | Outcome::LimitExceeded
            | Outcome::Deadline
            | Outcome::SandboxEnded
            | Outcome::HostError
    )
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts").finish_non_exhaustive()
    }
}
