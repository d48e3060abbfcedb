//! A session whose client is also answered by other processes: what it passes to them, and what
//! they pass on.

use std::pin::Pin;
use std::sync::Arc;

use super::{ClientConnection, ConnectionParts, LegacyState};
use crate::asking::{AskName, ReplyText};
use crate::frame::RequestId;
use crate::host::Host;
use crate::meta::{ClientLogLevel, Peer};

/// Completes with true once another process has received the message, or with false after a bounded
/// time.
pub(crate) type Passed = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Completes once other processes know of it.
pub(crate) type CancelKnown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The other processes that answer the client of one session.
pub(crate) trait Elsewhere: Send + Sync {
    /// Passes the client's answer to the process at this address. `None` if no process has it.
    fn answer(&self, address: &str, number: u64, reply: Result<&str, &str>) -> Option<Passed>;

    /// Cancels a request that this process does not have. `None` if there is nothing to pass on.
    fn cancel(&self, id: &RequestId) -> Option<Passed>;

    /// Watches a resource everywhere, or stops that. Completes once the others know, or after a
    /// bounded time.
    fn watch(&self, uri: &str, watches: bool) -> CancelKnown;

    /// Sets the session's log level everywhere.
    fn set_log_level(&self, level: ClientLogLevel);
}

impl<H: Host> ClientConnection<H> {
    /// Answers the client together with other processes. This one asks it under this address.
    pub(crate) fn sharing(self, address: &str, session: &str, elsewhere: Arc<dyn Elsewhere>) -> Self {
        self.shared.asks.be_at(address);
        let _ = self.shared.session.set(session.to_owned());
        let _ = self.shared.elsewhere.set(elsewhere);
        self
    }

    /// The address under which this process asks the client, if others do too.
    pub(crate) fn address(&self) -> Option<String> {
        self.shared.asks.address().map(str::to_owned)
    }

    /// Continues a session that another process has begun.
    pub(crate) fn resumed(self, peer: Peer) -> Self {
        self.shared.state().session = Some(LegacyState { peer, ready: true });
        self
    }

    /// The number of a lasting connection.
    pub(crate) fn number(&self) -> u64 {
        self.shared.number.get().copied().unwrap_or_default()
    }

    /// The session's client, once it has begun.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.shared.state().session.as_ref().map(|session| session.peer.clone())
    }

    /// Notes that the client is ready, which it may have told another process.
    pub(crate) fn mark_ready(&self) {
        if let Some(session) = &mut self.shared.state().session {
            session.ready = true;
        }
    }

    /// Handles an answer that another process passed on.
    pub(crate) fn take_answer(&self, address: &str, number: u64, reply: ReplyText) {
        if self.shared.asks.is_at(Some(address)) {
            self.shared.asks.answer(number, reply);
        }
    }

    /// Handles a cancellation that another process passed on.
    pub(crate) fn take_cancel(&self, id: &RequestId) {
        self.shared.cancel(id);
    }

    /// The resources that the session watches, as far as this process knows.
    pub(crate) fn watched(&self) -> Vec<String> {
        self.shared.state().watched.uris().map(str::to_owned).collect()
    }

    /// Handles a change of the watched resources that another process passed on.
    pub(crate) fn take_watch(&self, uri: &str, watches: bool) {
        if watches {
            // The other process has already answered the request, so an error here is ignored.
            let _ = self.shared.watch(uri);
        } else {
            self.shared.watch_no_more(uri);
        }
    }

    /// Handles a log level that another process passed on.
    pub(crate) fn take_log_level(&self, level: ClientLogLevel) {
        self.shared.set_log_level(level);
    }
}

impl<H: Host> ConnectionParts<H> {
    /// Passes an answer to the call that waits for it, here or elsewhere.
    pub(super) fn answered(&self, name: AskName<'_>, reply: Result<&str, &str>) -> Option<Passed> {
        if self.asks.is_at(name.address) {
            self.asks.answer(name.number, ReplyText::of(reply));
            return None;
        }
        self.elsewhere.get().zip(name.address).and_then(|(elsewhere, at)| elsewhere.answer(at, name.number, reply))
    }

    /// Stops a call here, or else elsewhere.
    pub(super) fn cancel_anywhere(self: &Arc<Self>, id: &RequestId) -> Option<Passed> {
        if self.cancel(id) {
            return None;
        }
        self.elsewhere.get().and_then(|elsewhere| elsewhere.cancel(id))
    }

    pub(super) fn set_log_level(&self, level: ClientLogLevel) {
        if let Some(session) = &mut self.state().session {
            session.peer.log_level = Some(level);
        }
    }
}
