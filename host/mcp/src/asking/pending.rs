//! Unanswered requests to a legacy client.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::question::page_id;
use super::{PreparedQuestion, ReplyText, lock};
use crate::cancellation::Cancellation;
use crate::frame::{Object, RequestId, notification_frame, push_string};
use crate::host::Outbox;
use crate::method::Notification;

/// The start of the id of every request that the server sends. No client uses it for its own ids,
/// so a client with one table for both has no conflict.
const ID_PREFIX: &str = "toolcell/ask/";

/// The requests that one connection's client has not answered.
#[derive(Default)]
pub(crate) struct PendingAsks {
    /// Distinguishes its requests from those of other processes that ask the same client, if there
    /// are any.
    address: OnceLock<Box<str>>,
    state: Mutex<PendingQuestions>,
}

/// The name of one request to a client: `N`, or `ADDRESS/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskName<'a> {
    /// The address of the asking process, if several ask the same client.
    pub(crate) address: Option<&'a str>,
    /// Its number among their requests.
    pub(crate) number: u64,
}

impl<'a> AskName<'a> {
    /// The name that a client answers to; `None` if no request of the server has it.
    pub(crate) fn of_answer(id: &'a RequestId) -> Option<Self> {
        let RequestId::Text(id) = id else { return None };
        let name = id.strip_prefix(ID_PREFIX)?;
        let (address, number) = match name.rsplit_once('/') {
            Some((address, number)) => (Some(address), number),
            None => (None, name),
        };
        let name = Self { address, number: number.parse().ok()? };
        // The text must equal the one that was sent: `01` is not `1`.
        (format!("{ID_PREFIX}{name}") == **id).then_some(name)
    }
}

impl fmt::Display for AskName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}/{}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

#[derive(Default)]
struct PendingQuestions {
    sent: u64,
    open: HashMap<u64, OpenAsk>,
    /// True if the client is gone: nothing will be answered any more.
    closed: bool,
}

/// A request without an answer.
struct OpenAsk {
    answered: oneshot::Sender<ReplyText>,
    outbox: Arc<dyn Outbox>,
    /// The cancellation of the asking call.
    call: Cancellation,
    taken_back: bool,
}

/// One request that was sent. Withdrawn if dropped without an answer.
pub(crate) struct PendingAsk {
    asks: Arc<PendingAsks>,
    number: u64,
    reply: Option<oneshot::Receiver<ReplyText>>,
}

impl PendingAsks {
    /// Queues a request of the call with this cancellation; `None` if the client has gone.
    pub(super) fn send(
        self: &Arc<Self>,
        question: &PreparedQuestion,
        outbox: &Arc<dyn Outbox>,
        call: &Cancellation,
    ) -> Option<PendingAsk> {
        self.send_members(|frame, name| question.push_members(frame, Some(name)), outbox, call)
    }

    /// Queues a question of a task, whose method and params are this JSON object.
    pub(crate) fn send_stored(
        self: &Arc<Self>,
        question: &str,
        outbox: &Arc<dyn Outbox>,
        call: &Cancellation,
    ) -> Option<PendingAsk> {
        let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(question).ok()?;
        let write = |frame: &mut Object<'_>, _: AskName<'_>| {
            for key in ["method", "params"] {
                members.get(key).into_iter().for_each(|value| frame.raw(key, value.get()));
            }
        };
        self.send_members(write, outbox, call)
    }

    fn send_members(
        self: &Arc<Self>,
        members: impl FnOnce(&mut Object<'_>, AskName<'_>),
        outbox: &Arc<dyn Outbox>,
        call: &Cancellation,
    ) -> Option<PendingAsk> {
        let (answered, reply) = oneshot::channel();
        let number = {
            let mut state = lock(&self.state);
            if state.closed {
                return None;
            }
            state.sent += 1;
            let number = state.sent;
            let open = OpenAsk { answered, outbox: Arc::clone(outbox), call: call.clone(), taken_back: false };
            state.open.insert(number, open);
            number
        };
        outbox.queue(frame(self.name(number), members));
        // A reader that had stopped reads on for the answer.
        outbox.notice();
        Some(PendingAsk { asks: Arc::clone(self), number, reply: Some(reply) })
    }

    /// Withdraws the questions of the call with this cancellation. Call it while the call's stream
    /// is open, which leads to the client.
    pub(crate) fn take_back(&self, call: &Cancellation) {
        let mut state = lock(&self.state);
        for (number, open) in state.open.iter_mut().filter(|(_, open)| open.call.is(call)) {
            // It stays open: without an answer, the call would fail.
            open.taken_back = true;
            self.tell_taken_back(*number, open);
        }
    }

    fn tell_taken_back(&self, number: u64, open: &OpenAsk) {
        let id = format!("{ID_PREFIX}{}", self.name(number));
        open.outbox.queue(notification_frame(Notification::Cancelled, |params| {
            params.text("requestId", &id);
            params.text("reason", "The call that asked has ended");
        }));
        open.outbox.flush();
    }

    /// True if an answer of the client would count.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.state).open.values().any(|open| !open.taken_back)
    }

    /// Sets the address of the requests. Must be called before the first one.
    pub(crate) fn be_at(&self, address: &str) {
        let _ = self.address.set(address.into());
    }

    pub(crate) fn address(&self) -> Option<&str> {
        self.address.get().map(|own| &**own)
    }

    /// True if the request of this name is one of these.
    pub(crate) fn is_at(&self, address: Option<&str>) -> bool {
        self.address.get().map(|own| &**own) == address
    }

    /// Passes an answer to the call that waits for it. A late or unexpected answer is dropped.
    pub(crate) fn answer(&self, number: u64, reply: ReplyText) {
        let waiting = {
            let mut state = lock(&self.state);
            // An answer to a withdrawn question does not count, though its call may not have ended
            // yet.
            let counts = state.open.get(&number).is_some_and(|open| !open.taken_back);
            if counts { state.open.remove(&number) } else { None }
        };
        if let Some(waiting) = waiting {
            // The call may have been given up meanwhile.
            let _ = waiting.answered.send(reply);
        }
    }

    fn name(&self, number: u64) -> AskName<'_> {
        AskName { address: self.address.get().map(|address| &**address), number }
    }

    /// Ends all waiting, and refuses further requests: the client will not answer any more.
    pub(crate) fn close(&self) {
        let open = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.open)
        };
        for waiting in open.into_values() {
            let _ = waiting.answered.send(ReplyText::Gone);
        }
    }
}

impl PendingAsk {
    /// The id of the page that it asks the person to go to.
    pub(super) fn page_id(&self) -> String {
        page_id(self.asks.name(self.number))
    }

    pub(crate) async fn reply(mut self) -> ReplyText {
        let Some(reply) = &mut self.reply else { return ReplyText::Gone };
        let reply = reply.await.unwrap_or(ReplyText::Gone);
        self.reply = None;
        reply
    }
}

impl Drop for PendingAsk {
    fn drop(&mut self) {
        let open = lock(&self.asks.state).open.remove(&self.number);
        if let Some(open) = open.filter(|open| !open.taken_back) {
            self.asks.tell_taken_back(self.number, &open);
        }
    }
}

fn frame(name: AskName<'_>, members: impl FnOnce(&mut Object<'_>, AskName<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = Object::open(&mut out);
    frame.text("jsonrpc", "2.0");
    push_string(frame.key("id"), &format!("{ID_PREFIX}{name}"));
    members(&mut frame, name);
    frame.close();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_request_exactly() {
        for (id, expected) in [
            ("toolcell/ask/1", Some((None, 1))),
            ("toolcell/ask/0a.2/17", Some((Some("0a.2"), 17))),
            ("toolcell/ask/a/b/3", Some((Some("a/b"), 3))),
            ("toolcell/ask//3", Some((Some(""), 3))),
            ("toolcell/ask/01", None),
            ("toolcell/ask/a/01", None),
            ("toolcell/ask/+1", None),
            ("toolcell/ask/", None),
            ("toolcell/ask/a/", None),
            ("toolcell/ask/-1", None),
            ("1", None),
        ] {
            let id = RequestId::Text(id.into());
            let name = AskName::of_answer(&id).map(|name| (name.address, name.number));
            assert_eq!(name, expected, "{id}");
        }
        assert_eq!(AskName::of_answer(&RequestId::Integer(1)), None);
    }
}
