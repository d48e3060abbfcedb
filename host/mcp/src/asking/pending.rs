//! Requests to a legacy client that are not answered yet. Must not hold: questions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::{PreparedQuestion, ReplyText, lock};
use crate::frame::{Object, RequestId, notification_frame, push_number};
use crate::host::Outbox;
use crate::method::Notification;

/// The start of the id of every request that the server sends. No client's own id starts so, so
/// that a client with one table for both has no clash.
const ID_PREFIX: &str = "toolcell/ask/";

/// The requests that one connection's client has not answered.
#[derive(Default)]
pub(crate) struct PendingAsks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: u64,
    open: HashMap<u64, oneshot::Sender<ReplyText>>,
    /// The client is gone: nothing will be answered any more.
    closed: bool,
}

/// One request that was sent. Dropped unanswered, it is taken back.
pub(super) struct PendingAsk {
    asks: Arc<PendingAsks>,
    number: u64,
    outbox: Arc<dyn Outbox>,
    reply: Option<oneshot::Receiver<ReplyText>>,
}

impl PendingAsks {
    /// Queues a request; `None` if the client has gone.
    pub(super) fn send(self: &Arc<Self>, question: &PreparedQuestion, outbox: &Arc<dyn Outbox>) -> Option<PendingAsk> {
        let (answered, reply) = oneshot::channel();
        let number = {
            let mut state = lock(&self.state);
            if state.closed {
                return None;
            }
            state.sent += 1;
            let number = state.sent;
            state.open.insert(number, answered);
            number
        };
        outbox.queue(frame(number, question));
        Some(PendingAsk { asks: Arc::clone(self), number, outbox: Arc::clone(outbox), reply: Some(reply) })
    }

    /// Hands an answer to the call that waits for it. A late or unexpected answer is dropped.
    pub(crate) fn answer(&self, id: &RequestId, reply: ReplyText) {
        let RequestId::Text(id) = id else { return };
        let Some(number) = id.strip_prefix(ID_PREFIX).and_then(|number| number.parse().ok()) else { return };
        // The text must equal the one that was sent: `01` is not `1`.
        if format!("{ID_PREFIX}{number}") != **id {
            return;
        }
        let waiting = lock(&self.state).open.remove(&number);
        if let Some(waiting) = waiting {
            // The call may have been given up meanwhile.
            let _ = waiting.send(reply);
        }
    }

    /// Ends all waiting, and all further requests: the client will not answer any more.
    pub(crate) fn close(&self) {
        let open = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.open)
        };
        for waiting in open.into_values() {
            let _ = waiting.send(ReplyText::Gone);
        }
    }
}

impl PendingAsk {
    /// The client's answer.
    pub(super) async fn reply(mut self) -> ReplyText {
        let Some(reply) = &mut self.reply else { return ReplyText::Gone };
        let reply = reply.await.unwrap_or(ReplyText::Gone);
        self.reply = None;
        reply
    }
}

impl Drop for PendingAsk {
    fn drop(&mut self) {
        let taken_back = lock(&self.asks.state).open.remove(&self.number).is_some();
        if taken_back {
            let id = format!("{ID_PREFIX}{}", self.number);
            self.outbox.queue(notification_frame(Notification::Cancelled, |params| {
                params.text("requestId", &id);
                params.text("reason", "The call that asked has ended");
            }));
            self.outbox.flush();
        }
    }
}

fn frame(number: u64, question: &PreparedQuestion) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = Object::open(&mut out);
    frame.text("jsonrpc", "2.0");
    let id = frame.key("id");
    id.push(b'"');
    id.extend_from_slice(ID_PREFIX.as_bytes());
    push_number(id, number);
    id.push(b'"');
    question.push_members(&mut frame, Some(number));
    frame.close();
    out
}
