//! One request from its head to its response: where it goes, who asks, what era it belongs to, and in which form it is
//! answered. Must not hold: sockets, or what messages mean.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;

use super::accept::{Accepted, check_content, check_framing};
use super::body::{self, ResponseContent};
use super::executor::LoneRequests;
use super::headers::{Era, SESSION_ID};
use super::limits::HttpLimits;
use super::mailbox::{Ending, Mailbox, Next};
use super::origin::OriginPolicy;
use super::quota::{Owner, QuotaGuard, Quotas};
use super::refusal::{METHODS, Refusal, json, status_of};
use super::session::Sessions;
use super::stream::{EventStream, Lease};
use super::traffic::Traffic;
use super::watch::RequestWatch;
use super::{Admitted, CredentialValidity, Gatekeeper};
use super::{legacy, modern};
use crate::caller::Caller;
use crate::connection::Listener;
use crate::frame::{ErrorCode, Incoming, RpcError, decode};
use crate::host::{Executor, Host};
use crate::server::Server;

/// Tells proxies to pass events on as they come.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Whether the process lives.
const LIVE: &str = "/healthz";

/// Whether it has its tools and takes requests.
const READY: &str = "/readyz";

/// What all connections share.
pub(super) struct Service<H: Host> {
    pub(super) server: Arc<Server<H>>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) path: String,
    pub(super) origin_policy: OriginPolicy,
    pub(super) limits: HttpLimits,
    pub(super) gatekeeper: Arc<dyn Gatekeeper>,
    pub(super) sessions: Sessions<H>,
    pub(super) live: LiveRequests,
    pub(super) room: Quotas,
    pub(super) traffic: Arc<Traffic>,
    pub(super) ending: AtomicBool,
    pub(super) lone_requests: LoneRequests,
}

/// What a message came with.
pub(super) struct MessageContext {
    pub(super) headers: HeaderMap,
    pub(super) accepted: Accepted,
    pub(super) caller: Caller,
    pub(super) standing: CredentialValidity,
    pub(super) place: QuotaGuard,
    /// Whether no other request is near.
    pub(super) is_alone: bool,
}

/// Where a request came in.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// The address it was received at, none for a Unix socket.
    pub(super) local: Option<IpAddr>,
    /// The address it came from, none for a Unix socket.
    pub(super) peer: Option<IpAddr>,
    /// Tells its connection from others; none where that carries several requests at once.
    pub(super) connection: Option<usize>,
}

/// A message that was begun.
pub(super) enum MessageOutcome {
    /// It needs no answer.
    Taken,
    /// Its answer comes into the mailbox.
    Answering { mailbox: Arc<Mailbox>, lease: Box<dyn Lease>, accepted: Accepted, style: ResponseStyle },
}

/// What an answer looks like beside its frame.
pub(super) enum ResponseStyle {
    Modern,
    Legacy,
    /// It tells the client its session.
    NewSession(HeaderValue),
}

impl MessageOutcome {
    pub(super) fn taken() -> Self {
        Self::Taken
    }
}

impl<H: Host> Service<H> {
    /// Answers one request. `open` is what its connection has of it.
    pub(super) async fn respond<B>(
        &self,
        request: Request<B>,
        came: Arrival,
        open: &mut RequestWatch,
    ) -> Response<ResponseContent>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        if let Err(refusal) = check_framing(&parts.headers) {
            return refusal.response();
        }
        if let Some(response) = self.health(&parts) {
            self.traffic.answered(response.status());
            return response;
        }
        let origin = parts.headers.get(ORIGIN).cloned();
        let mut response = match self.route((parts, body), came, open).await {
            Ok(response) => response,
            Err(refusal) => refusal.response(),
        };
        self.origin_policy.expose(origin, &mut response);
        self.traffic.answered(response.status());
        response
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// The paths that whoever runs the server asks. They say nothing that a page might not know.
    fn health(&self, parts: &Parts) -> Option<Response<ResponseContent>> {
        let path = parts.uri.path();
        let asks = matches!(parts.method, Method::GET | Method::HEAD);
        let (status, text) = match path {
            _ if !asks || (path != LIVE && path != READY) => return None,
            READY if self.is_ending() => (StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            READY => (StatusCode::OK, "ready\n"),
            _ => (StatusCode::OK, "ok\n"),
        };
        let mut response = Response::new(ResponseContent::whole(text.into()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(response)
    }

    async fn route<B>(
        &self,
        (parts, body): (Parts, B),
        came: Arrival,
        open: &mut RequestWatch,
    ) -> Result<Response<ResponseContent>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.origin_policy.check(&parts, came.local)?;
        if parts.uri.path() != self.path {
            return self.metadata(&parts);
        }
        if parts.method == Method::OPTIONS {
            return Ok(OriginPolicy::preflight(&parts.headers));
        }
        let streams = matches!(parts.method, Method::GET | Method::DELETE);
        if parts.method != Method::POST && !streams {
            return Err(Refusal::Method(METHODS));
        }
        if streams && Era::of(&parts.headers) == Era::Modern {
            return Err(Refusal::Method("POST"));
        }
        if self.is_ending() {
            return Err(Refusal::Stopping);
        }
        let admitted = self.admit(&parts.headers, came).await?;
        let owner = Owner::of(&admitted.caller, came.peer);
        open.belongs_to(&owner, &self.room.connections)?;
        match parts.method {
            Method::GET => legacy::listen(self, &parts.headers, (admitted, &owner)),
            Method::DELETE => legacy::end(self, &parts.headers, &admitted.caller),
            _ => self.post((parts.headers, body), (admitted, &owner), came).await,
        }
    }

    /// Finds out who calls. Where that takes a while, the request waits among those of strangers.
    async fn admit(&self, headers: &HeaderMap, came: Arrival) -> Result<Admitted, Refusal> {
        let mut admitting = self.gatekeeper.admit(headers);
        let admitted = match poll_fn(|context| Poll::Ready(admitting.as_mut().poll(context))).await {
            Poll::Ready(admitted) => admitted,
            Poll::Pending => {
                let _place = self.room.strangers.take(&Owner::of_peer(came.peer))?;
                admitting.await
            }
        };
        admitted.map_err(Refusal::AuthFailure)
    }

    /// What callers who are not known yet may read.
    fn metadata(&self, parts: &Parts) -> Result<Response<ResponseContent>, Refusal> {
        let text = self.gatekeeper.metadata(parts.uri.path()).ok_or(Refusal::Path)?;
        match parts.method {
            Method::GET | Method::HEAD => Ok(json(StatusCode::OK, text.into_bytes())),
            Method::OPTIONS => Ok(OriginPolicy::preflight(&parts.headers)),
            _ => Err(Refusal::Method("GET, HEAD")),
        }
    }

    async fn post<B>(
        &self,
        (headers, body): (HeaderMap, B),
        (admitted, owner): (Admitted, &Owner),
        came: Arrival,
    ) -> Result<Response<ResponseContent>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        check_content(&headers)?;
        let accepted = Accepted::of(&headers);
        if !accepted.json && !accepted.events {
            return Err(Refusal::Accept);
        }
        let place = self.room.requests.take(owner)?;
        let body = body::read(body, &self.limits, self.room.bodies.none(owner)).await?;
        let is_alone = self.lone_requests.is_lone(came.connection, self.room.requests.taken());
        let Admitted { caller, standing } = admitted;
        let begun = self.begin(&body, MessageContext { headers, accepted, caller, standing, place, is_alone })?;
        drop(body);
        match begun {
            MessageOutcome::Taken => Ok(accepted_response()),
            MessageOutcome::Answering { mailbox, lease, accepted, style } => {
                Ok(answer(&self.limits, mailbox, lease, accepted, style).await)
            }
        }
    }

    /// Decodes a message, once, and begins to answer it in its era.
    fn begin(&self, body: &[u8], ask: MessageContext) -> Result<MessageOutcome, Refusal> {
        let incoming = decode(body).map_err(|refused| Refusal::Message(refused.id, refused.error))?;
        let incoming = match incoming {
            Incoming::Blank => {
                let error = RpcError::new(ErrorCode::Parse, "Parse error: the body is empty");
                return Err(Refusal::Message(None, error));
            }
            Incoming::One(Err(refused)) => return Err(Refusal::Message(refused.id, refused.error)),
            incoming => incoming,
        };
        let era = Era::of(&ask.headers);
        if modern::is_modern(&incoming, era) {
            modern::begin(self, incoming, ask)
        } else {
            legacy::begin(self, incoming, ask, era)
        }
    }
}

/// The response to a message, in the form that what comes first asks for: JSON for an answer, events for an event, or
/// where the answer takes long enough that somebody may take the connection for dead.
async fn answer(
    limits: &HttpLimits,
    mailbox: Arc<Mailbox>,
    lease: Box<dyn Lease>,
    accepted: Accepted,
    style: ResponseStyle,
) -> Response<ResponseContent> {
    let next = poll_fn(|context| mailbox.poll_next(context));
    let first =
        if mailbox.takes_events() { tokio::time::timeout(limits.beat, next).await.ok() } else { Some(next.await) };
    let mut response = match first {
        Some(Next::End(Ending::Answer(frame))) if accepted.json => json(StatusCode::OK, frame),
        Some(Next::End(Ending::Answer(frame))) => {
            mailbox.end(Ending::Nothing);
            events(EventStream::new(mailbox, Some(frame), limits, lease))
        }
        Some(Next::End(Ending::Refusal(frame, code))) => json(refused_status(code, &style), frame),
        Some(Next::End(Ending::Nothing)) => accepted_response(),
        Some(Next::Event(frame)) => events(EventStream::new(mailbox, Some(frame), limits, lease)),
        None => events(EventStream::new(mailbox, None, limits, lease)),
    };
    if let ResponseStyle::NewSession(id) = style {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// The status of an error that stopped a message. To a legacy client 404 says that its session is gone.
fn refused_status(code: ErrorCode, style: &ResponseStyle) -> StatusCode {
    match (status_of(code), style) {
        (status, ResponseStyle::Modern) => status,
        (StatusCode::BAD_REQUEST, _) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn accepted_response() -> Response<ResponseContent> {
    let mut response = Response::new(ResponseContent::none());
    *response.status_mut() = StatusCode::ACCEPTED;
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

/// Modern requests that are being answered, for the server's end.
#[derive(Clone, Default)]
pub(super) struct LiveRequests(Arc<Mutex<LiveListeners>>);

#[derive(Default)]
struct LiveListeners {
    sequence: u64,
    listeners: HashMap<u64, Weak<dyn Listener>>,
}

/// One of them, until it is dropped.
pub(super) struct LiveRequest(LiveRequests, u64);

impl LiveRequests {
    pub(super) fn enter(&self, listener: Weak<dyn Listener>) -> LiveRequest {
        let mut listed = self.listed();
        listed.sequence += 1;
        let place = listed.sequence;
        listed.listeners.insert(place, listener);
        LiveRequest(self.clone(), place)
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Listener>> {
        self.listed().listeners.values().filter_map(Weak::upgrade).collect()
    }

    fn listed(&self) -> MutexGuard<'_, LiveListeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveRequest {
    fn drop(&mut self) {
        self.0.listed().listeners.remove(&self.1);
    }
}
