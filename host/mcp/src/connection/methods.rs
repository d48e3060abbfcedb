//! Which era a request belongs to, which method it calls, and the methods that are answered at once.

use std::sync::Arc;

use super::calls::Caller;
use super::reply::Reply;
use super::{Session, Shared, resources, text_param};
use crate::asking::{Capabilities, Given};
use crate::frame::{Body, ErrorCode, Object, RequestId, RpcError, push_json, result_frame, scan};
use crate::host::{Catalog as _, Host};
use crate::meta::{CLIENT_CAPABILITIES, ClientInfo, LogLevel, ModernMeta, PROTOCOL_VERSION, SERVER_INFO, missing};
use crate::revision::Revision;

impl<H: Host> Shared<H> {
    /// Answers a request, or begins to. An error is for the caller to send.
    pub(super) fn request(self: &Arc<Self>, id: &RequestId, body: &Body<'_>, reply: &Reply) -> Result<(), RpcError> {
        let session = {
            let state = self.state();
            if state.open.contains_key(id) {
                return Err(RpcError::request("A request with this id is still being answered"));
            }
            state.session.clone()
        };
        if let Some(fault) = &body.fault {
            return Err(fault.clone());
        }
        // The era is decided for each message by itself: a client may probe in one and go on in the other.
        if let Some(version) = body.meta(PROTOCOL_VERSION) {
            return self.modern(id, body, reply, version);
        }
        match (body.method.as_ref(), session) {
            ("initialize", session) => self.initialize(id, body, reply, session.is_some()),
            (_, Some(session)) => self.legacy(id, body, reply, session),
            ("ping", None) => {
                reply.send(Some(id), result_frame(id, |out| out.extend_from_slice(b"{}")));
                Ok(())
            }
            (_, None) => Err(missing(&[PROTOCOL_VERSION, CLIENT_CAPABILITIES])),
        }
    }

    fn modern(self: &Arc<Self>, id: &RequestId, body: &Body<'_>, reply: &Reply, version: &str) -> Result<(), RpcError> {
        let revision = modern_revision(version)?;
        if reply.is_batched() {
            return Err(RpcError::request("Only revision 2025-03-26 has batches"));
        }
        let method = body.method.as_ref();
        let is_known = matches!(method, "server/discover" | "tools/list" | "tools/call" | "subscriptions/listen");
        if !is_known && !self.is_of_resources(method) {
            return Err(RpcError::method(method));
        }
        let meta = ModernMeta::read(body, revision)?;
        match method {
            "server/discover" => {
                reply.send(Some(id), result_frame(id, |out| self.server.push_discovered(out)));
                Ok(())
            }
            "tools/list" => self.list(id, body, reply, revision),
            "subscriptions/listen" => self.listen(id, body, reply),
            _ => {
                let ModernMeta { client, log_level, capabilities } = meta;
                let given = Given::read(body)?;
                let caller = Caller { revision, client, log_level, capabilities, given };
                if method == "tools/call" {
                    self.call(id, body, reply, caller)
                } else {
                    self.resources(id, body, reply, caller)
                }
            }
        }
    }

    fn is_of_resources(&self, method: &str) -> bool {
        resources::METHODS.contains(&method) && self.offers_resources()
    }

    fn legacy(
        self: &Arc<Self>,
        id: &RequestId,
        body: &Body<'_>,
        reply: &Reply,
        session: Session,
    ) -> Result<(), RpcError> {
        match body.method.as_ref() {
            "ping" => {}
            "tools/list" => return self.list(id, body, reply, session.revision),
            "tools/call" => return self.call(id, body, reply, session.caller()),
            "logging/setLevel" => {
                let level = body.param("level").ok_or_else(|| RpcError::params("params.level is missing"))?;
                let level = LogLevel::parse(level, "params.level")?;
                if let Some(session) = &mut self.state().session {
                    session.log_level = Some(level);
                }
            }
            method if self.is_of_resources(method) => return self.resources(id, body, reply, session.caller()),
            method => return Err(RpcError::method(method)),
        }
        reply.send(Some(id), result_frame(id, |out| out.extend_from_slice(b"{}")));
        Ok(())
    }

    fn initialize(&self, id: &RequestId, body: &Body<'_>, reply: &Reply, again: bool) -> Result<(), RpcError> {
        if again {
            return Err(RpcError::request("This connection is initialized already"));
        }
        let asked = text_param(body, "protocolVersion")?;
        let declared = body.param("capabilities").filter(|text| scan::is_object(text));
        let declared = declared.ok_or_else(|| RpcError::params("params.capabilities must be an object"))?;
        let client = body.param("clientInfo").unwrap_or_default();
        let client = Arc::new(ClientInfo::parse(client, "params.clientInfo")?);
        let known = Revision::named(&asked).filter(|revision| !revision.is_modern());
        let revision = known.unwrap_or(Revision::NEWEST_LEGACY);
        let log_level = self.server.options.legacy_log_level;
        let capabilities = Capabilities::read(declared, revision);
        self.state().session = Some(Session { revision, client, log_level, capabilities, ready: false });
        reply.send(Some(id), result_frame(id, |out| self.server.push_initialized(out, revision)));
        Ok(())
    }

    fn list(&self, id: &RequestId, body: &Body<'_>, reply: &Reply, revision: Revision) -> Result<(), RpcError> {
        let catalog = self.server.host.snapshot();
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let page = tools.page(revision, body.param("cursor"), self.server.options.page_size)?;
        let typed = revision.features().typed_results;
        reply.send(
            Some(id),
            result_frame(id, |out| {
                let mut result = Object::open(out);
                if typed {
                    result.text("resultType", "complete");
                }
                let tools = result.key("tools");
                tools.push(b'[');
                tools.extend_from_slice(page.json);
                tools.push(b']');
                result.text_if("nextCursor", page.next_cursor.as_deref());
                if typed {
                    let private = catalog.tells_callers_apart();
                    self.server.push_list_caching(&mut result, private);
                    let mut meta = Object::open(result.key("_meta"));
                    meta.raw(SERVER_INFO, &self.server.identity);
                    meta.close();
                }
                result.close();
            }),
        );
        Ok(())
    }
}

impl Session {
    fn caller(self) -> Caller {
        let Self { revision, client, log_level, capabilities, .. } = self;
        Caller { revision, client: Some(client), log_level, capabilities, given: Given::default() }
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
    // A legacy revision is served too, but not to a request like this one: naming it would send the client in circles.
    let legacy = revision.is_some();
    let supported: Vec<&str> =
        Revision::ALL.into_iter().filter(|known| known.is_modern() || !legacy).map(Revision::name).collect();
    let mut data = Vec::new();
    let mut object = Object::open(&mut data);
    object.json("supported", &supported);
    push_json(object.key("requested"), name.as_ref());
    object.close();
    Err(RpcError {
        code: ErrorCode::UnsupportedProtocolVersion,
        message: "Unsupported protocol version".into(),
        data: String::from_utf8(data).ok(),
    })
}
