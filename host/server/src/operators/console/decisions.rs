//! Decisions of operators, in a browser or on a terminal: each is done by the same means as the
//! command for it, and recorded before and after.
use std::sync::Arc;

use toolcell_audit::{Clipped, ConsoleDecided, ConsoleDeciding, Event};

use super::gather::Sources;
use crate::lock::{self, Approval, Lock};
use crate::observing::activity::{DenialGroup, OperatorAnswer};
use crate::reload::{Orders, ReloadOutcome};

/// The outcome of a decision: one sentence, as `Err` if it was not done.
pub type Came = Result<String, String>;

/// Said where a decision would be missing from the audit.
const NOT_RECORDED: &str = "Nothing was done: the audit cannot be written. The log says more.";

/// Said where an operator could not see all of what was allowed.
const NOT_WHOLE: &str = "Its arguments are too long to be shown whole, so it can only be declined.";

/// Said where the lock has a component otherwise than it serves.
const NOT_AS_LOCKED: &str = "Nothing was written: the lock does not have the component as it serves. `toolcell diff` says \
                             how, and `toolcell lock` pins it.";

/// Said where the lock has what was allowed.
const PINNED: &str = "The lock has it too.";

/// Those who decide something, for its record.
#[derive(Clone, Copy, Debug)]
pub struct DecidedBy<'a> {
    /// The name of the session, or of those at the control socket.
    pub session: &'a str,
    /// The operator who signed in; `None` without one.
    pub operator: Option<&'a str>,
}

impl Sources {
    /// Ends a call for this operator.
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

    /// Mutes a group of denials, or ends that.
    pub fn mute(&self, group: Option<u64>, is_muted: bool) -> Came {
        self.denial_group(group)?.mute(is_muted);
        Ok(if is_muted { "Muted until the server ends." } else { "Shown again." }.to_owned())
    }

    /// Writes the rule that would allow a group of denials into the manifest, and reloads it.
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

    /// The lock, if there is one and it has this component as it serves. `Err` where it has not: a
    /// rule that is written then would be one difference more.
    async fn locked_as_served(&self, component: &str) -> Result<Option<Lock>, String> {
        let path = lock::path_beside(&self.manifest);
        let Ok(Ok(locked)) = tokio::task::spawn_blocking(move || lock::read(&path)).await else {
            return Err(NOT_AS_LOCKED.to_owned());
        };
        let serving = Lock::of(&self.catalog());
        let is_same = |locked: &Lock| lock::drift(locked, &serving).iter().all(|drift| drift.component != component);
        if locked.as_ref().is_none_or(is_same) { Ok(locked) } else { Err(NOT_AS_LOCKED.to_owned()) }
    }

    /// Writes into the lock what an operator has just allowed a component. The bytes are those
    /// that serve.
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

    /// Answers a call that waits.
    pub fn answer(&self, waiting: Option<u64>, answer: OperatorAnswer) -> Came {
        let said = if answer.allows { "is allowed" } else { "is declined" };
        let found = waiting.and_then(|number| self.activity.approvals.find(number));
        if found.is_some_and(|pending| answer.allows && !pending.arguments.is_shown_whole()) {
            return Err(NOT_WHOLE.to_owned());
        }
        let answered = waiting.and_then(|number| self.activity.approvals.answer(number, answer));
        let pending = answered.ok_or("This call does not wait any more.")?;
        Ok(format!("Call {} of {:?} {said}.", pending.call, pending.tool))
    }

    /// A call that waits in words; `None` if it does not wait.
    pub fn waiting_in_words(&self, waiting: Option<u64>) -> Option<String> {
        let pending = self.activity.approvals.find(waiting?)?;
        Some(format!("call {} of {}", pending.call, pending.tool))
    }

    /// A group of denials in words; `None` if it is unknown.
    pub fn group_in_words(&self, group: Option<u64>) -> Option<String> {
        self.denial_group(group).ok().map(|group| format!("{}: {}", group.component, group.asked))
    }

    /// Records that a decision is about to be carried out. `Err` is one sentence: it must not be.
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

    /// Records a decision. Where that fails, the log says so.
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

/// The outcome of a reload, in words.
pub fn said(before: &str, outcome: Option<ReloadOutcome>) -> Came {
    match outcome {
        Some(ReloadOutcome::Unchanged) => Ok(format!("{before}Nothing else changed.")),
        Some(ReloadOutcome::Replaced { generation, .. }) => Ok(format!("{before}Generation {generation} serves.")),
        Some(ReloadOutcome::Failed(failed)) => Err(format!("{before}Not reloaded: {}", failed.summary)),
        None => Err(format!("{before}The server ends.")),
    }
}
