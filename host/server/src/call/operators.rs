//! Calls that an operator confirms in the console, in addition to the person at the client.
use std::time::{Instant, SystemTime};

use toolcell_mcp::{AskOutcome, Call, Caller, QuestionKind};
use toolcell_policy::Approval;

use super::StartedCall;
use super::allowing::{NestedAnswer, Permit};
use super::approval::{CALLER, CANCELLED};
use super::execute::EndedCall;
use super::run::GRANTED_MAX;
use crate::observing::activity::{ApprovalQueue, DecidedCall, OperatorAnswer, PendingApproval, PendingArguments};

/// The outcome of asking.
pub(super) enum OperatorAsked {
    /// The client's answer; `None` if nobody answered in time, or the call is cancelled.
    Client(Option<AskOutcome>),
    /// An operator's answer.
    Operator(OperatorAnswer),
    /// Too many calls wait, and the client cannot be asked.
    NoRoom,
}

/// A call that waits for its approval. If dropped while it waits, it records who ended the call.
pub(super) struct UndecidedCall<'a> {
    started: &'a StartedCall<'a>,
    caller: &'a Caller,
    over: bool,
}

impl<'a> UndecidedCall<'a> {
    pub(super) const fn of(started: &'a StartedCall<'a>, caller: &'a Caller) -> Self {
        Self { started, caller, over: false }
    }

    pub(super) fn end(mut self) {
        self.over = true;
    }
}

impl Drop for UndecidedCall<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let started = self.started;
        match started.live().and_then(|live| Some((live, live.stopped_text()?))) {
            Some((live, text)) => {
                started.note_approval("cancelled", Some(text));
                started.notify_operators(
                    self.caller,
                    "cancelled",
                    &format!("{}, by ending the call", live.stopped_by()),
                );
            }
            None => {
                started.note_approval("cancelled", Some(CANCELLED));
                started.notify_operators(self.caller, "cancelled", CALLER);
            }
        }
    }
}

impl StartedCall<'_> {
    /// Shows operators that a wait ended without a decision of theirs.
    pub(super) fn notify_operators(&self, caller: &Caller, answer: &'static str, by: &str) {
        let Some(queue) = self.operators() else { return };
        queue.note(DecidedCall {
            at: SystemTime::now(),
            call: self.record.id(),
            tool: self.name().to_owned(),
            caller: caller.name().to_owned(),
            answer,
            by: by.to_owned(),
        });
    }

    /// The queue of operators, if they are asked.
    pub(super) fn operators(&self) -> Option<&ApprovalQueue> {
        let queue = &self.catalog.services.activity.as_ref()?.approvals;
        queue.is_open().then_some(queue)
    }

    /// Asks the operators, and the client if it can also be asked. The first answer decides. A
    /// modern client is asked by ending the call, so operators are not asked then.
    pub(super) async fn ask_operators(
        &self,
        queue: &ApprovalQueue,
        call: &Call,
        approval: Approval,
        permit: &Permit,
    ) -> OperatorAsked {
        let wait = self.target.limits.ask_wait();
        let asking = &call.context.asking;
        let asks_client = queue.asks_clients() && asking.supports(QuestionKind::Form);
        if asks_client && (asking.chain().is_some() || asking.ends_calls()) {
            return OperatorAsked::Client(self.ask_person(call, approval, permit).await);
        }
        let pending = PendingApproval {
            call: self.record.id(),
            tool: self.name().to_owned(),
            component: self.target.component.name().to_owned(),
            caller: call.context.caller.name().to_owned(),
            question: self.question(),
            arguments: PendingArguments::of(&self.redacted_arguments(call)),
            since: SystemTime::now(),
            until: Instant::now() + wait,
            remember: approval.remember(),
            run_calls_max: self.lineage.as_ref().map(|_| GRANTED_MAX),
        };
        let Some(mut queued) = queue.ask(pending) else {
            if asks_client {
                return OperatorAsked::Client(self.ask_person(call, approval, permit).await);
            }
            return OperatorAsked::NoRoom;
        };
        let operator = async {
            match queued.answered().await {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        };
        let client = async {
            if asks_client {
                match self.ask_person(call, approval, permit).await {
                    // This does not count as an answer: the operators decide.
                    Some(AskOutcome::Refused(_)) => {}
                    asked => return asked,
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = call.context.cancellation.cancelled() => OperatorAsked::Client(None),
            answer = operator => OperatorAsked::Operator(answer),
            asked = client => OperatorAsked::Client(asked),
            () = tokio::time::sleep(wait) => OperatorAsked::Client(None),
        }
    }

    /// Notes an operator's answer. `Err` is the answer to a call that must not run.
    pub(super) async fn decided_by(
        &self,
        answer: &OperatorAnswer,
        approval: Approval,
        permit: &Permit,
    ) -> Result<(), Box<EndedCall>> {
        if !answer.allows {
            return Err(self.not_approved("declined", &format!("an operator declined: {:?} was not run", self.name())));
        }
        let granted = answer.run_calls.map_or(NestedAnswer::Once, NestedAnswer::Run);
        let more = granted.detail().map(|calls| format!(": {calls}")).unwrap_or_default();
        self.note_approval("accepted", Some(&format!("by {}{more}", answer.by)));
        self.grant(permit, granted);
        if let Some(time) = approval.remember().filter(|_| answer.remembers)
            && let Err(away) = self.catalog.services.state.note(&permit.calls, time).await
        {
            tracing::warn!("an approval is not remembered: {}", away.internal());
        }
        Ok(())
    }
}
