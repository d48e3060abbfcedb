//! `resources/list`, `resources/templates/list` and `resources/read` (2026-07-28, Resources): what is declared, which a call
//! of a tool reads, and what tools embedded in their results, for whoever got it.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::{Caller, Wanted};
use super::page::Page;
use super::reply::Reply;
use super::{Shared, text_param};
use crate::content::{CallResult, Content, ContentKind, ResourceBody};
use crate::frame::{Body, ErrorCode, Object, RequestId, RpcError, echo, push_number, result_frame};
use crate::host::{Catalog as _, Host};
use crate::meta::SERVER_INFO;
use crate::resources::{DeclaredResource, Holder};
use crate::revision::{Revision, push_resource_contents};

/// The methods there are.
pub(super) const METHODS: [&str; 3] = ["resources/list", "resources/templates/list", "resources/read"];

/// What kind of data a tool's text is, where nobody says.
const TEXT: &str = "text/plain";

/// A resource that a call is to read.
pub(super) struct Reading {
    uri: String,
    mime_type: Option<String>,
}

/// One member of `contents`.
type Piece<'a> = (&'a str, Option<&'a str>, &'a ResourceBody);

impl<H: Host> Shared<H> {
    /// Whether resources are offered now.
    pub(super) fn offers_resources(&self) -> bool {
        self.server.host.snapshot().offers_resources()
    }

    /// Answers one of [`METHODS`], or begins to.
    pub(super) fn resources(
        self: &Arc<Self>,
        id: &RequestId,
        body: &Body<'_>,
        reply: &Reply,
        caller: Caller,
    ) -> Result<(), RpcError> {
        let revision = caller.revision;
        if body.method != "resources/read" {
            let templates = body.method == "resources/templates/list";
            reply.send(Some(id), self.listed(id, (templates, body.param("cursor")), revision)?);
            return Ok(());
        }
        let uri = text_param(body, "uri")?;
        let catalog = self.server.host.snapshot();
        if let Some(declared) = catalog.reader(&uri).filter(|declared| self.sees(&catalog, declared)) {
            return self.start((id, body), reply, caller, wanted(declared, &uri)?);
        }
        let found = self.holder().and_then(|holder| self.server.resources.find(&holder, &uri));
        let found = found.ok_or_else(|| not_found(&uri, NOT_FOUND.to_owned(), revision))?;
        let pieces = found.parts.iter().map(|part| (found.uri.as_str(), part.mime_type.as_deref(), &part.body));
        reply.send(Some(id), self.contents(id, pieces, revision));
        Ok(())
    }

    /// The result of a call, as the resource that it reads: what it embeds, or else its texts, pictures and sounds.
    pub(super) fn read(
        &self,
        id: &RequestId,
        reading: &Reading,
        result: CallResult,
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        let said = |content: &Content| match &content.kind {
            ContentKind::Text(text) => Some(echo(text).into_owned()),
            _ => None,
        };
        if result.is_error {
            let why = result.content.iter().find_map(said).unwrap_or_default();
            return Err(not_found(&reading.uri, format!("Resource cannot be read: {why}"), revision));
        }
        let embeds = result.content.iter().any(is_embedded);
        let pieces: Vec<_> =
            result.content.into_iter().filter_map(|content| reading.piece(content.kind, embeds)).collect();
        let pieces = pieces.iter().map(|(uri, mime_type, body)| (uri.as_str(), mime_type.as_deref(), body));
        Ok(self.contents(id, pieces, revision))
    }

    /// Keeps what a result of this origin embeds, for the caller who gets it.
    pub(super) fn keep_resources(&self, origin: &str, result: &CallResult) {
        if result.content.iter().any(is_embedded)
            && let Some(holder) = self.holder()
        {
            self.server.resources.keep(&holder, origin, result);
        }
    }

    /// Whose what this connection's calls embed is; nobody's where the caller is anybody.
    fn holder(&self) -> Option<Holder> {
        match self.number.get() {
            Some(number) => Some(Holder::Connection(*number)),
            None => self.caller.is_recognised().then(|| Holder::Caller(self.caller.name().into())),
        }
    }

    /// Whether this caller may call the tool behind it.
    fn sees(&self, catalog: &H::Catalog, declared: &DeclaredResource) -> bool {
        let view = catalog.view(&self.caller);
        view.as_deref().unwrap_or_else(|| catalog.tools()).find(&declared.tool).is_some()
    }

    /// One page of what is declared, and behind it of what is kept: from this cursor on.
    fn listed(
        &self,
        id: &RequestId,
        (templates, cursor): (bool, Option<&str>),
        revision: Revision,
    ) -> Result<Vec<u8>, RpcError> {
        let catalog = self.server.host.snapshot();
        let seen = |declared: &&DeclaredResource| declared.is_template == templates && self.sees(&catalog, declared);
        let declared: Vec<&DeclaredResource> = catalog.resources().iter().filter(seen).collect();
        let mut page = Page::from(cursor, &declared, self.server.options.page_size)?;
        page.take_declared(&declared, revision);
        if let Some(holder) = self.holder().filter(|_| !templates) {
            page.take_kept(&declared, |number| self.server.resources.after(&holder, number), revision);
        }
        Ok(self.cacheable(id, revision, |result| {
            let out = result.key(if templates { "resourceTemplates" } else { "resources" });
            out.push(b'[');
            out.extend_from_slice(page.json());
            out.push(b']');
            result.text_if("nextCursor", page.next_cursor().as_deref());
        }))
    }

    fn contents<'a>(&self, id: &RequestId, pieces: impl Iterator<Item = Piece<'a>>, revision: Revision) -> Vec<u8> {
        self.cacheable(id, revision, |result| {
            let out = result.key("contents");
            let mut separate = separator();
            out.push(b'[');
            for (uri, mime_type, body) in pieces {
                separate(out);
                push_resource_contents(out, uri, mime_type, body);
            }
            out.push(b']');
        })
    }

    /// A result that depends on who asks, and on when.
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

impl Reading {
    /// A piece of a result as a piece of the resource; nothing where it is none.
    fn piece(&self, kind: ContentKind, embeds: bool) -> Option<(String, Option<String>, ResourceBody)> {
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
fn wanted(declared: &DeclaredResource, uri: &str) -> Result<Wanted, RpcError> {
    let arguments = serde_json::Map::from_iter([(declared.argument.clone(), uri.into())]);
    let arguments = RawValue::from_string(serde_json::Value::Object(arguments).to_string())
        .map_err(|_| RpcError::new(ErrorCode::Internal, "The arguments could not be kept"))?;
    let reading = Reading { uri: uri.to_owned(), mime_type: declared.mime_type.clone() };
    Ok(Wanted { name: declared.tool.clone(), arguments, reads: Some(reading) })
}

/// Puts commas between what it is called before.
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

/// The answer to whoever asks for what is not there, or is somebody else's (2026-07-28, Resources, "Error Handling"; before
/// it a code of its own).
fn not_found(uri: &str, text: String, revision: Revision) -> RpcError {
    let code = if revision.is_modern() { ErrorCode::InvalidParams } else { ErrorCode::ResourceNotFound };
    let mut data = Vec::new();
    let mut object = Object::open(&mut data);
    object.text("uri", &echo(uri));
    object.close();
    RpcError { data: String::from_utf8(data).ok(), ..RpcError::new(code, text) }
}
