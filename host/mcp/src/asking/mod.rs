//! Questions of a running call to the person, the model or the client behind its caller:
//! elicitation, sampling, roots. Must not hold: the rest of a call, or of a connection.
//!
//! A legacy client is sent a request by the server, and the call waits. A modern client gets the
//! questions as the call's result, and calls again with the answers ("Multi Round-Trip Requests").

mod answer;
mod capabilities;
mod form;
mod pending;
mod question;
mod rounds;
mod sampling;
mod state;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::cancellation::Cancellation;
use crate::frame::{RpcError, notification_frame};
use crate::host::{Audience, Outbox};
use crate::lock::lock;
use crate::meta::Peer;
use crate::method::Notification;
use crate::task::TaskHandle;

use capabilities::wanting;

pub(crate) use capabilities::{AskCapabilities, AskNeed};
pub(crate) use pending::{AskName, PendingAsks};
pub(crate) use question::{PreparedQuestion, stored_needs};
pub(crate) use rounds::{InputRequired, Round, RoundInput, Rounds};
pub(crate) use state::now_ms;

/// Questions asked at once. They should fit one screen.
pub const ASKS_AT_ONCE_MAX: usize = 16;

/// A kind of question that a client may support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// The person fills in a form (elicitation, form mode).
    Form,
    /// The person goes to a page (elicitation, URL mode).
    Page,
    /// The client's model writes a message (sampling).
    Sampling,
    /// The client lists the folders that it works in (roots).
    Roots,
}

impl QuestionKind {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Page => "page",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// One question, as the asker writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientQuestion {
    /// A form (`elicitation/create`, form mode).
    Form {
        /// The text for the person.
        message: String,
        /// The restricted JSON Schema that the revisions define: an object of primitive properties.
        schema_json: String,
    },
    /// A page to go to (`elicitation/create`, URL mode).
    Page {
        /// The text for the person.
        message: String,
        /// An `https:` address, or `http:` on this machine.
        url: String,
    },
    /// A message for the client's model: the params of `sampling/createMessage` as a JSON object.
    Sampling {
        /// The params.
        params_json: String,
    },
    /// The folders that the client works in (`roots/list`).
    Roots,
}

impl ClientQuestion {
    /// The kind of the question.
    #[must_use]
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Self::Form { .. } => QuestionKind::Form,
            Self::Page { .. } => QuestionKind::Page,
            Self::Sampling { .. } => QuestionKind::Sampling,
            Self::Roots => QuestionKind::Roots,
        }
    }
}

/// One question with the key of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedQuestion {
    /// Unique within the call.
    pub key: String,
    /// The question.
    pub question: ClientQuestion,
}

/// One answer. It fits its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAnswer {
    /// The person agreed: a form's content as a JSON object that fits the schema, or `{}` for a
    /// page.
    Accepted(String),
    /// The person refused.
    Declined,
    /// The person chose nothing.
    Dismissed,
    /// The model's message: a `CreateMessageResult` as a JSON object.
    Message(String),
    /// The folders.
    Roots(Vec<ClientRoot>),
}

/// One folder or file that the client works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRoot {
    /// A `file:` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// Why an answer is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientAskError {
    /// The client did not declare the capability, or its revision does not have it.
    #[error("the client cannot be asked this: it does not declare {lacking}")]
    Unsupported {
        /// The kind of the question.
        kind: QuestionKind,
        /// The capability, for people.
        lacking: &'static str,
    },
    /// The client cannot receive questions before the answer to this call.
    #[error(
        "the client cannot be asked: it accepts nothing but JSON in answer to this call (header Accept), and a \
             question comes as an event"
    )]
    Unheard(QuestionKind),
    /// The question is not well formed.
    #[error("the question is not well formed: {0}")]
    Invalid(String),
    /// The client's answer is an error, does not fit the question, or will never come.
    #[error("{0}")]
    Failed(String),
}

/// The outcome of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskOutcome {
    /// One answer to each question, in the questions' order.
    Answered(Vec<ClientAnswer>),
    /// Nobody was asked, or nobody answered.
    Refused(ClientAskError),
    /// The call ends here. Its answer is already settled, and its result is dropped. `None`: the
    /// caller gets the questions. `Some`: the call is refused for this reason.
    Ended(Option<String>),
}

/// The terms under which questions are asked.
#[derive(Clone, Copy, Debug)]
pub struct AskTerms<'a> {
    /// The asker's name for the person, such as `The tool "deploy"`. `None` if the message names
    /// it.
    pub asker: Option<&'a str>,
    /// Why the question is asked, such as `"deploy" needs a person's approval`. It begins the error
    /// for a client that cannot be asked.
    pub need: &'a str,
    /// Longest answer, in bytes.
    pub answer_bytes_max: usize,
    /// The time in which a modern client must come back with the answers.
    pub answered_within: std::time::Duration,
    /// Exactly what an answer permits, of which the person may see less; `None` for questions whose
    /// answer permits nothing. An answer that permits something counts only after this server has
    /// asked the question about the same thing. Otherwise a modern client could answer a question
    /// that was never asked, or an asker could get more than the person allowed.
    pub permits: Option<&'a str>,
}

/// How one call asks questions. Cheap to clone.
#[derive(Clone)]
pub struct CallAsking {
    mode: AskingMode,
    /// The task that the call is, or may become.
    task: Option<Arc<TaskHandle>>,
}

#[derive(Clone)]
enum AskingMode {
    Nobody,
    Request(Arc<LegacyRequests>),
    Rounds(CallRounds),
}

/// The rounds of a client's call.
#[derive(Clone)]
struct CallRounds {
    rounds: Arc<Mutex<Rounds>>,
    /// The place of the call that asks, if a tool made it: its keys begin with it.
    beneath: Option<Arc<str>>,
}

/// How a legacy client gets requests.
struct LegacyRequests {
    open: Arc<PendingAsks>,
    outbox: Arc<dyn Outbox>,
    peer: Peer,
    cancellation: Cancellation,
    used: Mutex<Vec<String>>,
    /// The ids of the pages that the person was last asked to go to.
    pages: Mutex<Vec<String>>,
}

impl CallAsking {
    /// Without a client to ask.
    #[must_use]
    pub const fn nobody() -> Self {
        Self { mode: AskingMode::Nobody, task: None }
    }

    /// Asks with requests to a legacy client, on the outbox of the call.
    pub(crate) fn by_request(
        open: &Arc<PendingAsks>,
        outbox: &Arc<dyn Outbox>,
        peer: &Peer,
        cancellation: &Cancellation,
    ) -> Self {
        let requests = LegacyRequests {
            open: Arc::clone(open),
            outbox: Arc::clone(outbox),
            peer: peer.clone(),
            cancellation: cancellation.clone(),
            used: Mutex::default(),
            pages: Mutex::default(),
        };
        Self { mode: AskingMode::Request(Arc::new(requests)), task: None }
    }

    /// The means of a call that this one makes: its questions are those of this one's client, with
    /// keys of their own. Where that answers in rounds, the questions are kept until the client's
    /// call ends with them: see [`settle`](Self::settle). `place` is that of the call beneath the
    /// client's, the same in each round.
    #[must_use]
    pub fn beneath(&self, place: &str, cancellation: &Cancellation) -> Self {
        let mode = match &self.mode {
            AskingMode::Nobody => AskingMode::Nobody,
            AskingMode::Rounds(CallRounds { rounds, .. }) => {
                AskingMode::Rounds(CallRounds { rounds: Arc::clone(rounds), beneath: Some(Arc::from(place)) })
            }
            AskingMode::Request(requests) => {
                Self::by_request(&requests.open, &requests.outbox, &requests.peer, cancellation).mode
            }
        };
        Self { mode, task: self.task.clone() }
    }

    /// Asks by ending the call with the questions; a modern client calls again with the answers.
    pub(crate) fn in_rounds(rounds: Rounds) -> Self {
        let rounds = CallRounds { rounds: Arc::new(Mutex::new(rounds)), beneath: None };
        Self { mode: AskingMode::Rounds(rounds), task: None }
    }

    /// Once the call is a task, its questions are those of the task.
    pub(crate) fn of_task(self, task: &Arc<TaskHandle>) -> Self {
        Self { task: Some(Arc::clone(task)), ..self }
    }

    /// Makes the call a task by `begin`. Returns false if its questions have already ended it.
    pub(crate) fn begin_task(&self, begin: impl FnOnce()) -> bool {
        match &self.mode {
            AskingMode::Nobody | AskingMode::Request(_) => begin(),
            AskingMode::Rounds(CallRounds { rounds, .. }) => {
                let rounds = lock(rounds);
                if rounds.has_ended() {
                    return false;
                }
                begin();
            }
        }
        true
    }

    /// The task that the call has become, if any.
    fn task(&self) -> Option<&TaskHandle> {
        self.task.as_deref().filter(|task| task.begun().is_some())
    }

    /// True if the client can be asked this.
    #[must_use]
    pub fn supports(&self, kind: QuestionKind) -> bool {
        self.meets(AskNeed::Kind(kind))
    }

    /// True if the client can be asked for its model's message with `tools` and `toolChoice`.
    #[must_use]
    pub fn supports_sampling_tools(&self) -> bool {
        self.supports(QuestionKind::Sampling) && self.meets(AskNeed::SamplingTools)
    }

    fn meets(&self, need: AskNeed) -> bool {
        match &self.mode {
            AskingMode::Nobody => false,
            AskingMode::Request(requests) => {
                let hears = self.task.is_some() || requests.outbox.audience() != Audience::AnswerOnly;
                requests.peer.capabilities.meets(need) && hears
            }
            AskingMode::Rounds(CallRounds { rounds, .. }) => lock(rounds).meets(need),
        }
    }

    /// Asks, and waits for all answers. Dropping the future withdraws the questions.
    pub async fn ask(&self, asks: Vec<KeyedQuestion>, terms: AskTerms<'_>) -> AskOutcome {
        if asks.is_empty() {
            return AskOutcome::Answered(Vec::new());
        }
        if asks.len() > ASKS_AT_ONCE_MAX {
            let text = format!("at most {ASKS_AT_ONCE_MAX} questions may be asked at once");
            return AskOutcome::Refused(ClientAskError::Invalid(text));
        }
        match &self.mode {
            AskingMode::Nobody => {
                let kind = asks.first().map_or(QuestionKind::Form, |ask| ask.question.kind());
                AskOutcome::Refused(unsupported(kind, AskNeed::Kind(kind)))
            }
            AskingMode::Rounds(CallRounds { rounds, beneath }) => {
                let asks = match beneath {
                    Some(place) => placed(asks, place),
                    None => asks,
                };
                // Whether it is a task is checked under the lock: see `begin_task`.
                let asked = {
                    let mut rounds = lock(rounds);
                    match rounds.gather(asks, terms, beneath.is_some()) {
                        Ok(gathered) if gathered.is_whole() => Err(gathered.answered(Vec::new())),
                        Ok(gathered) if self.task().is_none() && beneath.is_some() => {
                            Err(rounds.collect(gathered.missing(), terms))
                        }
                        Ok(gathered) if self.task().is_none() => Err(rounds.require(gathered.missing(), terms)),
                        other => other,
                    }
                };
                match (asked, self.task()) {
                    (Ok(gathered), Some(task)) => match ask_task(task, gathered.asked(), terms).await {
                        Ok(answers) => gathered.answered(answers),
                        Err(error) => AskOutcome::Refused(error),
                    },
                    (Ok(_), None) => AskOutcome::Ended(None),
                    (Err(asked), _) => asked,
                }
            }
            AskingMode::Request(requests) => {
                let asked = match self.task() {
                    None => requests.ask(asks, terms).await,
                    Some(task) => match requests.prepare(asks, terms) {
                        Ok(questions) => ask_task(task, &questions, terms).await.map(AskOutcome::Answered),
                        Err(error) => Err(error),
                    },
                };
                asked.unwrap_or_else(AskOutcome::Refused)
            }
        }
    }

    /// The name that all rounds of one call share, if the call asks in rounds. It distinguishes a
    /// further round from another call with equal arguments. A call beneath another has none: what
    /// was answered for it is kept with the run of the client's call.
    #[must_use]
    pub fn chain(&self) -> Option<String> {
        match &self.mode {
            AskingMode::Rounds(CallRounds { rounds, beneath: None }) => Some(lock(rounds).chain().to_owned()),
            AskingMode::Nobody | AskingMode::Rounds(_) | AskingMode::Request(_) => None,
        }
    }

    /// True if a question ends the client's call, which then runs again with the answers.
    #[must_use]
    pub fn ends_calls(&self) -> bool {
        let kinds = [QuestionKind::Form, QuestionKind::Page, QuestionKind::Sampling, QuestionKind::Roots];
        matches!(self.mode, AskingMode::Rounds(_))
            && self.task().is_none()
            && kinds.into_iter().any(|kind| self.supports(kind))
    }

    /// The person is done with the pages of the last questions. A legacy client is notified, so
    /// that it need not ask the person whether that is so.
    pub fn pages_are_done(&self) {
        if let AskingMode::Request(requests) = &self.mode {
            requests.tell_pages_are_done();
        }
    }

    /// What [`settle`](Self::settle) left in an earlier round of the call.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.rounds().and_then(|rounds| lock(rounds).note().map(str::to_owned))
    }

    /// Ends the client's call with the questions of those beneath it, or with its own. The next
    /// round finds this note, which travels through the client, sealed.
    ///
    /// # Errors
    /// One sentence: the client cannot be given the questions.
    pub fn settle(&self, note: &str) -> Result<(), String> {
        self.rounds().map_or(Ok(()), |rounds| lock(rounds).settle(note))
    }

    /// The time in which the client must come back with the answers.
    #[must_use]
    pub fn answered_within(&self) -> Duration {
        self.rounds().map_or(Duration::ZERO, |rounds| lock(rounds).within())
    }

    /// Drops the questions that the client's call would end with.
    pub fn withdraw(&self) {
        self.rounds().into_iter().for_each(|rounds| lock(rounds).withdraw());
    }

    /// True if the client is told that its request cannot be served: what runs for it is in vain.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.rounds().is_some_and(|rounds| lock(rounds).is_refused())
    }

    fn rounds(&self) -> Option<&Mutex<Rounds>> {
        match &self.mode {
            AskingMode::Rounds(CallRounds { rounds, .. }) => Some(rounds),
            AskingMode::Nobody | AskingMode::Request(_) => None,
        }
    }

    /// The answer to the call, if asking has settled it.
    pub(crate) fn ending(&self) -> Option<Result<InputRequired, RpcError>> {
        self.rounds().and_then(|rounds| lock(rounds).take_ending())
    }
}

/// The questions of a call at this place, with keys that no other call's have.
fn placed(asks: Vec<KeyedQuestion>, place: &str) -> Vec<KeyedQuestion> {
    asks.into_iter().map(|ask| KeyedQuestion { key: question::placed_key(place, &ask.key), ..ask }).collect()
}

/// Asks through a task, and waits for all answers.
async fn ask_task(
    task: &TaskHandle,
    questions: &[PreparedQuestion],
    terms: AskTerms<'_>,
) -> Result<Vec<ClientAnswer>, ClientAskError> {
    let related = task.begun().filter(|begun| begun.legacy).map(|begun| begun.id.as_str());
    let texts = questions.iter().map(|question| (question.key.clone(), question.task_json(related))).collect();
    let replies = task.ask(texts).await?;
    let read = |(question, reply): (&PreparedQuestion, ReplyText)| question.read_reply(reply, terms.answer_bytes_max);
    questions.iter().zip(replies).map(read).collect::<Result<_, String>>().map_err(ClientAskError::Failed)
}

fn gone() -> ClientAskError {
    ClientAskError::Failed("the client is gone, so nobody can answer".to_owned())
}

const fn unsupported(kind: QuestionKind, need: AskNeed) -> ClientAskError {
    ClientAskError::Unsupported { kind, lacking: wanting(need) }
}

impl LegacyRequests {
    async fn ask(&self, asks: Vec<KeyedQuestion>, terms: AskTerms<'_>) -> Result<AskOutcome, ClientAskError> {
        let questions = self.prepare(asks, terms)?;
        match (self.outbox.audience(), questions.first()) {
            (Audience::AnswerOnly, Some(first)) => return Err(ClientAskError::Unheard(first.kind)),
            (Audience::Gone, _) => return Err(gone()),
            (Audience::AnswerOnly | Audience::Client, _) => {}
        }
        if self.cancellation.is_cancelled() {
            return Ok(AskOutcome::Ended(Some("the call was cancelled".to_owned())));
        }
        // All are sent before the first wait: a person may answer them in any order.
        let send = |question| self.open.send(question, &self.outbox, &self.cancellation);
        let sent: Option<Vec<_>> = questions.iter().map(send).collect();
        let sent = sent.ok_or_else(gone)?;
        self.outbox.flush();
        let pages = questions.iter().zip(&sent).filter(|(question, _)| question.kind == QuestionKind::Page);
        *lock(&self.pages) = pages.map(|(_, pending)| pending.page_id()).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for (question, pending) in questions.iter().zip(sent) {
            let read = question.read_reply(pending.reply().await, terms.answer_bytes_max);
            answers.push(read.map_err(ClientAskError::Failed)?);
        }
        Ok(AskOutcome::Answered(answers))
    }

    fn tell_pages_are_done(&self) {
        for id in std::mem::take(&mut *lock(&self.pages)) {
            self.outbox.queue(notification_frame(Notification::PageCompleted, |params| {
                params.text("elicitationId", &id);
            }));
        }
        self.outbox.flush();
    }

    fn prepare(&self, asks: Vec<KeyedQuestion>, terms: AskTerms<'_>) -> Result<Vec<PreparedQuestion>, ClientAskError> {
        let mut used = lock(&self.used);
        let mut questions = Vec::with_capacity(asks.len());
        for ask in asks {
            let kind = ask.question.kind();
            if !self.peer.capabilities.has(kind) {
                return Err(unsupported(kind, AskNeed::Kind(kind)));
            }
            let question = PreparedQuestion::new(ask, terms, self.peer.revision)?;
            if let Some(need) = question.lacking(self.peer.capabilities).next() {
                return Err(unsupported(kind, need));
            }
            question::claim_key(&mut used, &question)?;
            questions.push(question);
        }
        Ok(questions)
    }
}

/// A client's response to one of the server's requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ReplyText {
    /// The `result`.
    Result(Box<RawValue>),
    /// The `error`.
    Error(Box<RawValue>),
    /// A `result` of this many bytes, which was not passed on.
    TooLong(usize),
    /// No response will come: the client is gone.
    Gone,
}

impl ReplyText {
    /// Reads a text that [`stored`](Self::stored) wrote.
    pub(crate) fn of_stored(text: &str) -> Self {
        match text.split_at_checked(1) {
            Some(("r", result)) => Self::of(Ok(result)),
            Some(("e", error)) => Self::of(Err(error)),
            _ => Self::Gone,
        }
    }

    /// The response as a task stores it; `None` if none will come.
    pub(crate) fn stored(&self) -> Option<String> {
        match self {
            Self::Result(result) => Some(format!("r{}", result.get())),
            Self::Error(error) => Some(format!("e{}", error.get())),
            Self::TooLong(bytes) => Some(format!("e{{\"message\":\"it has {bytes} bytes\"}}")),
            Self::Gone => None,
        }
    }

    /// Reads a response's `error`, or else its `result`.
    pub(crate) fn of(reply: Result<&str, &str>) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        match reply {
            Ok(result) => raw(result).map_or(Self::Gone, Self::Result),
            Err(error) => raw(error).map_or(Self::Gone, Self::Error),
        }
    }
}
