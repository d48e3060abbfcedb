//! The answers of clients, checked against their questions.

use serde_json::{Map, Value};

use super::{ClientAnswer, ClientRoot, PreparedQuestion, QuestionKind, ReplyText, sampling};
use crate::frame::{echo, scan};
use crate::sanitize;

/// Most roots of a client. Editors have a handful.
const ROOTS_MAX: usize = 1_000;

impl PreparedQuestion {
    /// Reads a client's response to a request.
    ///
    /// # Errors
    /// The problem, as a text for the asker.
    pub(super) fn read_reply(&self, reply: ReplyText, bytes_max: usize) -> Result<ClientAnswer, String> {
        let named = |text: String| format!("the client's answer to {:?}: {text}", self.key);
        match reply {
            ReplyText::Gone => Err("the client is gone, so nobody can answer".to_owned()),
            ReplyText::Error(error) => Err(named(format!("an error: {}", message(error.get())))),
            ReplyText::Result(result) => self.read(result.get(), bytes_max).map_err(named),
            ReplyText::TooLong(bytes) => Err(named(too_long(bytes, bytes_max))),
        }
    }

    /// Reads one answer.
    ///
    /// # Errors
    /// The problem, without content of the answer.
    pub(super) fn read(&self, text: &str, bytes_max: usize) -> Result<ClientAnswer, String> {
        if text.len() > bytes_max {
            return Err(too_long(text.len(), bytes_max));
        }
        match scan::check_value(text, scan::DEPTH_MAX) {
            Ok(None) => {}
            Ok(Some(key)) => return Err(format!("it has the key {key:?} twice in one object")),
            Err(error) => return Err(format!("it cannot be taken: {error}")),
        }
        let answer: Map<String, Value> = serde_json::from_str(text).map_err(|_| "it must be an object".to_owned())?;
        match self.kind {
            QuestionKind::Form | QuestionKind::Page => self.elicited(answer),
            QuestionKind::Sampling => sampled(answer),
            QuestionKind::Roots => roots(&answer),
        }
    }

    fn elicited(&self, mut answer: Map<String, Value>) -> Result<ClientAnswer, String> {
        match answer.get("action").and_then(Value::as_str) {
            Some("accept") => {}
            Some("decline") => return Ok(ClientAnswer::Declined),
            Some("cancel") => return Ok(ClientAnswer::Dismissed),
            _ => return Err("action must be accept, decline or cancel".to_owned()),
        }
        let Some(form) = &self.form else { return Ok(ClientAnswer::Accepted("{}".to_owned())) };
        match answer.remove("content") {
            None | Some(Value::Null) => form.accept(Map::new()),
            Some(Value::Object(content)) => form.accept(content),
            Some(_) => Err("content must be an object".to_owned()),
        }
        .map(ClientAnswer::Accepted)
    }
}

fn too_long(bytes: usize, bytes_max: usize) -> String {
    format!("it has {bytes} bytes, more than {bytes_max}")
}

fn sampled(mut answer: Map<String, Value>) -> Result<ClientAnswer, String> {
    let model = answer.get("model").is_some_and(Value::is_string);
    let message = Value::Object(answer.clone());
    if !model || !sampling::is_message(&message, true) {
        return Err("it must have role (user or assistant), content and model".to_owned());
    }
    // Members that describe the protocol's result, not the model's message.
    answer.retain(|key, _| !matches!(key.as_str(), "_meta" | "resultType"));
    Ok(ClientAnswer::Message(Value::Object(answer).to_string()))
}

fn roots(answer: &Map<String, Value>) -> Result<ClientAnswer, String> {
    let roots = answer.get("roots").and_then(Value::as_array).ok_or("roots must be a list")?;
    if roots.len() > ROOTS_MAX {
        return Err(format!("it has {} roots, more than {ROOTS_MAX}", roots.len()));
    }
    let roots: Option<Vec<ClientRoot>> = roots
        .iter()
        .map(|root| {
            let uri = root.get("uri")?.as_str().filter(|uri| uri.starts_with("file://"))?.to_owned();
            let name = root.get("name").and_then(Value::as_str).map(str::to_owned);
            Some(ClientRoot { uri, name })
        })
        .collect();
    roots.map(ClientAnswer::Roots).ok_or_else(|| "each root must have a uri that begins with file://".to_owned())
}

/// The message of a JSON-RPC error, short and on one line.
fn message(error: &str) -> String {
    let error: Option<Value> = serde_json::from_str(error).ok();
    let text = error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str).unwrap_or("no message");
    echo(&sanitize::line(text)).into_owned()
}
