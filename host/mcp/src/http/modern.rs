//! Modern requests (2026-07-28): each is its own connection, which ends with its response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::CredentialValidity;
use super::executor::DrivingExecutor;
use super::headers::{Accepted, Era, check_modern, check_version};
use super::limits::UNREAD_BYTES_MAX;
use super::mailbox::Mailbox;
use super::quota::{Owner, QuotaGuard};
use super::refusal::HttpRefusal;
use super::response::{PendingResponse, ResponseStyle};
use super::service::{MessageContext, MessageOutcome, Service};
use super::stream::Lease;
use crate::connection::{ClientConnection, ServerEvents};
use crate::frame::{FrameContent, McpMessage, McpRequest};
use crate::host::{Host, Outbox};
use crate::lock::lock;
use crate::meta::{PROTOCOL_VERSION, TraceContext};
use crate::method::Method;
use crate::mirrored::Mirrored;

/// A modern request while it is answered. If dropped before the answer, the client is gone, and the
/// request is stopped.
struct ModernExchange<H: Host> {
    connection: ClientConnection<H>,
    /// Subscriptions end with the credential. A call is answered even if the credential ends.
    validity: CredentialValidity,
    _live: LiveRequest,
    _guard: QuotaGuard,
}

impl<H: Host> Lease for ModernExchange<H> {
    fn validity(&self) -> CredentialValidity {
        self.validity.clone()
    }

    fn expire(&self) {
        self.connection.end_subscriptions();
    }
}

impl<H: Host> Drop for ModernExchange<H> {
    fn drop(&mut self) {
        self.connection.abandon();
    }
}

/// True if a message belongs to this era: it names its version itself.
pub(super) fn is_modern(incoming: &FrameContent<'_>, era: Era) -> bool {
    match incoming {
        FrameContent::One(Ok(McpMessage::Request(McpRequest { params, .. }))) => {
            params.fault.is_none() && params.meta(PROTOCOL_VERSION).is_some()
        }
        // No version is defined for notifications: the header alone names it.
        FrameContent::One(Ok(McpMessage::Notification { params, .. })) => {
            params.meta(PROTOCOL_VERSION).is_some() || era == Era::Modern
        }
        _ => false,
    }
}

/// Begins to answer a message of this era.
pub(super) fn begin<H: Host>(
    service: &Service<H>,
    incoming: FrameContent<'_>,
    context: MessageContext,
) -> Result<MessageOutcome, HttpRefusal> {
    let MessageContext { headers, accepted, caller, validity, mut guard, is_alone } = context;
    match &incoming {
        FrameContent::One(Ok(McpMessage::Request(request))) => {
            let version = request.params.meta(PROTOCOL_VERSION).unwrap_or_default();
            let checked = check_modern(&headers, request, version);
            checked.map_err(HttpRefusal::Message)?;
            // The one method whose response stays open.
            if request.method.known() == Some(Method::Listen) {
                guard = stream_guard(service, accepted, guard.owner())?;
            }
        }
        FrameContent::One(Ok(McpMessage::Notification { params, .. })) => {
            if let Some(version) = params.meta(PROTOCOL_VERSION) {
                check_version(&headers, version).map_err(HttpRefusal::Message)?;
            }
            // This era has no notifications from clients over HTTP: a client cancels by closing the
            // response.
            return Ok(MessageOutcome::Taken);
        }
        _ => return Err(HttpRefusal::NoRequest),
    }
    let trace = TraceContext::of_headers(&headers);
    let mirrored = Some(Mirrored::of(headers));
    let share = service.quotas.answers.empty_guard(guard.owner());
    let mailbox = Mailbox::new(accepted.events, UNREAD_BYTES_MAX, mirrored);
    let mailbox = mailbox.counted(share, incoming.request_id().cloned());
    let mailbox = Arc::new(mailbox.traced(trace));
    let outbox: Arc<dyn Outbox> = Arc::<Mailbox>::clone(&mailbox);
    let executor = DrivingExecutor::new(&service.executor, is_alone);
    let connection = ClientConnection::open(Arc::clone(&service.server), caller, Arc::clone(&outbox), executor);
    connection.take(incoming, &outbox);
    let live = service.live.enter(connection.listener());
    let lease = Box::new(ModernExchange { connection, validity, _live: live, _guard: guard });
    Ok(MessageOutcome::Answering(PendingResponse { mailbox, lease, accepted, style: ResponseStyle::Modern }))
}

fn stream_guard<H: Host>(service: &Service<H>, accepted: Accepted, owner: &Owner) -> Result<QuotaGuard, HttpRefusal> {
    if !accepted.events {
        return Err(HttpRefusal::AcceptEvents);
    }
    Ok(service.quotas.streams.take(owner)?)
}

/// Modern requests that are being answered, so that they can be ended.
#[derive(Clone, Default)]
pub(super) struct LiveRequests(Arc<Mutex<LiveListeners>>);

#[derive(Default)]
struct LiveListeners {
    sequence: u64,
    /// True once serving ends: subscriptions that begin now end as well.
    ended: bool,
    listeners: HashMap<u64, Weak<dyn ServerEvents>>,
}

/// One such request; removed when dropped.
pub(super) struct LiveRequest(LiveRequests, u64);

impl LiveRequests {
    /// Adds a request that has begun.
    fn enter(&self, listener: Weak<dyn ServerEvents>) -> LiveRequest {
        let mut listed = lock(&self.0);
        listed.sequence += 1;
        let number = listed.sequence;
        let late = if listed.ended { listener.upgrade() } else { None };
        listed.listeners.insert(number, listener);
        drop(listed);
        late.into_iter().for_each(|listener| listener.server_ends());
        LiveRequest(self.clone(), number)
    }

    /// Ends subscriptions, including those that begin later.
    pub(super) fn end(&self) {
        lock(&self.0).ended = true;
        self.all().into_iter().for_each(|listener| listener.server_ends());
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn ServerEvents>> {
        lock(&self.0).listeners.values().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for LiveRequest {
    fn drop(&mut self) {
        lock(&self.0.0).listeners.remove(&self.1);
    }
}
