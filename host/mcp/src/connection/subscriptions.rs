//! The listeners for a changed list: ready legacy sessions, and `subscriptions/listen` of the
//! modern era.

use std::sync::Arc;

use super::dispatch::Exchange;
use super::{OpenRequest, Shared};
use crate::frame::{Object, Params, RequestId, RpcError, notification_frame, result_frame, scan};
use crate::host::{Host, Outbox};
use crate::meta::{SERVER_INFO, SUBSCRIPTION_ID};
use crate::method::Notification;
use crate::revision::Revision;

/// The notification for legacy clients.
const TOOLS_CHANGED_BARE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// One open `subscriptions/listen`.
pub(super) struct Subscription {
    outbox: Arc<dyn Outbox>,
    tools: bool,
}

/// True if `params.notifications` asks for changes of the list of tools.
fn wants_tools(params: &Params<'_>) -> Result<bool, RpcError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Filter {
        #[serde(default)]
        tools_list_changed: Option<bool>,
        #[serde(default)]
        prompts_list_changed: Option<bool>,
        #[serde(default)]
        resources_list_changed: Option<bool>,
        #[serde(default)]
        resource_subscriptions: Option<Vec<String>>,
    }
    let text = params.get("notifications").filter(|text| scan::is_object(text));
    let text = text.ok_or_else(|| RpcError::params("params.notifications must be an object"))?;
    let filter: Filter = serde_json::from_str(text).map_err(|error| {
        let kind = error.to_string();
        let kind = kind.split(" at line").next().unwrap_or_default();
        RpcError::params(format!("params.notifications is ill-typed: {kind}"))
    })?;
    // Named so that ill-typed ones are refused; the server never sends the others.
    let _ = (filter.prompts_list_changed, filter.resources_list_changed, filter.resource_subscriptions);
    Ok(filter.tools_list_changed == Some(true))
}

fn tag(params: &mut Object<'_>, id: &RequestId) {
    let mut meta = Object::open(params.key("_meta"));
    id.push(meta.key(SUBSCRIPTION_ID));
    meta.close();
}

impl<H: Host> Shared<H> {
    /// Opens a subscription and acknowledges it.
    pub(super) fn listen(self: &Arc<Self>, exchange: &Exchange<'_, H>) -> Result<(), RpcError> {
        let id = exchange.id();
        let tools = wants_tools(&exchange.request.params)?;
        let frame = notification_frame(Notification::Acknowledged, |params| {
            tag(params, id);
            let mut honoured = Object::open(params.key("notifications"));
            if tools {
                honoured.flag("toolsListChanged", true);
            }
            honoured.close();
        });
        self.listen_for_changes();
        let mut state = self.state();
        let open = state.open.values().filter(|open| matches!(open, OpenRequest::Subscription(_))).count();
        if open >= self.server.options.listens_max {
            let text = format!("At most {} subscriptions may be open", self.server.options.listens_max);
            return Err(RpcError::params(text));
        }
        let outbox = Arc::clone(exchange.reply.outbox());
        // Subscribed and acknowledged under one lock: no change is lost, and none comes before the
        // acknowledgement.
        state.open.insert(id.clone(), OpenRequest::Subscription(Subscription { outbox: Arc::clone(&outbox), tools }));
        outbox.queue(frame);
        Ok(())
    }

    /// Announces to all listeners that the list of tools changed for these revisions.
    pub(super) fn announce_tools(&self, revisions: &[Revision]) {
        if revisions.is_empty() {
            return;
        }
        let mut told: Vec<Arc<dyn Outbox>> = Vec::new();
        {
            let state = self.state();
            if state.session.as_ref().is_some_and(|session| session.ready && revisions.contains(&session.peer.revision))
            {
                self.outbox.queue(TOOLS_CHANGED_BARE.to_vec());
                told.push(Arc::clone(&self.outbox));
            }
            let is_modern = |revision: &Revision| revision.is_modern();
            for (id, open) in state.open.iter().filter(|_| revisions.iter().any(is_modern)) {
                let OpenRequest::Subscription(Subscription { outbox, tools: true }) = open else { continue };
                outbox.queue(notification_frame(Notification::ToolsChanged, |params| tag(params, id)));
                told.push(Arc::clone(outbox));
            }
        }
        for outbox in told {
            outbox.flush();
        }
    }

    /// Ends every subscription with its result, the last message on it (2026-07-28, Subscriptions,
    /// "Graceful Closure").
    ///
    /// No `notifications/cancelled` is sent. Cancellation asks for one and refers to Subscriptions,
    /// which names the result alone. Clients take the result for a graceful end, and a cancellation
    /// for a lost stream. A request with a result can no longer be cancelled.
    pub(super) fn end_subscriptions(&self) {
        let ended: Vec<_> = {
            let mut state = self.state();
            state.open.extract_if(.., |_, open| matches!(open, OpenRequest::Subscription(_))).collect()
        };
        for (id, open) in ended {
            let OpenRequest::Subscription(subscription) = open else { continue };
            subscription.outbox.answer(result_frame(&id, |out| {
                let mut result = Object::open(out);
                result.text("resultType", "complete");
                let mut meta = Object::open(result.key("_meta"));
                id.push(meta.key(SUBSCRIPTION_ID));
                meta.raw(SERVER_INFO, &self.server.identity);
                meta.close();
                result.close();
            }));
            subscription.outbox.flush();
        }
    }
}
