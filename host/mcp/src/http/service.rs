//! One request from its head to the start of its message: its path, its caller, its quotas, its
//! body and its era.

use std::borrow::Cow;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, EXPECT, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;

use super::body;
use super::checks::CredentialChecks;
use super::exchange::ReplicaExchange;
use super::executor::LoneRequests;
use super::headers::{self, Accepted, Era, SESSION_ID, check_content, check_framing};
use super::long::{DoneInTurn, do_in_turn};
use super::modern::LiveRequests;
use super::origin::OriginPolicy;
use super::quota::{Owner, QuotaGuard, Quotas};
use super::refusal::{DOCUMENT_METHODS, HttpRefusal, METHODS};
use super::response::{PendingResponse, ResponseContent, empty, json, plain};
use super::session::LegacySessions;
use super::watch::RequestWatch;
use super::{Admitted, CredentialValidity, HttpOptions};
use super::{legacy, modern, sealed};
use crate::caller::Caller;
use crate::frame::{BYTE_ORDER_MARK, ErrorCode, ErrorId, FrameContent, RefusedFrame, RpcError, decode};
use crate::host::{Executor, Host, ServedCatalog as _};
use crate::revision::Revision;
use crate::server::McpServer;
use crate::turns::FairTurns;

/// The liveness path.
const LIVE: &str = "/healthz";

/// The readiness path.
const READY: &str = "/readyz";

/// Announces to an HTTP/1.1 client that the connection accepts no further request.
const CLOSES: HeaderValue = HeaderValue::from_static("close");

/// Longest message that is read where it arrives, in bytes. 16 KiB: reading takes some 50 µs.
const CHEAP_BYTES: usize = 16 * 1024;

/// How long a long message keeps its turn while it is answered, per KiB: its tool reads it as well,
/// which takes as long. A longer wait does not block others.
const TURN_PER_KIB: Duration = Duration::from_micros(100);

/// Longest time to keep a turn. A tool may wait for minutes, and others with long messages come
/// after it.
const TURN_MAX: Duration = Duration::from_millis(250);

/// The state that all connections share.
pub(super) struct Service<H: Host> {
    pub(super) server: Arc<McpServer<H>>,
    pub(super) executor: Arc<dyn Executor>,
    /// Without its listeners and replicas.
    pub(super) options: HttpOptions,
    pub(super) sessions: Arc<LegacySessions<H>>,
    /// The other replicas, if they answer legacy sessions too.
    pub(super) exchange: Option<Arc<ReplicaExchange>>,
    pub(super) live: LiveRequests,
    pub(super) quotas: Quotas,
    /// True once shutdown has begun. Requests may still be accepted.
    pub(super) leaving: AtomicBool,
    /// True once no more requests are accepted.
    pub(super) ending: AtomicBool,
    pub(super) lone_requests: LoneRequests,
    /// Turns for reading long messages.
    pub(super) turns: Arc<FairTurns<Owner>>,
    /// Turns for checks of credentials.
    pub(super) checks: Arc<FairTurns<Owner>>,
}

/// The context of a message.
pub(super) struct MessageContext {
    pub(super) headers: HeaderMap,
    pub(super) accepted: Accepted,
    pub(super) caller: Caller,
    pub(super) validity: CredentialValidity,
    pub(super) guard: QuotaGuard,
    /// True if there is no concurrent request.
    pub(super) is_alone: bool,
}

/// Where a request came from.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// The address that received it; `None` for a Unix socket.
    pub(super) local: Option<IpAddr>,
    /// The address that sent it; `None` for a Unix socket.
    pub(super) peer: Option<IpAddr>,
    /// A number of its connection; `None` for a connection that carries several requests at once.
    pub(super) connection: Option<usize>,
}

/// The outcome of beginning a message.
pub(super) enum MessageOutcome {
    Taken,
    /// Its answer is on its way.
    Answering(PendingResponse),
}

/// The authenticated sender of a request.
pub(super) struct KnownSender {
    pub(super) admitted: Admitted,
    pub(super) owner: Owner,
}

impl<H: Host> Service<H> {
    /// Answers one request. `open` is its entry in its connection.
    pub(super) async fn respond<B>(
        self: &Arc<Self>,
        request: Request<B>,
        arrival: Arrival,
        open: &mut RequestWatch,
    ) -> Response<ResponseContent>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let is_multiplexed = request.version() >= Version::HTTP_2;
        let revision = headers::revision(request.headers());
        let session = request.headers().get(SESSION_ID).cloned();
        let origin = request.headers().get(ORIGIN).cloned();
        let has_credential = request.headers().contains_key(AUTHORIZATION);
        let mut response = match self.route(request, arrival, open).await {
            Ok(response) => response,
            Err(refusal) => {
                let reason = refusal.reason(has_credential);
                if let Some((refusals, reason)) = self.options.refusals.as_ref().zip(reason) {
                    refusals.refused(arrival.peer, reason);
                }
                refusal.response(self.no_id(revision, session.as_ref()))
            }
        };
        self.options.origin_policy.expose(origin, &mut response);
        self.options.traffic.answered(response.status());
        // A proxy could send its next request on a connection that is about to close. HTTP/2
        // announces this itself.
        if !is_multiplexed && self.leaving.load(Ordering::SeqCst) {
            response.headers_mut().insert(CONNECTION, CLOSES);
        }
        response
    }

    /// The id of an error for a request whose own id was not read, in the form of the client's
    /// revision: that of the session, or of a header.
    fn no_id(&self, named: Option<Revision>, session: Option<&HeaderValue>) -> ErrorId<'static> {
        let session = session.and_then(|id| self.sessions.of_key(&self.key_of(id.to_str().ok()?)));
        match session.and_then(|session| session.connection.peer()).map(|peer| peer.revision).or(named) {
            Some(revision) if !revision.features().absent_ids => ErrorId::Null,
            _ => ErrorId::Absent,
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// The name of a session in the table. Among replicas it is a digest of the id.
    pub(super) fn key_of<'i>(&self, id: &'i str) -> Cow<'i, str> {
        if self.exchange.is_some() { sealed::key_of(id).into() } else { id.into() }
    }

    /// The health paths for operators. They reveal nothing that a web page must not know.
    async fn health(&self, path: &str) -> Option<Response<ResponseContent>> {
        let missing = match path {
            LIVE => return Some(plain(StatusCode::OK, "ok\n".to_owned())),
            READY if self.leaving.load(Ordering::SeqCst) => Some("ending"),
            READY => match &self.options.readiness {
                Some(readiness) => readiness.check().await,
                None => None,
            },
            _ => return None,
        };
        Some(match missing {
            None => plain(StatusCode::OK, "ready\n".to_owned()),
            Some(missing) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{missing}\n")),
        })
    }

    /// Takes a request through everything before its message, and answers it.
    async fn route<B>(
        self: &Arc<Self>,
        request: Request<B>,
        arrival: Arrival,
        open: &mut RequestWatch,
    ) -> Result<Response<ResponseContent>, HttpRefusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        // With or without a trailing slash.
        let is_endpoint =
            path.strip_suffix('/').unwrap_or(path) == self.options.path.strip_suffix('/').unwrap_or(&self.options.path);
        check_framing(&parts.headers)?;
        if matches!(parts.method, Method::GET | Method::HEAD)
            && let Some(response) = self.health(path).await
        {
            return Ok(response);
        }
        self.options.origin_policy.check(&parts, arrival.local)?;
        if !is_endpoint {
            return self.metadata(&parts);
        }
        if parts.method == Method::OPTIONS {
            return Ok(OriginPolicy::preflight(&parts.headers, METHODS));
        }
        let streams = matches!(parts.method, Method::GET | Method::DELETE);
        if parts.method != Method::POST && !streams {
            return Err(HttpRefusal::Method(METHODS));
        }
        if streams && Era::of(&parts.headers) == Era::Modern {
            return Err(HttpRefusal::Method("POST"));
        }
        if self.ending.load(Ordering::SeqCst) {
            return Err(HttpRefusal::Stopping);
        }
        let admitted = {
            let checks = self.checks_of(arrival.peer);
            let mut admitting = self.options.gatekeeper.admit(&parts.headers, &checks);
            match poll_fn(|context| Poll::Ready(admitting.as_mut().poll(context))).await {
                Poll::Ready(admitted) => admitted,
                // While authentication takes time, the request counts against the quota of
                // unauthenticated ones.
                Poll::Pending => {
                    let _guard = self.quotas.strangers.take(&Owner::of_peer(arrival.peer))?;
                    admitting.await
                }
            }
        };
        let admitted = admitted.map_err(HttpRefusal::AuthFailure)?;
        let owner = Owner::of(&admitted.caller, arrival.peer);
        open.assign_to(&owner, &self.quotas.connections)?;
        if let Some(exchange) = &self.exchange {
            legacy::meet(self, exchange, &parts.headers, &admitted.caller, &owner).await?;
        }
        match parts.method {
            Method::GET => return legacy::listen(self, &parts.headers, KnownSender { admitted, owner }).await,
            Method::DELETE => return legacy::end(self, &parts.headers, &admitted.caller).await,
            _ => check_content(&parts.headers)?,
        }
        let headers = parts.headers;
        let accepted = Accepted::of(&headers);
        if !accepted.json && !accepted.events {
            return Err(HttpRefusal::Accept);
        }
        let Admitted { caller, validity } = admitted;
        let guard = self.quotas.requests.take(&owner)?;
        let mut taken = self.quotas.bodies.empty_guard(&owner);
        let body = body::read(body, headers.contains_key(EXPECT), &self.options.limits, &mut taken).await?;
        let most = self.quotas.sent.per_minute();
        self.quotas.sent.take(&owner, body.len()).map_err(|wait| HttpRefusal::Sent(most, wait))?;
        let is_alone = self.lone_requests.is_lone(arrival.connection, self.quotas.requests.taken(), Instant::now());
        let context = MessageContext { headers, accepted, caller, validity, guard, is_alone };
        if body.len() > CHEAP_BYTES {
            return self.answer_long(body, context, taken).await;
        }
        let begun = self.begin(&body, context);
        drop(taken);
        match begun? {
            MessageOutcome::Taken => Ok(empty(StatusCode::ACCEPTED)),
            MessageOutcome::Answering(pending) => pending.respond(&self.options.limits).await,
        }
    }

    /// The checks of a credential from this address.
    fn checks_of(&self, peer: Option<IpAddr>) -> CredentialChecks {
        let executor = Arc::clone(&self.executor);
        CredentialChecks { executor, turns: Arc::clone(&self.checks), owner: Owner::of_peer(peer) }
    }

    /// The document for unauthenticated callers.
    fn metadata(&self, parts: &Parts) -> Result<Response<ResponseContent>, HttpRefusal> {
        let text = self.options.gatekeeper.metadata(parts.uri.path()).ok_or(HttpRefusal::Path)?;
        match parts.method {
            Method::GET | Method::HEAD => Ok(json(StatusCode::OK, text.into_bytes())),
            Method::OPTIONS => Ok(OriginPolicy::preflight(&parts.headers, DOCUMENT_METHODS)),
            _ => Err(HttpRefusal::Method(DOCUMENT_METHODS)),
        }
    }

    /// Answers a long message in its turn. It begins on a thread with low priority. Its tool then
    /// works on it within the same turn, for a time that depends on the length.
    async fn answer_long(
        self: &Arc<Self>,
        body: Bytes,
        context: MessageContext,
        taken: QuotaGuard,
    ) -> Result<Response<ResponseContent>, HttpRefusal> {
        if let Some(most) = self.server.host.snapshot().message_bytes_max()
            && body.len() > most
            && !is_array(&body)
        {
            return Err(body::too_long(most, &[&body]));
        }
        let kib = u32::try_from(body.len() / 1024).unwrap_or(u32::MAX);
        let turn = self.turns.take(context.guard.owner(), body.len() as u64).await;
        let service = Arc::clone(self);
        let begin = move || service.begin(&body, context);
        let Some(DoneInTurn { outcome: begun, turn }) = do_in_turn(&self.executor, turn, begin).await else {
            // A panic is reported like that of a call.
            return Err(HttpRefusal::Message(RpcError::internal("Internal error")));
        };
        drop(taken);
        match begun? {
            MessageOutcome::Taken => Ok(empty(StatusCode::ACCEPTED)),
            MessageOutcome::Answering(pending) => {
                let mut answer = std::pin::pin!(pending.respond(&self.options.limits));
                match tokio::time::timeout(TURN_PER_KIB.saturating_mul(kib).min(TURN_MAX), &mut answer).await {
                    Ok(response) => response,
                    Err(_) => {
                        drop(turn);
                        answer.await
                    }
                }
            }
        }
    }

    /// Decodes a message once, and begins to answer it in its era.
    fn begin(&self, body: &[u8], context: MessageContext) -> Result<MessageOutcome, HttpRefusal> {
        let incoming = match decode(body) {
            Ok(FrameContent::Blank) => {
                let error = RpcError::new(ErrorCode::Parse, "Parse error: the body is empty");
                return Err(HttpRefusal::Message(error));
            }
            Err(RefusedFrame { id, error }) | Ok(FrameContent::One(Err(RefusedFrame { id, error }))) => {
                return Err(HttpRefusal::Message(error).of(id));
            }
            Ok(incoming) => incoming,
        };
        let id = incoming.request_id().cloned();
        let era = Era::of(&context.headers);
        let room = if incoming.asks() { self.quotas.answers.has_room(context.guard.owner()) } else { Ok(()) };
        let begun = room.map_err(HttpRefusal::Unread).and_then(|()| match modern::is_modern(&incoming, era) {
            true => modern::begin(self, incoming, context),
            false => legacy::begin(self, incoming, context, era),
        });
        begun.map_err(|refusal| refusal.of(id))
    }
}

/// True if a body is a batch, whose messages share its length.
fn is_array(body: &[u8]) -> bool {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
