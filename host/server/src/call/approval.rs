//! Calls that a person confirms before they run. Must not hold: how a person is asked, or which
//! calls need it (see the manifest).
use std::time::Duration;

use toolcell_audit::Outcome;
use toolcell_mcp::{Answer, Ask, AskError, AskTerms, Asked, Call, Question, sanitize};
use toolcell_policy::Approval;
use toolcell_policy::quantity::show_millis;

use super::StartedCall;
use super::execute::EndedCall;
use super::questions::named;
use crate::catalog::Approvals;

/// Key of the question. No guest can use it.
const KEY: &str = "toolcell.approval";

/// Form of the question, which has no fields: sending it is the confirmation.
const FORM: &str = r#"{"type":"object","properties":{}}"#;

/// Characters of the arguments that are shown. People do not read more.
const ARGUMENTS_CHARS_MAX: usize = 1_000;

/// Most bytes of an answer: its action, and additions of clients.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Approval of one call. It is returned for another try unless the call runs to its end.
pub struct ClaimedApproval<'a> {
    approvals: &'a Approvals,
    /// The rounds that brought the approval.
    chain: Option<String>,
}

impl ClaimedApproval<'_> {
    /// Marks the call as ended. A call that asks its caller for input has not used its approval
    /// yet.
    pub fn ended(self, outcome: Outcome) {
        if let Some(chain) = self.chain.filter(|_| outcome == Outcome::InputRequired) {
            self.approvals.give_back(&chain);
        }
    }
}

impl StartedCall<'_> {
    /// Has a person confirm the call, if the manifest wants it. `Err` is the end of a call that
    /// must not run.
    pub(super) async fn approve(&self, call: &Call) -> Result<ClaimedApproval<'_>, EndedCall> {
        let approvals = self.catalog.approvals.as_ref();
        let free = ClaimedApproval { approvals, chain: None };
        let Some(approval) = self.target.approval else { return Ok(free) };
        let caller = call.context.caller.name();
        let what =
            [caller, self.name(), &self.target.component.digest, &self.target.component.policy_digest].join("\n");
        if approval.remember().is_some() && approvals.holds(&what) {
            self.note_approval("remembered", None);
            return Ok(free);
        }
        let wait = self.target.limits.ask_wait();
        let asked = self.ask_person(call, approval, wait).await;
        let answer = match asked {
            Some(Asked::Answered(answers)) => answers.into_iter().next(),
            Some(Asked::Refused(error)) => return Err(self.cannot_ask(&error)),
            Some(Asked::Ended(refused)) => return Err(self.asked_elsewhere(refused)),
            None if call.context.cancellation.is_cancelled() => {
                return Err(self.not_approved("cancelled", "the call was cancelled"));
            }
            None => return Err(self.not_approved("timed_out", &self.nobody_within(wait))),
        };
        match answer {
            Some(answer @ Answer::Accepted(_)) => {
                let chain = call.context.asking.chain();
                if chain.as_ref().is_some_and(|chain| !approvals.claim(chain, wait)) {
                    let text = format!("the approval of {:?} was used already: it was for one call", self.name());
                    return Err(self.not_approved("refused", &text));
                }
                self.note_approval(named(&answer), None);
                if let Some(time) = approval.remember() {
                    approvals.remember(what, time);
                }
                Ok(ClaimedApproval { approvals, chain })
            }
            Some(Answer::Declined) => {
                Err(self.not_approved("declined", &format!("the person declined: {:?} was not run", self.name())))
            }
            _ => {
                let text = format!("the person decided nothing: {:?} was not run", self.name());
                Err(self.not_approved("dismissed", &text))
            }
        }
    }

    /// Asks; `None` if nobody answers in time, or the call is cancelled.
    async fn ask_person(&self, call: &Call, approval: Approval, wait: Duration) -> Option<Asked> {
        let message = self.message(call, approval);
        let ask = Ask { key: KEY.to_owned(), question: Question::Form { message, schema_json: FORM.to_owned() } };
        let terms =
            AskTerms { asker: None, answer_bytes_max: ANSWER_BYTES_MAX, answered_within: wait, only_if_asked: true };
        tokio::select! {
            biased;
            () = call.context.cancellation.cancelled() => None,
            asked = tokio::time::timeout(wait, call.context.asking.ask(vec![ask], terms)) => asked.ok(),
        }
    }

    fn message(&self, call: &Call, approval: Approval) -> String {
        let (tool, component) = (self.name(), self.target.component.name());
        let (shown, left_out) =
            shown(&self.target.capabilities.redactor().text(call.arguments.get()), ARGUMENTS_CHARS_MAX);
        let mut text = format!("Allow the tool {tool:?} of the component {component:?} to run?\nArguments: {shown}");
        if left_out > 0 {
            text.push_str(&format!("… ({left_out} characters more)"));
        }
        if let Some(time) = approval.remember() {
            let time = show_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            text.push_str(&format!(
                "\nIf you allow it, further calls run without asking for {time}, whatever their arguments."
            ));
        }
        text
    }

    fn cannot_ask(&self, error: &AskError) -> EndedCall {
        let tool = self.name();
        match error {
            AskError::Unsupported(_) => {
                let text = format!(
                    "{tool:?} needs a person's approval, and this client cannot ask for it: it does not declare \
                     elicitation"
                );
                self.not_approved("unsupported", &text)
            }
            AskError::Unheard(_) => {
                self.not_approved("unsupported", &format!("{tool:?} needs a person's approval: {error}"))
            }
            error => self.not_approved("failed", &format!("{tool:?} needs a person's approval: {error}")),
        }
    }

    fn asked_elsewhere(&self, refused: Option<String>) -> EndedCall {
        match refused {
            None => {
                self.note_approval("pending", None);
                EndedCall::refused(Outcome::InputRequired, "the call goes on once it is approved".to_owned())
            }
            Some(text) => self.not_approved("failed", &text),
        }
    }

    fn nobody_within(&self, wait: Duration) -> String {
        let wait = show_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        format!("nobody approved {:?} within {wait}: it was not run (limit \"ask_wait\")", self.name())
    }

    fn not_approved(&self, answer: &str, text: &str) -> EndedCall {
        self.note_approval(answer, Some(text));
        EndedCall::refused(Outcome::NotApproved, text.to_owned())
    }

    fn note_approval(&self, answer: &str, detail: Option<&str>) {
        self.record.asks(self.target).write("approval", KEY, answer, detail);
    }
}

/// A text for a person to judge: on one line, cut, with misleading characters escaped.
pub(super) fn shown(text: &str, chars_max: usize) -> (String, usize) {
    let mut out = String::new();
    for character in text.chars().take(chars_max) {
        if sanitize::is_plain_line(character.encode_utf8(&mut [0; 4])) {
            out.push(character);
        } else if character.is_whitespace() {
            out.push(' ');
        } else {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
        }
    }
    (out, text.chars().count().saturating_sub(chars_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_is_shown_hides_nothing() {
        assert_eq!(shown("{\"a\":\n 1}", 9), ("{\"a\":  1}".to_owned(), 0));
        assert_eq!(shown("a\u{202e}b\u{1b}[2J\u{200b}", 9), ("a\\u{202e}b\\u{1b}[2J\\u{200b}".to_owned(), 0));
        let (text, left_out) = shown(&"é".repeat(ARGUMENTS_CHARS_MAX + 7), ARGUMENTS_CHARS_MAX);
        assert_eq!((text.chars().count(), left_out), (ARGUMENTS_CHARS_MAX, 7));
    }

    #[test]
    fn an_approval_in_rounds_is_for_one_call() {
        let approvals = Approvals::default();
        let minute = Duration::from_secs(60);
        let claimed = |chain: &str| ClaimedApproval { approvals: &approvals, chain: Some(chain.to_owned()) };
        assert!(approvals.claim("a", minute));
        assert!(!approvals.claim("a", minute), "while it runs");
        claimed("a").ended(Outcome::InputRequired);
        assert!(approvals.claim("a", minute), "a further round");
        claimed("a").ended(Outcome::Ok);
        assert!(!approvals.claim("a", minute), "once it ran");
        assert!(approvals.claim("b", minute));
    }
}
