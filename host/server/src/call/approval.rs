//! Calls that a person confirms before they run.
use std::borrow::Cow;
use std::time::Duration;

use toolcell_audit::Outcome;
use toolcell_mcp::{AskOutcome, AskTerms, Call, Caller, ClientAnswer, ClientAskError, ClientQuestion, KeyedQuestion};
use toolcell_policy::Approval;
use toolcell_shared::{Away, Claim, Claimed, SharedState};

use super::StartedCall;
use super::allowing::{self, NestedAnswer, Permit};
use super::caller::Interruptions;
use super::clock::StoppedClocks;
use super::execute::EndedCall;
use super::operators::{OperatorAsked, UndecidedCall};
use super::questions::named;
use super::shown;
use crate::observing::activity::{ApprovalQueue, CallPhase};

/// Key of the question. No guest can use it.
const KEY: &str = "toolcell.approval";

/// Form of the question, which has no fields: sending it is the confirmation.
const FORM: &str = r#"{"type":"object","properties":{}}"#;

/// Characters of the arguments that a client shows in its question: of longer ones half from their
/// beginning and half from their end. People do not read more there.
const ARGUMENTS_CHARS_MAX: usize = 1_000;

/// Most bytes of an answer: its action, and additions of clients.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// The answer to a call whose caller cancelled it while it waited.
pub(super) const CANCELLED: &str = "the call was cancelled while it waited for a person's approval: it did not run";

/// Who cancelled such a call.
pub(super) const CALLER: &str = "the caller";

/// Approval of one call. It is returned for another try unless the call runs to its end.
pub struct ClaimedApproval<'a> {
    state: &'a dyn SharedState,
    /// The use of the rounds that brought the approval.
    claim: Option<Claim>,
}

impl ClaimedApproval<'_> {
    /// The call has ended. If it only asked its caller for input, its approval is not used up.
    pub async fn ended(self, outcome: Outcome) {
        if let Some(claim) = self.claim.filter(|_| outcome == Outcome::InputRequired) {
            give_back(self.state, claim).await;
        }
    }
}

/// Makes the approval usable again. If that fails, the person is asked again.
pub(super) async fn give_back(state: &dyn SharedState, claim: Claim) {
    if let Err(away) = state.give_back(claim).await {
        tracing::warn!("an approval stays used, though its call did not end: {}", away.internal());
    }
}

impl StartedCall<'_> {
    /// Asks a person to confirm the call, if the manifest requires it. `Err` is the answer to a
    /// call that must not run.
    pub(super) async fn approve(&self, call: &Call, approval: Approval) -> Result<ClaimedApproval<'_>, Box<EndedCall>> {
        let state = self.catalog.services.state.as_ref();
        let free = ClaimedApproval { state, claim: None };
        let caller = &call.context.caller;
        // What one anonymous caller's person allows would hold for all of them.
        let approval = if caller.is_recognised() { approval } else { approval.unremembered() };
        let permit = self.permit(call);
        if self.is_allowed(approval, &permit).await? {
            return Ok(free);
        }
        if let Some(text) = self.cannot_pause(call) {
            return Err(self.not_approved("failed", &text));
        }
        let wait = self.target.limits.ask_wait();
        self.live().into_iter().for_each(|live| live.enter(CallPhase::Asking));
        let undecided = UndecidedCall::of(self, caller);
        let above = self.lineage.iter().flat_map(|lineage| &lineage.clocks).map(|clock| &**clock);
        let clocks = StoppedClocks::of(above);
        // Held until what the person allows is noted.
        let _turn = self.turn_to_ask(call).await;
        // The end of the run frees the turn of the question before this one.
        if Interruptions::of(self, &call.context).cause_in_run().is_some() {
            undecided.end();
            return Err(self.cancelled_by_caller(caller));
        }
        // The answer to another question may hold for this call, too.
        match self.is_allowed(approval, &permit).await {
            Ok(false) => {}
            allowed => {
                undecided.end();
                self.live().into_iter().for_each(|live| live.enter(CallPhase::Waiting));
                return allowed.map(|_| free);
            }
        }
        let asked = match self.operators() {
            Some(queue) => self.ask_operators(queue, call, approval, &permit).await,
            None => OperatorAsked::Client(self.ask_person(call, approval, &permit).await),
        };
        drop(clocks);
        undecided.end();
        self.live().into_iter().for_each(|live| live.enter(CallPhase::Waiting));
        let asked = match asked {
            OperatorAsked::Client(asked) => asked,
            OperatorAsked::Operator(answer) => {
                return self.decided_by(&answer, approval, &permit).await.map(|()| free);
            }
            OperatorAsked::NoRoom => return Err(self.not_approved("refused", "too many calls wait for an operator")),
        };
        let answer = match asked {
            Some(AskOutcome::Answered(answers)) => answers.into_iter().next(),
            Some(AskOutcome::Refused(error)) => return Err(self.cannot_ask(&error)),
            Some(AskOutcome::Ended(refused)) => return Err(self.asked_elsewhere(refused)),
            None if call.context.cancellation.is_cancelled() => return Err(self.cancelled_by_caller(caller)),
            None => {
                self.notify_operators(caller, "timed_out", "nobody");
                return Err(self.not_approved("timed_out", &self.nobody_within(wait)));
            }
        };
        self.answered(call, approval, &permit, answer).await
    }

    /// Notes the person's answer at the client. `Err` is the answer to a call that must not run.
    async fn answered(
        &self,
        call: &Call,
        approval: Approval,
        permit: &Permit,
        answer: Option<ClientAnswer>,
    ) -> Result<ClaimedApproval<'_>, Box<EndedCall>> {
        let state = self.catalog.services.state.as_ref();
        let claim = self.claim(call, self.target.limits.ask_wait()).await?;
        let answer = answer.map(|answer| self.decision(answer));
        let decided = answer.as_ref().map_or("dismissed", |(answer, _)| named(answer));
        self.notify_operators(&call.context.caller, decided, "the person at the client");
        match answer {
            Some((ClientAnswer::Accepted(_), allowed)) => {
                self.note_approval(decided, allowed.detail().as_deref());
                self.grant(permit, allowed);
                if let Some(time) = approval.remember().filter(|_| allowed == NestedAnswer::Remember)
                    && let Err(away) = state.note(&permit.calls, time).await
                {
                    tracing::warn!("an approval is not remembered: {}", away.internal());
                }
                Ok(ClaimedApproval { state, claim })
            }
            Some((ClientAnswer::Declined, _)) => {
                Err(self.not_approved("declined", &format!("the person declined: {:?} was not run", self.name())))
            }
            _ => {
                let text = format!("the person did not decide: {:?} was not run", self.name());
                Err(self.not_approved("dismissed", &text))
            }
        }
    }

    /// The answer, with what it allows. A form may say no as well.
    fn decision(&self, answer: ClientAnswer) -> (ClientAnswer, NestedAnswer) {
        match answer {
            ClientAnswer::Accepted(content) if self.lineage.is_some() => match NestedAnswer::of_form(&content) {
                NestedAnswer::No => (ClientAnswer::Declined, NestedAnswer::No),
                allowed => (ClientAnswer::Accepted(content), allowed),
            },
            // The answer about a client's call holds as long as the manifest says.
            answer @ ClientAnswer::Accepted(_) => (answer, NestedAnswer::Remember),
            answer => (answer, NestedAnswer::No),
        }
    }

    /// True if a person allowed such calls for a time, or this one or several in this run.
    async fn is_allowed(&self, approval: Approval, permit: &Permit) -> Result<bool, Box<EndedCall>> {
        let state = &self.catalog.services.state;
        if approval.remember().is_some()
            && state.is_noted(&permit.calls).await.map_err(|away| self.state_away(&away))?
        {
            self.note_approval("remembered", None);
            return Ok(true);
        }
        Ok(self.is_granted(permit))
    }

    /// Waits until no other question of the run is open; `None` if there is no run, or the call is
    /// cancelled.
    async fn turn_to_ask(&self, call: &Call) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let run = &self.lineage.as_deref()?.run;
        tokio::select! {
            biased;
            () = call.context.cancellation.cancelled() => None,
            turn = run.turn() => Some(turn),
        }
    }

    /// Why a call that a tool makes cannot wait for a person, if it cannot.
    fn cannot_pause(&self, call: &Call) -> Option<String> {
        let run = &self.lineage.as_deref()?.run;
        let asks_client = self.operators().is_none_or(ApprovalQueue::asks_clients);
        let why = run.unkept().filter(|_| asks_client && call.context.asking.ends_calls())?;
        Some(format!("{}, and this run cannot wait for it: {why}", self.need()))
    }

    /// Uses up the answer of these rounds, whatever it is: a person decides once. `Err` if another
    /// call used it.
    async fn claim(&self, call: &Call, wait: Duration) -> Result<Option<Claim>, Box<EndedCall>> {
        let Some(chain) = call.context.asking.chain() else { return Ok(None) };
        match self.catalog.services.state.claim(call.context.caller.name(), &chain, wait).await {
            Ok(Claimed::Now(claim)) => Ok(Some(claim)),
            Ok(Claimed::Before) => {
                let text = format!("the approval of {:?} was used already: it was for one call", self.name());
                Err(self.not_approved("refused", &text))
            }
            Ok(Claimed::NoRoom) => {
                let text = format!(
                    "too many approvals of {:?} and other tools were used lately; try again later",
                    self.name()
                );
                Err(self.not_approved("refused", &text))
            }
            Err(away) => Err(self.state_away(&away)),
        }
    }

    /// The answer to a call whose approval cannot be checked. The approval is not used up, so the
    /// same round can be sent again.
    fn state_away(&self, away: &Away) -> Box<EndedCall> {
        let text = away.to_string();
        self.note_approval("failed", Some(&text));
        Box::new(EndedCall::refused(Outcome::StateAway, text))
    }

    /// Asks; `None` if nobody answers in time, or the call is cancelled.
    pub(super) async fn ask_person(&self, call: &Call, approval: Approval, permit: &Permit) -> Option<AskOutcome> {
        let wait = self.target.limits.ask_wait();
        let message = self.message(call, approval);
        let schema_json = if self.lineage.is_some() { allowing::form(approval) } else { FORM.to_owned() };
        let ask = KeyedQuestion { key: KEY.to_owned(), question: ClientQuestion::Form { message, schema_json } };
        let need = self.need();
        let terms = AskTerms {
            asker: None,
            need: &need,
            answer_bytes_max: ANSWER_BYTES_MAX,
            answered_within: wait,
            permits: Some(&permit.call),
        };
        tokio::select! {
            biased;
            () = call.context.cancellation.cancelled() => None,
            asked = tokio::time::timeout(wait, call.context.asking.ask(vec![ask], terms)) => asked.ok(),
        }
    }

    /// The question, without the arguments.
    pub(super) fn question(&self) -> String {
        let tool = self.name();
        let component = self.target.component.name();
        match &self.lineage {
            Some(lineage) => format!(
                "Allow the tool {:?} to call the tool {tool:?} of the component {component:?}? {}",
                lineage.asker,
                lineage.about_run()
            ),
            None => format!("Allow the tool {tool:?} of the component {component:?} to run?"),
        }
    }

    /// The call's arguments without values of secrets.
    pub(super) fn redacted_arguments<'c>(&self, call: &'c Call) -> Cow<'c, str> {
        self.target.capabilities.redactor().text(call.arguments.get())
    }

    fn shown_arguments(&self, call: &Call) -> String {
        let shown = shown::json(&self.redacted_arguments(call));
        // What was written with escapes may be a value by now.
        let shown = self.target.capabilities.redactor().text(&shown).into_owned();
        shown::ends(shown, ARGUMENTS_CHARS_MAX)
    }

    fn message(&self, call: &Call, approval: Approval) -> String {
        let mut text = format!("{}\nArguments: {}", self.question(), self.shown_arguments(call));
        if let Some(time) = approval.remember().filter(|_| self.lineage.is_none()) {
            text.push_str(&format!(
                "\nIf you allow it, further calls run without asking for {}, whatever their arguments.",
                allowing::shown(time)
            ));
        }
        text
    }

    fn need(&self) -> String {
        format!("the tool {:?} needs a person's approval", self.name())
    }

    fn cannot_ask(&self, error: &ClientAskError) -> Box<EndedCall> {
        let need = self.need();
        let (answer, text) = match error {
            ClientAskError::Unsupported { lacking, .. } => (
                "unsupported",
                format!("{need}, and this client cannot be asked for it: it does not declare {lacking}"),
            ),
            ClientAskError::Unheard(_) => ("unsupported", format!("{need}: {error}")),
            _ => ("failed", format!("{need}: {error}")),
        };
        self.not_approved(answer, &text)
    }

    fn asked_elsewhere(&self, refused: Option<String>) -> Box<EndedCall> {
        match refused {
            None => {
                self.note_approval("pending", None);
                let text = "the call goes on once it is approved".to_owned();
                Box::new(EndedCall::refused(Outcome::InputRequired, text))
            }
            Some(text) => self.not_approved("failed", &text),
        }
    }

    fn nobody_within(&self, wait: Duration) -> String {
        let wait = allowing::shown(wait);
        format!("nobody approved {:?} within {wait}: it was not run (limit \"ask_wait\")", self.name())
    }

    fn cancelled_by_caller(&self, caller: &Caller) -> Box<EndedCall> {
        self.notify_operators(caller, "cancelled", CALLER);
        self.not_approved("cancelled", CANCELLED)
    }

    pub(super) fn not_approved(&self, answer: &str, text: &str) -> Box<EndedCall> {
        self.note_approval(answer, Some(text));
        Box::new(EndedCall { detail: text.to_owned(), ..EndedCall::refused(Outcome::NotApproved, text.to_owned()) })
    }

    pub(super) fn note_approval(&self, answer: &str, detail: Option<&str>) {
        self.record.asks(self.target).write("approval", KEY, answer, detail);
    }
}

#[cfg(test)]
mod tests {
    use toolcell_shared::Embedded;

    use super::*;

    #[tokio::test]
    async fn an_approval_in_rounds_is_for_one_call() {
        let state = Embedded::default();
        let minute = Duration::from_secs(60);
        let claim = async || state.claim("ann", "a", minute).await.unwrap().now();
        let first = claim().await;
        assert!(first.is_some());
        assert!(claim().await.is_none(), "while it runs");
        ClaimedApproval { state: &state, claim: first }.ended(Outcome::InputRequired).await;
        let second = claim().await;
        assert!(second.is_some(), "a further round");
        ClaimedApproval { state: &state, claim: second }.ended(Outcome::Ok).await;
        assert!(claim().await.is_none(), "once it ran");
        assert!(state.claim("ann", "b", minute).await.unwrap().now().is_some());
    }
}
