//! Decisions of operators, in a browser or on a terminal: each works like the command for it, and
//! is recorded before and after.
use std::sync::Arc;

use toolcell_audit::{Clipped, ConsoleDecided, ConsoleDeciding, Event};

use super::gather::Sources;
use crate::lock::{self, Approval, Lock};
use crate::observing::activity::{DenialGroup, OperatorAnswer};
use crate::reload::{Orders, ReloadOutcome};

/// The outcome of a decision: one sentence, as `Err` if it was not carried out.
pub type Came = Result<String, String>;

/// For a decision that could not be recorded.
const NOT_RECORDED: &str = "Nothing was done: the audit cannot be written. The log says more.";

/// For a request that the operator could not see in full.
const NOT_WHOLE: &str = "Its arguments are too long to be shown whole, so it can only be declined.";

/// For a component that differs from the lock.
const NOT_AS_LOCKED: &str = "Nothing was written: the lock does not have the component as it serves. `toolcell diff` says \
                             how, and `toolcell lock` pins it.";

/// For a grant that the lock now has.
const PINNED: &str = "The lock has it too.";

/// Who decides, for the record.
#[derive(Clone, Copy, Debug)]
pub struct DecidedBy<'a> {
    /// The session's name, or that of the control socket's users.
    pub session: &'a str,
    /// The operator who signed in, if any.
    pub operator: Option<&'a str>,
}

impl Sources {
    pub fn stop(&self, call: Option<u64>, by: &str) -> Came {
        let call = call.and_then(|id| self.activity.running.find(id)).ok_or("This call does not run any more.")?;
        let waited = call.waits_for_approval();
        call.stop(by);
        let name = &call.tool.definition().name;
        Ok(match waited {
            true => format!("Call {} of {name:?} waited for a person's approval: it ends, and does not run.", call.id),
            false => format!("Call {} of {name:?} is being ended.", call.id),
        })
    }

    /// Mutes or unmutes a group of denials.
    pub fn mute(&self, group: Option<u64>, is_muted: bool) -> Came {
        self.denial_group(group)?.mute(is_muted);
        Ok(if is_muted { "Muted until the server ends." } else { "Shown again." }.to_owned())
    }

    /// Writes a rule that allows a group of denials into the manifest, and reloads it.
    pub async fn allow(&self, group: Option<u64>, orders: &Orders) -> Came {
        let group = self.denial_group(group)?;
        let tables = self.tables(&group).ok_or("No rule that the server may write would allow this.")?;
        let locked = self.locked_as_served(&group.component).await?;
        let services = Arc::clone(&self.services);
        let manifest = self.manifest.clone();
        let written = tokio::task::spawn_blocking(move || services.consents.write_tables(&manifest, &tables)).await;
        written.map_err(|_| "The manifest was not written.")??;
        let asked = orders.ask().ok_or("The rule is written; too many reloads wait already.")?;
        let came = said("The rule is written. ", asked.await.ok())?;
        match locked {
            None => Ok(came),
            Some(locked) => self.pin_again(&group.component, locked, orders).await.map(|()| format!("{came} {PINNED}")),
        }
    }

    /// The lock, if there is one. `Err` if this component differs from it: writing a rule would add
    /// to the difference.
    async fn locked_as_served(&self, component: &str) -> Result<Option<Lock>, String> {
        let path = lock::path_beside(&self.manifest);
        let Ok(Ok(locked)) = tokio::task::spawn_blocking(move || lock::read(&path)).await else {
            return Err(NOT_AS_LOCKED.to_owned());
        };
        let serving = Lock::of(&self.catalog());
        let is_same = |locked: &Lock| lock::drift(locked, &serving).iter().all(|drift| drift.component != component);
        if locked.as_ref().is_none_or(is_same) { Ok(locked) } else { Err(NOT_AS_LOCKED.to_owned()) }
    }

    /// Updates the lock after an operator's grant to a component, whose bytes stay the same.
    async fn pin_again(&self, component: &str, mut locked: Lock, orders: &Orders) -> Result<(), String> {
        let path = lock::path_beside(&self.manifest);
        if self.locked {
            let digest = locked.components.get(component).and_then(|pinned| pinned.digest.parse().ok());
            let approval = Approval { name: component.to_owned(), digest, allow_signer_change: false };
            let asked = orders.approve(approval).ok_or("The rule is written; too many reloads wait already.")?;
            return said("The rule is written. ", asked.await.ok()).map(drop);
        }
        let now = Lock::of(&self.catalog()).components.remove(component);
        locked.components.extend(now.map(|now| (component.to_owned(), now)));
        let written =
            tokio::task::spawn_blocking(move || lock::write(&path, &locked).map_err(|error| error.to_string()));
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|error| format!("The rule serves, and is not in the lock: {error}. Type `toolcell lock`."))
    }

    /// Answers a waiting call.
    pub fn answer(&self, waiting: Option<u64>, answer: OperatorAnswer) -> Came {
        let said = if answer.allows { "is allowed" } else { "is declined" };
        let found = waiting.and_then(|number| self.activity.approvals.find(number));
        if found.as_ref().is_some_and(|pending| answer.allows && !pending.arguments.is_shown_whole()) {
            return Err(NOT_WHOLE.to_owned());
        }
        let most = found.and_then(|pending| pending.run_calls_max).unwrap_or_default();
        if answer.run_calls.is_some_and(|calls| !(1..=most).contains(&calls)) {
            return Err(format!("At most {most} calls of one run can be allowed."));
        }
        let answered = waiting.and_then(|number| self.activity.approvals.answer(number, answer));
        let pending = answered.ok_or("This call does not wait any more.")?;
        Ok(format!("Call {} of {:?} {said}.", pending.call, pending.tool))
    }

    /// A waiting call in words; `None` if it does not wait.
    pub fn waiting_in_words(&self, waiting: Option<u64>) -> Option<String> {
        let pending = self.activity.approvals.find(waiting?)?;
        Some(format!("call {} of {}", pending.call, pending.tool))
    }

    /// A group of denials in words; `None` if it is unknown.
    pub fn group_in_words(&self, group: Option<u64>) -> Option<String> {
        self.denial_group(group).ok().map(|group| format!("{}: {}", group.component, group.asked))
    }

    /// Records that a decision is about to be carried out. `Err` is one sentence: then it must not
    /// be.
    pub fn begin(&self, by: DecidedBy<'_>, decision: &str, subject: &str) -> Result<(), String> {
        let event = || {
            Event::ConsoleDeciding(ConsoleDeciding {
                session: by.session,
                operator: by.operator.map(Clipped),
                decision,
                subject: Clipped(subject),
            })
        };
        self.services.sink.record(event).map_err(|error| {
            tracing::error!("a decision of the console is refused, as the audit cannot be written: {error}");
            NOT_RECORDED.to_owned()
        })
    }

    /// Records a decision. If that fails, it is logged.
    pub fn record(&self, by: DecidedBy<'_>, decision: &str, subject: &str, came: Result<&str, &str>) {
        let (Ok(detail) | Err(detail)) = came;
        let event = || {
            Event::ConsoleDecided(ConsoleDecided {
                session: by.session,
                operator: by.operator.map(Clipped),
                decision,
                subject: Clipped(subject),
                done: came.is_ok(),
                detail: Some(detail).filter(|detail| !detail.is_empty()).map(Clipped),
            })
        };
        if let Err(error) = self.services.sink.record(event) {
            tracing::error!("a decision of the console is missing from the audit: {error}");
        }
    }

    fn denial_group(&self, number: Option<u64>) -> Result<Arc<DenialGroup>, String> {
        let found = number.and_then(|number| self.activity.denials.find(number));
        found.ok_or_else(|| "There is no such group of denials.".to_owned())
    }
}

pub fn said(before: &str, outcome: Option<ReloadOutcome>) -> Came {
    match outcome {
        Some(ReloadOutcome::Unchanged) => Ok(format!("{before}Nothing else changed.")),
        Some(ReloadOutcome::Replaced { generation, .. }) => Ok(format!("{before}Generation {generation} serves.")),
        Some(ReloadOutcome::Failed(failed)) => Err(format!("{before}Not reloaded: {}", failed.summary)),
        None => Err(format!("{before}The server ends.")),
    }
}
