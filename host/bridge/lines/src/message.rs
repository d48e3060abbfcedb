//! What a server says: an answer, a request, or a notification.
use serde::Deserialize;
use serde_json::value::RawValue;

/// Messages of one batch (2025-03-26). 1,000: progress that a server held back, and its answer.
pub const MESSAGES_MAX: usize = 1_000;

/// One message of a server.
#[derive(Debug)]
pub enum Message<'a> {
    /// The answer to one of our requests.
    Answer {
        /// The request's number, as it came.
        id: &'a str,
        /// What it says.
        outcome: Result<&'a RawValue, RpcFailure>,
    },
    /// A request of the server's.
    Request {
        /// Its own number.
        id: &'a RawValue,
        /// What it wants.
        method: String,
        /// What it says of that.
        params: Option<&'a RawValue>,
    },
    /// A notification.
    Notification {
        /// What it is about.
        method: String,
        /// What it says.
        params: Option<&'a RawValue>,
    },
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RpcFailure {
    /// Its number.
    pub code: i64,
    /// What the server says.
    #[serde(default)]
    pub message: String,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcFailure>,
}

impl<'a> Message<'a> {
    /// Reads a message, or those of a batch in their order; `None` if there is something else, or
    /// more than [`MESSAGES_MAX`].
    #[must_use]
    pub fn read_all(text: &'a str) -> Option<Vec<Self>> {
        if !text.trim_start().starts_with('[') {
            return Self::read(text).map(|message| vec![message]);
        }
        let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
        let is_batch = (1..=MESSAGES_MAX).contains(&items.len());
        is_batch.then(|| items.into_iter().map(|item| Self::read(item.get())).collect())?
    }

    /// Reads one message; `None` if it is not one.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let frame: Frame<'a> = serde_json::from_str(text).ok()?;
        let id = frame.id.map_or("null", RawValue::get);
        match frame {
            Frame { method: Some(method), id: Some(id), params, .. } => Some(Self::Request { id, method, params }),
            Frame { method: Some(method), params, .. } => Some(Self::Notification { method, params }),
            Frame { error: Some(error), .. } => Some(Self::Answer { id, outcome: Err(error) }),
            Frame { result: Some(result), .. } => Some(Self::Answer { id, outcome: Ok(result) }),
            Frame { .. } => None,
        }
    }

    /// The outcome, if this answers the request of this number. An error without a number answers
    /// it too: the server could not read which one it was.
    #[must_use]
    pub fn answering(self, request: u32) -> Option<Result<&'a RawValue, RpcFailure>> {
        match self {
            Self::Answer { id, outcome } if id == request.to_string() || (id == "null" && outcome.is_err()) => {
                Some(outcome)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_message_is_what_its_members_say() {
        let answer = |text: &str| {
            Message::read(text).unwrap().answering(1).map(|outcome| outcome.map(RawValue::get).map(str::to_owned))
        };
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1.0}}"#), Some(Ok("{\"a\":1.0}".to_owned())));
        assert_eq!(answer(r#"{"id":"1","result":{}}"#), None, "a text is another number");
        assert_eq!(answer(r#"{"id":2,"result":{}}"#), None);
        let failure = RpcFailure { code: -32600, message: String::new() };
        assert_eq!(answer(r#"{"id":null,"error":{"code":-32600}}"#), Some(Err(failure)));
        let asked = Message::read(r#"{"id":[1],"method":"roots/list"}"#).unwrap();
        assert!(matches!(asked, Message::Request { id, method, .. } if id.get() == "[1]" && method == "roots/list"));
        let told = Message::read(r#"{"method":"notifications/progress","params":{"progress":1}}"#).unwrap();
        assert!(matches!(told, Message::Notification { params: Some(_), .. }));
        for text in ["", "[]", "{}", "1", "{\"id\":1}", "{\"id\":1,\"result\":{}"] {
            assert!(Message::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_batch_is_its_messages_within_a_bound() {
        let count = |text: &str| Message::read_all(text).map(|messages| messages.len());
        let answer = r#"{"id":1,"result":{}}"#;
        assert_eq!(count(answer), Some(1));
        assert_eq!(count(&format!(" [{answer}, {{\"method\":\"notifications/message\"}}]")), Some(2));
        for text in ["[]".to_owned(), "[1]".to_owned(), format!("[{answer},{{}}]"), format!("[[{answer}]]")] {
            assert_eq!(count(&text), None, "{text}");
        }
        assert_eq!(count(&format!("[{}]", vec![answer; MESSAGES_MAX].join(","))), Some(MESSAGES_MAX));
        assert_eq!(count(&format!("[{}]", vec![answer; MESSAGES_MAX + 1].join(","))), None);
    }
}
