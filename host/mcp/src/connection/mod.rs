//! One connection: its legacy session, its open requests, and the path of a frame through them.
//! Sans-IO: frames come in through [`ClientConnection::receive`] and leave through an [`Outbox`].

mod calls;
mod dispatch;
mod elsewhere;
mod page;
mod prompts;
mod reply;
mod resources;
mod skills;
mod subscriptions;
mod task_calls;
mod task_news;
mod tasks;
mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use toolcell_shared::TaskRecord;

use crate::asking::{AskName, PendingAsks, ReplyText};
use crate::caller::Caller;
use crate::frame::{ErrorId, OverlongFrame, RequestId, RpcError, error_frame};
use crate::host::{Executor, Host, Outbox};
use crate::lock::lock;
use crate::meta::Peer;
use crate::news::ResourceNews;
use crate::resources::Holder;
use crate::server::{ListChanges, McpServer, ServerOptions};
use crate::task::TaskOptions;

use calls::{QueuedCall, UnansweredCall};
pub(crate) use elsewhere::{CancelKnown, Elsewhere, Passed};
use subscriptions::ChangedLists;
use task_news::TaskWatch;
use watched::WatchedUris;

/// Whether a connection may read further frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// As many calls wait as may, but the client is asked something. Read on with
    /// [`ClientConnection::receive_past_bounds`]: behind calls may come the answer that running
    /// ones wait for.
    Answers,
    /// Too much is unread or queued. Read nothing until [`Outbox::notice`], or until the client
    /// reads again.
    Full,
}

/// One client's connection: a stdio process or an HTTP session.
pub struct ClientConnection<H: Host> {
    shared: Arc<ConnectionParts<H>>,
}

impl<H: Host> ClientConnection<H> {
    /// Opens a connection that is notified of a changed list only after it subscribes.
    pub(crate) fn open(
        server: Arc<McpServer<H>>,
        caller: Caller,
        outbox: Arc<dyn Outbox>,
        executor: Arc<dyn Executor>,
    ) -> Self {
        Self {
            shared: Arc::new(ConnectionParts {
                server,
                caller,
                outbox,
                executor,
                asks: Arc::default(),
                number: OnceLock::new(),
                elsewhere: OnceLock::new(),
                session: OnceLock::new(),
                state: Mutex::default(),
            }),
        }
    }

    /// Makes the connection a lasting one. It is notified of a changed list without subscribing,
    /// and has its own resources.
    pub(crate) fn listening(self) -> Self {
        let _ = self.shared.number.set(self.shared.server.number());
        self.shared.listen_for_changes();
        self
    }

    /// A weak handle that can end the connection's subscriptions and calls.
    pub(crate) fn listener(&self) -> Weak<dyn ServerEvents> {
        self.shared.listener()
    }

    /// Stops all open requests without answering them. Call it when the client is gone.
    pub fn abandon(&self) {
        self.shared.abandon();
    }

    /// Answers a frame of more than `bytes_max` bytes, which was not kept: under its id, if one was
    /// found. A call that waits for the reply gets an error.
    pub fn refuse_overlong(&self, frame: &OverlongFrame, bytes_max: usize) {
        if let Some(name) = frame.reply_id().and_then(AskName::of_answer) {
            return self.shared.asks.answer(name.number, ReplyText::TooLong(frame.bytes()));
        }
        let error = RpcError::request(format!("The message is longer than {bytes_max} bytes"));
        let id = frame.request_id().map_or_else(|| self.shared.no_id(), ErrorId::Of);
        self.shared.outbox.queue(error_frame(id, &error));
    }

    /// Whether the transport may read further frames.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.shared.gate()
    }

    /// Begins waiting calls, and sends held-back notifications. Call it when the outbox is no
    /// longer congested.
    pub fn resume(&self) {
        self.shared.notify_of_held();
        self.shared.begin_queued();
    }

    /// True if no call is running or queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.shared.state();
        state.active == 0 && state.queue.is_empty() && state.later == 0
    }

    /// Ends every subscription with its final result. Call it when the server or the client leaves.
    pub fn end_subscriptions(&self) {
        self.shared.end_subscriptions();
    }

    /// Ends all waiting for the client's answers. Call it when the client has left.
    pub fn end_asking(&self) {
        self.shared.asks.close();
    }

    /// Cancels running calls, which still answer, and answers queued ones with an error.
    pub fn cancel_all(&self) {
        self.shared.cancel_all();
    }
}

/// The events that a server passes to its connections.
pub(crate) trait ServerEvents: Send + Sync {
    /// Lists have changed. `seen_by` returns the revisions in which a caller sees a difference.
    /// `lists` identifies the change on all replicas.
    fn lists_changed(&self, seen_by: &dyn Fn(&Caller) -> ListChanges, lists: Option<u64>);

    /// The catalog was replaced. `list_differs` tells if a caller sees another list of resources,
    /// `has_changed` if an address is now read from something else.
    fn resources_replaced(&self, list_differs: &dyn Fn(&Caller) -> bool, has_changed: &dyn Fn(&str) -> bool);

    /// Resources have changed. Returns true if the client does not know of all of them yet.
    fn resources_changed(&self, news: &ResourceNews) -> bool;

    /// The caller, if its client watches this task.
    fn watcher_of(&self, task: &str) -> Option<Caller>;

    /// A task that the client watches has changed.
    fn task_changed(&self, task: &TaskRecord, options: &TaskOptions);

    /// The server is about to end: subscriptions end with their result.
    fn server_ends(&self);

    /// The time for calls to end is over: they are cancelled, but still answer.
    fn time_is_up(self: Arc<Self>);
}

impl<H: Host> ServerEvents for ConnectionParts<H> {
    fn lists_changed(&self, seen_by: &dyn Fn(&Caller) -> ListChanges, lists: Option<u64>) {
        self.announce(&seen_by(&self.caller), lists);
    }

    fn resources_replaced(&self, list_differs: &dyn Fn(&Caller) -> bool, has_changed: &dyn Fn(&str) -> bool) {
        if list_differs(&self.caller) {
            self.announce_resources();
        }
        self.note_updates(has_changed);
        self.notify_of_updates();
    }

    fn resources_changed(&self, news: &ResourceNews) -> bool {
        self.take_news(news)
    }

    fn watcher_of(&self, task: &str) -> Option<Caller> {
        self.watches(task).then(|| self.caller.clone())
    }

    fn task_changed(&self, task: &TaskRecord, options: &TaskOptions) {
        self.notify_of_task(task, options);
    }

    fn server_ends(&self) {
        self.end_subscriptions();
    }

    fn time_is_up(self: Arc<Self>) {
        self.cancel_all();
    }
}

struct ConnectionParts<H: Host> {
    server: Arc<McpServer<H>>,
    caller: Caller,
    outbox: Arc<dyn Outbox>,
    executor: Arc<dyn Executor>,
    /// The server's unanswered requests to the client.
    asks: Arc<PendingAsks>,
    /// The number of a lasting connection, which is unique.
    number: OnceLock<u64>,
    /// Other processes that answer the same client, if there are any.
    elsewhere: OnceLock<Arc<dyn Elsewhere>>,
    /// The name of the session that they answer.
    session: OnceLock<String>,
    state: Mutex<ConnectionState<H::Catalog>>,
}

impl<H: Host> Drop for ConnectionParts<H> {
    fn drop(&mut self) {
        if let Some(number) = self.number.get() {
            self.server.resources.forget(&Holder::Connection(*number));
        }
    }
}

struct ConnectionState<C> {
    session: Option<LegacyState>,
    /// Unanswered requests, in a deterministic order.
    open: BTreeMap<RequestId, UnansweredRequest>,
    /// Unanswered calls from before the last `initialize`, whose ids are free again.
    earlier: Vec<(RequestId, UnansweredCall)>,
    queue: VecDeque<QueuedCall<C>>,
    queue_bytes: usize,
    /// Calls whose future has not ended, including cancelled ones.
    active: usize,
    /// Requests that wait for a task to end.
    waiting: usize,
    /// Tasks that the legacy session has begun, and gets notifications for.
    tasks: TaskWatch,
    /// The number of the last call. It distinguishes a call from a later one that reuses its id.
    sequence: u64,
    /// True if this connection is notified of changed lists.
    listens: bool,
    /// Changed lists of which the legacy session is not notified yet.
    lists: ChangedLists,
    /// Resources that the legacy session watches.
    watched: WatchedUris,
    /// True if notifications wait until the client reads.
    held: bool,
    /// Requests other than calls that are answered later, such as the reading of a file.
    later: usize,
    /// True while a frame is handled that came through [`Gate::Answers`].
    past_bounds: bool,
}

impl<C> Default for ConnectionState<C> {
    fn default() -> Self {
        Self {
            session: None,
            open: BTreeMap::new(),
            earlier: Vec::new(),
            queue: VecDeque::new(),
            queue_bytes: 0,
            active: 0,
            waiting: 0,
            tasks: TaskWatch::default(),
            sequence: 0,
            listens: false,
            lists: ChangedLists::default(),
            watched: WatchedUris::default(),
            held: false,
            later: 0,
            past_bounds: false,
        }
    }
}

impl<C> ConnectionState<C> {
    /// True if one more call may wait.
    fn has_room(&self, options: &ServerOptions) -> bool {
        self.queue.len() < options.pending_calls_max.max(1) && self.queue_bytes < options.pending_bytes_max.max(1)
    }
}

/// A legacy session, from `initialize` on.
#[derive(Clone)]
struct LegacyState {
    peer: Peer,
    /// True once the client has sent `notifications/initialized`.
    ready: bool,
}

/// One request that is not answered yet.
enum UnansweredRequest {
    Call(UnansweredCall),
    Subscription(subscriptions::OpenListen),
}

impl<H: Host> ConnectionParts<H> {
    fn state(&self) -> MutexGuard<'_, ConnectionState<H::Catalog>> {
        lock(&self.state)
    }

    fn gate(&self) -> Gate {
        let options = &self.server.options;
        if self.outbox.congested() {
            return Gate::Full;
        }
        let state = self.state();
        if state.later >= options.in_flight_max.max(1) {
            // These end without the client.
            return Gate::Full;
        }
        match state.has_room(options) {
            true => Gate::Open,
            false if self.asks.is_waiting() => Gate::Answers,
            false => Gate::Full,
        }
    }

    fn listener(self: &Arc<Self>) -> Weak<dyn ServerEvents> {
        let listener: Arc<dyn ServerEvents> = Arc::<Self>::clone(self);
        Arc::downgrade(&listener)
    }

    /// Registers the connection for notifications of changed lists.
    fn listen_for_changes(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.state().listens, true) {
            self.server.enter(self.listener());
        }
    }

    /// The id of an error that answers an unreadable request.
    fn no_id(&self) -> ErrorId<'static> {
        let state = self.state();
        let revision = state.session.as_ref().map(|session| session.peer.revision);
        if revision.is_none_or(|revision| revision.features().absent_ids) { ErrorId::Absent } else { ErrorId::Null }
    }
}
