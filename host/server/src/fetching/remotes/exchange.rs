//! Requests for a list, and what the server says before it answers.
use std::time::Duration;

use ::http::{HeaderMap, Method, Request, Response};
use hyper::body::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_bridge::lines::{
    AnswerBounds, Answers, Elicitation, Era, Message, RpcFailure, SessionState, fields, refusal,
};
use toolcell_outbound::{AnswerBody, OutboundBounds, OutboundClient, is_protected, is_redirect};
use toolcell_policy::AdvisedFault;
use toolcell_sandbox::Redactor;
use url::Url;

use super::{ENDPOINT, SecretFields, WITHIN, protected};

/// Time to connect: a slow network's name server answers within five seconds.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of one answer. 8 MiB: nine times the definitions that one component may have.
const BOUNDS: AnswerBounds = AnswerBounds { message_bytes: 8 << 20, whole_bytes: 8 << 20 };

/// Bytes of all answers together.
const ALL_BYTES_MAX: usize = 16 << 20;

/// Bytes that are read of an answer whose status is a failure.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// Bytes of a server's metadata about logins. They have some hundreds.
const METADATA_BYTES_MAX: usize = 16 << 10;

/// Characters of what a server says that are shown: some lines of a terminal.
const SAID_CHARS_MAX: usize = 300;

/// Requests of the server that are refused before nothing more is read.
const REFUSALS_MAX: usize = 8;

/// Time for the end of a session.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Why a request has no result.
pub(super) enum ExchangeError {
    /// The server is there, and does not know or do this.
    Refused(AdvisedFault),
    /// It cannot be asked at all, or not without a key.
    Fault(AdvisedFault),
}

impl ExchangeError {
    pub(super) fn into_fault(self) -> AdvisedFault {
        match self {
            Self::Refused(fault) | Self::Fault(fault) => fault,
        }
    }
}

impl From<AdvisedFault> for ExchangeError {
    fn from(fault: AdvisedFault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) struct ListExchange {
    url: Url,
    client: OutboundClient,
    secrets: Vec<(String, String)>,
    redactor: Redactor,
    pub(super) elicitation: Elicitation,
    pub(super) session: SessionState,
    /// The session that the latest answer names.
    pub(super) named: Option<String>,
    id: u32,
    taken_bytes: usize,
    refusals: usize,
}

impl ListExchange {
    pub(super) fn of(address: &str, secrets: &SecretFields, elicitation: Elicitation) -> Result<Self, AdvisedFault> {
        let form = "name an address that begins with https://, or one of this machine";
        let url = Url::parse(address)
            .map_err(|error| AdvisedFault::new(format!("{address:?} is not a valid address: {error}"), form))?;
        if !is_protected(&url) {
            return Err(AdvisedFault::new(format!("{address} is not reached over https"), form));
        }
        let bounds = OutboundBounds { connect: CONNECT_WITHIN, whole: WITHIN, body_bytes: BOUNDS.whole_bytes };
        let client = OutboundClient::new([address], bounds)
            .map_err(|error| AdvisedFault::unadvised(format!("{address} cannot be asked: {error}")))?;
        Ok(Self {
            url,
            client,
            secrets: secrets.fields.clone(),
            redactor: secrets.redactor.clone(),
            elicitation,
            session: SessionState::default(),
            named: None,
            id: 0,
            taken_bytes: 0,
            refusals: 0,
        })
    }

    /// The server, for messages.
    pub(super) fn shown(&self) -> &str {
        self.url.as_str()
    }

    /// Makes a request, and waits for its result.
    pub(super) async fn ask(
        &mut self,
        era: Era,
        method: &str,
        body: impl Fn(u32) -> String,
    ) -> Result<Value, ExchangeError> {
        self.id += 1;
        let id = self.id;
        let response = self.send(Method::POST, era, method, body(id)).await?;
        self.named = text_of(response.headers(), "mcp-session-id");
        if !response.status().is_success() {
            return Err(self.refused(response, id).await);
        }
        let media = text_of(response.headers(), "content-type").unwrap_or_default();
        let answers = Answers::of(&media, BOUNDS);
        let mut answers = answers.map_err(|problem| ExchangeError::Refused(self.fault(&problem)))?;
        let mut body = response.into_body();
        while let Some(piece) = body.piece().await.map_err(|error| self.fault(&format!("breaks off: {error}")))? {
            self.taken_bytes += piece.len();
            if self.taken_bytes > ALL_BYTES_MAX {
                return Err(self.fault(&format!("answers with more than {ALL_BYTES_MAX} bytes")).into());
            }
            for message in answers.take(&piece).map_err(|problem| self.fault(&problem))? {
                if let Some(outcome) = self.heard(era, &message, id).await? {
                    return outcome;
                }
            }
        }
        let outcome = match answers.end() {
            Some(message) => self.heard(era, &message, id).await?,
            None => None,
        };
        outcome.unwrap_or_else(|| Err(ExchangeError::Refused(self.fault(&"ends its answer without a result"))))
    }

    /// Sends a notification or an answer.
    pub(super) async fn tell(&self, body: String) -> Result<(), AdvisedFault> {
        self.send(Method::POST, Era::Session, "", body).await.map(drop)
    }

    /// Ends the session, if it has a name.
    pub(super) async fn end(&self) {
        if self.session.id.is_some() {
            let ended = self.send(Method::DELETE, Era::Session, "", String::new());
            // A server that does not end it in time ends it by itself.
            let _ = tokio::time::timeout(END_WITHIN, ended).await;
        }
    }

    async fn send(
        &self,
        verb: Method,
        era: Era,
        method: &str,
        body: String,
    ) -> Result<Response<AnswerBody>, AdvisedFault> {
        let mut request = Request::builder().method(verb).uri(self.url.as_str());
        for (name, value) in fields(era, &self.session, method, None).iter().chain(&self.secrets) {
            request = request.header(name, value);
        }
        let wrong = |problem: &dyn std::fmt::Display| {
            AdvisedFault::new(format!("{} cannot be asked: {problem}", self.shown()), "is the server there?")
        };
        let request = request.body(Bytes::from(body)).map_err(|error| wrong(&error))?;
        self.client.open(request).await.map_err(|error| wrong(&error))
    }

    /// One message of the server's, or a batch of them. `Some` is the outcome of the request with
    /// this number.
    async fn heard(
        &mut self,
        era: Era,
        text: &str,
        id: u32,
    ) -> Result<Option<Result<Value, ExchangeError>>, AdvisedFault> {
        let text = self.redactor.text(text).into_owned();
        let Some(messages) = Message::read_all(&text) else {
            return Err(self.fault(&"says something that is not a message of JSON-RPC"));
        };
        for message in messages {
            if let (Message::Request { id, method, .. }, Era::Session) = (&message, era) {
                self.refusals += 1;
                if self.refusals > REFUSALS_MAX {
                    return Err(self.fault(&"asks for something again and again, in place of an answer"));
                }
                self.tell(refusal(id, method)).await?;
                continue;
            }
            if let Some(outcome) = message.answering(id) {
                return Ok(Some(self.outcome(outcome)));
            }
        }
        Ok(None)
    }

    fn outcome(&self, outcome: Result<&RawValue, RpcFailure>) -> Result<Value, ExchangeError> {
        match outcome {
            Ok(result) => serde_json::from_str(result.get()).map_err(|error| {
                ExchangeError::Fault(self.fault(&format!("answers with a result that cannot be read: {error}")))
            }),
            Err(error) => Err(ExchangeError::Refused(self.said(&error))),
        }
    }

    /// An answer with a status of failure: a key is missing, or the error in it.
    async fn refused(&self, response: Response<AnswerBody>, id: u32) -> ExchangeError {
        let status = response.status();
        if is_redirect(status) {
            let to = text_of(response.headers(), "location").unwrap_or_default();
            let fault = self.fault(&format!("leads to {}", shown(&to)));
            return ExchangeError::Refused(AdvisedFault::new(
                fault.problem,
                "name that address, if it is what you want",
            ));
        }
        if matches!(status.as_u16(), 401 | 403) {
            let challenge = text_of(response.headers(), "www-authenticate").unwrap_or_default();
            drop(response);
            let key = "add --header Authorization='Bearer env:VARIABLE' with the variable that has your key";
            let hint = self.login_advice(&challenge).await.unwrap_or_else(|| key.to_owned());
            let fault = self.fault(&format!("answers with status {}", status.as_u16()));
            return ExchangeError::Fault(AdvisedFault::new(fault.problem, hint));
        }
        let beginning = response.into_body().beginning(ERROR_BYTES_MAX).await;
        let text = beginning.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let messages = Message::read_all(&text).into_iter().flatten();
        if let Some(Err(error)) = messages.filter_map(|message| message.answering(id)).next() {
            return ExchangeError::Refused(self.said(&error));
        }
        ExchangeError::Refused(self.fault(&format!("answers with status {}", status.as_u16())))
    }

    /// Advice to log in, if the server publishes where.
    async fn login_advice(&self, challenge: &str) -> Option<String> {
        for address in protected::addresses(&self.url, challenge) {
            let request =
                Request::get(address.as_str()).header("accept", "application/json").body(Bytes::new()).ok()?;
            let response = self.client.open(request).await.ok()?;
            if response.status().is_success() {
                let (metadata, _) = response.into_body().beginning(METADATA_BYTES_MAX).await.ok()?;
                return protected::advice(&self.redactor.bytes(&metadata));
            }
        }
        None
    }

    fn said(&self, error: &RpcFailure) -> AdvisedFault {
        self.fault(&format!("answers with the error {}: {}", error.code, shown(&error.message)))
    }

    /// The server, and what it does.
    fn fault(&self, does: &dyn std::fmt::Display) -> AdvisedFault {
        let problem = format!("{} {does}", self.shown());
        AdvisedFault::new(self.redactor.text(&problem).into_owned(), ENDPOINT)
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// What a server says, in one line.
fn shown(text: &str) -> String {
    let text = toolcell_mcp::sanitize::line(text);
    text.chars().take(SAID_CHARS_MAX).collect()
}
