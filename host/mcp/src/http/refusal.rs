//! Why a request is refused before or with its message, and the one mapping to responses.

use std::time::Duration;

use http::header::{ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::quota::QuotaError;
use super::response::{ResponseContent, json};
use super::{AuthFailure, RefusalReason};
use crate::frame::{ErrorCode, ErrorId, RequestId, RpcError, error_frame};

/// The methods of the endpoint, of both eras.
pub(super) const METHODS: &str = "POST, GET, DELETE, OPTIONS";

/// The methods of the documents next to it.
pub(super) const DOCUMENT_METHODS: &str = "GET, HEAD, OPTIONS";

/// Seconds after which a client should try again.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum HttpRefusal {
    /// Nothing exists at this path.
    Path,
    /// The method is not one of these.
    Method(&'static str),
    /// The request names no host, several, or an invalid one.
    NoHost,
    /// The server does not answer to this host name.
    Host,
    /// It comes from a web page whose origin is not allowed.
    Origin,
    /// The end of the body is uncertain.
    Framing,
    /// The body is not JSON.
    MediaType,
    /// The body is compressed.
    Encoding,
    /// The client accepts no suitable kind of response.
    Accept,
    /// The client accepts no stream, and the response is one.
    AcceptEvents,
    /// The body is longer than this many bytes.
    TooLong(usize),
    /// The body did not arrive in time.
    Slow,
    /// The body did not arrive completely.
    Broken,
    /// The shared state is unreachable.
    Away,
    /// No replica has received the client's answer or cancellation.
    NotTaken,
    /// The server is busy.
    Busy,
    /// The caller's share is used up.
    Share,
    /// The caller, or all callers, leave too much unread.
    Unread(QuotaError),
    /// The caller sends more than this many bytes in a minute; it may retry after this time.
    Sent(usize, Duration),
    /// The server is shutting down.
    Stopping,
    /// A legacy request has no session.
    NoSession,
    /// A request names several sessions.
    Sessions,
    /// A message of a revision without sessions is neither a request nor a notification.
    NoRequest,
    /// The session does not exist, has ended, or belongs to another caller.
    Session,
    /// A stream cannot be resumed.
    Resumption,
    /// The header `MCP-Protocol-Version` names no revision that a session may have.
    Version,
    /// Authentication failed.
    AuthFailure(AuthFailure),
    /// The message is refused with this error.
    Message(RpcError),
    /// The request of this id is refused.
    Request(RequestId, Box<HttpRefusal>),
}

impl From<QuotaError> for HttpRefusal {
    fn from(full: QuotaError) -> Self {
        match full {
            QuotaError::Share => Self::Share,
            QuotaError::Whole => Self::Busy,
        }
    }
}

impl HttpRefusal {
    /// The response. `no_id` is used if the id was not read.
    pub(super) fn response(self, no_id: ErrorId<'_>) -> Response<ResponseContent> {
        let refusal = self.bare();
        let (status, error) = refusal.answer();
        let extra = match refusal {
            Self::Method(allowed) => HeaderValue::from_str(allowed).ok().map(|allowed| (ALLOW, allowed)),
            Self::Sent(_, wait) => Some((RETRY_AFTER, HeaderValue::from(whole_seconds(*wait)))),
            // The bytes that follow may be part of the body.
            Self::Framing => Some((CONNECTION, HeaderValue::from_static("close"))),
            Self::AuthFailure(AuthFailure::Unknown { challenge } | AuthFailure::NotAllowed { challenge }) => {
                HeaderValue::from_str(challenge).ok().map(|challenge| (WWW_AUTHENTICATE, challenge))
            }
            _ => matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
                .then_some((RETRY_AFTER, RETRY_SECONDS)),
        };
        let id = match &self {
            Self::Request(id, _) => ErrorId::Of(id),
            _ => no_id,
        };
        let mut response = json(status, error_frame(id, &error));
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// The same refusal, of the request with this id.
    pub(super) fn of(self, id: Option<RequestId>) -> Self {
        match id {
            Some(id) => Self::Request(id, Box::new(self)),
            None => self,
        }
    }

    /// The reason without the request's id.
    fn bare(&self) -> &Self {
        match self {
            Self::Request(_, refusal) => refusal.bare(),
            refusal => refusal,
        }
    }

    /// The reason for a 401 or 403, given whether the request had a credential.
    pub(super) const fn reason(&self, has_credential: bool) -> Option<RefusalReason> {
        match self {
            Self::AuthFailure(AuthFailure::Unknown { .. }) if has_credential => Some(RefusalReason::UnknownCredential),
            Self::AuthFailure(AuthFailure::Unknown { .. }) => Some(RefusalReason::NoCredential),
            Self::AuthFailure(AuthFailure::NotAllowed { .. }) => Some(RefusalReason::MissingRight),
            Self::Host => Some(RefusalReason::Host),
            Self::Origin => Some(RefusalReason::Origin),
            _ => None,
        }
    }

    /// The status, and the error that the body says.
    fn answer(&self) -> (StatusCode, RpcError) {
        let wrong = |text: &'static str| (StatusCode::BAD_REQUEST, RpcError::request(text));
        let request = |status: StatusCode, text: &'static str| (status, RpcError::request(text));
        let later = |text: &'static str| (StatusCode::SERVICE_UNAVAILABLE, RpcError::internal(text));
        let of_caller = |error: RpcError| (StatusCode::TOO_MANY_REQUESTS, error);
        match self {
            Self::Message(error) => (status_of(error.code), error.clone()),
            Self::Request(_, refusal) => refusal.answer(),
            Self::Away => later("The state that replicas share cannot be reached: try again in a second"),
            Self::NotTaken => later("No replica has taken this message: send it again in a second"),
            Self::Busy => later("The server is busy: try again in a second"),
            Self::Stopping => later("The server is shutting down"),
            Self::Unread(full @ QuotaError::Whole) => (StatusCode::SERVICE_UNAVAILABLE, unread_error(*full, false)),
            Self::Unread(full @ QuotaError::Share) => of_caller(unread_error(*full, false)),
            Self::Share => of_caller(RpcError::internal(
                "The caller has its share of what this server does at once: wait for answers, close streams, or \
                 try again in a second",
            )),
            Self::Sent(most, wait) => of_caller(RpcError::internal(format!(
                "The caller sends more than {most} bytes in a minute: try again in {} s",
                whole_seconds(*wait)
            ))),
            Self::Path => request(StatusCode::NOT_FOUND, "There is nothing at this path"),
            Self::Method(allowed) => {
                (StatusCode::METHOD_NOT_ALLOWED, RpcError::request(format!("The methods here are {allowed}")))
            }
            Self::NoHost => wrong("The header Host must name one host"),
            Self::Host => request(StatusCode::FORBIDDEN, "This server does not answer to the requested host"),
            Self::Origin => request(StatusCode::FORBIDDEN, "Web pages of this origin may not ask this server"),
            Self::Framing => wrong("The header Transfer-Encoding must be chunked and nothing else"),
            Self::MediaType => {
                request(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The header Content-Type must be application/json")
            }
            Self::Encoding => request(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must not be compressed"),
            Self::Accept => request(
                StatusCode::NOT_ACCEPTABLE,
                "The header Accept must allow application/json or text/event-stream",
            ),
            Self::AcceptEvents => request(
                StatusCode::NOT_ACCEPTABLE,
                "The header Accept must allow text/event-stream: the response is a stream",
            ),
            Self::TooLong(max) => {
                (StatusCode::PAYLOAD_TOO_LARGE, RpcError::request(format!("The body is longer than {max} bytes")))
            }
            Self::Slow => request(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"),
            Self::Broken => wrong("The body did not arrive whole"),
            Self::NoSession => wrong("The header Mcp-Session-Id is missing: initialize gives one, by POST"),
            Self::Sessions => wrong("The header Mcp-Session-Id must name one session"),
            Self::NoRequest => {
                wrong("From 2026-07-28 on a body is one request or one notification: no response, and no batch")
            }
            Self::Session => {
                request(StatusCode::NOT_FOUND, "There is no such session, or no longer: initialize a new one")
            }
            Self::Resumption => wrong(
                "The stream that the header Last-Event-ID names has ended, or broke too long ago, or was another replica's",
            ),
            Self::Version => wrong("The header MCP-Protocol-Version names no revision that this session may have"),
            Self::AuthFailure(AuthFailure::NotNow) => {
                later("The caller cannot be identified just now: try again in a second")
            }
            Self::AuthFailure(AuthFailure::Unknown { .. }) => {
                request(StatusCode::UNAUTHORIZED, "The caller is not known")
            }
            Self::AuthFailure(AuthFailure::NotAllowed { .. }) => {
                request(StatusCode::FORBIDDEN, "The caller may not do this")
            }
        }
    }
}

/// The time in whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// The error if a caller, or all callers, leave too much unread. `done`: the request was already
/// carried out.
pub(super) fn unread_error(full: QuotaError, done: bool) -> RpcError {
    let prefix = if done { "The request was carried out, and its answer is not kept: " } else { "Not carried out: " };
    let cause = match full {
        QuotaError::Share => "the caller leaves too many bytes of answers unread. Read them before you ask again",
        QuotaError::Whole => "clients leave too many bytes of answers unread. Try again in a second",
    };
    RpcError::internal(format!("{prefix}{cause}"))
}

/// The status of an error that stopped a message. Errors of the method itself are answers with
/// status 200 (2026-07-28, "Protocol Version Header", "Server Validation").
pub(super) fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::MethodNotFound => StatusCode::NOT_FOUND,
        ErrorCode::InvalidParams | ErrorCode::ResourceNotFound | ErrorCode::Internal => StatusCode::OK,
        ErrorCode::Parse
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidMeta
        | ErrorCode::HeaderMismatch
        | ErrorCode::MissingClientCapability
        | ErrorCode::UnsupportedProtocolVersion => StatusCode::BAD_REQUEST,
    }
}
