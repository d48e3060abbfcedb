//! `resources/list` and `resources/read`: what tools embedded in their results, for whoever got it (2026-07-28, Resources).

use std::sync::Arc;

use super::reply::Reply;
use super::{Shared, text_param};
use crate::content::{CallResult, Content, ContentKind};
use crate::frame::{Body, ErrorCode, Object, RequestId, RpcError, push_number, result_frame};
use crate::host::{Catalog as _, Host};
use crate::meta::SERVER_INFO;
use crate::resources::{Holder, Kept};
use crate::revision::{Revision, push_resource, push_resource_contents};

/// The methods there are.
pub(super) const METHODS: [&str; 3] = ["resources/list", "resources/templates/list", "resources/read"];

impl<H: Host> Shared<H> {
    /// Whether resources are offered now.
    pub(super) fn offers_resources(&self) -> bool {
        self.server.host.snapshot().offers_resources()
    }

    /// Answers one of [`METHODS`].
    pub(super) fn resources(
        &self,
        id: &RequestId,
        body: &Body<'_>,
        reply: &Reply,
        revision: Revision,
    ) -> Result<(), RpcError> {
        match body.method.as_ref() {
            "resources/read" => {
                let uri = text_param(body, "uri")?;
                let holder = self.holder();
                let found = holder.and_then(|holder| self.server.resources.find(&holder, &uri));
                let found = found.ok_or_else(|| not_found(&uri, revision))?;
                reply.send(Some(id), self.contents(id, &found, revision));
            }
            method => {
                if body.param("cursor").is_some() {
                    return Err(RpcError::params("params.cursor is not one that this server gave out"));
                }
                let kept = match self.holder() {
                    Some(holder) if method == "resources/list" => self.server.resources.of(&holder),
                    _ => Vec::new(),
                };
                reply.send(Some(id), self.listed(id, method, &kept, revision));
            }
        }
        Ok(())
    }

    /// Keeps what a result embeds, for whoever gets it.
    pub(super) fn keep_resources(&self, result: &CallResult) {
        let embeds = |content: &Content| matches!(content.kind, ContentKind::EmbeddedResource { .. });
        if result.content.iter().any(embeds)
            && let Some(holder) = self.holder()
        {
            self.server.resources.keep(&holder, result);
        }
    }

    /// Whose what this connection's calls embed is; nobody's where the caller is anybody.
    pub(super) fn holder(&self) -> Option<Holder> {
        match self.number.get() {
            Some(number) => Some(Holder::Connection(*number)),
            None => self.caller.is_recognised().then(|| Holder::Caller(self.caller.name().into())),
        }
    }

    fn listed(&self, id: &RequestId, method: &str, kept: &[Arc<Kept>], revision: Revision) -> Vec<u8> {
        let key = if method == "resources/list" { "resources" } else { "resourceTemplates" };
        self.cacheable(id, revision, |result| {
            let out = result.key(key);
            out.push(b'[');
            for (place, kept) in kept.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                push_resource(out, kept, revision.features());
            }
            out.push(b']');
        })
    }

    fn contents(&self, id: &RequestId, kept: &Kept, revision: Revision) -> Vec<u8> {
        self.cacheable(id, revision, |result| {
            let out = result.key("contents");
            out.push(b'[');
            for (place, part) in kept.parts.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                push_resource_contents(out, &kept.uri, part.mime_type.as_deref(), &part.body);
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

/// The answer to whoever asks for what is not there, or is somebody else's (2026-07-28, Resources, "Error Handling"; before
/// it a code of its own).
fn not_found(uri: &str, revision: Revision) -> RpcError {
    let code = if revision.is_modern() { ErrorCode::InvalidParams } else { ErrorCode::ResourceNotFound };
    let mut data = Vec::new();
    let mut object = Object::open(&mut data);
    object.text("uri", &crate::frame::echo(uri));
    object.close();
    let text =
        "Resource not found: there is what tools embedded in their results for this client, for as long as it is kept";
    RpcError { data: String::from_utf8(data).ok(), ..RpcError::new(code, text) }
}
