//! The connections of one call: those that carry a request, and those that wait for the next one to
//! the same server. A connection never outlives its call, and is never shared with another.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming as HyperBody;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::task::AbortHandle;
use toolcell_policy::{Host, Scheme};

use super::framing::ExpectedHead;
use super::outgoing::{GuestHttpBody, Sent};

/// The server of a connection. The addresses of one name are equivalent here: each connection was
/// made to one that was permitted for this host and port in this call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PooledServer {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    pub(super) port: u16,
}

/// A connection that can carry a request.
pub(super) struct PooledConnection {
    pub(super) sender: RequestSender,
    /// The task that reads and writes it.
    pub(super) driver: AbortHandle,
    /// True if a proxy reads the requests, which must then contain their full targets.
    pub(super) proxied: bool,
}

/// The sending half of a connection.
pub(super) enum RequestSender {
    /// HTTP/1.1: one at a time. The flag announces that a response is to come.
    One(http1::SendRequest<GuestHttpBody>, ExpectedHead),
    /// HTTP/2: many.
    Many(http2::SendRequest<GuestHttpBody>),
}

/// The waiting connections of one call.
#[derive(Default)]
pub(super) struct IdleConnections(Mutex<Vec<(PooledServer, PooledConnection)>>);

/// The use of a connection for one request.
pub(super) struct ConnectionLease {
    pub(super) idle: Arc<IdleConnections>,
    pub(super) server: PooledServer,
    pub(super) link: PooledConnection,
    pub(super) sent: Sent,
}

impl IdleConnections {
    fn waiting(&self) -> MutexGuard<'_, Vec<(PooledServer, PooledConnection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A waiting connection to this server that is still open.
    pub(super) async fn take(&self, server: &PooledServer) -> Option<PooledConnection> {
        loop {
            let mut link = self.take_any(server)?;
            if link.is_ready().await {
                return Some(link);
            }
        }
    }

    fn take_any(&self, server: &PooledServer) -> Option<PooledConnection> {
        let mut waiting = self.waiting();
        waiting.retain(|(_, link)| !link.is_closed());
        let at = waiting.iter().position(|(to, _)| to == server)?;
        let shared = waiting.get(at).and_then(|(_, link)| link.shared());
        Some(shared.unwrap_or_else(|| waiting.swap_remove(at).1))
    }

    /// Lets others use it, too, while it carries a request.
    pub(super) fn share(&self, server: &PooledServer, link: &PooledConnection) {
        if let Some(link) = link.shared() {
            self.waiting().push((server.clone(), link));
        }
    }
}

impl PooledConnection {
    /// The same connection, for another request. `None` if it carries one at a time.
    fn shared(&self) -> Option<Self> {
        let RequestSender::Many(sender) = &self.sender else { return None };
        let sender = RequestSender::Many(sender.clone());
        Some(Self { sender, driver: self.driver.clone(), proxied: self.proxied })
    }

    fn is_closed(&self) -> bool {
        match &self.sender {
            RequestSender::One(sender, _) => sender.is_closed(),
            RequestSender::Many(sender) => sender.is_closed(),
        }
    }

    /// Waits until it accepts a request; false if it is closed.
    async fn is_ready(&mut self) -> bool {
        match &mut self.sender {
            // A waiting connection was used to the end; only its task has yet to notice.
            RequestSender::One(sender, _) => sender.ready().await.is_ok(),
            RequestSender::Many(sender) => sender.ready().await.is_ok(),
        }
    }

    /// Sends a request. The error returns it if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<GuestHttpBody>,
    ) -> Result<Response<HyperBody>, TrySendError<Request<GuestHttpBody>>> {
        match &mut self.sender {
            RequestSender::One(sender, expected) => {
                expected.next();
                sender.try_send_request(request).await
            }
            RequestSender::Many(sender) => sender.try_send_request(request).await,
        }
    }
}

impl ConnectionLease {
    /// The response was received completely.
    pub(super) fn give_back(self) {
        let Self { idle, server, link, sent } = self;
        match &link.sender {
            RequestSender::One(sender, _) if sent.is_whole() && !sender.is_closed() => {
                idle.waiting().push((server, link))
            }
            RequestSender::One(..) => link.driver.abort(),
            // It was shared from the start.
            RequestSender::Many(_) => {}
        }
    }

    /// The response was not received completely. HTTP/2 abandons a single request, HTTP/1.1 only
    /// the whole connection.
    pub(super) fn close(self) {
        if let RequestSender::One(..) = self.link.sender {
            self.link.driver.abort();
        }
    }
}
