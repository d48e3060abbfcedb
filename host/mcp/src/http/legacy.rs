//! Legacy requests (2025-11-25 and before): `initialize` opens a session, and all later messages
//! name it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::time::timeout;

use super::exchange::{KNOWN_WITHIN, ReplicaExchange, SessionElsewhere, SessionName, SessionNews};
use super::executor::DrivingExecutor;
use super::headers::{Accepted, Era, SESSION_ID};
use super::limits::UNREAD_BYTES_MAX;
use super::mailbox::{Mailbox, Next, ResponseEnd};
use super::quota::{Owner, QuotaGuard};
use super::refusal::HttpRefusal;
use super::replicas::{Recipient, ReplicasAway};
use super::response::{PendingResponse, ResponseContent, ResponseStyle, empty, events};
use super::resume;
use super::sealed::SealedSession;
use super::service::{KnownSender, MessageContext, MessageOutcome, Service};
use super::session::{LegacySession, SessionOutbox, SessionUse};
use super::stream::{EventStream, Lease};
use super::{Admitted, CredentialValidity};
use crate::caller::Caller;
use crate::connection::ClientConnection;
use crate::frame::{ErrorCode, FrameContent, McpMessage, RpcError};
use crate::host::{Executor, Host, Outbox};
use crate::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION, TraceContext};
use crate::method::Method;
use crate::mirrored::single;
use crate::resources::StoreHolder;
use crate::sealing::random_name;

/// A request of a session while it is answered, or the session's stream. A disconnect does not
/// cancel it.
struct SessionExchange<H: Host> {
    mailbox: Arc<Mailbox>,
    /// The stream ends with the credential. A call is answered even if the credential ends.
    validity: CredentialValidity,
    /// Set for the session's stream, if other replicas answer the session too.
    _opened: Option<OpenStream>,
    kind: StreamKind,
    session: SessionUse<H>,
    guard: Option<QuotaGuard>,
}

/// The stream that a session's exchange may become.
enum StreamKind {
    /// The stream of an answer, with its id once it has begun.
    Answer(Option<Box<str>>),
    /// The session's own.
    Session,
}

impl<H: Host> Lease for SessionExchange<H> {
    fn validity(&self) -> CredentialValidity {
        self.validity.clone()
    }

    fn expire(&self) {
        self.mailbox.end(ResponseEnd::Nothing);
    }

    fn begin(&mut self, mailbox: &Arc<Mailbox>) -> Option<Box<str>> {
        if !self.session.connection.peer()?.revision.features().primed_streams {
            return None;
        }
        match &mut self.kind {
            StreamKind::Session => Some(self.session.answers.session_id()),
            StreamKind::Answer(Some(id)) => Some(id.clone()),
            StreamKind::Answer(none) => Some(none.insert(self.session.answers.begin(mailbox)).clone()),
        }
    }

    fn release(&mut self, reader: u64, ended: bool) -> bool {
        let StreamKind::Answer(Some(id)) = &self.kind else { return false };
        if ended {
            self.session.answers.ended(id);
            return false;
        }
        self.session.answers.broke(id, reader, self.guard.take());
        true
    }
}

impl<H: Host> SessionExchange<H> {
    fn answering(mailbox: &Arc<Mailbox>, session: SessionUse<H>, guard: QuotaGuard) -> Self {
        let validity = CredentialValidity::default();
        let kind = StreamKind::Answer(None);
        Self { mailbox: Arc::clone(mailbox), validity, _opened: None, kind, session, guard: Some(guard) }
    }
}

/// Begins to answer a message of this era.
pub(super) fn begin<H: Host>(
    service: &Service<H>,
    incoming: FrameContent<'_>,
    context: MessageContext,
    era: Era,
) -> Result<MessageOutcome, HttpRefusal> {
    // A client that starts over may still name a session that has ended.
    if asks_for_session(&incoming) {
        return initialize(service, incoming, context);
    }
    let Some(id) = session_id(&context.headers)? else { return Err(without_session(&incoming, era)) };
    let session = find(service, id, &context.caller, era)?;
    let style = if incoming.asks() { ResponseStyle::Legacy } else { ResponseStyle::Taken };
    let share = service.quotas.answers.empty_guard(context.guard.owner());
    let mailbox = Mailbox::new(context.accepted.events, UNREAD_BYTES_MAX, None);
    let mailbox = mailbox.counted(share, incoming.request_id().cloned());
    let mailbox = Arc::new(mailbox.traced(TraceContext::of_headers(&context.headers)));
    let outbox: Arc<dyn Outbox> = Arc::<Mailbox>::clone(&mailbox);
    session.driving.set(context.is_alone);
    session.connection.take(incoming, &outbox);
    let lease = Box::new(SessionExchange::answering(&mailbox, session, context.guard));
    Ok(MessageOutcome::Answering(PendingResponse { mailbox, lease, accepted: context.accepted, style }))
}

/// Opens the stream for a session's messages that belong to no request. The answer begins once all
/// replicas know of the stream, so that streams are ordered.
pub(super) async fn listen<H: Host>(
    service: &Service<H>,
    headers: &HeaderMap,
    sender: KnownSender,
) -> Result<Response<ResponseContent>, HttpRefusal> {
    let KnownSender { admitted: Admitted { caller, validity }, owner } = sender;
    let id = session_id(headers)?.ok_or(HttpRefusal::NoSession)?;
    let session = find(service, id, &caller, Era::of(headers))?;
    if !Accepted::of(headers).events {
        return Err(HttpRefusal::AcceptEvents);
    }
    let guard = service.quotas.streams.take(&owner)?;
    if let Some(answer) = resume::wanted(headers) {
        let mailbox = session.answers.take_up(answer).ok_or(HttpRefusal::Resumption)?;
        let kind = StreamKind::Answer(Some(answer.into()));
        let lease = SessionExchange { kind, ..SessionExchange::answering(&mailbox, session, guard) };
        return Ok(events(EventStream::new(mailbox, None, &service.options.limits, Box::new(lease))));
    }
    let share = service.quotas.answers.empty_guard(&owner);
    let mailbox = Mailbox::new(true, UNREAD_BYTES_MAX, None).counted(share, None);
    let mailbox = Arc::new(mailbox);
    let opened = service.exchange.as_ref().map(|exchange| OpenStream {
        elsewhere: SessionElsewhere::new(exchange, &service.key_of(id), &caller),
        name: exchange.stream_name(),
    });
    let known = session.outbox.open(&mailbox, opened.as_ref().map(|stream| stream.name.as_str()));
    let is_shared = opened.is_some();
    if let Some(stream) = &opened {
        session.connection.mark_ready();
        stream.elsewhere.send(Recipient::All, SessionNews::Opened(stream.name.clone()));
    }
    if service.is_ending() {
        session.outbox.end();
    }
    let kind = StreamKind::Session;
    let lease = SessionExchange::answering(&mailbox, session, guard);
    let lease = SessionExchange { validity, _opened: opened, kind, ..lease };
    // If the client gives up during the wait, the stream is dropped.
    let stream = EventStream::new(mailbox, None, &service.options.limits, Box::new(lease));
    if is_shared {
        // If the others are unreachable, the stream still serves this replica's messages.
        let _ = timeout(KNOWN_WITHIN, known).await;
    }
    Ok(events(stream))
}

/// Ends a session, everywhere.
pub(super) async fn end<H: Host>(
    service: &Service<H>,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Response<ResponseContent>, HttpRefusal> {
    let id = session_id(headers)?.ok_or(HttpRefusal::NoSession)?;
    let session = find(service, id, caller, Era::of(headers))?;
    let key = service.key_of(id);
    if let Some(exchange) = &service.exchange {
        let name = SessionName { key: &key, caller: caller.name() };
        exchange.end(name, session.left()).await.map_err(|ReplicasAway| HttpRefusal::Away)?;
    }
    service.sessions.end(&key);
    drop(session);
    if let Some(store) = service.server.store.get() {
        // If this fails, the resources expire.
        let _ = store.forget(&StoreHolder::session(caller.name(), &key).holder).await;
    }
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Tries to register a session while sessions end concurrently. Each takes one lookup.
const MEET_TRIES_MAX: usize = 8;

/// Registers a session that another replica began. Checks once if it has ended; later announcements
/// tell.
pub(super) async fn meet<H: Host>(
    service: &Service<H>,
    exchange: &Arc<ReplicaExchange>,
    headers: &HeaderMap,
    caller: &Caller,
    owner: &Owner,
) -> Result<(), HttpRefusal> {
    // If the session is needed, its lookup reports what is wrong with the id.
    let Ok(Some(id)) = session_id(headers) else { return Ok(()) };
    let key = service.key_of(id);
    if service.sessions.knows(&key) {
        return Ok(());
    }
    // If the session is needed, its lookup reports that it does not exist.
    let Some(sealed) = SealedSession::open(&service.server.options.state_key, id, caller) else { return Ok(()) };
    let Some(peer) = sealed.peer() else { return Ok(()) };
    for _ in 0..MEET_TRIES_MAX {
        let ended = service.sessions.ended();
        match exchange.replicas.has_ended(&key).await {
            Ok(false) => {}
            Ok(true) => return Ok(()),
            Err(ReplicasAway) => return Err(HttpRefusal::Away),
        }
        let line = Arc::new(SessionOutbox::new(service.server.options.watched_max));
        let (connection, driving) = open(service, caller, &line, false);
        let connection = connection.resumed(peer.clone());
        let connection = shared(exchange, connection, &key, caller);
        let session = LegacySession::new(connection, driving, line, caller.clone(), sealed.left());
        if service.sessions.enter(&key, session, owner, &service.options.limits, Some(ended))? {
            return Ok(());
        }
    }
    Err(HttpRefusal::Busy)
}

/// The connection of a session.
fn open<H: Host>(
    service: &Service<H>,
    caller: &Caller,
    line: &Arc<SessionOutbox>,
    is_alone: bool,
) -> (ClientConnection<H>, Arc<DrivingExecutor>) {
    let outbox: Arc<dyn Outbox> = Arc::<SessionOutbox>::clone(line);
    let driving = DrivingExecutor::new(&service.executor, is_alone);
    let executor: Arc<dyn Executor> = Arc::<DrivingExecutor>::clone(&driving);
    let connection = ClientConnection::open(Arc::clone(&service.server), caller.clone(), outbox, executor).listening();
    (connection, driving)
}

/// A connection that shares its session with other replicas.
fn shared<H: Host>(
    exchange: &Arc<ReplicaExchange>,
    connection: ClientConnection<H>,
    key: &str,
    caller: &Caller,
) -> ClientConnection<H> {
    let address = exchange.address(connection.number());
    connection.sharing(&address, key, Arc::new(SessionElsewhere::new(exchange, key, caller)))
}

fn find<H: Host>(service: &Service<H>, id: &str, caller: &Caller, era: Era) -> Result<SessionUse<H>, HttpRefusal> {
    let session = service.sessions.find(&service.key_of(id), caller).ok_or(HttpRefusal::Session)?;
    match era {
        Era::Unsaid | Era::Legacy => Ok(session),
        Era::Modern | Era::Unknown => Err(HttpRefusal::Version),
    }
}

/// The session that a request names, if any.
fn session_id(headers: &HeaderMap) -> Result<Option<&str>, HttpRefusal> {
    let id = single(headers, &SESSION_ID).map_err(|_| HttpRefusal::Sessions)?;
    id.map(|id| id.to_str().map_err(|_| HttpRefusal::Session)).transpose()
}

fn asks_for_session(incoming: &FrameContent<'_>) -> bool {
    matches!(incoming, FrameContent::One(Ok(McpMessage::Request(request))) if request.method.known() == Some(Method::Initialize))
}

/// The refusal of a message without a session, which may belong to either era unless the header
/// tells.
fn without_session(incoming: &FrameContent<'_>, era: Era) -> HttpRefusal {
    let FrameContent::One(Ok(McpMessage::Request(request))) = incoming else {
        return if era == Era::Modern { HttpRefusal::NoRequest } else { HttpRefusal::NoSession };
    };
    if let Some(fault) = request.params.fault.clone() {
        return HttpRefusal::Message(RpcError { code: ErrorCode::InvalidMeta, ..fault });
    }
    let older = match era {
        Era::Modern => "",
        _ => "; before 2026-07-28, the header Mcp-Session-Id that initialize is answered with",
    };
    let text = format!("Missing in params._meta: {PROTOCOL_VERSION}, {CLIENT_CAPABILITIES}{older}");
    HttpRefusal::Message(RpcError::meta(text))
}

fn initialize<H: Host>(
    service: &Service<H>,
    incoming: FrameContent<'_>,
    context: MessageContext,
) -> Result<MessageOutcome, HttpRefusal> {
    let line = Arc::new(SessionOutbox::new(service.server.options.watched_max));
    let mailbox = Arc::new(Mailbox::new(true, UNREAD_BYTES_MAX, None));
    let told: Arc<dyn Outbox> = Arc::<Mailbox>::clone(&mailbox);
    let (connection, driving) = open(service, &context.caller, &line, context.is_alone);
    connection.take(incoming, &told);
    let ending = match mailbox.try_next() {
        Some(Next::End(ending)) => ending,
        _ => return Err(HttpRefusal::Busy),
    };
    let mut style = ResponseStyle::Legacy;
    let (id, connection) = match matches!(ending, ResponseEnd::Answer(_)) {
        true => named(service, connection, &context.caller).map(|(id, connection)| (Some(id), connection))?,
        false => (None, connection),
    };
    let session = LegacySession::new(connection, driving, line, context.caller, service.options.limits.session_time);
    if let Some(id) = id {
        let owner = context.guard.owner();
        service.sessions.enter(&service.key_of(&id), Arc::clone(&session), owner, &service.options.limits, None)?;
        style = ResponseStyle::NewSession(HeaderValue::from_str(&id).map_err(|_| HttpRefusal::Busy)?);
    }
    mailbox.end(ending);
    let lease = Box::new(SessionExchange::answering(&mailbox, SessionUse::of(session), context.guard));
    Ok(MessageOutcome::Answering(PendingResponse { mailbox, lease, accepted: context.accepted, style }))
}

/// The id of a new session. Replicas can read everything from it that they need to continue the
/// session.
fn named<H: Host>(
    service: &Service<H>,
    connection: ClientConnection<H>,
    caller: &Caller,
) -> Result<(String, ClientConnection<H>), HttpRefusal> {
    let Some(exchange) = &service.exchange else {
        return Ok((random_name().ok_or(HttpRefusal::Busy)?, connection));
    };
    let peer = connection.peer().ok_or(HttpRefusal::Busy)?;
    let sealed = SealedSession::new(caller, &peer, service.options.limits.session_time);
    let id = sealed.seal(&service.server.options.state_key).ok_or(HttpRefusal::Busy)?;
    let connection = shared(exchange, connection, &service.key_of(&id), caller);
    Ok((id, connection))
}

/// The stream of a session, as other replicas know it. They are notified when it is dropped.
struct OpenStream {
    elsewhere: SessionElsewhere,
    name: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.elsewhere.send(Recipient::All, SessionNews::Closed(self.name.clone()));
    }
}
