//! The methods of resources. A declared resource is read by a call of its tool. A resource that a
//! tool embedded in a result is kept for the client that got it.

use std::sync::Arc;

use super::Shared;
use super::calls::{CallTarget, raw};
use super::dispatch::Exchange;
use super::page::ResourcePage;
use crate::asking::RoundInput;
use crate::content::{CallResult, Content, ContentKind, ResourceBody};
use crate::frame::{ErrorCode, Object, RequestId, RpcError, echo, push_number, result_frame};
use crate::host::{Catalog as _, Host};
use crate::meta::SERVER_INFO;
use crate::resources::{DeclaredResource, Holder};
use crate::revision::{Revision, push_resource_contents};

/// The media type of a tool's text that has no declared one.
const TEXT: &str = "text/plain";

/// The entries that a list is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    Resources,
    Templates,
}

/// A resource that a call reads.
pub(super) struct ResourceRead {
    uri: String,
    mime_type: Option<String>,
}

/// One member of `contents`.
type ContentPart<'a> = (&'a str, Option<&'a str>, &'a ResourceBody);

impl<H: Host> Shared<H> {
    /// Lists one page from the cursor on: declared entries first, kept ones behind them.
    pub(super) fn list_resources(&self, exchange: &Exchange<'_, H>, listed: Listed) -> Result<(), RpcError> {
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let templates = listed == Listed::Templates;
        let is_seen =
            |declared: &&DeclaredResource| declared.is_template == templates && tools.find(&declared.tool).is_some();
        let declared: Vec<&DeclaredResource> = catalog.resources().iter().filter(is_seen).collect();
        let cursor = exchange.request.params.get("cursor");
        let revision = exchange.peer.revision;
        let mut page = ResourcePage::from(cursor, &declared, self.server.options.page_size)?;
        page.take_declared(&declared, revision);
        if let Some(holder) = self.holder().filter(|_| !templates) {
            page.take_kept(&declared, |number| self.server.resources.after(&holder, number), revision);
        }
        let frame = self.cacheable(exchange.id(), revision, |result| {
            let out = result.key(if templates { "resourceTemplates" } else { "resources" });
            out.push(b'[');
            out.extend_from_slice(page.json());
            out.push(b']');
            result.text_if("nextCursor", page.next_cursor().as_deref());
        });
        exchange.reply.send(Some(exchange.id()), frame);
        Ok(())
    }

    /// Reads a resource: a declared one by a call of its tool, any other from those kept for this
    /// client.
    pub(super) fn read_resource(self: &Arc<Self>, exchange: Exchange<'_, H>) -> Result<(), RpcError> {
        let revision = exchange.peer.revision;
        let input = RoundInput::read(&exchange.request.params, revision)?;
        let uri = exchange.request.params.string("uri")?;
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let reader = catalog.reader(&uri).filter(|declared| tools.find(&declared.tool).is_some());
        if let Some(declared) = reader {
            let target = CallTarget { input, ..reading(declared, &uri)? };
            return self.start(exchange, target);
        }
        let found = self.holder().and_then(|holder| self.server.resources.find(&holder, &uri));
        let found = found.ok_or_else(|| not_found(&uri, NOT_FOUND.to_owned(), revision))?;
        let parts = found.parts.iter().map(|part| (found.uri.as_str(), part.mime_type.as_deref(), &part.body));
        let frame = self.contents(exchange.id(), parts, revision);
        exchange.reply.send(Some(exchange.id()), frame);
        Ok(())
    }

    /// Turns the result of a call into the contents of the resource: the embedded resources, or
    /// else texts, pictures and sounds.
    pub(super) fn contents_of(
        &self,
        id: &RequestId,
        read: &ResourceRead,
        result: CallResult,
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        let said = |content: &Content| match &content.kind {
            ContentKind::Text(text) => Some(echo(text).into_owned()),
            _ => None,
        };
        if result.is_error {
            let why = result.content.iter().find_map(said).unwrap_or_default();
            return Err(not_found(&read.uri, format!("Resource cannot be read: {why}"), revision));
        }
        let embeds = result.content.iter().any(is_embedded);
        let parts: Vec<_> = result.content.into_iter().filter_map(|content| read.part(content.kind, embeds)).collect();
        let parts = parts.iter().map(|(uri, mime_type, body)| (uri.as_str(), mime_type.as_deref(), body));
        Ok(self.contents(id, parts, revision))
    }

    /// Keeps the resources that a result of this origin embeds, for the client that gets it.
    pub(super) fn keep_resources(&self, origin: &str, result: &CallResult) {
        if result.content.iter().any(is_embedded)
            && let Some(holder) = self.holder()
        {
            self.server.resources.keep(&holder, origin, result);
        }
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
    ) -> Vec<u8> {
        self.cacheable(id, revision, |result| {
            let out = result.key("contents");
            let mut separate = separator();
            out.push(b'[');
            for (uri, mime_type, body) in parts {
                separate(out);
                push_resource_contents(out, uri, mime_type, body);
            }
            out.push(b']');
        })
    }

    /// Writes a result that depends on the caller and the moment.
    fn cacheable(&self, id: &RequestId, revision: Revision, members: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        result_frame(id, |out| {
            let typed = revision.features().typed_results;
            let mut result = Object::open(out);
            if typed {
                result.text("resultType", "complete");
            }
            members(&mut result);
            if typed {
                push_number(result.key("ttlMs"), 0);
                result.text("cacheScope", "private");
                let mut meta = Object::open(result.key("_meta"));
                meta.raw(SERVER_INFO, &self.server.identity);
                meta.close();
            }
            result.close();
        })
    }
}

impl ResourceRead {
    /// Turns a part of a result into a part of the resource; `None` for parts that a resource does
    /// not have.
    fn part(&self, kind: ContentKind, embeds: bool) -> Option<(String, Option<String>, ResourceBody)> {
        let own = |mime_type: Option<String>, body| Some((self.uri.clone(), mime_type, body));
        match kind {
            ContentKind::EmbeddedResource { uri, mime_type, body } => Some((uri, mime_type, body)),
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

fn is_embedded(content: &Content) -> bool {
    matches!(content.kind, ContentKind::EmbeddedResource { .. })
}

/// The call that reads an address.
fn reading(declared: &DeclaredResource, uri: &str) -> Result<CallTarget, RpcError> {
    let arguments = serde_json::Map::from_iter([(declared.argument.clone(), uri.into())]);
    let arguments = raw(serde_json::Value::Object(arguments).to_string())?;
    let reads = Some(ResourceRead { uri: uri.to_owned(), mime_type: declared.mime_type.clone() });
    Ok(CallTarget { name: declared.tool.clone(), arguments, reads, input: RoundInput::default() })
}

/// Writes a comma before every call but the first.
fn separator() -> impl FnMut(&mut Vec<u8>) {
    let mut first = true;
    move |out| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
    }
}

const NOT_FOUND: &str = "Resource not found: there is what the server declares, and what tools embedded in results for this client, while it \
     is kept and no two components embedded another under this address";

/// The error for an unknown resource, or another client's (2026-07-28, Resources, "Error
/// Handling"). Older revisions have a code of its own for it.
fn not_found(uri: &str, text: String, revision: Revision) -> RpcError {
    let code = if revision.is_modern() { ErrorCode::InvalidParams } else { ErrorCode::ResourceNotFound };
    let mut data = Vec::new();
    let mut object = Object::open(&mut data);
    object.text("uri", &echo(uri));
    object.close();
    RpcError { data: String::from_utf8(data).ok(), ..RpcError::new(code, text) }
}
