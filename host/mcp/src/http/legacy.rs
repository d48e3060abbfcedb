//! Legacy requests (2025-11-25 and before): `initialize` opens a session, and all later messages
//! name it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::accept::Accepted;
use super::body::ResponseContent;
use super::executor::DrivingExecutor;
use super::headers::{Era, SESSION_ID};
use super::mailbox::{Ending, Mailbox, Next};
use super::quota::QuotaGuard;
use super::refusal::Refusal;
use super::service::{MessageContext, MessageOutcome, PendingResponse, ResponseStyle, Sender, Service, events};
use super::session::{Session, SessionOutbox, SessionUse};
use super::stream::{EventStream, Lease};
use super::{Admitted, CredentialValidity};
use crate::caller::Caller;
use crate::connection::Connection;
use crate::frame::{ErrorCode, Incoming, Message, RpcError};
use crate::host::{Executor, Host, Outbox};
use crate::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION, TraceContext};
use crate::method::Method;
use crate::mirrored::single;

/// A request of a session while it is answered, or the session's stream. A client that disconnects
/// has cancelled nothing.
struct SessionExchange<H: Host> {
    mailbox: Arc<Mailbox>,
    /// The stream ends with the credential. A call is answered whatever becomes of it.
    validity: CredentialValidity,
    _session: SessionUse<H>,
    _guard: QuotaGuard,
}

impl<H: Host> Lease for SessionExchange<H> {
    fn validity(&self) -> CredentialValidity {
        self.validity.clone()
    }

    fn expire(&self) {
        self.mailbox.end(Ending::Nothing);
    }
}

impl<H: Host> SessionExchange<H> {
    fn answering(mailbox: &Arc<Mailbox>, session: SessionUse<H>, guard: QuotaGuard) -> Self {
        Self { mailbox: Arc::clone(mailbox), validity: CredentialValidity::default(), _session: session, _guard: guard }
    }
}

/// Begins to answer a message of this era.
pub(super) fn begin<H: Host>(
    service: &Service<H>,
    incoming: Incoming<'_>,
    context: MessageContext,
    era: Era,
) -> Result<MessageOutcome, Refusal> {
    let id = session_id(&context.headers)?;
    if id.is_none() && asks_for_session(&incoming) {
        return initialize(service, incoming, context);
    }
    let Some(id) = id else { return Err(without_session(&incoming)) };
    let session = find(service, id, &context.caller, era)?;
    let mailbox = Mailbox::new(context.accepted.events, service.limits.unread_bytes_max, None);
    let mailbox = Arc::new(mailbox.traced(TraceContext::of_headers(&context.headers)));
    let outbox: Arc<dyn Outbox> = Arc::<Mailbox>::clone(&mailbox);
    session.driving.set(context.is_alone);
    session.connection.take(incoming, &outbox);
    let lease = Box::new(SessionExchange::answering(&mailbox, session, context.guard));
    let (accepted, style) = (context.accepted, ResponseStyle::Legacy);
    Ok(MessageOutcome::Answering(PendingResponse { mailbox, lease, accepted, style }))
}

/// Opens the stream for a session's messages that belong to no request.
pub(super) fn listen<H: Host>(
    service: &Service<H>,
    headers: &HeaderMap,
    sender: Sender,
) -> Result<Response<ResponseContent>, Refusal> {
    let Sender { admitted: Admitted { caller, validity }, owner } = sender;
    let session = of_headers(service, headers, &caller)?;
    if !Accepted::of(headers).events {
        return Err(Refusal::Accept);
    }
    let guard = service.quotas.streams.take(&owner)?;
    let mailbox = Arc::new(Mailbox::new(true, service.limits.unread_bytes_max, None));
    session.outbox.open(&mailbox);
    if service.is_ending() {
        session.outbox.end();
    }
    let lease = SessionExchange { validity, ..SessionExchange::answering(&mailbox, session, guard) };
    Ok(events(EventStream::new(mailbox, None, &service.limits, Box::new(lease))))
}

/// Ends a session.
pub(super) fn end<H: Host>(
    service: &Service<H>,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Response<ResponseContent>, Refusal> {
    let session = of_headers(service, headers, caller)?;
    service.sessions.remove(session_id(headers)?.unwrap_or_default());
    drop(session);
    let mut response = Response::new(ResponseContent::none());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

fn of_headers<H: Host>(service: &Service<H>, headers: &HeaderMap, caller: &Caller) -> Result<SessionUse<H>, Refusal> {
    let id = session_id(headers)?.ok_or(Refusal::NoSession)?;
    find(service, id, caller, Era::of(headers))
}

fn find<H: Host>(service: &Service<H>, id: &str, caller: &Caller, era: Era) -> Result<SessionUse<H>, Refusal> {
    let session = service.sessions.find(id, caller).ok_or(Refusal::Session)?;
    match era {
        Era::Unsaid | Era::Legacy => Ok(session),
        Era::Modern | Era::Unknown => Err(Refusal::Version),
    }
}

/// The session that a request names, if it names one.
fn session_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let id = single(headers, &SESSION_ID).map_err(|_| Refusal::NoSession)?;
    id.map(|id| id.to_str().map_err(|_| Refusal::Session)).transpose()
}

fn asks_for_session(incoming: &Incoming<'_>) -> bool {
    matches!(incoming, Incoming::One(Ok(Message::Request(request))) if request.method.known() == Some(Method::Initialize))
}

/// The refusal of a message without a session, which may be meant for either era.
fn without_session(incoming: &Incoming<'_>) -> Refusal {
    let Incoming::One(Ok(Message::Request(request))) = incoming else { return Refusal::NoSession };
    let fault = request.params.fault.clone().map(|fault| RpcError { code: ErrorCode::InvalidMeta, ..fault });
    let error = fault.unwrap_or_else(|| {
        RpcError::meta(format!(
            "Missing in params._meta: {PROTOCOL_VERSION}, {CLIENT_CAPABILITIES}; before 2026-07-28, the header \
             Mcp-Session-Id that initialize is answered with"
        ))
    });
    Refusal::Message(Some(request.id.clone()), error)
}

fn initialize<H: Host>(
    service: &Service<H>,
    incoming: Incoming<'_>,
    context: MessageContext,
) -> Result<MessageOutcome, Refusal> {
    let line = Arc::<SessionOutbox>::default();
    let mailbox = Arc::new(Mailbox::new(true, service.limits.unread_bytes_max, None));
    let (outbox, told): (Arc<dyn Outbox>, Arc<dyn Outbox>) =
        (Arc::<SessionOutbox>::clone(&line), Arc::<Mailbox>::clone(&mailbox));
    let driving = DrivingExecutor::new(&service.executor, context.is_alone);
    let executor: Arc<dyn Executor> = Arc::<DrivingExecutor>::clone(&driving);
    let connection =
        Connection::open(Arc::clone(&service.server), context.caller.clone(), outbox, executor).listening();
    connection.take(incoming, &told);
    let ending = match mailbox.try_next() {
        Some(Next::End(ending)) => ending,
        _ => return Err(Refusal::Busy),
    };
    let mut style = ResponseStyle::Legacy;
    let session = Session::new(connection, driving, line, context.caller);
    if matches!(ending, Ending::Answer(_)) {
        let id = service.sessions.enter(Arc::clone(&session), context.guard.owner(), &service.limits)?;
        style = ResponseStyle::NewSession(HeaderValue::from_str(&id).map_err(|_| Refusal::Busy)?);
    }
    mailbox.end(ending);
    let lease = Box::new(SessionExchange::answering(&mailbox, SessionUse::of(session), context.guard));
    Ok(MessageOutcome::Answering(PendingResponse { mailbox, lease, accepted: context.accepted, style }))
}
