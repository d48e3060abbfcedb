//! Operators on a terminal: the snapshots of `toolcell top`, and their decisions.
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use toolcell_console::model;

use super::activity::{
    ActivitySnapshot, ApprovalShown, CallShown, CallState, Decision, DecisionRequest, DenialShown, MinuteShown,
    RuleShown,
};
use crate::files::file::absolute;
use crate::observing::activity::{DenialGroup, OperatorAnswer, PendingApproval, PendingArguments};
use crate::operators::console::{Came, DecidedBy, Offers, Sources};
use crate::reload::Orders;

/// Most groups of denials in a snapshot: more than a person looks through.
const GROUPS_MAX: usize = 250;

/// Longest name, in bytes. Names of tools have at most 128.
const NAME_BYTES_MAX: usize = 160;

/// Most bytes of a text of one line: a few sentences.
const LINE_BYTES_MAX: usize = 1_024;

/// Longest arguments, in bytes. A terminal shows about as much at once.
const ARGUMENTS_BYTES_MAX: usize = 4 * 1_024;

/// Calls of a run that a terminal offers, where the console's form takes any number.
const RUN_CALLS_OFFERED: u32 = 10;

/// The operators at terminals.
pub struct Operators {
    views: Arc<Sources>,
    orders: Orders,
    run: String,
}

impl Operators {
    /// For these views. Decisions that reload use these orders.
    pub fn new(views: Arc<Sources>, orders: Orders) -> Self {
        let started = views.activity.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let run = format!("{}.{}", std::process::id(), millis(started));
        Self { views, orders, run }
    }

    /// The current activity. Takes milliseconds, on a thread that runs no calls.
    pub async fn activity(&self) -> Value {
        let views = Arc::clone(&self.views);
        let run = self.run.clone();
        let made = tokio::task::spawn_blocking(move || serde_json::to_value(snapshot(&views, run))).await;
        match made {
            Ok(Ok(value)) => value,
            Ok(Err(_)) | Err(_) => json!({"error": "the activity could not be gathered"}),
        }
    }

    /// Carries out and records a decision, if operators may decide.
    pub async fn decide(&self, request: DecisionRequest, who: &str) -> Value {
        let pid = std::process::id();
        if !self.views.decides() {
            let hint = "write decide = true into [console]";
            return json!({"pid": pid, "error": "operators of this server may not decide", "hint": hint});
        }
        if request.run != self.run {
            return json!({"pid": pid, "error": "this is not the process that was shown"});
        }
        let decision = request.decision;
        let subject = self.subject(request.decision);
        let by = DecidedBy { session: who, operator: None };
        let came = match self.views.begin(by, decision.name(), &subject) {
            Ok(()) => {
                let came = self.done(decision, who).await;
                let recorded = came.as_deref().map_err(String::as_str).map(|_| "");
                self.views.record(by, decision.name(), &subject, recorded);
                came
            }
            Err(refused) => Err(refused),
        };
        let (Ok(text) | Err(text)) = &came;
        json!({"pid": pid, "done": came.is_ok(), "text": text})
    }

    fn subject(&self, decision: Decision) -> String {
        let number = decision.number();
        let found = match decision {
            Decision::Stop(_) => None,
            Decision::Mute(_) | Decision::Unmute(_) | Decision::Grant(_) => self.views.group_in_words(Some(number)),
            Decision::Allow(_) | Decision::AllowRun(_) | Decision::Remember(_) | Decision::Decline(_) => {
                self.views.waiting_in_words(Some(number))
            }
        };
        found.unwrap_or_else(|| number.to_string())
    }

    async fn done(&self, decision: Decision, who: &str) -> Came {
        let views = &self.views;
        let number = Some(decision.number());
        let waiting = number.and_then(|number| views.activity.approvals.find(number));
        let in_run = waiting.as_ref().and_then(run_calls).unwrap_or_default();
        let answer = |allows, remembers, run_calls| {
            if allows && waiting.is_some_and(|pending| is_cut(&pending.arguments)) {
                return Err("A terminal does not show all of its arguments: decide in the console.".to_owned());
            }
            views.answer(number, OperatorAnswer { allows, remembers, run_calls, by: format!("the {who}") })
        };
        match decision {
            Decision::Stop(_) => views.stop(number, &format!("the {who}")),
            Decision::Mute(_) => views.mute(number, true),
            Decision::Unmute(_) => views.mute(number, false),
            Decision::Grant(_) => views.allow(number, &self.orders).await,
            Decision::Allow(_) => answer(true, false, None),
            Decision::AllowRun(_) => answer(true, false, Some(in_run)),
            Decision::Remember(_) => answer(true, true, None),
            Decision::Decline(_) => answer(false, false, None),
        }
    }
}

fn snapshot(views: &Sources, run: String) -> ActivitySnapshot {
    let now = views.now();
    let mut groups = views.open_denials();
    groups.extend(views.activity.denials.list().into_iter().filter(|group| group.is_muted()));
    let running = now.running.len() as u64;
    let catalog = views.catalog();
    let offers = views.offers(&catalog);
    ActivitySnapshot {
        pid: std::process::id(),
        run,
        manifest: absolute(&views.manifest).display().to_string(),
        uptime_s: views.activity.started.elapsed().unwrap_or_default().as_secs(),
        generation: views.current.generation(),
        decide: catalog.settings.console.decide,
        minute: minute(&now.totals),
        calls_beyond: (now.totals.running + now.totals.waiting).saturating_sub(running),
        calls: now.running.iter().map(call).collect(),
        denials: groups.iter().take(GROUPS_MAX).map(|group| denial(&offers, group)).collect(),
        denials_beyond: groups.len().saturating_sub(GROUPS_MAX) as u64,
        denials_ungrouped: views.activity.denials.ungrouped(),
        approvals: views.activity.approvals.list().0.iter().map(|(id, pending)| approval(*id, pending)).collect(),
    }
}

fn minute(totals: &model::Totals) -> MinuteShown {
    MinuteShown {
        running: totals.running,
        waiting: totals.waiting,
        calls_per_second: totals.calls_per_second,
        p50_us: totals.p50.map(micros),
        p99_us: totals.p99.map(micros),
        errors: totals.errors,
        denials: totals.denials,
    }
}

fn call(call: &model::RunningCall) -> CallShown {
    CallShown {
        call: call.call,
        depth: call.depth,
        tool: clipped(&call.tool, NAME_BYTES_MAX),
        component: clipped(&call.component, NAME_BYTES_MAX),
        caller: clipped(&call.caller, NAME_BYTES_MAX),
        state: match call.phase {
            model::Phase::Waiting => CallState::Waiting,
            model::Phase::Starting | model::Phase::Running => CallState::Running,
            model::Phase::Asking => CallState::Asking,
            model::Phase::Stopping => CallState::Stopping,
        },
        age_ms: millis(call.age),
        deadline_ms: call.deadline.map_or(0, millis),
        fuel_max: call.fuel.map_or(0, |fuel| fuel.limit),
        fuel_used: call.fuel.and_then(|fuel| fuel.used),
        memory_bytes_used: call.memory.and_then(|memory| memory.used),
        memory_bytes_max: call.memory.map_or(0, |memory| memory.limit),
    }
}

fn denial(offers: &Offers<'_>, group: &DenialGroup) -> DenialShown {
    let shown = offers.group(group);
    DenialShown {
        group: group.number,
        component: clipped(&shown.component, NAME_BYTES_MAX),
        tools: shown.tools.iter().map(|tool| clipped(tool, NAME_BYTES_MAX)).collect(),
        callers: shown.callers.iter().map(|caller| clipped(caller, NAME_BYTES_MAX)).collect(),
        capability: shown.capability,
        asked: clipped(&shown.asked, LINE_BYTES_MAX),
        reason: clipped(&shown.reason, LINE_BYTES_MAX),
        count: shown.count,
        age_s: group.last().elapsed().unwrap_or_default().as_secs(),
        muted: group.is_muted(),
        rule: shown.rule.map(|rule| RuleShown {
            section: clipped(&rule.section, NAME_BYTES_MAX),
            line: clipped(&rule.line, LINE_BYTES_MAX),
            can_apply: rule.can_apply && rule.line.len() <= LINE_BYTES_MAX,
        }),
    }
}

fn approval(question_id: u64, pending: &PendingApproval) -> ApprovalShown {
    ApprovalShown {
        question_id,
        call: pending.call,
        tool: clipped(&pending.tool, NAME_BYTES_MAX),
        component: clipped(&pending.component, NAME_BYTES_MAX),
        caller: clipped(&pending.caller, NAME_BYTES_MAX),
        question: clipped(&pending.question, LINE_BYTES_MAX),
        arguments: clipped(&pending.arguments.text, ARGUMENTS_BYTES_MAX),
        arguments_cut: is_cut(&pending.arguments),
        age_ms: millis(pending.since.elapsed().unwrap_or_default()),
        left_ms: millis(pending.until.saturating_duration_since(Instant::now())),
        remember_s: pending.remember.map(|time| time.as_secs()),
        run_calls: run_calls(pending),
    }
}

/// Calls of a run that a terminal offers to allow.
fn run_calls(pending: &PendingApproval) -> Option<u32> {
    pending.run_calls_max.map(|most| most.min(RUN_CALLS_OFFERED))
}

/// True if a terminal does not show these arguments in full.
const fn is_cut(arguments: &PendingArguments) -> bool {
    arguments.left_out > 0 || arguments.text.len() > ARGUMENTS_BYTES_MAX
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The text, or its beginning and the number of missing bytes.
fn clipped(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let (shown, rest) = text.split_at(text.floor_char_boundary(bytes_max));
    format!("{shown}… {} more bytes", rest.len())
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn a_long_text_says_how_much_of_it_is_missing() {
        assert_eq!(clipped("short", 5), "short");
        assert_eq!(clipped("größer", 3), "gr… 6 more bytes");
        assert!(clipped(&"x".repeat(10_000_000), 1_024).len() < 1_100);
    }
}
