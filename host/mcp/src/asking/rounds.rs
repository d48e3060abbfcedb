//! Asking a modern client: the call ends with its questions, and the client calls again with the
//! answers (2026-07-28, "Multi Round-Trip Requests").
//!
//! Each round runs the tool from its beginning. Earlier answers are used again for questions that
//! have not changed.

use std::collections::BTreeMap;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::Value;
use serde_json::value::RawValue;

use super::capabilities::{AskNeed, required, wanting};
use super::state::{Remembered, new_chain, now_ms, open, seal};
use super::{
    ASKS_AT_ONCE_MAX, AskCapabilities, AskOutcome, AskTerms, ClientAnswer, ClientAskError, KeyedQuestion,
    PreparedQuestion, QuestionKind, question,
};
use crate::frame::{ErrorCode, Object, Params, RpcError, base64, scan};
use crate::meta::{Peer, SERVER_INFO};
use crate::method::Method;
use crate::revision::Revision;
use crate::sealing::StateKey;

/// The answer if a state would be longer than clients take.
const TOO_LONG: &str = "the answers so far are too long to be kept";

#[derive(Debug, Default)]
pub(crate) struct RoundInput {
    responses: BTreeMap<String, Box<RawValue>>,
    state: Option<String>,
}

impl RoundInput {
    /// Reads `inputResponses` and `requestState` of a request. Legacy requests have neither.
    pub(crate) fn read(params: &Params<'_>, revision: Revision) -> Result<Self, RpcError> {
        if !revision.is_modern() {
            return Ok(Self::default());
        }
        let state = params.get("requestState").map(|state| {
            scan::string(state)
                .map(std::borrow::Cow::into_owned)
                .ok_or_else(|| RpcError::params("params.requestState must be a string"))
        });
        let responses = params.get("inputResponses").map(|responses| {
            let responses: Option<BTreeMap<String, Box<RawValue>>> =
                Some(responses).filter(|text| scan::is_object(text)).and_then(|text| serde_json::from_str(text).ok());
            let mut responses = responses.ok_or_else(|| RpcError::params("params.inputResponses must be an object"))?;
            responses.retain(|_, response| response.get() != "null");
            match responses.iter().find(|(_, response)| !scan::is_object(response.get())) {
                Some((key, _)) => {
                    let key = crate::frame::echo(key);
                    Err(RpcError::params(format!("params.inputResponses[{key:?}] must be an object")))
                }
                None => Ok(responses),
            }
        });
        Ok(Self { responses: responses.transpose()?.unwrap_or_default(), state: state.transpose()? })
    }

    /// The answers, as a task stores them.
    pub(crate) fn into_stored(self) -> Vec<(String, String)> {
        self.responses.into_iter().map(|(key, response)| (key, format!("r{}", response.get()))).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        let responses: usize = self.responses.iter().map(|(key, response)| key.len() + response.get().len()).sum();
        responses + self.state.as_ref().map_or(0, String::len)
    }

    /// The answer if a call brings a state, but its tool never asks and so never issued one.
    pub(crate) fn refuse_state(&self) -> Result<(), RpcError> {
        if self.state.is_some() { Err(not_ours()) } else { Ok(()) }
    }
}

/// The error for a client that lacks capabilities. People read its message.
fn lacks(need: &str, lacking: &[AskNeed]) -> RpcError {
    let mut names: Vec<&str> = Vec::new();
    for name in lacking.iter().map(|need| wanting(*need)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let text = format!("{need}, and this client cannot be asked for it: it does not declare {}", names.join(", "));
    RpcError { data: Some(required(lacking)), ..RpcError::new(ErrorCode::MissingClientCapability, text) }
}

fn not_ours() -> RpcError {
    RpcError::params(
        "params.requestState is not one that this server gave out, or was changed. Processes that answer one client, \
         or start anew for it, need the same state_key in [server]",
    )
}

/// The identity of a call: its caller, its tool with the subject of questions, and its arguments.
pub(crate) struct Round<'a> {
    pub(crate) principal: &'a str,
    pub(crate) method: Method,
    pub(crate) tool: &'a str,
    /// The subject of the tool's questions, besides the call.
    pub(crate) binding: &'a str,
    pub(crate) arguments: &'a RawValue,
}

impl Round<'_> {
    /// Arguments count by their values, not by their spelling. Those that cannot be read as values
    /// count by their text.
    fn digest(&self) -> String {
        let text = self.arguments.get();
        let arguments: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        let text = serde_json::json!([self.method.name(), self.tool, self.binding, sorted(arguments)]).to_string();
        base64(digest(&SHA256, text.as_bytes()).as_ref())
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<String, Value> =
                members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// One round of a call.
pub(crate) struct Rounds {
    key: StateKey,
    revision: Revision,
    capabilities: AskCapabilities,
    principal: String,
    request: String,
    /// A name that all rounds of the call share.
    chain: String,
    /// The answers of earlier rounds, and those of this round that were used.
    answered: Vec<(String, String, String)>,
    /// The questions of the last round. `None` for a first round, or a request without a state.
    asked: Option<Vec<(String, String)>>,
    responses: BTreeMap<String, Box<RawValue>>,
    used: Vec<String>,
    /// What the last round left for the host.
    note: Option<String>,
    /// Questions of calls beneath this one, which the call ends with once they have all ended.
    collected: Vec<PreparedQuestion>,
    /// The time in which the client must come back with the answers, in milliseconds.
    within_ms: u64,
    ending: Option<Result<InputRequired, RpcError>>,
}

/// A result that asks for more.
pub(crate) struct InputRequired {
    requests: Vec<PreparedQuestion>,
    state: String,
}

impl InputRequired {
    /// Appends the result. `identity` is the server's `Implementation` as JSON.
    pub(crate) fn push(&self, out: &mut Vec<u8>, identity: &str) {
        let mut result = Object::open(out);
        result.text("resultType", "input_required");
        let mut requests = Object::open(result.key("inputRequests"));
        for question in &self.requests {
            let mut request = Object::open(requests.key(&question.key));
            question.push_members(&mut request, None);
        }
        requests.close();
        result.text("requestState", &self.state);
        Object::open(result.key("_meta")).raw(SERVER_INFO, identity);
    }
}

impl Rounds {
    /// Takes the answers and the state of a request.
    ///
    /// # Errors
    ///
    /// The state is not one of ours, is too old, or belongs to another caller or another call.
    pub(crate) fn resume(key: &StateKey, peer: &Peer, round: &Round<'_>, input: RoundInput) -> Result<Self, RpcError> {
        let request = round.digest();
        let mut answered = Vec::new();
        let mut asked = None;
        let mut chain = None;
        let mut note = None;
        if let Some(state) = &input.state {
            let remembered = open(key, state).ok_or_else(not_ours)?;
            if remembered.principal != round.principal {
                return Err(RpcError::params("params.requestState belongs to another caller"));
            }
            if remembered.request != request {
                return Err(RpcError::params(
                    "params.requestState belongs to another call: the tool, what it may reach, or its arguments differ",
                ));
            }
            if now_ms() >= remembered.expires_ms {
                return Err(RpcError::params("params.requestState has expired: call the tool again without it"));
            }
            answered = remembered.answered;
            asked = Some(remembered.asked);
            chain = Some(remembered.chain);
            note = remembered.note;
        }
        Ok(Self {
            key: key.clone(),
            revision: peer.revision,
            capabilities: peer.capabilities,
            principal: round.principal.to_owned(),
            request,
            chain: chain.unwrap_or_else(new_chain),
            answered,
            asked,
            responses: input.responses,
            used: Vec::new(),
            note,
            collected: Vec::new(),
            within_ms: 0,
            ending: None,
        })
    }

    pub(super) fn meets(&self, need: AskNeed) -> bool {
        self.capabilities.meets(need)
    }

    pub(super) fn chain(&self) -> &str {
        &self.chain
    }

    /// What the last round left for the host.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The time in which the client must come back with the answers.
    pub(super) const fn within(&self) -> Duration {
        Duration::from_millis(self.within_ms)
    }

    /// True if the client is told that its request cannot be served.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.ending, Some(Err(_)))
    }

    pub(super) fn take_ending(&mut self) -> Option<Result<InputRequired, RpcError>> {
        self.ending.take()
    }

    /// Finds earlier answers. `Err` is the outcome if the questions cannot be asked.
    ///
    /// A question of a call beneath this one that the client cannot be asked is refused to that
    /// call alone.
    pub(super) fn gather(
        &mut self,
        asks: Vec<KeyedQuestion>,
        terms: AskTerms<'_>,
        is_beneath: bool,
    ) -> Result<RoundAnswers, AskOutcome> {
        if self.ending.is_some() {
            return Err(AskOutcome::Ended(None));
        }
        let mut gathered = RoundAnswers { answers: Vec::with_capacity(asks.len()), missing: Vec::new() };
        for ask in asks {
            let question = PreparedQuestion::new(ask, terms, self.revision).map_err(AskOutcome::Refused)?;
            question::claim_key(&mut self.used, &question).map_err(AskOutcome::Refused)?;
            match self.answer(&question, terms) {
                Ok(Some(answer)) => gathered.answers.push(Some(answer)),
                Ok(None) => {
                    gathered.answers.push(None);
                    gathered.missing.push(question);
                }
                Err(RoundFault::Question(error)) => return Err(AskOutcome::Refused(error)),
                Err(RoundFault::Request(error)) => return Err(self.end(Err(error))),
            }
        }
        let needs = |question: &PreparedQuestion| question.lacking(self.capabilities);
        let lacking: Vec<AskNeed> = gathered.missing.iter().flat_map(needs).collect();
        match lacking.first() {
            None => Ok(gathered),
            Some(need) if is_beneath => {
                let kind = gathered.missing.first().map_or(QuestionKind::Form, |question| question.kind);
                Err(AskOutcome::Refused(ClientAskError::Unsupported { kind, lacking: wanting(*need) }))
            }
            Some(_) => Err(self.end(Err(lacks(terms.need, &lacking)))),
        }
    }

    /// True if the call's answer is settled, or some call beneath it has questions.
    pub(super) fn has_ended(&self) -> bool {
        self.ending.is_some() || !self.collected.is_empty()
    }

    /// The answer to one question, if there is one.
    fn answer(&mut self, question: &PreparedQuestion, terms: AskTerms<'_>) -> Result<Option<ClientAnswer>, RoundFault> {
        let key = &question.key;
        let digest = question.digest();
        let wrong =
            |text: String| RoundFault::Request(RpcError::params(format!("params.inputResponses[{key:?}]: {text}")));
        let known = self.answered.iter().find(|(known, ..)| known == key);
        match known {
            Some((_, asked, answer)) if *asked == digest => {
                return question.read(answer, usize::MAX).map(Some).map_err(wrong);
            }
            // It would permit something else by now: the person is asked again.
            Some(_) if terms.permits.is_some() => self.answered.retain(|(known, ..)| known != key),
            Some(_) => {
                let text = format!("{key:?} was another question when it was answered: a tool must ask the same again");
                return Err(RoundFault::Question(ClientAskError::Failed(text)));
            }
            None => {}
        }
        let counts = match &self.asked {
            // The person answered exactly the questions of the last round.
            Some(asked) => asked.iter().any(|(known, asked)| known == key && *asked == digest),
            None => terms.permits.is_none(),
        };
        let Some(response) = self.responses.get(key).filter(|_| counts) else { return Ok(None) };
        let text = response.get().to_owned();
        let answer = question.read(&text, terms.answer_bytes_max).map_err(wrong)?;
        self.answered.push((key.clone(), digest, text));
        Ok(Some(answer))
    }

    /// Ends the call with the missing questions.
    pub(super) fn require(&mut self, missing: Vec<PreparedQuestion>, terms: AskTerms<'_>) -> AskOutcome {
        self.answered_within(terms);
        match self.seal(&missing, None) {
            Some(state) => self.end(Ok(InputRequired { requests: missing, state })),
            None => AskOutcome::Refused(ClientAskError::Failed(TOO_LONG.to_owned())),
        }
    }

    /// Keeps the missing questions of a call beneath this one. Those past the bound are asked in
    /// the next round.
    pub(super) fn collect(&mut self, missing: Vec<PreparedQuestion>, terms: AskTerms<'_>) -> AskOutcome {
        if self.collected.len().saturating_add(missing.len()) <= ASKS_AT_ONCE_MAX {
            self.answered_within(terms);
            self.collected.extend(missing);
        }
        AskOutcome::Ended(None)
    }

    /// Ends the call with the questions that it has, or that calls beneath it have. The next round
    /// finds this note. `Err` if it cannot end so.
    pub(super) fn settle(&mut self, note: &str) -> Result<(), String> {
        let requests = match self.ending.take() {
            Some(Ok(required)) => required.requests,
            None => std::mem::take(&mut self.collected),
            refused => {
                self.ending = refused;
                return Ok(());
            }
        };
        let state = self.seal(&requests, Some(note)).ok_or_else(|| TOO_LONG.to_owned())?;
        self.ending = Some(Ok(InputRequired { requests, state }));
        Ok(())
    }

    /// The call ends without its questions.
    pub(super) fn withdraw(&mut self) {
        self.collected.clear();
        if !self.is_refused() {
            self.ending = None;
        }
    }

    fn answered_within(&mut self, terms: AskTerms<'_>) {
        let within_ms = u64::try_from(terms.answered_within.as_millis()).unwrap_or(u64::MAX);
        self.within_ms = self.within_ms.max(within_ms);
    }

    fn seal(&self, missing: &[PreparedQuestion], note: Option<&str>) -> Option<String> {
        let remembered = Remembered {
            principal: self.principal.clone(),
            expires_ms: now_ms().saturating_add(self.within_ms),
            request: self.request.clone(),
            chain: self.chain.clone(),
            answered: self.answered.clone(),
            asked: missing.iter().map(|question| (question.key.clone(), question.digest())).collect(),
            note: note.map(str::to_owned),
        };
        seal(&self.key, &remembered)
    }

    fn end(&mut self, ending: Result<InputRequired, RpcError>) -> AskOutcome {
        let refused = ending.as_ref().err().map(|error| error.message.clone().into_owned());
        self.ending = Some(ending);
        AskOutcome::Ended(refused)
    }
}

/// The known answers to some questions.
pub(super) struct RoundAnswers {
    /// One for each question, in their order.
    answers: Vec<Option<ClientAnswer>>,
    /// The questions without an answer, in their order.
    missing: Vec<PreparedQuestion>,
}

impl RoundAnswers {
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// The questions that must be asked.
    pub(super) fn asked(&self) -> &[PreparedQuestion] {
        &self.missing
    }

    pub(super) fn missing(self) -> Vec<PreparedQuestion> {
        self.missing
    }

    /// All answers, with these to the missing questions.
    pub(super) fn answered(self, answers: Vec<ClientAnswer>) -> AskOutcome {
        let mut answers = answers.into_iter();
        let filled = self.answers.into_iter().map(|answer| answer.or_else(|| answers.next()));
        filled.collect::<Option<_>>().map_or(AskOutcome::Ended(None), AskOutcome::Answered)
    }
}

/// Who caused a missing answer: the tool's question, or the client's request.
enum RoundFault {
    Question(ClientAskError),
    Request(RpcError),
}

#[cfg(test)]
mod tests {
    use super::super::ClientQuestion;
    use super::*;

    const ASKED: &str = "params.requestState belongs to another call";

    fn peer() -> Peer {
        let revision = Revision::V2026_07_28;
        let capabilities = AskCapabilities::read(r#"{"elicitation":{}}"#, revision);
        Peer { revision, client: None, log_level: None, capabilities, extensions: None }
    }

    fn round(key: &StateKey, arguments: &str, state: Option<String>) -> Result<Rounds, RpcError> {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let round =
            Round { principal: "ann", method: Method::CallTool, tool: "t", binding: "c", arguments: &arguments };
        let yes = RawValue::from_string(r#"{"action":"accept","content":{}}"#.to_owned()).unwrap();
        let responses = state.iter().map(|_| ("k".to_owned(), yes.clone())).collect();
        Rounds::resume(key, &peer(), &round, RoundInput { responses, state })
    }

    /// Asks for a permission. Returns the state of the next round if the person is asked.
    fn asked(rounds: &mut Rounds, permits: Option<&str>) -> Result<Option<String>, ClientAskError> {
        let schema_json = r#"{"type":"object","properties":{}}"#.to_owned();
        let question = ClientQuestion::Form { message: "Allow it?".to_owned(), schema_json };
        let answered_within = Duration::from_secs(60);
        let terms = AskTerms { asker: None, need: "it", answer_bytes_max: 1_000, answered_within, permits };
        match rounds.gather(vec![KeyedQuestion { key: "k".to_owned(), question }], terms, false) {
            Ok(gathered) if gathered.is_whole() => Ok(None),
            Ok(gathered) => {
                let _ = rounds.require(gathered.missing(), terms);
                Ok(Some(rounds.take_ending().unwrap().ok().unwrap().state))
            }
            Err(AskOutcome::Refused(error)) => Err(error),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_permits_only_what_the_question_was_about() {
        let key = StateKey::random();
        let next = |state: Option<String>| round(&key, "{}", state).unwrap_or_else(|error| panic!("{error:?}"));
        let first = asked(&mut next(None), Some("this")).unwrap();
        assert_eq!(asked(&mut next(first.clone()), Some("this")), Ok(None));
        let second = asked(&mut next(first.clone()), Some("that")).unwrap();
        assert!(second.is_some(), "the person is asked about that");
        assert_eq!(asked(&mut next(second.clone()), Some("that")), Ok(None));
        assert!(asked(&mut next(second), Some("this")).unwrap().is_some());
        // What was answered in an earlier round is asked about again, too.
        let mut later = next(first);
        assert_eq!(asked(&mut later, Some("this")), Ok(None));
        later.within_ms = 60_000;
        let later = later.seal(&[], None);
        assert_eq!(asked(&mut next(later.clone()), Some("this")), Ok(None));
        assert!(asked(&mut next(later.clone()), Some("that")).unwrap().is_some());
        assert!(asked(&mut next(later), None).is_err(), "what permits nothing stays one question");
    }

    #[test]
    fn arguments_that_are_no_values_count_by_their_text() {
        let key = StateKey::random();
        let long = |text: &str| format!("{{\"n\":1e999,\"text\":\"{text}\"}}");
        let first = asked(&mut round(&key, &long("a"), None).ok().unwrap(), Some("this")).unwrap();
        assert!(round(&key, &long("a"), first.clone()).is_ok());
        let other = round(&key, &long("b"), first).err().unwrap();
        assert!(other.message.starts_with(ASKED), "{other:?}");
    }
}
