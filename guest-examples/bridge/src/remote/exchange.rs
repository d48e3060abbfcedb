//! Requests to the server, and what it says before it answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_bridge_lines::{
    AnswerBounds, Answers, Message, RemoteServer, RpcFailure, SessionState, fields, refusal, reply,
};
use toolkit::Failure;
use toolkit::http::{self, Answer, Target};

use super::questions::{METHOD, NotAsked, Questions};

/// One message: the host takes a result of 1 MiB by default, and pictures are a third larger on the
/// wire. Of the whole, progress may be as much again.
const BOUNDS: AnswerBounds = AnswerBounds { message_bytes: 1_400 * 1024, whole_bytes: 4 * 1024 * 1024 };

/// Bytes of an error that a model reads.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Requests of the server that are answered before the call fails. 8: a server that asks again after
/// that does not stop.
const REQUESTS_MAX: usize = 8;

/// Time for an answer to end once all that counts has come. Servers end it at once; where one does
/// not, the next request has a connection of its own.
const DRAINED_WITHIN: Duration = Duration::from_millis(20);

/// Time for the end of a session. The call has its answer already.
const END_WITHIN: Duration = Duration::from_secs(1);

/// A request to make.
pub struct Wanted<'a> {
    pub id: u32,
    pub method: &'a str,
    /// The tool of a call.
    pub name: Option<&'a str>,
    /// Fields that repeat arguments.
    pub mirrored: Vec<(String, String)>,
    pub body: String,
}

pub struct Exchange<'a> {
    server: &'a RemoteServer,
    target: Target<'a>,
    pub session: SessionState,
    /// The session that the latest answer names.
    named: Option<String>,
    /// What the server may ask the person.
    pub questions: Questions,
    /// Requests of the server.
    requests: usize,
}

#[derive(Deserialize)]
struct Progress {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl<'a> Exchange<'a> {
    pub fn of(server: &'a RemoteServer) -> Result<Self, Failure> {
        let target = Target::of(&server.url)?;
        let questions = Questions::of_manifest();
        Ok(Self { server, target, session: SessionState::default(), named: None, questions, requests: 0 })
    }

    /// The session that the latest answer names.
    pub fn session_id(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// Makes a request, and waits for its result, a JSON text.
    pub fn asked(&mut self, wanted: &Wanted<'_>) -> Result<String, Failure> {
        let answer = self.post(wanted.method, wanted.name, &wanted.mirrored, &wanted.body)?;
        self.named = answer.field("mcp-session-id").map(str::to_owned);
        if !(200..300).contains(&answer.status) {
            return Err(refused(answer, wanted.id));
        }
        let media = answer.field("content-type").unwrap_or_default().to_owned();
        let mut answers = Answers::of(&media, BOUNDS).map_err(|problem| of_server(&problem))?;
        let mut blocks = answer.blocks()?;
        while let Some(block) = blocks.block()? {
            for message in answers.take(&block).map_err(|problem| of_server(&problem))? {
                if let Some(outcome) = self.heard(&message, wanted.id)? {
                    blocks.drain(DRAINED_WITHIN);
                    return outcome;
                }
            }
        }
        let outcome = match answers.end() {
            Some(message) => self.heard(&message, wanted.id)?,
            None => None,
        };
        outcome.unwrap_or_else(|| Err(Failure::Failed("the server ends its answer without a result".to_owned())))
    }

    /// Sends a notification or an answer. What the server says to it does not count.
    pub fn told(&self, body: String) -> Result<(), Failure> {
        let answer = self.post("", None, &[], &body)?;
        let status = answer.status;
        answer.blocks()?.drain(DRAINED_WITHIN);
        match status {
            200..300 => Ok(()),
            status => Err(Failure::Failed(format!("the server answers a notification with HTTP {status}"))),
        }
    }

    /// Ends the session, if it has a name. A server that does not end it in time ends it by itself.
    pub fn end(&self) {
        if !self.server.names_sessions || self.session.id.is_none() {
            return;
        }
        let fields = fields(self.server.era, &self.session, "", None);
        drop(http::send_within(END_WITHIN, "DELETE", self.target, &borrowed(&fields)));
    }

    fn post(&self, method: &str, name: Option<&str>, more: &[(String, String)], body: &str) -> Result<Answer, Failure> {
        let mut fields = fields(self.server.era, &self.session, method, name);
        fields.extend_from_slice(more);
        http::send("POST", self.target, &borrowed(&fields), Some(body.as_bytes()))
    }

    /// One message of the server's, or a batch of them. `Some` is the outcome of the request with
    /// this number.
    fn heard(&mut self, text: &str, id: u32) -> Result<Option<Result<String, Failure>>, Failure> {
        let wrong = || Failure::Failed("the server says something that is not a message of JSON-RPC".to_owned());
        for message in Message::read_all(text).ok_or_else(wrong)? {
            match message {
                Message::Request { id, method, params } => self.answer(id, &method, params)?,
                Message::Notification { method, params } => {
                    let params = params.filter(|_| method == "notifications/progress");
                    params.into_iter().for_each(pass_on);
                }
                answer @ Message::Answer { .. } => {
                    if let Some(outcome) = answer.answering(id) {
                        let outcome = outcome.map(|result| result.get().to_owned());
                        return Ok(Some(outcome.map_err(|error| failed(&error))));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Answers a request of the server's.
    fn answer(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) -> Result<(), Failure> {
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Err(Failure::Failed(format!("the server asks for {method:?} again and again")));
        }
        if method != METHOD || !self.questions.are_passed() {
            return self.told(refusal(id, method));
        }
        let body = match self.questions.ask(&[params.map_or("{}", RawValue::get)]) {
            Ok(results) => reply(id, &results.into_iter().next().unwrap_or(Value::Null)),
            Err(NotAsked { code, text }) => {
                let text = Value::from(text);
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{{\"code\":{code},\"message\":{text}}}}}", id.get())
            }
        };
        self.told(body)
    }
}

fn borrowed(fields: &[(String, String)]) -> Vec<(&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn pass_on(params: &RawValue) {
    if let Ok(Progress { progress, total, message }) = serde_json::from_str(params.get()) {
        toolkit::pass_progress(progress, total, message.as_deref());
    }
}

fn of_server(problem: &impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("the server {problem}"))
}

fn failed(error: &RpcFailure) -> Failure {
    let message: String = error.message.chars().take(ERROR_BYTES_MAX / 4).collect();
    Failure::Failed(format!("the server refuses the call: {message} ({})", error.code))
}

/// An answer with a status of failure: the error in it, or what it says.
fn refused(answer: Answer, id: u32) -> Failure {
    let status = answer.status;
    let Ok(body) = answer.read(ERROR_BYTES_MAX) else { return Failure::Failed(format!("HTTP {status}")) };
    let text = String::from_utf8_lossy(&body);
    let messages = Message::read_all(&text).into_iter().flatten();
    if let Some(Err(error)) = messages.filter_map(|message| message.answering(id)).next() {
        return failed(&error);
    }
    let is_text = !text.chars().any(|character| character.is_control() && !character.is_whitespace());
    let said = if is_text { text.trim() } else { "" };
    let more = if (300..400).contains(&status) { "\nRedirects are not followed." } else { "" };
    Failure::Failed(format!("HTTP {status}{more}\n\n{said}").trim_end().to_owned())
}
