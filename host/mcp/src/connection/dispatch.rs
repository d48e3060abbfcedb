//! From a frame to its answers: its messages, the era of each request, the client's right to its
//! method, and one `match` over all methods.

use std::cell::OnceCell;
use std::sync::Arc;

use super::reply::{BatchReplies, ReplyTo};
use super::resources::CacheScope;
use super::{ClientConnection, ConnectionParts, LegacyState, Passed, resources};
use crate::asking::{AskCapabilities, AskName};
use crate::frame::{
    BatchEntry, ErrorCode, ErrorId, FrameContent, McpMessage, McpRequest, Object, Params, RefusedFrame, RequestId,
    RpcError, decode, error_frame, json_text, push_error, result_frame, scan,
};
use crate::host::{Host, Outbox, ServedCatalog as _, SharedFrame};
use crate::meta::{
    CLIENT_CAPABILITIES, ClientInfo, ClientLogLevel, PROTOCOL_VERSION, Peer, SERVER_INFO, declared_extensions, missing,
};
use crate::method::{Feature, Method, Notification};
use crate::observer::RequestReport;
use crate::revision::Revision;
use crate::server::Offers;
use crate::tool::ListedEntries;

/// One request with everything that its answer needs.
pub(super) struct RequestExchange<'a, H: Host> {
    pub(super) request: &'a McpRequest<'a>,
    pub(super) reply: &'a ReplyTo,
    pub(super) peer: Peer,
    pub(super) catalog: RequestCatalog<H::Catalog>,
}

/// The catalog of a request: loaded at first use, then unchanged.
pub(super) struct RequestCatalog<C>(OnceCell<Arc<C>>);

impl<C> RequestCatalog<C> {
    const fn unloaded() -> Self {
        Self(OnceCell::new())
    }

    pub(super) fn get<H: Host<Catalog = C>>(&self, host: &H) -> &Arc<C> {
        self.0.get_or_init(|| host.snapshot())
    }
}

impl<H: Host> RequestExchange<'_, H> {
    pub(super) fn id(&self) -> &RequestId {
        &self.request.id
    }

    /// Sends the result that `write` appends.
    pub(super) fn send(&self, frame: Vec<u8>) -> Result<(), RpcError> {
        self.reply.send(Some(self.id()), frame);
        Ok(())
    }

    pub(super) fn answer(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), RpcError> {
        self.send(result_frame(self.id(), write))
    }

    pub(super) fn acknowledge(&self) -> Result<(), RpcError> {
        self.answer(|out| out.extend_from_slice(b"{}"))
    }
}

impl<H: Host> ClientConnection<H> {
    /// Handles a decoded frame. Answers go to `outbox`.
    pub(crate) fn take(&self, incoming: FrameContent<'_>, outbox: &Arc<dyn Outbox>) {
        self.shared.take(incoming, outbox);
    }

    /// Handles one frame, without its newline. Immediate answers are queued when this returns;
    /// calls are answered later. The transport flushes its outbox afterwards, once for many frames.
    pub fn receive(&self, frame: &[u8]) {
        self.receive_on(frame, &self.shared.outbox);
    }

    /// Like [`receive`](Self::receive), where [`Gate::Answers`](super::Gate::Answers) let the frame
    /// in: calls for which there is no room are refused.
    pub fn receive_past_bounds(&self, frame: &[u8]) {
        self.shared.state().past_bounds = true;
        self.receive(frame);
        self.shared.state().past_bounds = false;
    }

    /// Like [`receive`](Self::receive), with another outbox for the answer and its events, such as
    /// the stream of one HTTP request.
    pub fn receive_on(&self, frame: &[u8], outbox: &Arc<dyn Outbox>) {
        self.shared.receive(frame, outbox);
    }
}

impl<H: Host> ConnectionParts<H> {
    fn receive(self: &Arc<Self>, frame: &[u8], outbox: &Arc<dyn Outbox>) {
        match decode(frame) {
            Err(refused) => outbox.refuse(self.refusal(&refused), refused.error.code),
            Ok(incoming) => self.take(incoming, outbox),
        }
    }

    fn refusal(&self, refused: &RefusedFrame) -> Vec<u8> {
        error_frame(refused.id.as_ref().map_or_else(|| self.no_id(), ErrorId::Of), &refused.error)
    }

    fn take(self: &Arc<Self>, incoming: FrameContent<'_>, outbox: &Arc<dyn Outbox>) {
        match incoming {
            FrameContent::Blank => outbox.unanswered(),
            FrameContent::One(entry) => self.entry(entry, ReplyTo::Direct(Arc::clone(outbox))),
            FrameContent::Batch(entries) => self.batch(entries, outbox),
        }
    }

    fn batch(self: &Arc<Self>, entries: Vec<BatchEntry<'_>>, outbox: &Arc<dyn Outbox>) {
        let takes = self.state().session.as_ref().is_some_and(|session| session.peer.revision.features().batches);
        if !takes {
            let error = RpcError::request("Only revision 2025-03-26 has batches");
            return outbox.refuse(error_frame(self.no_id(), &error), error.code);
        }
        let replies = BatchReplies::open(Arc::clone(outbox));
        for entry in entries {
            self.entry(entry, replies.reply());
        }
        replies.close();
    }

    fn entry(self: &Arc<Self>, entry: BatchEntry<'_>, reply: ReplyTo) {
        match entry {
            Err(refused) => match refused.id.as_ref().and_then(AskName::of_answer) {
                // The malformed response ends its question: no other would come.
                Some(name) => {
                    self.taken(&reply, self.answered(name, Err(&json_text(|out| push_error(out, &refused.error)))))
                }
                None => reply.refuse_with(refused.id.as_ref(), self.refusal(&refused), refused.error.code),
            },
            Ok(McpMessage::Response { id, reply: answer }) => {
                let name = id.as_ref().and_then(AskName::of_answer);
                self.taken(&reply, name.and_then(|name| self.answered(name, answer)));
            }
            Ok(McpMessage::Notification { kind, params }) => {
                let kind = kind.filter(|_| params.fault.is_none());
                self.taken(&reply, kind.and_then(|kind| self.notification(kind, &params)));
            }
            Ok(McpMessage::Request(request)) => {
                if let Err(error) = self.observed(&request, &reply) {
                    reply.refuse(Some(&request.id), &error);
                }
            }
        }
    }

    /// Settles a message without an answer. One for another process is settled once that process
    /// has received it.
    fn taken(&self, reply: &ReplyTo, passed: Option<Passed>) {
        let Some(passed) = passed else { return reply.nothing() };
        let reply = reply.clone();
        self.executor.run(Box::pin(async move { if passed.await { reply.nothing() } else { reply.not_taken() } }));
    }

    /// Answers a request, or begins to, and reports it to the observer.
    fn observed(self: &Arc<Self>, request: &McpRequest<'_>, reply: &ReplyTo) -> Result<(), RpcError> {
        let Some(observer) = self.server.host.observer() else { return self.request(request, reply) };
        let watched = RequestReport::begin(observer, request, &self.caller, || reply.outbox().trace());
        let answered = self.request(request, reply);
        watched.answered(answered.as_ref().err());
        answered
    }

    fn notification(self: &Arc<Self>, kind: Notification, params: &Params<'_>) -> Option<Passed> {
        match kind {
            Notification::Cancelled => {
                let id = params.get("requestId").and_then(RequestId::parse)?;
                return self.cancel_anywhere(&id);
            }
            Notification::Initialized => {
                if let Some(session) = &mut self.state().session {
                    session.ready = true;
                }
            }
            // Sent only by the server; ignored from a client.
            Notification::Message
            | Notification::Progress
            | Notification::Acknowledged
            | Notification::ToolsChanged
            | Notification::PromptsChanged
            | Notification::ResourcesChanged
            | Notification::ResourceUpdated
            | Notification::PageCompleted
            | Notification::Task
            | Notification::TaskStatus => {}
        }
        None
    }

    /// Answers a request, or begins to. The caller sends an error.
    fn request(self: &Arc<Self>, request: &McpRequest<'_>, reply: &ReplyTo) -> Result<(), RpcError> {
        if let Some(fault) = &request.params.fault {
            return Err(fault.clone());
        }
        // The era is decided for each message: a client may probe in one and continue in the other.
        let version = request.params.meta(PROTOCOL_VERSION);
        if version.is_none() && request.method.known() == Some(Method::Initialize) {
            return self.initialize(request, reply);
        }
        let session = {
            let state = self.state();
            if state.open.contains_key(&request.id) {
                return Err(RpcError::request("A request with this id is still being answered"));
            }
            state.session.clone()
        };
        if let Some(version) = version {
            let revision = modern_revision(version)?;
            if reply.is_batched() {
                return Err(RpcError::request("Only revision 2025-03-26 has batches"));
            }
            return self.dispatch(request, reply, revision, || Peer::of_meta(&request.params, revision));
        }
        match (request.method.known(), session) {
            (_, Some(LegacyState { peer, .. })) => self.dispatch(request, reply, peer.revision, || Ok(peer)),
            (Some(Method::Ping), None) => {
                reply.send(Some(&request.id), result_frame(&request.id, |out| out.extend_from_slice(b"{}")));
                Ok(())
            }
            (_, None) => Err(missing(&[PROTOCOL_VERSION, CLIENT_CAPABILITIES])),
        }
    }

    /// Answers a request of a known revision. Its `peer` is read after its method is found.
    fn dispatch(
        self: &Arc<Self>,
        request: &McpRequest<'_>,
        reply: &ReplyTo,
        revision: Revision,
        peer: impl FnOnce() -> Result<Peer, RpcError>,
    ) -> Result<(), RpcError> {
        let catalog = RequestCatalog::unloaded();
        let method = request
            .method
            .known()
            .filter(|method| revision.has(*method) && method.feature().is_none_or(|of| self.has_methods(of, &catalog)));
        let method = method.ok_or_else(|| request.method.not_found())?;
        let exchange = RequestExchange { request, reply, peer: peer()?, catalog };
        match method {
            // It is answered without a peer: see `request`.
            Method::Initialize => Err(request.method.not_found()),
            Method::Ping => exchange.acknowledge(),
            Method::Discover => self.discover(&exchange),
            Method::ListTools => self.list(&exchange, ListedEntries::Tools),
            Method::CallTool => self.call_tool(exchange),
            Method::Listen => self.listen(&exchange),
            Method::ListResources => self.list_resources(&exchange, resources::ResourceList::Resources),
            Method::ListTemplates => self.list_resources(&exchange, resources::ResourceList::Templates),
            Method::ReadResource => self.read_resource(exchange),
            Method::ReadDirectory => self.read_directory(&exchange),
            Method::ListSkills => self.list_skills(&exchange),
            Method::GetSkill => self.get_skill(&exchange),
            Method::ListPrompts => self.list(&exchange, ListedEntries::Prompts),
            Method::GetPrompt => self.get_prompt(exchange),
            Method::Complete => self.complete(exchange),
            Method::Subscribe => self.subscribe(&exchange),
            Method::Unsubscribe => self.unsubscribe(&exchange),
            Method::GetTask => self.get_task(&exchange),
            Method::UpdateTask => self.update_task(&exchange),
            Method::CancelTask => self.cancel_task(&exchange),
            Method::TaskResult => self.task_result(&exchange),
            Method::ListTasks => self.list_tasks(&exchange),
            Method::SetLevel => self.set_level(&exchange),
        }
    }

    fn has_methods(&self, feature: Feature, catalog: &RequestCatalog<H::Catalog>) -> bool {
        self.server.has_methods(feature, catalog.get(&*self.server.host))
    }

    /// Everything that the catalog offers.
    fn all_offers(&self, catalog: &RequestCatalog<H::Catalog>) -> Offers {
        let catalog = catalog.get(&*self.server.host);
        let has = |feature| self.server.offers(feature, catalog);
        Offers {
            resources: has(Feature::Resources),
            prompts: has(Feature::Prompts),
            completions: has(Feature::Completions),
            tasks: has(Feature::Tasks),
            lists_tasks: self.lists_tasks(),
            skills: has(Feature::Skills),
            apps: catalog.offers_apps(),
        }
    }

    /// Begins a session, even if one has already begun: a bridge may carry several clients one
    /// after the other.
    fn initialize(&self, request: &McpRequest<'_>, reply: &ReplyTo) -> Result<(), RpcError> {
        if reply.is_batched() {
            return Err(RpcError::request("A batch cannot hold initialize"));
        }
        let params = &request.params;
        let asked = params.string("protocolVersion")?;
        let declared = params.get("capabilities").filter(|text| scan::is_object(text));
        let declared = declared.ok_or_else(|| RpcError::params("params.capabilities must be an object"))?;
        let client = params.get("clientInfo").unwrap_or_default();
        let client = ClientInfo::parse(client, "params.clientInfo").map_err(RpcError::of_params)?;
        let client = Arc::new(client);
        let known = Revision::named(&asked).filter(|revision| !revision.is_modern());
        let revision = known.unwrap_or(Revision::NEWEST_LEGACY);
        let log_level = Some(ClientLogLevel::LEGACY);
        let capabilities = AskCapabilities::read(declared, revision);
        let extensions = declared_extensions(declared);
        let peer = Peer { revision, client: Some(client), log_level, capabilities, extensions };
        let offers = self.all_offers(&RequestCatalog::unloaded());
        self.state().begin_session(LegacyState { peer, ready: false });
        let frame = result_frame(&request.id, |out| self.server.push_initialized(out, revision, offers));
        reply.send(Some(&request.id), frame);
        Ok(())
    }

    fn discover(&self, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let offers = self.all_offers(&exchange.catalog);
        exchange.answer(|out| self.server.push_discovered(out, offers))
    }

    /// Lists one page of the tools, or of the prompts.
    fn list(&self, exchange: &RequestExchange<'_, H>, listed: ListedEntries) -> Result<(), RpcError> {
        let revision = exchange.peer.revision;
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let page = tools.page(listed, revision, exchange.request.params.cursor(), self.server.options.page_size)?;
        let scope = CacheScope::of(catalog.tells_callers_apart());
        let mut place = 0;
        let mut head = self.cacheable(exchange.id(), revision, scope, |result| {
            let entries = result.key(listed.name());
            entries.push(b'[');
            place = entries.len();
            entries.push(b']');
            result.text_if("nextCursor", page.next_cursor.as_deref());
        });
        let tail = head.split_off(place);
        exchange.reply.send_shared(exchange.id(), SharedFrame { head, shared: page.json, tail });
        Ok(())
    }

    /// The frame of a result with these members. `typed` is true for revisions whose results have a
    /// type, and the server's identity.
    pub(super) fn complete_frame(&self, id: &RequestId, typed: bool, members: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        result_frame(id, |out| {
            let mut result = Object::open(out);
            if typed {
                result.text("resultType", "complete");
            }
            members(&mut result);
            if typed {
                Object::open(result.key("_meta")).raw(SERVER_INFO, &self.server.identity);
            }
        })
    }

    fn set_level(&self, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let level = exchange.request.params.get("level");
        let level = level.ok_or_else(|| RpcError::params("params.level is missing"))?;
        let level = ClientLogLevel::parse(level, "params.level").map_err(RpcError::of_params)?;
        self.set_log_level(level);
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.set_log_level(level);
        }
        exchange.acknowledge()
    }
}

/// The modern revision that a request names in its `_meta`.
fn modern_revision(version: &str) -> Result<Revision, RpcError> {
    let Some(name) = scan::string(version) else {
        return Err(RpcError::meta(format!("{PROTOCOL_VERSION} must be a string")));
    };
    let revision = Revision::named(&name);
    if let Some(revision) = revision.filter(|revision| revision.is_modern()) {
        return Ok(revision);
    }
    // The list is that of `server/discover`: legacy revisions are served too, to clients that begin
    // with `initialize`. A request that names a legacy version gets only modern ones listed:
    // otherwise the client would retry with the same version.
    let legacy = revision.is_some();
    let supported: Vec<&str> =
        Revision::ALL.into_iter().filter(|known| known.is_modern() || !legacy).map(Revision::name).collect();
    let data = json_text(|out| {
        let mut object = Object::open(out);
        object.json("supported", &supported);
        object.json("requested", name.as_ref());
    });
    Err(RpcError {
        code: ErrorCode::UnsupportedProtocolVersion,
        message: "Unsupported protocol version".into(),
        data: Some(data),
    })
}
