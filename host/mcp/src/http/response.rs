//! The response to a message, from the first item in its mailbox to its last byte: JSON, a stream
//! of events, or nothing.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::headers::{Accepted, SESSION_ID};
use super::limits::HttpLimits;
use super::mailbox::{Mailbox, Next, ResponseEnd};
use super::quota::QuotaGuard;
use super::refusal::{HttpRefusal, status_of};
use super::stream::{EventStream, Lease};
use super::unread::UnreadFrame;
use super::watch::RequestWatch;
use crate::frame::ErrorCode;

/// Asks proxies to pass events on immediately.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response whose answer comes into its mailbox.
pub(super) struct PendingResponse {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) lease: Box<dyn Lease>,
    pub(super) accepted: Accepted,
    pub(super) style: ResponseStyle,
}

/// The form of a response.
pub(super) enum ResponseStyle {
    Modern,
    /// To requests of a session.
    Legacy,
    /// To messages of a session without an answer.
    Taken,
    /// With the header that names the client's new session.
    NewSession(HeaderValue),
}

impl ResponseStyle {
    /// True if a request waits for the answer.
    const fn asks(&self) -> bool {
        !matches!(self, Self::Taken)
    }
}

impl PendingResponse {
    /// Responds in the form that fits the first item: JSON for an answer, a stream for an event. A
    /// stream is also opened if the answer takes so long that the connection could look dead.
    ///
    /// # Errors
    /// No replica has received the message.
    pub(super) async fn respond(self, limits: &HttpLimits) -> Result<Response<ResponseContent>, HttpRefusal> {
        let Self { mailbox, lease, accepted, style } = self;
        let reader = mailbox.reader();
        let mut unbegun = UnbegunResponse(Some(Arc::clone(&mailbox)));
        let next = poll_fn(|context| mailbox.poll_next(reader, context));
        // A response without a request is never a stream.
        let first = match mailbox.takes_events() && style.asks() {
            true => tokio::time::timeout(limits.beat, next).await.ok(),
            false => Some(next.await),
        };
        unbegun.0 = None;
        let mut response = match first {
            Some(Next::End(ResponseEnd::Answer(frame))) if accepted.json => json(StatusCode::OK, frame),
            Some(Next::End(ResponseEnd::Answer(frame))) => {
                mailbox.end(ResponseEnd::Nothing);
                events(EventStream::new(mailbox, Some(frame), limits, lease))
            }
            Some(Next::End(ResponseEnd::Refusal(frame, code))) => json(refused_status(code, &style), frame),
            // 202 is only for messages that need no answer, and a cancelled request needs one.
            Some(Next::End(ResponseEnd::Nothing)) if style.asks() && accepted.events => {
                mailbox.end(ResponseEnd::Nothing);
                events(EventStream::new(mailbox, None, limits, lease))
            }
            Some(Next::End(ResponseEnd::Nothing)) => empty(StatusCode::ACCEPTED),
            Some(Next::End(ResponseEnd::NotTaken)) => return Err(HttpRefusal::NotTaken),
            Some(Next::Event(frame)) => events(EventStream::new(mailbox, Some(frame), limits, lease)),
            None => events(EventStream::new(mailbox, None, limits, lease)),
        };
        if let ResponseStyle::NewSession(id) = style {
            response.headers_mut().insert(SESSION_ID, id);
        }
        Ok(response)
    }
}

/// Closes the mailbox of a response whose client leaves before it begins: nothing can resume it.
struct UnbegunResponse(Option<Arc<Mailbox>>);

impl Drop for UnbegunResponse {
    fn drop(&mut self) {
        self.0.iter().for_each(|mailbox| mailbox.close());
    }
}

/// The status of an error that stopped a message. A legacy client takes 404 to mean that its
/// session is gone.
fn refused_status(code: ErrorCode, style: &ResponseStyle) -> StatusCode {
    match (status_of(code), style) {
        (status, ResponseStyle::Modern) => status,
        (StatusCode::BAD_REQUEST, _) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

pub(super) fn plain(status: StatusCode, text: String) -> Response<ResponseContent> {
    let mut response = Response::new(ResponseContent::Whole(text.into_bytes().into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response without content.
pub(super) fn empty(status: StatusCode) -> Response<ResponseContent> {
    let mut response = Response::new(ResponseContent::Whole(UnreadFrame::default()));
    *response.status_mut() = status;
    response
}

/// A response of one JSON text.
pub(super) fn json(status: StatusCode, text: impl Into<UnreadFrame>) -> Response<ResponseContent> {
    let mut response = Response::new(ResponseContent::Whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response that is a stream.
pub(super) fn events(stream: EventStream) -> Response<ResponseContent> {
    let mut response = Response::new(ResponseContent::Events(Box::new(stream)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

/// The content of a response.
pub(super) enum ResponseContent {
    Whole(UnreadFrame),
    Events(Box<EventStream>),
}

/// A response's body. Its connection counts as busy while this lives, or while its bytes are
/// unsent.
pub(super) struct ResponseBody {
    content: ResponseContent,
    open: Option<RequestWatch>,
}

/// The last piece of a complete response: it is unsent while this lives.
struct UnsentBytes {
    bytes: Bytes,
    _open: Option<RequestWatch>,
    _counted: Option<QuotaGuard>,
}

impl AsRef<[u8]> for UnsentBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseBody {
    /// `write_time` is how long the client may leave it unread.
    pub(super) fn new(content: ResponseContent, mut open: RequestWatch, write_time: Duration) -> Self {
        match &content {
            ResponseContent::Whole(frame) if frame.is_empty() => open.done(),
            ResponseContent::Whole(frame) => open.answers(frame.len(), write_time),
            ResponseContent::Events(stream) => open.streams(stream.mailbox()),
        }
        Self { content, open: Some(open) }
    }

    fn is_done(&mut self) {
        if let Some(open) = &mut self.open {
            open.done();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.content {
            ResponseContent::Whole(frame) => match frame.next_piece() {
                Some(bytes) if frame.is_empty() => {
                    let counted = frame.take_count();
                    self.is_done();
                    let last = UnsentBytes { bytes, _open: self.open.take(), _counted: counted };
                    Poll::Ready(Some(Bytes::from_owner(last)))
                }
                piece => Poll::Ready(piece),
            },
            ResponseContent::Events(stream) => stream.poll_bytes(context),
        };
        if matches!(next, Poll::Ready(None)) {
            self.is_done();
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, ResponseContent::Whole(frame) if frame.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ResponseContent::Whole(frame) => SizeHint::with_exact(frame.len() as u64),
            ResponseContent::Events(_) => SizeHint::default(),
        }
    }
}
