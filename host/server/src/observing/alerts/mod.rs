//! Alerts on repeated failure or denial of a tool or a caller. Must not hold: what fails, or why.
//!
//! A failure costs a lock and a table lookup. An alert is a log line, a count, an audit record, and
//! a message that another task sends, so that no call waits. Alerts that strangers cause are also
//! recorded by another thread, and bounded: see `flood`.
mod counts;
mod flood;
mod message;
mod webhook;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use toolcell_audit::{AlertRaised, Clipped, Event, Outcome, Sink};
use toolcell_policy::{AdvisedFault, AlertsPolicy};

use crate::error::StartError;
use crate::identity::secret_program::{self, FailureListener};
use crate::identity::secrets;
use crate::observing::counts::Counts;
use crate::owned_task::OwnedTask;
use counts::RuleCounts;
use flood::{Flood, Share};
use webhook::Webhook;

/// Alerts on refusals that wait to be raised: those of some minutes. If the disk takes longer,
/// further ones are dropped.
const LATE_MAX: usize = 32;

/// The subject of an alert that stands for many. No caller has this name.
const OTHERS: &str = "other callers and addresses";

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
    /// Runs of a program that prints a secret, which failed.
    SecretFailures,
}

/// Counts failures and denials, and raises alerts.
pub struct Alerts {
    policy: AlertsPolicy,
    /// In the order of [`AlertRule::ALL`].
    counts: [Mutex<RuleCounts>; AlertRule::ALL.len()],
    pub raised: Counts<AlertRule, { AlertRule::ALL.len() }>,
    flood: Mutex<Flood>,
    raising: Arc<Raising>,
    late: Sender<LateAlert>,
    /// Raises the queued alerts.
    _task: OwnedTask,
    /// Hears of secrets whose programs fail.
    secrets: OnceLock<Arc<FailureListener>>,
}

/// Where an alert is reported.
struct Raising {
    sink: Arc<Sink>,
    webhook: Option<Webhook>,
}

/// An alert on refusals, which is queued so that threads that drive connections do not raise it
/// themselves.
struct LateAlert {
    subject: String,
    count: u64,
    window_seconds: u64,
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
    pub const ALL: [Self; 6] = [
        Self::ToolFailures,
        Self::ToolDenials,
        Self::CallerFailures,
        Self::CallerDenials,
        Self::Refusals,
        Self::SecretFailures,
    ];

    /// The name in records, metrics and the manifest: `tool_failures`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToolFailures => "tool_failures",
            Self::ToolDenials => "tool_denials",
            Self::CallerFailures => "caller_failures",
            Self::CallerDenials => "caller_denials",
            Self::Refusals => "refusals",
            Self::SecretFailures => "secret_failures",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::ToolFailures => "failed calls of the tool",
            Self::ToolDenials => "denied requests of the tool",
            Self::CallerFailures => "failed calls of the caller",
            Self::CallerDenials => "denied requests in calls of the caller",
            Self::Refusals => "refused requests of",
            Self::SecretFailures => "failed runs of the secret's program",
        }
    }
}

impl Alerts {
    /// Why the key that signs messages does not do, if they are sent and it does not.
    pub fn fault(policy: &AlertsPolicy, folder: &Path) -> Option<AdvisedFault> {
        let source = policy.url().and(policy.secret())?;
        secrets::text(source, folder).and_then(|(secret, _)| webhook::signer(&secret).map(drop)).err()
    }

    /// Starts the alerts of a policy. Reads the key that signs messages; relative paths start from
    /// `folder`.
    pub fn start(
        policy: &AlertsPolicy,
        folder: &Path,
        sink: &Arc<Sink>,
        runtime: &Handle,
    ) -> Result<Arc<Self>, StartError> {
        let refused = |fault: AdvisedFault| fault.of("[alerts]");
        let webhook = match policy.url().zip(policy.secret()) {
            None => None,
            Some((url, source)) => {
                let (secret, _) = secrets::text(source, folder).map_err(refused)?;
                Some(Webhook::start(url, &secret, policy.private(), runtime).map_err(refused)?)
            }
        };
        let raising = Arc::new(Raising { sink: Arc::clone(sink), webhook });
        let (late, alerts) = channel(LATE_MAX);
        let task = OwnedTask(runtime.spawn(raise_late(Arc::clone(&raising), alerts)));
        let alerts = Arc::new(Self {
            policy: policy.clone(),
            counts: AlertRule::ALL.map(|_| Mutex::default()),
            raised: Counts::new(&AlertRule::ALL),
            flood: Mutex::default(),
            raising,
            late,
            _task: task,
            secrets: OnceLock::new(),
        });
        let own = Arc::downgrade(&alerts);
        let listener: Arc<FailureListener> = Arc::new(move |program: &str| {
            own.upgrade().iter().for_each(|alerts| alerts.note(AlertRule::SecretFailures, program));
        });
        secret_program::listen(&listener);
        // It was empty.
        let _ = alerts.secrets.set(listener);
        Ok(alerts)
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

    /// A request was refused before it was a call. Does not block.
    pub fn refused(&self, who: &str) {
        self.note(AlertRule::Refusals, who);
    }

    /// The number of messages by outcome: `sent`, `failed`, `dropped`.
    pub fn messages(&self) -> [(&'static str, u64); 3] {
        self.raising.webhook.as_ref().map_or([("sent", 0), ("failed", 0), ("dropped", 0)], Webhook::counts)
    }

    fn threshold(&self, rule: AlertRule) -> u64 {
        match rule {
            AlertRule::ToolFailures => self.policy.tool_failures(),
            AlertRule::ToolDenials => self.policy.tool_denials(),
            AlertRule::CallerFailures => self.policy.caller_failures(),
            AlertRule::CallerDenials => self.policy.caller_denials(),
            AlertRule::Refusals => self.policy.refusals(),
            AlertRule::SecretFailures => self.policy.secret_failures(),
        }
    }

    fn note(&self, rule: AlertRule, subject: &str) {
        let threshold = self.threshold(rule);
        let place = AlertRule::ALL.iter().position(|known| *known == rule);
        let Some(counts) = place.and_then(|place| self.counts.get(place)) else { return };
        if threshold == 0 {
            return;
        }
        let window = self.policy.window();
        let cooldown = self.policy.cooldown();
        let bounds = counts::Thresholds { threshold, window, cooldown };
        let count = counts.lock().note(subject, &bounds, Instant::now());
        let Some(count) = count else { return };
        let window_seconds = window.as_secs();
        if rule != AlertRule::Refusals {
            self.raised.count(rule);
            self.raising.raise(&Alert { rule, subject, count, window_seconds });
            return;
        }
        let share = self.flood.lock().take(Instant::now());
        let Some(share) = share else { return };
        self.raised.count(rule);
        let subject = if share == Share::Others { OTHERS } else { subject };
        if self.late.try_send(LateAlert { subject: subject.to_owned(), count, window_seconds }).is_err() {
            tracing::error!("an alert on refused requests is missing: too many wait");
        }
    }
}

/// Raises the queued alerts, which come from threads that must not wait for a disk.
async fn raise_late(raising: Arc<Raising>, mut alerts: Receiver<LateAlert>) {
    while let Some(LateAlert { subject, count, window_seconds }) = alerts.recv().await {
        let raising = Arc::clone(&raising);
        let raised = tokio::task::spawn_blocking(move || {
            raising.raise(&Alert { rule: AlertRule::Refusals, subject: &subject, count, window_seconds });
        });
        drop(raised.await);
    }
}

impl Raising {
    fn raise(&self, alert: &Alert<'_>) {
        let Alert { rule, subject, count, window_seconds } = *alert;
        let shown = toolcell_mcp::sanitize::line(subject);
        tracing::warn!(rule = rule.name(), "alert: {count} {} {shown} within {window_seconds} s", rule.words());
        let event =
            || Event::AlertRaised(AlertRaised { rule: rule.name(), subject: Clipped(subject), count, window_seconds });
        if let Err(error) = self.sink.record(event) {
            tracing::error!("an alert is missing from the audit: {error}");
        }
        if let Some(webhook) = &self.webhook {
            webhook.send(alert);
        }
    }
}

/// True for outcomes without an answer of the tool.
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

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    #[tokio::test]
    async fn a_flood_of_strangers_raises_a_few_alerts_and_none_of_them_on_the_thread_that_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let sink = Arc::new(Sink::open(&path).unwrap().0);
        let text = "version = 1\n[alerts]\nrefusals = 2\n[components.c]\nsource = \"c.wasm\"\n";
        let manifest = parse(&Source { name: "toolcell.toml", text }).unwrap().manifest;
        let alerts = Alerts::start(manifest.alerts().unwrap(), folder.path(), &sink, &Handle::current()).unwrap();
        for range in 0..1_000_u32 {
            (0..3).for_each(|_| alerts.refused(&format!("10.{}.{}.0/24", range / 256, range % 256)));
        }
        let records = || {
            let text = std::fs::read_to_string(&path).unwrap();
            let subject = |line: &str| {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                record["subject"].as_str().unwrap_or_default().to_owned()
            };
            text.lines().map(subject).collect::<Vec<_>>()
        };
        // This thread drives the runtime: nothing else has run.
        assert_eq!(records(), Vec::<String>::new());
        let raised = alerts.raised.read().map(|(_, count)| count).sum::<u64>();
        assert_eq!(raised, u64::from(flood::NAMED_MAX) + 1);
        crate::replicas::replicated_sets::tests::comes_true("they are recorded", || records().len() as u64 == raised)
            .await;
        assert_eq!(records().iter().filter(|subject| *subject == OTHERS).count(), 1);
    }
}
