//! Calls of tools: read, held back, begun, answered, cancelled.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use serde_json::value::RawValue;

use super::reply::Reply;
use super::resources::Reading;
use super::{Open, Shared, State, text_param};
use crate::asking::{Asking, Capabilities, Given, Round, Rounds};
use crate::cancellation::Cancellation;
use crate::content::CallResult;
use crate::events::CallEvents;
use crate::frame::{Body, ErrorCode, RequestId, RpcError, error_frame, result_frame, scan};
use crate::host::{Call, CallContext, Catalog, Host, leave_thread};
use crate::meta::{ClientInfo, LogLevel, RequestMeta};
use crate::observer::{self, Method};
use crate::revision::{Revision, push_result};
use crate::schema::Patience;
use crate::tool::Tool;

/// Bytes that a waiting call is taken to need beside its arguments.
const WAITING_BYTES: usize = 512;

/// In which terms a call was made.
pub(super) struct Caller {
    pub(super) revision: Revision,
    pub(super) client: Option<Arc<ClientInfo>>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) capabilities: Capabilities,
    /// The answers that it brings.
    pub(super) given: Given,
}

/// Which call.
pub(super) struct Wanted {
    /// The tool, as it is listed.
    pub(super) name: String,
    /// A JSON object.
    pub(super) arguments: Box<RawValue>,
    /// The resource that the result is to be, where it is one.
    pub(super) reads: Option<Reading>,
}

/// A call that was read and has not begun.
pub(super) struct Waiting {
    id: RequestId,
    sequence: u64,
    name: String,
    arguments: Box<RawValue>,
    reads: Option<Reading>,
    context: CallContext,
    reply: Reply,
    capabilities: Capabilities,
    given: Given,
    bytes: usize,
}

/// A call that is not answered yet, as others see it.
pub(super) struct OpenCall {
    sequence: u64,
    cancellation: Cancellation,
    events: CallEvents,
    reply: Reply,
}

impl<H: Host> Shared<H> {
    /// Reads a call and begins it, or holds it back.
    pub(super) fn call(
        self: &Arc<Self>,
        id: &RequestId,
        body: &Body<'_>,
        reply: &Reply,
        caller: Caller,
    ) -> Result<(), RpcError> {
        let name = text_param(body, "name")?.into_owned();
        let arguments = body.param("arguments").unwrap_or("{}");
        if !scan::is_object(arguments) {
            return Err(RpcError::params("params.arguments must be an object"));
        }
        let arguments = RawValue::from_string(arguments.to_owned())
            .map_err(|_| RpcError::new(ErrorCode::Internal, "The arguments could not be kept"))?;
        self.start((id, body), reply, caller, Wanted { name, arguments, reads: None })
    }

    /// The same for a call whose tool and arguments are known.
    pub(super) fn start(
        self: &Arc<Self>,
        (id, body): (&RequestId, &Body<'_>),
        reply: &Reply,
        caller: Caller,
        wanted: Wanted,
    ) -> Result<(), RpcError> {
        let Wanted { name, arguments, reads } = wanted;
        let meta = RequestMeta::read(body)?;
        let outbox = Arc::clone(reply.outbox());
        let events = CallEvents::new(outbox, caller.revision, meta.progress_token, caller.log_level);
        let context = CallContext {
            request_id: id.to_string(),
            revision: caller.revision,
            caller: self.caller.clone(),
            client: caller.client,
            trace: meta.trace.or_else(|| reply.outbox().trace()),
            meta_json: meta.rest,
            cancellation: Cancellation::new(),
            events,
            // Known when the tool is.
            asking: Asking::nobody(),
        };
        let (capabilities, given) = (caller.capabilities, caller.given);
        let bytes = WAITING_BYTES + arguments.get().len() + context.meta_json.len() + name.len() + given.bytes();
        let (id, reply) = (id.clone(), reply.clone());
        let waiting = Waiting { id, sequence: 0, name, arguments, reads, context, reply, capabilities, given, bytes };
        if let Some(waiting) = self.admit(waiting) {
            self.begin(waiting);
        }
        Ok(())
    }

    /// Enters a call among the open ones; gives it back if it may begin now.
    fn admit(&self, mut waiting: Waiting) -> Option<Waiting> {
        let congested = self.outbox.congested();
        let mut state = self.state();
        state.sequence += 1;
        waiting.sequence = state.sequence;
        let open = OpenCall {
            sequence: waiting.sequence,
            cancellation: waiting.context.cancellation.clone(),
            events: waiting.context.events.clone(),
            reply: waiting.reply.clone(),
        };
        state.open.insert(waiting.id.clone(), Open::Call(open));
        let free = state.active < self.server.options.in_flight_max.max(1);
        if free && state.waiting.is_empty() && !congested {
            state.active += 1;
            return Some(waiting);
        }
        state.waiting_bytes += waiting.bytes;
        state.waiting.push_back(waiting);
        None
    }

    /// Begins calls that wait, as many as may run.
    pub(super) fn begin_waiting(self: &Arc<Self>) {
        while !self.outbox.congested() {
            let Some(waiting) = self.state().next_waiting(self.server.options.in_flight_max.max(1)) else { return };
            self.begin(waiting);
        }
    }

    /// Begins one call that holds a permit.
    fn begin(self: &Arc<Self>, waiting: Waiting) {
        let Waiting { id, sequence, name, arguments, reads, mut context, reply, capabilities, given, .. } = waiting;
        let slot = Slot { shared: Arc::clone(self), id, sequence, reply, settled: false };
        let method = if reads.is_some() { Method::ReadResource } else { Method::CallTool };
        let catalog = self.server.host.snapshot();
        let view = catalog.view(&context.caller);
        let Some((place, tool)) = view.as_deref().unwrap_or_else(|| catalog.tools()).find(&name) else {
            let error = RpcError::params(format!("Unknown tool: {}", crate::frame::echo(&name)));
            self.refused(method, &context, &error);
            let frame = error_frame(Some(&slot.id), &error);
            return slot.settle(frame);
        };
        // Whoever reads a resource repeats its address, not the arguments of the tool behind it.
        let mirrored = slot.reply.outbox().mirrored().filter(|_| reads.is_none());
        if let Err(error) = mirrored.map_or(Ok(()), |mirrored| tool.compare(mirrored, &arguments)) {
            self.refused(method, &context, &error);
            return slot.refuse(&error);
        }
        let tool = Arc::clone(tool);
        let binding = catalog.asks(place);
        let asking = self.asking(&slot.reply, &context, capabilities, given, (&name, binding, &arguments));
        match asking {
            Ok(asking) => context.asking = asking,
            Err(error) => {
                self.refused(method, &context, &error);
                return slot.refuse(&error);
            }
        }
        let call = Call { tool: place, arguments, context };
        self.executor.run(Box::pin(run(slot, catalog, (tool, reads), call)));
    }

    /// Tells whoever observes it of a call that the catalog does not see.
    fn refused(&self, method: Method, context: &CallContext, error: &RpcError) {
        if let Some(observer) = self.server.host.observer() {
            observer::refused(observer, method, context, error);
        }
    }

    /// How a call asks: a legacy client by requests, a modern one in rounds, of which this may be a further one.
    fn asking(
        &self,
        reply: &Reply,
        context: &CallContext,
        capabilities: Capabilities,
        given: Given,
        (tool, binding, arguments): (&str, Option<String>, &RawValue),
    ) -> Result<Asking, RpcError> {
        let Some(binding) = binding else { return given.refuse_state().map(|()| Asking::nobody()) };
        let terms = (context.revision, capabilities);
        if !context.revision.is_modern() {
            return Ok(Asking::by_request(&self.asks, reply.outbox(), terms, &context.cancellation));
        }
        let round = Round { principal: self.caller.name(), tool, binding: &binding, arguments };
        Rounds::take_up(&self.server.options.state_key, terms, &round, given).map(Asking::in_rounds)
    }

    /// Stops a call or ends a subscription, as its caller asked; nothing more is sent for it.
    pub(super) fn cancel(self: &Arc<Self>, id: &RequestId) {
        let removed = self.state().remove(id);
        let Some(Open::Call(call)) = removed else { return };
        call.events.end();
        call.cancellation.cancel();
        call.reply.nothing();
        self.outbox.notice();
    }

    /// Stops everything that is open and answers nothing of it: the client is gone.
    pub(super) fn abandon(self: &Arc<Self>) {
        let (open, waiting) = {
            let mut state = self.state();
            state.waiting_bytes = 0;
            (std::mem::take(&mut state.open), std::mem::take(&mut state.waiting))
        };
        drop(waiting);
        for open in open.into_values() {
            if let Open::Call(call) = open {
                call.events.end();
                call.cancellation.cancel();
                call.reply.nothing();
            }
        }
    }

    /// Cancels what runs and refuses what waits.
    pub(super) fn cancel_all(self: &Arc<Self>) {
        let mut state = self.state();
        let refused = std::mem::take(&mut state.waiting);
        state.waiting_bytes = 0;
        for waiting in &refused {
            state.open.remove(&waiting.id);
        }
        let running: Vec<Cancellation> = state
            .open
            .values()
            .filter_map(|open| match open {
                Open::Call(call) => Some(call.cancellation.clone()),
                Open::Subscription(_) => None,
            })
            .collect();
        drop(state);
        for cancellation in running {
            cancellation.cancel();
        }
        let error = RpcError::new(ErrorCode::Internal, "The server is shutting down");
        for waiting in refused {
            waiting.reply.send(Some(&waiting.id), error_frame(Some(&waiting.id), &error));
        }
        self.outbox.flush();
    }
}

impl State {
    /// Takes the next call that may begin, giving it a permit.
    fn next_waiting(&mut self, in_flight_max: usize) -> Option<Waiting> {
        if self.active >= in_flight_max {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.bytes);
        self.active += 1;
        Some(waiting)
    }

    /// Takes an open request out, and with it a call that waits.
    fn remove(&mut self, id: &RequestId) -> Option<Open> {
        let open = self.open.remove(id)?;
        if let Open::Call(call) = &open {
            let place = self.waiting.iter().position(|waiting| waiting.sequence == call.sequence);
            if let Some(waiting) = place.and_then(|place| self.waiting.remove(place)) {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.bytes);
            }
        }
        Some(open)
    }
}

/// The permit of one call that has begun, and its duty to be settled. Dropped unsettled, it answers with an error.
struct Slot<H: Host> {
    shared: Arc<Shared<H>>,
    id: RequestId,
    sequence: u64,
    reply: Reply,
    settled: bool,
}

impl<H: Host> Slot<H> {
    /// Gives the permit back and sends the frame, unless the call was cancelled meanwhile.
    fn settle(mut self, frame: Vec<u8>) {
        self.settle_with(|reply, id| reply.send(Some(id), frame));
    }

    /// The same with an error that says why the call has no result.
    fn refuse(mut self, error: &RpcError) {
        self.settle_with(|reply, id| reply.refuse(Some(id), error));
    }

    fn settle_with(&mut self, answer: impl FnOnce(&Reply, &RequestId)) {
        self.settled = true;
        let answered = {
            let mut state = self.shared.state();
            state.active = state.active.saturating_sub(1);
            match state.open.get(&self.id) {
                Some(Open::Call(call)) if call.sequence == self.sequence => state.open.remove(&self.id),
                _ => None,
            }
        };
        if let Some(Open::Call(call)) = answered {
            call.events.end();
            answer(&self.reply, &self.id);
            self.reply.outbox().flush();
        }
    }
}

impl<H: Host> Drop for Slot<H> {
    fn drop(&mut self) {
        if !self.settled {
            let error = RpcError::new(ErrorCode::Internal, "The call was abandoned before it ended");
            self.settle_with(|reply, id| reply.send(Some(id), error_frame(Some(id), &error)));
            self.shared.outbox.notice();
        }
    }
}

/// One call from its arguments to its reply.
async fn run<H: Host>(
    slot: Slot<H>,
    catalog: Arc<H::Catalog>,
    (tool, reads): (Arc<Tool>, Option<Reading>),
    call: Call,
) {
    let shared = Arc::clone(&slot.shared);
    let revision = call.context.revision;
    let features = revision.features();
    let asking = call.context.asking.clone();
    let work = async {
        let place = call.tool;
        let result = perform(Arc::clone(&catalog), tool, call).await;
        if reads.is_none() {
            shared.keep_resources(catalog.origin(place), &result);
        }
        let (id, identity) = (&slot.id, &shared.server.identity);
        match (asking.ending(), &reads) {
            (None, Some(reading)) => shared.read(id, reading, result, revision),
            (None, None) => Ok(result_frame(id, |out| push_result(out, &result, features, identity))),
            // What it has asked its client in rounds is the answer.
            (Some(Ok(required)), _) => Ok(result_frame(id, |out| required.push(out, identity))),
            (Some(Err(error)), _) => Err(error),
        }
    };
    let internal = || Ok(error_frame(Some(&slot.id), &RpcError::new(ErrorCode::Internal, "Internal error")));
    match caught(work).await.unwrap_or_else(internal) {
        Ok(frame) => slot.settle(frame),
        Err(error) => slot.refuse(&error),
    }
    shared.begin_waiting();
    shared.outbox.notice();
}

async fn perform<C: Catalog>(catalog: Arc<C>, tool: Arc<Tool>, call: Call) -> CallResult {
    if let Some(objection) = catalog.objection(&call) {
        return objection;
    }
    let until = catalog.deadline(call.tool).and_then(|deadline| Instant::now().checked_add(deadline));
    let mut patience = Patience { until, cancellation: None };
    if tool.takes_long(&call.arguments) {
        // A short check ends before anybody could give it up, and its call is then recorded as any other.
        patience.cancellation = Some(call.context.cancellation.clone());
        leave_thread().await;
    }
    if let Err(problems) = tool.check_arguments(&call.arguments, &patience) {
        catalog.refused(&call, &problems);
        return tool.refuse_arguments(&problems);
    }
    catalog.call(call).await.into_result()
}

/// Polls to the end; `None` if that panicked. The panic's message goes where the process's panics go.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_panic) => Poll::Ready(None),
    })
    .await
}
