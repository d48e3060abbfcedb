//! A running guest's requests that no rule allows: a person is asked, through the client or on the
//! terminal.
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcell_audit::Outcome;
use toolcell_mcp::{
    AskOutcome, AskTerms, CallAsking, CallContext, Caller, ClientAnswer, ClientQuestion, KeyedQuestion, QuestionKind,
};
use toolcell_policy::Askable;
use toolcell_sandbox::{ComponentDigest, ConsentAnswer, Redactor};
use toolcell_shared::{Away, Claim};

use super::approval::give_back;
use super::caller::Interruptions;
use super::record::AskRecords;
use super::shown;
use crate::catalog::Services;
use crate::catalog::{CallTarget, Catalog, Choice, Consents};

/// The beginning of the question's key. No guest can use it.
const KEY: &str = "toolcell.ungranted";

/// Digits of the request's digest in its key, so that the key fits its limit of 64 bytes.
const KEY_DIGITS: usize = 40;

/// Most bytes of an answer: its action, its choice, and additions of clients.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Characters of a request that are shown. Nobody is asked about a longer one: a person could not
/// judge it.
const SHOWN_CHARS_MAX: usize = 1_000;

/// Permission requests of one call.
pub struct Consenting {
    services: Arc<Services>,
    asking: CallAsking,
    interruptions: Interruptions,
    records: AskRecords,
    redactor: Redactor,
    caller: String,
    component: String,
    digest: String,
    wait: Duration,
    /// Consents of rounds that this call has used up.
    claimed: Mutex<Vec<Claim>>,
}

/// A question without an answer so far.
struct Unanswered<'a> {
    consenting: &'a Consenting,
    offer: &'a Askable,
    recorded: bool,
}

impl Consenting {
    pub fn new(
        catalog: &Catalog,
        target: &CallTarget,
        context: &CallContext,
        records: AskRecords,
        interruptions: Interruptions,
    ) -> Self {
        Self {
            services: Arc::clone(&catalog.services),
            asking: context.asking.clone(),
            interruptions,
            records,
            redactor: target.capabilities.redactor().clone(),
            caller: context.caller.name().to_owned(),
            component: target.component.name().to_owned(),
            digest: target.component.digest.clone(),
            wait: target.limits.ask_wait(),
            claimed: Mutex::default(),
        }
    }

    /// True if a person has allowed it for more than one call.
    pub fn has(&self, offer: &Askable) -> bool {
        let holds = self.services.consents.holds(&self.caller, &self.what(offer));
        if holds {
            self.note(offer, "remembered", None);
        }
        holds
    }

    /// Asks. If dropped before the answer, it records the question as cancelled, with who ended the
    /// call, or as timed out.
    pub async fn ask(&self, offer: &Askable) -> ConsentAnswer {
        let mut open = Unanswered { consenting: self, offer, recorded: false };
        let (text, left_out) = shown::beginning(offer.asked(), SHOWN_CHARS_MAX);
        if left_out > 0 || self.redactor.text(offer.asked()) != offer.asked() {
            return open.refused("refused", "it is too long to be judged, or holds a secret");
        }
        let consents = &self.services.consents;
        let Some(_turn) = consents.turn(&self.what(offer)).await else {
            return open.refused("refused", "too many questions are under way");
        };
        // The end of a run frees the turn of the question before this one.
        if let Some(interruption) = self.interruptions.cause_in_run() {
            return open.refused("cancelled", interruption.text());
        }
        // Another call may have got the answer meanwhile.
        if consents.holds(&self.caller, &self.what(offer)) {
            open.end("remembered", None);
            return ConsentAnswer::Given;
        }
        if consents.person().is_none() && !self.asking.supports(QuestionKind::Form) {
            return open.refused("unsupported", "the client cannot ask a person: it does not declare elicitation");
        }
        if !consents.charge(&self.caller) {
            return open.refused("refused", "the caller's person was asked too often in the last hour");
        }
        let choices = self.choices();
        let message = self.message(offer, &text);
        let choice = match self.answer(offer, &message, &choices).await {
            Ok(choice) => choice.filter(|choice| choices.contains(choice)),
            Err(consent) => {
                match &consent {
                    ConsentAnswer::Ended(None) => open.end("pending", None),
                    ConsentAnswer::Ended(Some(text)) => open.end("failed", Some(text)),
                    ConsentAnswer::Given | ConsentAnswer::Refused => open.end_unanswered("failed"),
                }
                return consent;
            }
        };
        self.decided(choice, open).await
    }

    async fn decided(&self, choice: Option<Choice>, mut open: Unanswered<'_>) -> ConsentAnswer {
        let offer = open.offer;
        // A person decides once: a client that kept the question's state could send another answer.
        match self.claim(offer, choice).await {
            Ok(true) => {}
            Ok(false) => return open.refused("refused", "the answer was used already"),
            Err(away) => return open.refused("failed", &away.to_string()),
        }
        match choice {
            None => {
                open.end("dismissed", None);
                ConsentAnswer::Refused
            }
            Some(Choice::No) => {
                open.end("declined", None);
                ConsentAnswer::Refused
            }
            Some(Choice::Once) => {
                open.end(Choice::Once.name(), None);
                ConsentAnswer::Given
            }
            Some(Choice::Session) => {
                self.services.consents.remember(&self.caller, self.what(offer)).await;
                open.end(Choice::Session.name(), None);
                ConsentAnswer::Given
            }
            Some(Choice::Manifest) => {
                // Takes effect at once, before the reload that follows.
                self.services.consents.remember(&self.caller, self.what(offer)).await;
                let services = Arc::clone(&self.services);
                let written = offer.clone();
                let written = tokio::task::spawn_blocking(move || services.consents.write(&written)).await;
                match written.unwrap_or_else(|_| Err("the manifest was not written".to_owned())) {
                    Ok(()) => open.end(Choice::Manifest.name(), None),
                    Err(problem) => {
                        tracing::warn!("what a person allowed is not in the manifest: {problem}");
                        open.end(Choice::Session.name(), Some(&problem));
                    }
                }
                ConsentAnswer::Given
            }
        }
    }

    /// The call has ended. If it only asked its caller for more, its consents are not used up.
    pub async fn ended(&self, outcome: Outcome) {
        let claimed = std::mem::take(&mut *self.claimed.lock());
        if outcome == Outcome::InputRequired {
            for claim in claimed {
                give_back(self.services.state.as_ref(), claim).await;
            }
        }
    }

    /// Uses up the answer of these rounds; false if another call did. A consent to one request
    /// becomes usable again if the call asks for more; any other decision stays.
    async fn claim(&self, offer: &Askable, choice: Option<Choice>) -> Result<bool, Away> {
        let Some(chain) = self.asking.chain() else { return Ok(true) };
        let claim =
            self.services.state.claim(&self.caller, &format!("{chain}\n{}", offer.asked()), self.wait).await?.now();
        let is_claimed = claim.is_some();
        if choice == Some(Choice::Once) {
            self.claimed.lock().extend(claim);
        }
        Ok(is_claimed)
    }

    /// The person's choice; `Err` without one.
    async fn answer(
        &self,
        offer: &Askable,
        message: &str,
        choices: &[Choice],
    ) -> Result<Option<Choice>, ConsentAnswer> {
        if let Some(person) = self.services.consents.person() {
            return Ok(on_terminal(person, message, choices).await);
        }
        let digest = ComponentDigest::of(offer.asked().as_bytes()).to_string();
        let hex = digest.rsplit(':').next().and_then(|hex| hex.get(..KEY_DIGITS)).unwrap_or_default();
        let key = format!("{KEY}.{hex}");
        let question = ClientQuestion::Form {
            message: message.to_owned(),
            schema_json: form(&self.services.consents, choices).to_string(),
        };
        let need = format!("the tool {:?} needs a person's consent", self.records.tool());
        let permits = self.what(offer);
        let terms = AskTerms {
            asker: None,
            need: &need,
            answer_bytes_max: ANSWER_BYTES_MAX,
            answered_within: self.wait,
            permits: Some(&permits),
        };
        let asked = tokio::select! {
            biased;
            () = self.interruptions.wait() => return Err(ConsentAnswer::Refused),
            asked = self.asking.ask(vec![KeyedQuestion { key, question }], terms) => asked,
        };
        match asked {
            AskOutcome::Answered(answers) => Ok(answers.first().and_then(chosen)),
            AskOutcome::Refused(error) => {
                tracing::warn!("nobody was asked about what no rule allows: {error}");
                Err(ConsentAnswer::Refused)
            }
            AskOutcome::Ended(refused) => Err(ConsentAnswer::Ended(refused)),
        }
    }

    /// The choices that this caller gets. Nothing is remembered for callers without a name, and
    /// only the process that started the host may have its manifest written.
    fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![Choice::Once];
        if self.caller != Caller::anyone().name() {
            choices.push(Choice::Session);
        }
        if self.caller == Caller::local().name() && self.services.consents.writes() {
            choices.push(Choice::Manifest);
        }
        choices.push(Choice::No);
        choices
    }

    fn message(&self, offer: &Askable, asked: &str) -> String {
        let tool = self.records.tool();
        let component = &self.component;
        let mut text = format!(
            "The tool {tool:?} of the component {component:?} wants to reach what no rule of the manifest allows:\n  \
             {asked}"
        );
        // Writing into a String cannot fail.
        if offer.is_private() {
            text.push_str("\nThat address is not public: it belongs to this machine or to a network around it.");
        }
        let _ = write!(text, "\nIt would become, in [{}]:", offer.section());
        for line in offer.lines().lines() {
            let _ = write!(text, "\n  {}", shown::beginning(line, SHOWN_CHARS_MAX).0);
        }
        text
    }

    /// What a consent is bound to: the caller, the tool, its code and the exact request.
    fn what(&self, offer: &Askable) -> String {
        [&self.caller, self.records.tool(), &self.digest, offer.asked()].join("\n")
    }

    fn note(&self, offer: &Askable, answer: &str, detail: Option<&str>) {
        let asked = shown::beginning(offer.asked(), SHOWN_CHARS_MAX).0;
        let detail = detail.map_or_else(|| asked.clone(), |detail| format!("{asked}: {detail}"));
        self.records.write("ungranted", KEY, answer, Some(&detail));
    }
}

impl Unanswered<'_> {
    fn end(&mut self, answer: &str, detail: Option<&str>) {
        self.recorded = true;
        self.consenting.note(self.offer, answer, detail);
    }

    /// Records the end: by whoever ended the call, or else with this outcome.
    fn end_unanswered(&mut self, answer: &str) {
        match self.consenting.interruptions.cause() {
            Some(interruption) => self.end("cancelled", Some(interruption.text())),
            None => self.end(answer, None),
        }
    }

    fn refused(&mut self, answer: &str, detail: &str) -> ConsentAnswer {
        self.end(answer, Some(detail));
        ConsentAnswer::Refused
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.recorded {
            self.end_unanswered("timed_out");
        }
    }
}

/// The form of the question: one choice.
fn form(consents: &Consents, choices: &[Choice]) -> Value {
    let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
    let meanings: Vec<String> = choices.iter().map(|choice| consents.meaning(*choice)).collect();
    let allow = json!({"type": "string", "title": "Allow it", "enum": names, "enumNames": meanings});
    json!({"type": "object", "properties": {"allow": allow}, "required": ["allow"]})
}

fn chosen(answer: &ClientAnswer) -> Option<Choice> {
    let ClientAnswer::Accepted(content) = answer else {
        return matches!(answer, ClientAnswer::Declined).then_some(Choice::No);
    };
    let content: Value = serde_json::from_str(content).ok()?;
    let name = content.get("allow")?.as_str()?;
    [Choice::Once, Choice::Session, Choice::Manifest, Choice::No].into_iter().find(|choice| choice.name() == name)
}

/// Asks on a thread of its own: reading a terminal ends when the person does.
async fn on_terminal(person: &Arc<dyn crate::catalog::Person>, message: &str, choices: &[Choice]) -> Option<Choice> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let person = Arc::clone(person);
    let message = message.to_owned();
    let choices = choices.to_vec();
    let asking = std::thread::Builder::new().name("toolcell-ask".to_owned());
    let ask = move || {
        // The call may have been cancelled meanwhile.
        let _ = tell.send(person.ask(&message, &choices));
    };
    asking.spawn(ask).ok()?;
    told.await.ok().flatten()
}
