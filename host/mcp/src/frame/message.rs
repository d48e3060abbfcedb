//! From a scanned frame to a message: request, notification, response, or an error.

use std::borrow::Cow;

use super::scan::{self, FrameExcess, FrameMember, FrameShape, JsonFault, ObjectLevel, Scanned};
use super::{ErrorCode, RequestId, RpcError};
use crate::method::{Notification, RequestedMethod};

/// Entries of a batch. Batches of real clients have a handful; each entry costs a reply.
pub(crate) const BATCH_ENTRIES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) enum FrameContent<'a> {
    /// One message.
    One(BatchEntry<'a>),
    /// An array of messages.
    Batch(Vec<BatchEntry<'a>>),
    /// Nothing but white space.
    Blank,
}

impl FrameContent<'_> {
    /// The id of the request, if the frame is a single request.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::One(Ok(McpMessage::Request(request))) => Some(&request.id),
            _ => None,
        }
    }

    /// True if it contains something that is answered.
    pub(crate) fn asks(&self) -> bool {
        let is_request = |entry: &BatchEntry<'_>| {
            !matches!(entry, Ok(McpMessage::Notification { .. } | McpMessage::Response { .. }))
        };
        match self {
            Self::Blank => false,
            Self::One(entry) => is_request(entry),
            Self::Batch(entries) => entries.iter().any(is_request),
        }
    }
}

/// One message, or the error that answers it.
pub(crate) type BatchEntry<'a> = Result<McpMessage<'a>, RefusedFrame>;

/// A frame that is answered with an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedFrame {
    /// The frame's id, if one could be read.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

/// A byte-order mark in UTF-8. Windows pipes begin with one.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The common prefix of all notifications.
const NOTIFICATION_PREFIX: &str = "notifications/";

/// The value that some clients write for an absent member.
const NULL: &str = "null";

/// One well-formed message.
#[derive(Debug)]
pub(crate) enum McpMessage<'a> {
    Request(McpRequest<'a>),
    Notification {
        /// `None` for an unknown notification.
        kind: Option<Notification>,
        params: Params<'a>,
    },
    /// The answer to one of this host's requests.
    Response {
        /// `None` for an id that this host did not issue.
        id: Option<RequestId>,
        /// The text of `error`, or else of `result`.
        reply: Result<&'a str, &'a str>,
    },
}

/// A request, with its method parsed.
#[derive(Debug)]
pub(crate) struct McpRequest<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: RequestedMethod<'a>,
    pub(crate) params: Params<'a>,
}

/// The params of a request or a notification.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    members: Vec<FrameMember<'a>>,
    /// The problem of the params as a whole. It answers requests; notifications are ignored.
    pub(crate) fault: Option<RpcError>,
}

impl Params<'_> {
    /// The text of a member. `null` counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.find(ObjectLevel::Params, key)
    }

    /// The text of the cursor of a page; `None` for the first page, also if it is empty.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.get("cursor").filter(|cursor| *cursor != "\"\"")
    }

    /// The text in a member that must be a string.
    pub(crate) fn string(&self, key: &str) -> Result<Cow<'_, str>, RpcError> {
        self.get(key).and_then(scan::string).ok_or_else(|| RpcError::params(format!("params.{key} must be a string")))
    }

    /// The text of a member of `_meta`. `null` counts as absent.
    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        self.find(ObjectLevel::Meta, key)
    }

    /// All members of `_meta`.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (&str, &str)> {
        let metas = self.members.iter().filter(|member| member.level == ObjectLevel::Meta);
        metas.map(|member| (member.key.as_ref(), member.value))
    }

    fn find(&self, level: ObjectLevel, key: &str) -> Option<&str> {
        let found = self.members.iter().find(|member| member.level == level && member.key == key);
        found.map(|member| member.value).filter(|value| *value != NULL)
    }
}

/// Reads one frame (without its newline).
///
/// # Errors
/// The frame as a whole is refused: it is not JSON, or neither an object nor a usable batch.
pub(crate) fn decode(frame: &[u8]) -> Result<FrameContent<'_>, RefusedFrame> {
    let frame = frame.strip_prefix(BYTE_ORDER_MARK).unwrap_or(frame);
    if frame.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
        return Ok(FrameContent::Blank);
    }
    let scanned = scan::scan(frame).map_err(unreadable)?;
    match scanned.shape {
        FrameShape::Object => Ok(FrameContent::One(message(scanned))),
        FrameShape::Array(entries) => batch(&entries),
        FrameShape::Scalar => Err(nameless(RpcError::request("A message is one JSON object"))),
    }
}

fn batch<'a>(entries: &[&'a str]) -> Result<FrameContent<'a>, RefusedFrame> {
    if entries.is_empty() {
        return Err(nameless(RpcError::request("An empty batch asks for nothing")));
    }
    if entries.len() > BATCH_ENTRIES_MAX {
        let text = format!("A batch holds at most {BATCH_ENTRIES_MAX} messages");
        return Err(nameless(RpcError::request(text)));
    }
    Ok(FrameContent::Batch(entries.iter().map(|text| entry(text)).collect()))
}

fn entry(text: &str) -> BatchEntry<'_> {
    let scanned = scan::scan_text(text).map_err(unreadable)?;
    match scanned.shape {
        FrameShape::Object => message(scanned),
        FrameShape::Array(_) | FrameShape::Scalar => Err(nameless(RpcError::request("A message is one JSON object"))),
    }
}

fn unreadable(fault: JsonFault) -> RefusedFrame {
    nameless(RpcError::new(ErrorCode::Parse, format!("Parse error: {fault}")))
}

/// The error for a request that is valid JSON but not accepted.
fn untaken(excess: FrameExcess) -> RpcError {
    RpcError::params(format!("The request cannot be taken: {excess}"))
}

fn nameless(error: RpcError) -> RefusedFrame {
    RefusedFrame { id: None, error }
}

fn message(scanned: Scanned<'_>) -> BatchEntry<'_> {
    let written = |key: &str| {
        let found = scanned.members.iter().find(|member| member.level == ObjectLevel::Envelope && member.key == key);
        found.map(|member| member.value)
    };
    let given = |key: &str| written(key).filter(|value| *value != NULL);
    let id = written("id").and_then(RequestId::parse);
    let refuse = |id: Option<RequestId>, error: RpcError| Err(RefusedFrame { id, error });
    let refuse_request = |id: Option<RequestId>, text: String| refuse(id, RpcError::request(text));
    // Only one repeated key is recorded, and the id may be another: answering with either id would
    // be a guess.
    let ids = scanned.members.iter().filter(|member| member.level == ObjectLevel::Envelope && member.key == "id");
    if ids.count() > 1 {
        return refuse_request(None, "Duplicate key: id".to_owned());
    }
    if let Some(excess) = scanned.excess.filter(|excess| *excess == FrameExcess::Members) {
        return refuse(id, untaken(excess));
    }
    if let Some(twice) = scanned.duplicate.as_ref().filter(|twice| !twice.in_params) {
        return refuse_request(id, format!("Duplicate key: {}", super::error::echo(&twice.key)));
    }
    if written("jsonrpc").and_then(scan::string).as_deref() != Some("2.0") {
        return refuse_request(id, "The member jsonrpc must be \"2.0\"".to_owned());
    }
    // With both, the client has failed: a result must not pass for its answer.
    let reply = given("error").map(Err).or_else(|| given("result").map(Ok));
    let Some(method_text) = given("method") else {
        if let Some(reply) = reply.or_else(|| written("result").map(Ok)) {
            return Ok(McpMessage::Response { id, reply });
        }
        return refuse_request(id, "The member method is missing".to_owned());
    };
    if reply.is_some() {
        return refuse_request(id, "A message has either a method or a result".to_owned());
    }
    let Some(method) = scan::string(method_text) else {
        let wrong = || RpcError::request("The member method must be a string");
        return refuse(id, scanned.excess.map_or_else(wrong, untaken));
    };
    // Some clients write an `id` of `null` in notifications. Requests need a real one.
    let names_id = if method.starts_with(NOTIFICATION_PREFIX) { given("id") } else { written("id") };
    if let Some(wrong) = names_id.filter(|_| id.is_none()) {
        return refuse_request(None, format!("The id {}", RequestId::requirement(wrong)));
    }
    let fault = params_fault(&scanned, given("params"));
    let params = Params { members: scanned.members, fault };
    Ok(match id {
        Some(id) => McpMessage::Request(McpRequest { id, method: RequestedMethod::parse(method), params }),
        None => McpMessage::Notification { kind: Notification::parse(&method), params },
    })
}

fn params_fault(scanned: &Scanned<'_>, params: Option<&str>) -> Option<RpcError> {
    if let Some(excess) = scanned.excess {
        return Some(untaken(excess));
    }
    if let Some(twice) = &scanned.duplicate {
        return Some(RpcError::params(format!("Duplicate key: {}", super::error::echo(&twice.key))));
    }
    if params.is_some_and(|params| !scan::is_object(params)) {
        return Some(RpcError::params("The params must be an object"));
    }
    let meta = scanned.members.iter().find(|member| member.level == ObjectLevel::Params && member.key == "_meta");
    if meta.is_some_and(|meta| meta.value != NULL && !scan::is_object(meta.value)) {
        return Some(RpcError::params("The member _meta must be an object"));
    }
    None
}
