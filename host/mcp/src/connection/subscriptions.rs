//! The listeners for changes: ready legacy sessions, and `subscriptions/listen` of the modern era.
//! They are notified of changed lists, and of changes of the resources that they watch.

use std::sync::{Arc, MutexGuard};

use serde_json::{Map, Value};

use super::dispatch::RequestExchange;
use super::task_news::TaskWatch;
use super::watched::WatchedUris;
use super::{ConnectionParts, ConnectionState, UnansweredRequest};
use crate::frame::{Object, Params, RequestId, RpcError, notification_frame, result_frame, scan};
use crate::host::{Host, Outbox, ServedCatalog as _};
use crate::meta::{SERVER_INFO, SUBSCRIPTION_ID};
use crate::method::Notification;
use crate::news::{ResourceNews, WatchShare};
use crate::revision::Revision;
use crate::server::ListChanges;
use crate::task::undeclared;

/// The notifications for legacy clients.
const TOOLS_CHANGED_BARE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const PROMPTS_CHANGED_BARE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;

/// The notification of a changed list of resources for legacy clients.
const RESOURCES_CHANGED_BARE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#;

/// One open `subscriptions/listen`.
pub(super) struct OpenListen {
    pub(super) outbox: Arc<dyn Outbox>,
    wants: ChangedLists,
    /// Changed lists of which it is not notified yet.
    lists: ChangedLists,
    watched: WatchedUris,
    pub(super) tasks: TaskWatch,
}

/// Some of the lists: those that changed, or those that a listener subscribes to.
#[derive(Clone, Copy, Default)]
pub(super) struct ChangedLists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl ChangedLists {
    const fn add(&mut self, changed: Self) {
        self.tools |= changed.tools;
        self.prompts |= changed.prompts;
        self.resources |= changed.resources;
    }

    /// Those of them that a listener subscribes to.
    const fn of(self, wants: Self) -> Self {
        Self {
            tools: self.tools && wants.tools,
            prompts: self.prompts && wants.prompts,
            resources: self.resources && wants.resources,
        }
    }

    fn notifications(self) -> impl Iterator<Item = Notification> {
        let all = [
            (self.tools, Notification::ToolsChanged),
            (self.prompts, Notification::PromptsChanged),
            (self.resources, Notification::ResourcesChanged),
        ];
        all.into_iter().filter(|(changed, _)| *changed).map(|(_, notification)| notification)
    }
}

/// What a listener subscribes to, and the resources that it watches.
struct ListenRequest {
    wants: ChangedLists,
    uris: Vec<String>,
    tasks: Vec<String>,
}

/// The kinds of notifications that a listener may select with true or false.
const FLAGS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];

/// Reads `params.notifications`. Members of a wrong type are refused, even those of notifications
/// that this server never sends.
fn wanted(params: &Params<'_>) -> Result<ListenRequest, RpcError> {
    let wrong = |member: &str, must: &str| RpcError::params(format!("params.notifications{member} must be {must}"));
    let text = params.get("notifications").filter(|text| scan::is_object(text));
    let filter: Map<String, Value> =
        text.and_then(|text| serde_json::from_str(text).ok()).ok_or_else(|| wrong("", "an object"))?;
    // Some clients write `null` for an absent member.
    let is_there = |member: &str| filter.get(member).filter(|value| !value.is_null());
    for flag in FLAGS {
        if is_there(flag).is_some_and(|value| !value.is_boolean()) {
            return Err(wrong(&format!(".{flag}"), "true or false"));
        }
    }
    let strings = |member: &str| -> Result<Vec<String>, RpcError> {
        let no_list = || wrong(&format!(".{member}"), "a list of strings");
        let Some(list) = is_there(member) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(no_list)?;
        list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(no_list)).collect()
    };
    let flag = |member: &str| filter.get(member).and_then(Value::as_bool).unwrap_or_default();
    let [tools, prompts, resources] = FLAGS.map(flag);
    let wants = ChangedLists { tools, prompts, resources };
    Ok(ListenRequest { wants, uris: strings("resourceSubscriptions")?, tasks: strings("taskIds")? })
}

pub(super) fn tag(params: &mut Object<'_>, id: &RequestId) {
    id.push(Object::open(params.key("_meta")).key(SUBSCRIPTION_ID));
}

impl<H: Host> ConnectionParts<H> {
    /// Opens a subscription and acknowledges it.
    pub(super) fn listen(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let id = exchange.id();
        // Lists and resources that there are none of yet count: a reload may add the first.
        let ListenRequest { wants, uris, tasks: task_ids } = wanted(&exchange.request.params)?;
        let tasks = self.wanted_tasks(exchange, &task_ids)?;
        let mut watched = WatchedUris::default();
        for uri in &uris {
            watched.add(uri, self.server.options.watched_max, || self.watch_share())?;
        }
        let frame = notification_frame(Notification::Acknowledged, |params| {
            tag(params, id);
            let mut honoured = Object::open(params.key("notifications"));
            for (flag, is_wanted) in FLAGS.into_iter().zip([wants.tools, wants.prompts, wants.resources]) {
                if is_wanted {
                    honoured.flag(flag, true);
                }
            }
            if !uris.is_empty() {
                honoured.json("resourceSubscriptions", &watched.uris().collect::<Vec<_>>());
            }
            let ids: Vec<&str> = tasks.ids().collect();
            if !ids.is_empty() {
                honoured.json("taskIds", &ids);
            }
        });
        self.listen_for_changes();
        let mut state = self.state();
        let open = state.open.values().filter(|open| matches!(open, UnansweredRequest::Subscription(_))).count();
        let most = self.server.options.listens_max;
        if open >= most {
            // The request is valid, but the server has no room for it.
            let text = format!("At most {most} subscriptions of one connection may be open: cancel one first");
            return Err(RpcError::internal(text));
        }
        let outbox = Arc::clone(exchange.reply.outbox());
        // Subscribed and acknowledged under one lock, so that no change is lost or sent before the
        // acknowledgement.
        let ids: Vec<String> = tasks.ids().map(str::to_owned).collect();
        let subscription =
            OpenListen { outbox: Arc::clone(&outbox), wants, lists: ChangedLists::default(), watched, tasks };
        state.open.insert(id.clone(), UnansweredRequest::Subscription(subscription));
        outbox.queue(frame);
        drop(state);
        if !ids.is_empty() {
            self.notify_of_first_tasks(id, ids);
        }
        Ok(())
    }

    /// The tasks that a listener watches.
    fn wanted_tasks(&self, exchange: &RequestExchange<'_, H>, ids: &[String]) -> Result<TaskWatch, RpcError> {
        let mut tasks = TaskWatch::default();
        if ids.is_empty() || self.server.tasks.kept().is_none() {
            return Ok(tasks);
        }
        if !exchange.peer.capabilities.tasks() {
            return Err(undeclared("This client"));
        }
        let most = self.server.options.watched_max;
        if ids.iter().all(|id| tasks.add(id, most)) {
            return Ok(tasks);
        }
        // The request is valid, but the server has no room for it.
        Err(RpcError::internal(format!("At most {most} tasks of one request are watched")))
    }

    /// Watches a resource for a legacy session. It need not exist yet.
    pub(super) fn subscribe(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let uri = exchange.request.params.string("uri")?;
        self.watch(&uri)?;
        self.acknowledge_watch(exchange, &uri, true)
    }

    /// Stops watching a resource.
    pub(super) fn unsubscribe(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let uri = exchange.request.params.string("uri")?;
        self.watch_no_more(&uri);
        self.acknowledge_watch(exchange, &uri, false)
    }

    /// Answers once the other processes know too: the one with the client's stream sends the
    /// notifications.
    fn acknowledge_watch(
        self: &Arc<Self>,
        exchange: &RequestExchange<'_, H>,
        uri: &str,
        watches: bool,
    ) -> Result<(), RpcError> {
        let Some(elsewhere) = self.elsewhere.get() else { return exchange.acknowledge() };
        let known = elsewhere.watch(uri, watches);
        self.answer_later(exchange, move |_, id| async move {
            known.await;
            Ok(result_frame(&id, |out| out.extend_from_slice(b"{}")))
        })
    }

    pub(super) fn watch(&self, uri: &str) -> Result<(), RpcError> {
        self.state().watched.add(uri, self.server.options.watched_max, || self.watch_share())
    }

    pub(super) fn watch_no_more(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    fn watch_share(&self) -> Option<WatchShare> {
        self.server.watches.take(self.caller.name(), self.server.options.caller_watched_max)
    }

    /// Handles changed resources. Returns true if the client has not been notified of all of them,
    /// since it reads too slowly.
    pub(super) fn take_news(&self, news: &ResourceNews) -> bool {
        if news.to.as_deref().is_some_and(|to| !self.is_holder(to)) {
            return self.notify_of_updates();
        }
        let catalog = self.server.host.snapshot();
        self.note_updates(&|uri| news.touches(uri, |uri| catalog.component_of(uri)));
        if news.list {
            self.announce_resources();
        }
        self.notify_of_updates()
    }

    /// Notes that watched resources at these addresses have changed.
    pub(super) fn note_updates(&self, has_changed: &dyn Fn(&str) -> bool) {
        let mut state = self.state();
        state.watched.note(has_changed);
        for open in state.open.values_mut() {
            if let UnansweredRequest::Subscription(subscription) = open {
                subscription.watched.note(has_changed);
            }
        }
    }

    /// Notifies the client of changed resources, if it reads. Returns true if some remain. Until
    /// then, several changes of one resource become one.
    pub(super) fn notify_of_updates(&self) -> bool {
        let mut told: Vec<Arc<dyn Outbox>> = Vec::new();
        let mut waits = false;
        {
            let mut state = self.state();
            let ready = state.session.as_ref().is_some_and(|session| session.ready);
            if state.watched.has_news() {
                if !ready || self.outbox.congested() {
                    waits = ready;
                    state.held |= ready;
                } else {
                    for uri in state.watched.take_changed().into_iter().filter(|uri| self.may_know(uri)) {
                        let frame =
                            notification_frame(Notification::ResourceUpdated, |params| params.text("uri", &uri));
                        self.outbox.queue(frame);
                    }
                    told.push(Arc::clone(&self.outbox));
                }
            }
            let ConnectionState { open, held, .. } = &mut *state;
            for (id, open) in open {
                let UnansweredRequest::Subscription(OpenListen { outbox, watched, .. }) = open else { continue };
                if !watched.has_news() {
                    continue;
                }
                if outbox.congested() {
                    waits = true;
                    *held = true;
                    continue;
                }
                for uri in watched.take_changed().into_iter().filter(|uri| self.may_know(uri)) {
                    outbox.queue(notification_frame(Notification::ResourceUpdated, |params| {
                        tag(params, id);
                        params.text("uri", &uri);
                    }));
                }
                told.push(Arc::clone(outbox));
            }
        }
        told.iter().for_each(|outbox| outbox.flush());
        waits
    }

    /// False for a resource that only another caller may read.
    fn may_know(&self, uri: &str) -> bool {
        let catalog = self.server.host.snapshot();
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        catalog.reader(uri).is_none_or(|declared| declared.is_seen_with(tools))
    }

    /// Notifies all listeners that the list of resources changed.
    pub(super) fn announce_resources(&self) {
        let changed = ChangedLists { resources: true, ..ChangedLists::default() };
        self.note_lists(|_| changed, changed, None);
    }

    /// Notifies all listeners of the lists that changed for their revisions.
    pub(super) fn announce(&self, changes: &ListChanges, lists: Option<u64>) {
        if changes.is_none() {
            return;
        }
        let shown =
            |revisions: &[Revision], is_shown: &dyn Fn(Revision) -> bool| revisions.iter().copied().any(is_shown);
        let changed = |is_shown: &dyn Fn(Revision) -> bool| ChangedLists {
            tools: shown(&changes.tools, is_shown),
            prompts: shown(&changes.prompts, is_shown),
            resources: false,
        };
        self.note_lists(|session| changed(&|revision| revision == session), changed(&Revision::is_modern), lists);
    }

    /// Notes changed lists, for the session by its revision and for subscriptions, and notifies the
    /// client of them.
    fn note_lists(&self, legacy: impl FnOnce(Revision) -> ChangedLists, modern: ChangedLists, lists: Option<u64>) {
        let mut state = self.state();
        if let Some(session) = state.session.as_ref().filter(|session| session.ready) {
            let changed = legacy(session.peer.revision);
            state.lists.add(changed);
        }
        for open in state.open.values_mut() {
            if let UnansweredRequest::Subscription(subscription) = open {
                subscription.lists.add(modern.of(subscription.wants));
            }
        }
        self.notify_of_lists(state, lists);
    }

    /// Notifies the client of changed lists, if it reads. Until then, several changes of one list
    /// become one. `lists` identifies the change on all replicas.
    fn notify_of_lists(&self, mut state: MutexGuard<'_, ConnectionState<H::Catalog>>, lists: Option<u64>) {
        // Asked after the changes were noted: when congestion ends, `resume` finds them. A stream
        // of HTTP ends if it is not read.
        if self.outbox.congested() {
            state.held = true;
            return;
        }
        let mut told: Vec<Arc<dyn Outbox>> = Vec::new();
        let changed = std::mem::take(&mut state.lists);
        if changed.tools || changed.prompts {
            let bare = [(changed.tools, TOOLS_CHANGED_BARE), (changed.prompts, PROMPTS_CHANGED_BARE)];
            let bare = bare.into_iter().filter(|(changed, _)| *changed);
            self.outbox.announce(bare.map(|(_, frame)| frame.to_vec()).collect(), lists);
            told.push(Arc::clone(&self.outbox));
        }
        if changed.resources {
            self.outbox.queue(RESOURCES_CHANGED_BARE.to_vec());
            told.push(Arc::clone(&self.outbox));
        }
        for (id, open) in &mut state.open {
            let UnansweredRequest::Subscription(OpenListen { outbox, lists, .. }) = open else { continue };
            for notification in std::mem::take(lists).notifications() {
                outbox.queue(notification_frame(notification, |params| tag(params, id)));
                told.push(Arc::clone(outbox));
            }
        }
        drop(state);
        told.iter().for_each(|outbox| outbox.flush());
    }

    /// Notifies the client of what was held back while it did not read.
    pub(super) fn notify_of_held(&self) {
        let mut state = self.state();
        if std::mem::take(&mut state.held) {
            self.notify_of_lists(state, None);
            self.notify_of_updates();
        }
    }

    /// Ends every subscription with its result, the last message on it (2026-07-28, Subscriptions,
    /// "Graceful Closure").
    ///
    /// Where all messages share one channel, `notifications/cancelled` follows ("Cancellation":
    /// over stdio the server sends it to end a subscription). It must come second: clients treat
    /// the result as a graceful end, and ignore a later cancellation. In the other order they would
    /// assume a lost stream. Over HTTP the stream itself ends.
    pub(super) fn end_subscriptions(&self) {
        let ended: Vec<_> = {
            let mut state = self.state();
            state.open.extract_if(.., |_, open| matches!(open, UnansweredRequest::Subscription(_))).collect()
        };
        for (id, open) in ended {
            let UnansweredRequest::Subscription(subscription) = open else { continue };
            subscription.outbox.answer(result_frame(&id, |out| {
                let mut result = Object::open(out);
                result.text("resultType", "complete");
                let mut meta = Object::open(result.key("_meta"));
                id.push(meta.key(SUBSCRIPTION_ID));
                meta.raw(SERVER_INFO, &self.server.identity);
            }));
            if self.number.get().is_some() {
                subscription.outbox.queue(notification_frame(Notification::Cancelled, |params| {
                    id.push(params.key("requestId"));
                    params.text("reason", "The server ends");
                }));
            }
            subscription.outbox.flush();
        }
    }
}
