//! Why a request is refused before or with its message, and the one mapping to responses.

use std::borrow::Cow;
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
        let status = refusal.status();
        let extra = match refusal {
            Self::Method(allowed) => HeaderValue::from_str(allowed).ok().map(|allowed| (ALLOW, allowed)),
            Self::Sent(_, wait) => Some((RETRY_AFTER, HeaderValue::from(whole_seconds(*wait)))),
            // The bytes that follow may be part of the body.
            Self::Framing => Some((CONNECTION, HeaderValue::from_static("close"))),
            Self::Away
            | Self::NotTaken
            | Self::Busy
            | Self::Share
            | Self::Unread(_)
            | Self::Stopping
            | Self::AuthFailure(AuthFailure::NotNow) => Some((RETRY_AFTER, RETRY_SECONDS)),
            Self::AuthFailure(AuthFailure::Unknown { challenge } | AuthFailure::NotAllowed { challenge }) => {
                HeaderValue::from_str(challenge).ok().map(|challenge| (WWW_AUTHENTICATE, challenge))
            }
            _ => None,
        };
        let id = match &self {
            Self::Request(id, _) => ErrorId::Of(id),
            _ => no_id,
        };
        let mut response = json(status, error_frame(id, &refusal.error()));
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, value);
        }
        response
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

    fn status(&self) -> StatusCode {
        match self {
            Self::Path | Self::Session => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Host | Self::Origin | Self::AuthFailure(AuthFailure::NotAllowed { .. }) => StatusCode::FORBIDDEN,
            Self::MediaType | Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept | Self::AcceptEvents => StatusCode::NOT_ACCEPTABLE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Share | Self::Unread(QuotaError::Share) | Self::Sent(..) => StatusCode::TOO_MANY_REQUESTS,
            Self::Away
            | Self::NotTaken
            | Self::Busy
            | Self::Unread(QuotaError::Whole)
            | Self::Stopping
            | Self::AuthFailure(AuthFailure::NotNow) => StatusCode::SERVICE_UNAVAILABLE,
            Self::AuthFailure(AuthFailure::Unknown { .. }) => StatusCode::UNAUTHORIZED,
            Self::NoHost
            | Self::Framing
            | Self::Broken
            | Self::NoSession
            | Self::Sessions
            | Self::NoRequest
            | Self::Resumption
            | Self::Version => StatusCode::BAD_REQUEST,
            Self::Message(error) => status_of(error.code),
            Self::Request(_, refusal) => refusal.status(),
        }
    }

    fn error(&self) -> RpcError {
        let internal = |text: &'static str| RpcError::new(ErrorCode::Internal, text);
        let text: Cow<'static, str> = match self {
            Self::Message(error) => return error.clone(),
            Self::Request(_, refusal) => return refusal.error(),
            Self::Away => return internal("The state that replicas share cannot be reached: try again in a second"),
            Self::NotTaken => return internal("No replica has taken this message: send it again in a second"),
            Self::Busy => return internal("The server is busy: try again in a second"),
            Self::Share => {
                return internal(
                    "The caller has its share of what this server does at once: wait for answers, close streams, or \
                     try again in a second",
                );
            }
            Self::Unread(full) => return unread_error(*full, false),
            Self::Sent(most, wait) => {
                return RpcError::new(
                    ErrorCode::Internal,
                    format!(
                        "The caller sends more than {most} bytes in a minute: try again in {} s",
                        whole_seconds(*wait)
                    ),
                );
            }
            Self::Stopping => return internal("The server is shutting down"),
            Self::AuthFailure(AuthFailure::NotNow) => {
                return internal("The caller cannot be identified just now: try again in a second");
            }
            Self::Path => "There is nothing at this path".into(),
            Self::Method(allowed) => format!("The methods here are {allowed}").into(),
            Self::NoHost => "The header Host must name one host".into(),
            Self::Host => "This server does not answer to the requested host".into(),
            Self::Origin => "Web pages of this origin may not ask this server".into(),
            Self::Framing => "The header Transfer-Encoding must be chunked and nothing else".into(),
            Self::MediaType => "The header Content-Type must be application/json".into(),
            Self::Encoding => "The body must not be compressed".into(),
            Self::Accept => "The header Accept must allow application/json or text/event-stream".into(),
            Self::AcceptEvents => "The header Accept must allow text/event-stream: the response is a stream".into(),
            Self::TooLong(max) => format!("The body is longer than {max} bytes").into(),
            Self::Slow => "The body did not arrive in time".into(),
            Self::Broken => "The body did not arrive whole".into(),
            Self::NoSession => "The header Mcp-Session-Id is missing: initialize gives one, by POST".into(),
            Self::Sessions => "The header Mcp-Session-Id must name one session".into(),
            Self::NoRequest => {
                "From 2026-07-28 on a body is one request or one notification: no response, and no batch".into()
            }
            Self::Session => "There is no such session, or no longer: initialize a new one".into(),
            Self::Resumption => {
                "The stream that the header Last-Event-ID names has ended, or broke too long ago, or was another replica's"
                    .into()
            }
            Self::Version => "The header MCP-Protocol-Version names no revision that this session may have".into(),
            Self::AuthFailure(AuthFailure::Unknown { .. }) => "The caller is not known".into(),
            Self::AuthFailure(AuthFailure::NotAllowed { .. }) => "The caller may not do this".into(),
        };
        RpcError::request(text)
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
    RpcError::new(ErrorCode::Internal, format!("{prefix}{cause}"))
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
