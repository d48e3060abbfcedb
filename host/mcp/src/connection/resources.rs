//! The methods of resources. A declared resource is read by a call of its tool, or by the host. A
//! resource that a tool embedded in a result is kept for the client that got it.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

use toolcell_shared::{Away, LABELS_BYTES_MAX, Shelf, Shelved};

use super::ConnectionParts;
use super::calls::{Becomes, RequestedCall, caught, raw};
use super::dispatch::RequestExchange;
use super::page::ResourcePage;
use super::reply::ReplyTo;
use crate::asking::RoundInput;
use crate::content::{CallResult, ContentKind, Map, ResourceBody, ResultContent};
use crate::declared::{DeclaredResource, HostReading, NotRead, ResourceReader};
use crate::frame::{ErrorCode, Object, RequestId, RpcError, echo, json_text, push_list, push_number};
use crate::host::{Host, ServedCatalog as _, leave_thread};
use crate::news::{ResourceNews, normal_uri};
use crate::resources::{Holder, KeptResource, Part, StoreHolder, TIME_MAX};
use crate::revision::{Revision, push_resource_contents};
use crate::tool::CheckedResult;

/// The media type of a tool's text without a declared one.
const TEXT: &str = "text/plain";

/// Bytes of a content whose encoding takes longer than a thread with other duties can spare.
const LONG_BYTES: usize = 16 * 1024;

/// Which entries a list has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceList {
    Resources,
    Templates,
}

/// A resource that a call reads.
pub(super) struct ResourceCall {
    uri: String,
    mime_type: Option<String>,
}

/// `_meta` of the content of a view at an address, if it is one.
type Views<'v> = dyn Fn(&str) -> Option<Map> + 'v;

/// The clients that may cache a result (2026-07-28, "Cache Scope Field").
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheScope {
    Public,
    Private,
}

impl CacheScope {
    /// Only the caller may cache what depends on its rights.
    pub(super) const fn of(is_private: bool) -> Self {
        if is_private { Self::Private } else { Self::Public }
    }
}

/// One member of `contents`.
struct ContentPart<'a> {
    uri: &'a str,
    mime_type: Option<&'a str>,
    body: &'a ResourceBody,
    /// A JSON object.
    meta: Option<&'a str>,
}

/// The `_meta` of contents as JSON: the guest's, overridden by what the manifest says of a view.
fn meta_text(guest: Option<String>, views: Option<Map>) -> Option<String> {
    let views = views.filter(|views| !views.is_empty());
    let Some(views) = views else { return guest };
    let mut whole: Map = guest.and_then(|guest| serde_json::from_str(&guest).ok()).unwrap_or_default();
    whole.extend(views);
    serde_json::to_string(&whole).ok()
}

impl<H: Host> ConnectionParts<H> {
    /// Lists one page from the cursor on: declared entries first, then kept ones.
    pub(super) fn list_resources(
        self: &Arc<Self>,
        exchange: &RequestExchange<'_, H>,
        listed: ResourceList,
    ) -> Result<(), RpcError> {
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let templates = listed == ResourceList::Templates;
        let seen = || catalog.resources().iter().filter(|declared| declared.is_seen_with(tools));
        let declared: Vec<&DeclaredResource> = seen().filter(|declared| declared.is_template == templates).collect();
        let folders: Vec<&DeclaredResource> = seen().filter(|declared| !templates && declared.is_folder()).collect();
        let cursor = exchange.request.params.cursor();
        let revision = exchange.peer.revision;
        let mut page = ResourcePage::from(cursor, &declared, &folders, self.server.options.page_size)?;
        page.take_declared(&declared, revision);
        page.take_entries(&folders, |folder, after, most| catalog.entries(folder, after, most));
        // Kept resources belong to the client.
        let is_private = catalog.tells_callers_apart() || (!templates && self.holder().is_some());
        let scope = CacheScope::of(is_private);
        if let Some((store, holder)) = self.store().filter(|_| !templates)
            && let Some(after) = page.kept_after()
        {
            let declared: HashSet<String> = declared.into_iter().map(|declared| declared.uri.clone()).collect();
            return self.answer_later(exchange, move |shared, id| async move {
                // Declared ones among them are skipped. One more than fits shows that there is a
                // next page.
                let most = page.entries_max().saturating_add(declared.len()).saturating_add(1);
                let mut after = after;
                while page.kept_after().is_some() {
                    let labels = store.list(&holder.holder, after, most).await.map_err(store_away)?;
                    let Some((last, _)) = labels.last() else { break };
                    after = *last;
                    let kept = labels.iter().filter_map(|(number, label)| KeptResource::of_label(*number, label));
                    let kept = kept.map(Arc::new).collect();
                    page.take_kept(|uri| declared.contains(uri), |_| kept, revision);
                    // If a revision leaves long members of labels out, the page may have room for
                    // more than the store returns at once.
                    if labels.iter().map(|(_, label)| label.len()).sum::<usize>() <= LABELS_BYTES_MAX {
                        break;
                    }
                }
                Ok(shared.listed(&id, listed, &page, revision, scope))
            });
        }
        if let Some(holder) = self.holder().filter(|_| !templates) {
            let declared: HashSet<&str> = declared.iter().map(|declared| declared.uri.as_str()).collect();
            let after = |number| self.server.resources.after(&holder, number);
            page.take_kept(|uri| declared.contains(uri), after, revision);
        }
        exchange.send(self.listed(exchange.id(), listed, &page, revision, scope))
    }

    fn listed(
        &self,
        id: &RequestId,
        listed: ResourceList,
        page: &ResourcePage,
        revision: Revision,
        scope: CacheScope,
    ) -> Vec<u8> {
        self.cacheable(id, revision, scope, |result| {
            let out = result.key(if listed == ResourceList::Templates { "resourceTemplates" } else { "resources" });
            out.push(b'[');
            out.extend_from_slice(page.json());
            out.push(b']');
            result.text_if("nextCursor", page.next_cursor().as_deref());
        })
    }

    /// Reads a resource: a declared one by a call of its tool or by the host, any other from those
    /// kept for this client.
    pub(super) fn read_resource(self: &Arc<Self>, exchange: RequestExchange<'_, H>) -> Result<(), RpcError> {
        let revision = exchange.peer.revision;
        let input = RoundInput::read(&exchange.request.params, revision)?;
        let uri = exchange.request.params.string("uri")?;
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let reader = catalog.reader(&uri).filter(|declared| declared.is_seen_with(tools));
        match reader {
            Some(declared) if !matches!(declared.reader, ResourceReader::Tool { .. }) => {
                return self.read_by_host(&exchange, uri.into_owned());
            }
            Some(declared) => {
                let target = reading(declared, &uri, input)?;
                return self.start(exchange, target);
            }
            None => {}
        }
        if let Some((store, holder)) = self.store() {
            let uri = uri.into_owned();
            return self.answer_later(&exchange, move |shared, id| async move {
                let body = store.find(&holder.holder, &uri).await.map_err(store_away)?;
                let parts = body.and_then(|body| Part::all_of_body(&body));
                let parts = parts.ok_or_else(|| not_found(&uri, NOT_FOUND.to_owned(), revision))?;
                if parts.iter().any(|part| is_long(&part.body)) {
                    leave_thread().await;
                }
                let parts = parts.iter().map(|part| ContentPart::of(&uri, part));
                Ok(shared.contents(&id, parts, revision, CacheScope::Private))
            });
        }
        let found = self.holder().and_then(|holder| self.server.resources.find(&holder, &uri));
        let found = found.ok_or_else(|| not_found(&uri, NOT_FOUND.to_owned(), revision))?;
        let parts = found.parts.iter().map(|part| ContentPart::of(&found.uri, part));
        exchange.send(self.contents(exchange.id(), parts, revision, CacheScope::Private))
    }

    /// Makes the host read a resource.
    fn read_by_host(self: &Arc<Self>, exchange: &RequestExchange<'_, H>, uri: String) -> Result<(), RpcError> {
        let catalog = Arc::clone(exchange.catalog.get(&*self.server.host));
        let revision = exchange.peer.revision;
        let tells_apart = catalog.tells_callers_apart();
        let caller = self.caller.clone();
        self.answer_later(exchange, move |shared, id| async move {
            let request_id = id.to_string();
            let read = catalog.read(HostReading { uri: uri.clone(), caller, revision, request_id }).await;
            if read.as_ref().is_ok_and(|contents| is_long(&contents.body)) {
                leave_thread().await;
            }
            match read {
                Ok(contents) => {
                    let mime_type = contents.mime_type.as_deref();
                    let body = &contents.body;
                    let meta = meta_text(None, Some(contents.meta));
                    let part = ContentPart { uri: &uri, mime_type, body, meta: meta.as_deref() };
                    let scope = CacheScope::of(tells_apart || contents.is_private);
                    Ok(shared.contents(&id, std::iter::once(part), revision, scope))
                }
                Err(NotRead::Unknown) => Err(not_found(&uri, NOT_FOUND.to_owned(), revision)),
                Err(NotRead::Refused(why)) => Err(unreadable(&uri, &why)),
                Err(NotRead::Failed(why)) => Err(RpcError::internal(why)),
            }
        })
    }

    /// The contents of the resource, from the result of a call: its embedded resources, or else its
    /// texts, pictures and sounds.
    pub(super) fn contents_of(
        &self,
        id: &RequestId,
        read: &ResourceCall,
        views: &Views<'_>,
        result: CheckedResult,
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        let blames_uri = result.blames_arguments();
        let result = result.into_result();
        let said = |content: &ResultContent| match &content.kind {
            ContentKind::Text(text) => Some(echo(text).into_owned()),
            _ => None,
        };
        if result.is_error {
            let why = result.content.iter().find_map(said).unwrap_or_default();
            let uri = &read.uri;
            return Err(if blames_uri { not_found(uri, not_read(&why), revision) } else { unreadable(uri, &why) });
        }
        let embeds = result.content.iter().any(is_embedded);
        let part = |content: ResultContent| {
            let meta = |uri: &str| meta_text(content.meta_json(uri), views(uri));
            let own = match &content.kind {
                ContentKind::EmbeddedResource { uri, .. } => meta(uri),
                _ => meta(&read.uri),
            };
            let part = read.part(content.kind, embeds)?;
            Some((part, own))
        };
        let parts: Vec<_> = result.content.into_iter().filter_map(part).collect();
        let parts = parts.iter().map(|((uri, mime_type, body), meta)| ContentPart {
            uri,
            mime_type: mime_type.as_deref(),
            body,
            meta: meta.as_deref(),
        });
        Ok(self.contents(id, parts, revision, CacheScope::Private))
    }

    /// The result, once the resources that it embeds or lays aside are kept for its client. They
    /// are stored before the client gets the result, since it may ask any replica.
    pub(super) async fn kept(&self, origin: &str, result: CheckedResult) -> CheckedResult {
        let is_kept = self.keep_resources(origin, &result).await;
        if is_kept || result.aside.is_empty() {
            return result;
        }
        // The answer would lead nowhere.
        CheckedResult::conforming(CallResult::error(NOT_KEPT))
    }

    /// True if they can be read.
    async fn keep_resources(&self, origin: &str, result: &CallResult) -> bool {
        let all = || result.content.iter().chain(&result.aside);
        if !all().any(is_embedded) {
            return true;
        }
        let Some(holder) = self.holder() else { return false };
        let embedded = |content: &ResultContent| match &content.kind {
            ContentKind::EmbeddedResource { uri, .. } => Some((normal_uri(uri), 0)),
            _ => None,
        };
        let updated = all().filter_map(embedded).collect();
        let mut is_kept = true;
        let (to, list) = match self.store() {
            None => (self.holder_name(), self.server.resources.keep(&holder, origin, result)),
            Some((store, stored_for)) => {
                let kept = KeptResource::all_of(&holder, origin, result);
                let kept: Vec<Shelved<'_>> = kept.iter().filter_map(KeptResource::stored).collect();
                let StoreHolder { caller, holder } = &stored_for;
                // If the store fails they cannot be read. What embeds them is complete itself.
                is_kept = store.keep(caller, holder, &kept, TIME_MAX).await.is_ok();
                // The store does not report which of them are new.
                (Some(stored_for.holder), true)
            }
        };
        self.server.publish(ResourceNews { to, updated, list, ..ResourceNews::default() });
        is_kept
    }

    /// True if resources are kept for this connection's client.
    pub(super) fn keeps_resources(&self) -> bool {
        self.holder().is_some()
    }

    /// The name of this connection's kept resources in notifications.
    fn holder_name(&self) -> Option<String> {
        self.holder().map(|holder| match holder {
            Holder::Connection(number) => format!("connection\n{:x}.{number}", self.server.process),
            Holder::Caller(name) => format!("caller\n{name}"),
        })
    }

    /// True if the kept resources of this name belong to this connection.
    pub(super) fn is_holder(&self, to: &str) -> bool {
        ResourceNews::is_to_caller(to, self.caller.name())
            || self.holder_name().is_some_and(|name| name == to)
            || self.session.get().is_some_and(|session| to.strip_prefix("session\n") == Some(session.as_str()))
    }

    /// The store for a client that other replicas also answer, and its name there.
    fn store(&self) -> Option<(Arc<Shelf>, StoreHolder)> {
        let store = self.server.store.get()?;
        let caller = self.caller.name();
        let holder = match (self.number.get(), self.session.get()) {
            (Some(_), session) => StoreHolder::session(caller, session?),
            (None, _) if self.caller.is_recognised() => StoreHolder::caller(caller),
            (None, _) => return None,
        };
        Some((Arc::clone(store), holder))
    }

    /// Answers a request once this work on its id completes.
    pub(super) fn answer_later<F: Future<Output = Result<Vec<u8>, RpcError>> + Send + 'static>(
        self: &Arc<Self>,
        exchange: &RequestExchange<'_, H>,
        work: impl FnOnce(Arc<Self>, RequestId) -> F,
    ) -> Result<(), RpcError> {
        let work = work(Arc::clone(self), exchange.id().clone());
        self.state().later += 1;
        let reply = Some(exchange.reply.clone());
        let mut later = LaterAnswer { shared: Arc::clone(self), id: exchange.id().clone(), reply };
        self.executor.run(Box::pin(async move {
            let internal = || Err(RpcError::internal("Internal error"));
            later.send(caught(pin!(work)).await.unwrap_or_else(internal));
        }));
        Ok(())
    }

    /// The owner of the resources that this connection's calls embed. Anonymous callers without a
    /// session keep none.
    fn holder(&self) -> Option<Holder> {
        match self.number.get() {
            Some(number) => Some(Holder::Connection(*number)),
            None => self.caller.is_recognised().then(|| Holder::Caller(self.caller.name().into())),
        }
    }

    fn contents<'a>(
        &self,
        id: &RequestId,
        parts: impl Iterator<Item = ContentPart<'a>>,
        revision: Revision,
        scope: CacheScope,
    ) -> Vec<u8> {
        let has_meta = revision.features().metas;
        self.cacheable(id, revision, scope, |result| {
            push_list(result.key("contents"), parts, |out, ContentPart { uri, mime_type, body, meta }| {
                push_resource_contents(out, uri, mime_type, body, meta.filter(|_| has_meta));
            });
        })
    }

    /// Writes a result that may change, and that may depend on the caller.
    pub(super) fn cacheable(
        &self,
        id: &RequestId,
        revision: Revision,
        scope: CacheScope,
        members: impl FnOnce(&mut Object<'_>),
    ) -> Vec<u8> {
        let typed = revision.features().typed_results;
        self.complete_frame(id, typed, |result| {
            members(result);
            if typed {
                push_number(result.key("ttlMs"), 0);
                result.text("cacheScope", if scope == CacheScope::Public { "public" } else { "private" });
            }
        })
    }
}

/// The duty to answer a request later. The connection counts it. If dropped without an answer, it
/// answers with an error.
struct LaterAnswer<H: Host> {
    shared: Arc<ConnectionParts<H>>,
    id: RequestId,
    reply: Option<ReplyTo>,
}

impl<H: Host> LaterAnswer<H> {
    fn send(&mut self, answer: Result<Vec<u8>, RpcError>) {
        let Some(reply) = self.reply.take() else { return };
        match answer {
            Ok(frame) => reply.send(Some(&self.id), frame),
            Err(error) => reply.refuse(Some(&self.id), &error),
        }
        reply.outbox().flush();
    }
}

impl<H: Host> Drop for LaterAnswer<H> {
    fn drop(&mut self) {
        self.send(Err(RpcError::internal("The request was abandoned before it ended")));
        let mut state = self.shared.state();
        state.later = state.later.saturating_sub(1);
        drop(state);
        self.shared.outbox.notice();
    }
}

fn store_away(_: Away) -> RpcError {
    RpcError::internal("The state that replicas share cannot be reached: try again")
}

impl<'a> ContentPart<'a> {
    /// A kept part.
    fn of(uri: &'a str, part: &'a Part) -> Self {
        Self { uri, mime_type: part.mime_type.as_deref(), body: &part.body, meta: part.meta.as_deref() }
    }
}

impl ResourceCall {
    /// Turns a part of a result into a part of the resource; `None` for parts that a resource does
    /// not have.
    fn part(&self, kind: ContentKind, embeds: bool) -> Option<(String, Option<String>, ResourceBody)> {
        let own = |mime_type: Option<String>, body| Some((self.uri.clone(), mime_type, body));
        match kind {
            // A component may leave the media type to the definition of its resource.
            ContentKind::EmbeddedResource { uri, mime_type, body } => {
                let declared = || self.mime_type.clone().filter(|_| uri == self.uri);
                Some((uri.clone(), mime_type.or_else(declared), body))
            }
            ContentKind::Text(text) if !embeds => {
                own(Some(self.mime_type.clone().unwrap_or_else(|| TEXT.to_owned())), ResourceBody::Text(text))
            }
            ContentKind::Image { data, mime_type } | ContentKind::Audio { data, mime_type } if !embeds => {
                own(Some(mime_type), ResourceBody::Blob(data))
            }
            _ => None,
        }
    }
}

/// True if writing this content takes long.
fn is_long(body: &ResourceBody) -> bool {
    body.bytes() > LONG_BYTES
}

fn is_embedded(content: &ResultContent) -> bool {
    matches!(content.kind, ContentKind::EmbeddedResource { .. })
}

/// The call that reads an address.
fn reading(declared: &DeclaredResource, uri: &str, input: RoundInput) -> Result<RequestedCall, RpcError> {
    let ResourceReader::Tool { tool, argument } = &declared.reader else {
        return Err(RpcError::internal("No tool reads this resource"));
    };
    let arguments = serde_json::Map::from_iter([(argument.clone(), uri.into())]);
    let arguments = raw(serde_json::Value::Object(arguments).to_string())?;
    let becomes = Becomes::Resource(ResourceCall { uri: uri.to_owned(), mime_type: declared.mime_type.clone() });
    Ok(RequestedCall::new(tool.clone(), arguments, becomes, input))
}

const NOT_FOUND: &str = "Resource not found: there is what the server declares, and what tools embedded in results for this client, while it \
     is kept and no two components embedded another under this address";

/// The answer in place of one that links to what could not be kept.
const NOT_KEPT: &str = "the result is too long for an answer, and could not be kept for reading: the state that \
                        replicas share cannot be reached. What the call did stays done";

/// The error for an unknown resource, or another client's (2026-07-28, Resources, "Error
/// Handling"). Older revisions have their own code for it.
fn not_found(uri: &str, text: String, revision: Revision) -> RpcError {
    let code = if revision.is_modern() { ErrorCode::InvalidParams } else { ErrorCode::ResourceNotFound };
    about(uri, RpcError::new(code, text))
}

/// The error for a resource that exists: its tool failed, a limit was met, or a person declined.
fn unreadable(uri: &str, why: &str) -> RpcError {
    about(uri, RpcError::internal(not_read(why)))
}

fn not_read(why: &str) -> String {
    format!("Resource cannot be read: {why}")
}

/// The error with the address in its data.
fn about(uri: &str, error: RpcError) -> RpcError {
    let data = json_text(|out| Object::open(out).text("uri", &echo(uri)));
    RpcError { data: Some(data), ..error }
}
