//! From a scanned frame to a message: request, notification, response, or an error.

use std::borrow::Cow;

use super::scan::{self, Fault, Level, Member, Scanned, Shape};
use super::{ErrorCode, RequestId, RpcError};
use crate::method::{Notification, RequestedMethod};

/// Most entries of a batch. Batches of real clients hold a handful; each entry costs a reply.
pub(crate) const BATCH_ENTRIES_MAX: usize = 1_000;

/// A frame, read.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// One message.
    One(Entry<'a>),
    /// An array of messages.
    Batch(Vec<Entry<'a>>),
    /// Nothing but space.
    Blank,
}

/// One message, or the error that answers it.
pub(crate) type Entry<'a> = Result<Message<'a>, RefusedFrame>;

/// A frame that is answered with an error, whatever it asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedFrame {
    /// The frame's id, if one could be read.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

/// One well-formed message.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request(Request<'a>),
    Notification {
        /// `None` for a notification that means nothing here.
        kind: Option<Notification>,
        params: Params<'a>,
    },
    /// The answer to one of this host's requests.
    Response {
        /// `None` for an id that this host would not have sent.
        id: Option<RequestId>,
        /// The text of `result`, or else of `error`.
        reply: Result<&'a str, &'a str>,
    },
}

/// A request, with its method parsed.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: RequestedMethod<'a>,
    pub(crate) params: Params<'a>,
}

/// The params of a request or a notification.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    members: Vec<Member<'a>>,
    /// The problem of the params as a whole. Requests are answered with it; notifications are
    /// ignored.
    pub(crate) fault: Option<RpcError>,
}

impl Params<'_> {
    /// The text of a member.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.find(Level::Params, key)
    }

    /// The string in a member that must be one.
    pub(crate) fn string(&self, key: &str) -> Result<Cow<'_, str>, RpcError> {
        self.get(key).and_then(scan::string).ok_or_else(|| RpcError::params(format!("params.{key} must be a string")))
    }

    /// The text of a member of `_meta`.
    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        self.find(Level::Meta, key)
    }

    /// All members of `_meta`.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (&str, &str)> {
        let metas = self.members.iter().filter(|member| member.level == Level::Meta);
        metas.map(|member| (member.key.as_ref(), member.value))
    }

    fn find(&self, level: Level, key: &str) -> Option<&str> {
        self.members.iter().find(|member| member.level == level && member.key == key).map(|member| member.value)
    }
}

/// Reads one frame (without its newline).
///
/// # Errors
/// The frame as a whole is refused: it is not JSON, or neither an object nor a usable batch.
pub(crate) fn decode(frame: &[u8]) -> Result<Incoming<'_>, RefusedFrame> {
    if frame.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
        return Ok(Incoming::Blank);
    }
    let scanned = scan::scan(frame).map_err(unreadable)?;
    match scanned.shape {
        Shape::Object => Ok(Incoming::One(message(scanned))),
        Shape::Array(entries) => batch(&entries),
        Shape::Scalar => Err(nameless(RpcError::request("A message is one JSON object"))),
    }
}

fn batch<'a>(entries: &[&'a str]) -> Result<Incoming<'a>, RefusedFrame> {
    if entries.is_empty() {
        return Err(nameless(RpcError::request("An empty batch asks for nothing")));
    }
    if entries.len() > BATCH_ENTRIES_MAX {
        let text = format!("A batch holds at most {BATCH_ENTRIES_MAX} messages");
        return Err(nameless(RpcError::request(text)));
    }
    Ok(Incoming::Batch(entries.iter().map(|text| entry(text)).collect()))
}

fn entry(text: &str) -> Entry<'_> {
    let scanned = scan::scan_text(text).map_err(unreadable)?;
    match scanned.shape {
        Shape::Object => message(scanned),
        Shape::Array(_) | Shape::Scalar => Err(nameless(RpcError::request("A message is one JSON object"))),
    }
}

fn unreadable(fault: Fault) -> RefusedFrame {
    let code = if fault == Fault::Members { ErrorCode::InvalidRequest } else { ErrorCode::Parse };
    let lead = if fault == Fault::Members { "Invalid request" } else { "Parse error" };
    nameless(RpcError::new(code, format!("{lead}: {fault}")))
}

fn nameless(error: RpcError) -> RefusedFrame {
    RefusedFrame { id: None, error }
}

fn message(scanned: Scanned<'_>) -> Entry<'_> {
    let envelope = |key: &str| {
        scanned
            .members
            .iter()
            .find(|member| member.level == Level::Envelope && member.key == key)
            .map(|member| member.value)
    };
    let id_text = envelope("id");
    let id = id_text.and_then(RequestId::parse);
    let refuse = |id: Option<RequestId>, text: String| Err(RefusedFrame { id, error: RpcError::request(text) });
    // Only one repeated key is noted, and the id may be another one: answering under either would
    // be a guess.
    let ids = scanned.members.iter().filter(|member| member.level == Level::Envelope && member.key == "id");
    if scanned.duplicate.is_some() && ids.count() > 1 {
        return refuse(None, "Duplicate key: id".to_owned());
    }
    if let Some(twice) = scanned.duplicate.as_ref().filter(|twice| !twice.in_params) {
        return refuse(id, format!("Duplicate key: {}", super::error::echo(&twice.key)));
    }
    if envelope("jsonrpc").and_then(scan::string).as_deref() != Some("2.0") {
        return refuse(id, "The member jsonrpc must be \"2.0\"".to_owned());
    }
    let reply = envelope("result").map(Ok).or_else(|| envelope("error").map(Err));
    let Some(method_text) = envelope("method") else {
        if let Some(reply) = reply {
            return Ok(Message::Response { id, reply });
        }
        return refuse(id, "The member method is missing".to_owned());
    };
    if reply.is_some() {
        return refuse(id, "A message has either a method or a result".to_owned());
    }
    if id_text.is_some() && id.is_none() {
        return refuse(None, "The id must be a string or an integer within ±2^53".to_owned());
    }
    let Some(method) = scan::string(method_text) else {
        return refuse(id, "The member method must be a string".to_owned());
    };
    let fault = params_fault(&scanned, envelope("params"));
    let params = Params { members: scanned.members, fault };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method: RequestedMethod::parse(method), params }),
        None => Message::Notification { kind: Notification::parse(&method), params },
    })
}

fn params_fault(scanned: &Scanned<'_>, params: Option<&str>) -> Option<RpcError> {
    if let Some(twice) = &scanned.duplicate {
        return Some(RpcError::params(format!("Duplicate key: {}", super::error::echo(&twice.key))));
    }
    if params.is_some_and(|params| !scan::is_object(params)) {
        return Some(RpcError::params("The params must be an object"));
    }
    let meta = scanned.members.iter().find(|member| member.level == Level::Params && member.key == "_meta");
    if meta.is_some_and(|meta| !scan::is_object(meta.value)) {
        return Some(RpcError::params("The member _meta must be an object"));
    }
    None
}
