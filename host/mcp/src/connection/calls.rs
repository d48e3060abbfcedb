//! Calls of tools, in the order of their lives: read, queued, begun, run, answered or cancelled.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use serde_json::value::RawValue;

use super::dispatch::{Exchange, RequestCatalog};
use super::reply::Reply;
use super::resources::ResourceRead;
use super::{OpenRequest, Shared, State};
use crate::asking::{Asking, Round, RoundInput, Rounds};
use crate::cancellation::Cancellation;
use crate::content::CallResult;
use crate::events::CallEvents;
use crate::frame::{ErrorCode, RequestId, RpcError, echo, error_frame, result_frame, scan};
use crate::host::{Call, CallContext, Catalog, Host, leave_thread};
use crate::meta::{Peer, RequestMeta};
use crate::method::Method;
use crate::observer;
use crate::revision::push_result;
use crate::schema::Patience;
use crate::tool::Tool;

/// Estimated memory of a queued call besides its texts, in bytes.
const QUEUED_BYTES: usize = 512;

/// The call that a request asks for.
pub(super) struct CallTarget {
    /// The tool's name, as it is listed.
    pub(super) name: String,
    /// A JSON object.
    pub(super) arguments: Box<RawValue>,
    /// The resource that the result becomes, for `resources/read`.
    pub(super) reads: Option<ResourceRead>,
    /// The answers that the client brings.
    pub(super) input: RoundInput,
}

/// A call that was read and has not begun.
pub(super) struct QueuedCall<C> {
    id: RequestId,
    sequence: u64,
    catalog: RequestCatalog<C>,
    target: CallTarget,
    peer: Peer,
    context: CallContext,
    reply: Reply,
    bytes: usize,
}

/// A call that is not answered yet, as other requests see it.
pub(super) struct OpenCall {
    sequence: u64,
    cancellation: Cancellation,
    events: CallEvents,
    reply: Reply,
}

impl CallTarget {
    fn method(&self) -> Method {
        if self.reads.is_some() { Method::ReadResource } else { Method::CallTool }
    }
}

impl OpenCall {
    /// Ends the call without an answer.
    fn abandon(&self) {
        self.events.end();
        self.cancellation.cancel();
        self.reply.nothing();
    }
}

impl<H: Host> Shared<H> {
    /// Reads a call of a tool and begins or queues it.
    pub(super) fn call_tool(self: &Arc<Self>, exchange: Exchange<'_, H>) -> Result<(), RpcError> {
        let params = &exchange.request.params;
        let input = RoundInput::read(params, exchange.peer.revision)?;
        let name = params.string("name")?.into_owned();
        let arguments = params.get("arguments").unwrap_or("{}");
        if !scan::is_object(arguments) {
            return Err(RpcError::params("params.arguments must be an object"));
        }
        let arguments = raw(arguments.to_owned())?;
        self.start(exchange, CallTarget { name, arguments, reads: None, input })
    }

    /// Begins a call whose target is known, or queues it.
    pub(super) fn start(self: &Arc<Self>, exchange: Exchange<'_, H>, target: CallTarget) -> Result<(), RpcError> {
        let Exchange { request, reply, peer, catalog } = exchange;
        let meta = RequestMeta::read(&request.params)?;
        let outbox = Arc::clone(reply.outbox());
        let context = CallContext {
            request_id: request.id.to_string(),
            revision: peer.revision,
            caller: self.caller.clone(),
            client: peer.client.clone(),
            trace: meta.trace.or_else(|| outbox.trace()),
            meta_json: meta.rest,
            cancellation: Cancellation::new(),
            events: CallEvents::new(outbox, peer.revision, meta.progress_token, peer.log_level),
            // Known when the tool is.
            asking: Asking::nobody(),
        };
        let read = target.arguments.get().len() + target.name.len() + target.input.bytes();
        let bytes = QUEUED_BYTES + read + context.meta_json.len();
        let (id, reply) = (request.id.clone(), reply.clone());
        let queued = QueuedCall { id, sequence: 0, catalog, target, peer, context, reply, bytes };
        if let Some(queued) = self.admit(queued) {
            self.begin(queued);
        }
        Ok(())
    }

    /// Registers a call as open. Returns it if it may begin now, and queues it otherwise.
    fn admit(&self, mut call: QueuedCall<H::Catalog>) -> Option<QueuedCall<H::Catalog>> {
        let congested = self.outbox.congested();
        let mut state = self.state();
        state.sequence += 1;
        call.sequence = state.sequence;
        let open = OpenCall {
            sequence: call.sequence,
            cancellation: call.context.cancellation.clone(),
            events: call.context.events.clone(),
            reply: call.reply.clone(),
        };
        state.open.insert(call.id.clone(), OpenRequest::Call(open));
        let free = state.active < self.server.options.in_flight_max.max(1);
        if free && state.queue.is_empty() && !congested {
            state.active += 1;
            return Some(call);
        }
        state.queue_bytes += call.bytes;
        state.queue.push_back(call);
        None
    }

    /// Begins queued calls, as many as may run.
    pub(super) fn begin_queued(self: &Arc<Self>) {
        while !self.outbox.congested() {
            let Some(queued) = self.state().next_queued(self.server.options.in_flight_max.max(1)) else { return };
            self.begin(queued);
        }
    }

    /// Begins one call that holds a permit.
    fn begin(self: &Arc<Self>, call: QueuedCall<H::Catalog>) {
        let QueuedCall { id, sequence, catalog, target, peer, mut context, reply, .. } = call;
        let permit = CallPermit { shared: Arc::clone(self), id, sequence, reply, settled: false };
        let catalog = catalog.get(&*self.server.host);
        let view = catalog.view(&context.caller);
        let Some((index, tool)) = view.as_deref().unwrap_or_else(|| catalog.tools()).find(&target.name) else {
            let error = RpcError::params(format!("Unknown tool: {}", echo(&target.name)));
            self.observe_refused(target.method(), &context, &error);
            let frame = error_frame(Some(&permit.id), &error);
            return permit.settle(frame);
        };
        // A client that reads a resource repeats its address in headers, not the arguments of the
        // tool behind it.
        let mirrored = permit.reply.outbox().mirrored().filter(|_| target.reads.is_none());
        let compared = mirrored.map_or(Ok(()), |mirrored| tool.compare(mirrored, &target.arguments));
        let method = target.method();
        let CallTarget { name, arguments, reads, input } = target;
        let asking = compared.and_then(|()| {
            let Some(binding) = catalog.asks(index) else { return input.refuse_state().map(|()| Asking::nobody()) };
            if !peer.revision.is_modern() {
                let outbox = permit.reply.outbox();
                return Ok(Asking::by_request(&self.asks, outbox, &peer, &context.cancellation));
            }
            let principal = self.caller.name();
            let round = Round { principal, tool: &name, binding: &binding, arguments: &arguments };
            Rounds::resume(&self.server.options.state_key, &peer, &round, input).map(Asking::in_rounds)
        });
        match asking {
            Ok(asking) => context.asking = asking,
            Err(error) => {
                self.observe_refused(method, &context, &error);
                return permit.refuse(&error);
            }
        }
        let (catalog, tool) = (Arc::clone(catalog), Arc::clone(tool));
        let call = Call { tool: index, arguments, context };
        self.executor.run(Box::pin(StartedCall { permit, catalog, tool, reads, call }.run()));
    }

    /// Tells the observer of a call that the catalog does not see.
    fn observe_refused(&self, method: Method, context: &CallContext, error: &RpcError) {
        if let Some(observer) = self.server.host.observer() {
            observer::refused(observer, method, context, error);
        }
    }

    /// Stops a call or ends a subscription, as its client asked. Nothing more is sent for it.
    pub(super) fn cancel(self: &Arc<Self>, id: &RequestId) {
        let removed = self.state().remove(id);
        let Some(OpenRequest::Call(call)) = removed else { return };
        call.abandon();
        self.outbox.notice();
    }

    /// Stops everything that is open and answers none of it: the client is gone.
    pub(super) fn abandon(self: &Arc<Self>) {
        let (open, queue) = {
            let mut state = self.state();
            state.queue_bytes = 0;
            (std::mem::take(&mut state.open), std::mem::take(&mut state.queue))
        };
        drop(queue);
        for open in open.into_values() {
            if let OpenRequest::Call(call) = open {
                call.abandon();
            }
        }
    }

    /// Cancels running calls and refuses queued ones.
    pub(super) fn cancel_all(self: &Arc<Self>) {
        let mut state = self.state();
        let refused = std::mem::take(&mut state.queue);
        state.queue_bytes = 0;
        for queued in &refused {
            state.open.remove(&queued.id);
        }
        let running: Vec<Cancellation> = state
            .open
            .values()
            .filter_map(|open| match open {
                OpenRequest::Call(call) => Some(call.cancellation.clone()),
                OpenRequest::Subscription(_) => None,
            })
            .collect();
        drop(state);
        for cancellation in running {
            cancellation.cancel();
        }
        let error = RpcError::new(ErrorCode::Internal, "The server is shutting down");
        for queued in refused {
            queued.reply.send(Some(&queued.id), error_frame(Some(&queued.id), &error));
        }
        self.outbox.flush();
    }
}

impl<C> State<C> {
    /// Takes the next call that may begin, and gives it a permit.
    fn next_queued(&mut self, in_flight_max: usize) -> Option<QueuedCall<C>> {
        if self.active >= in_flight_max {
            return None;
        }
        let queued = self.queue.pop_front()?;
        self.queue_bytes = self.queue_bytes.saturating_sub(queued.bytes);
        self.active += 1;
        Some(queued)
    }

    /// Takes an open request out, from the queue too.
    fn remove(&mut self, id: &RequestId) -> Option<OpenRequest> {
        let open = self.open.remove(id)?;
        if let OpenRequest::Call(call) = &open {
            let position = self.queue.iter().position(|queued| queued.sequence == call.sequence);
            if let Some(queued) = position.and_then(|position| self.queue.remove(position)) {
                self.queue_bytes = self.queue_bytes.saturating_sub(queued.bytes);
            }
        }
        Some(open)
    }
}

/// The permit of one call that has begun, with the duty to answer. Dropped unanswered, it answers
/// with an error.
struct CallPermit<H: Host> {
    shared: Arc<Shared<H>>,
    id: RequestId,
    sequence: u64,
    reply: Reply,
    settled: bool,
}

impl<H: Host> CallPermit<H> {
    /// Gives the permit back and sends the frame, unless the call was cancelled meanwhile.
    fn settle(mut self, frame: Vec<u8>) {
        self.settle_with(|reply, id| reply.send(Some(id), frame));
    }

    /// Gives the permit back, with an error as the answer.
    fn refuse(mut self, error: &RpcError) {
        self.settle_with(|reply, id| reply.refuse(Some(id), error));
    }

    fn settle_with(&mut self, answer: impl FnOnce(&Reply, &RequestId)) {
        self.settled = true;
        let answered = {
            let mut state = self.shared.state();
            state.active = state.active.saturating_sub(1);
            match state.open.get(&self.id) {
                Some(OpenRequest::Call(call)) if call.sequence == self.sequence => state.open.remove(&self.id),
                _ => None,
            }
        };
        if let Some(OpenRequest::Call(call)) = answered {
            call.events.end();
            answer(&self.reply, &self.id);
            self.reply.outbox().flush();
        }
    }
}

impl<H: Host> Drop for CallPermit<H> {
    fn drop(&mut self) {
        if !self.settled {
            let error = RpcError::new(ErrorCode::Internal, "The call was abandoned before it ended");
            self.settle_with(|reply, id| reply.send(Some(id), error_frame(Some(id), &error)));
            self.shared.outbox.notice();
        }
    }
}

/// A call that has begun.
struct StartedCall<H: Host> {
    permit: CallPermit<H>,
    catalog: Arc<H::Catalog>,
    tool: Arc<Tool>,
    reads: Option<ResourceRead>,
    call: Call,
}

impl<H: Host> StartedCall<H> {
    /// Runs the call, from its arguments to its reply.
    async fn run(self) {
        let Self { permit, catalog, tool, reads, call } = self;
        let shared = Arc::clone(&permit.shared);
        let revision = call.context.revision;
        let asking = call.context.asking.clone();
        let work = async {
            let index = call.tool;
            let result = perform(Arc::clone(&catalog), tool, call).await;
            if reads.is_none() {
                shared.keep_resources(catalog.origin(index), &result);
            }
            let (id, identity) = (&permit.id, &shared.server.identity);
            match (asking.ending(), &reads) {
                (None, Some(read)) => shared.contents_of(id, read, result, revision),
                (None, None) => Ok(result_frame(id, |out| push_result(out, &result, revision.features(), identity))),
                // The questions to the client are the answer.
                (Some(Ok(required)), _) => Ok(result_frame(id, |out| required.push(out, identity))),
                (Some(Err(error)), _) => Err(error),
            }
        };
        let internal = || Ok(error_frame(Some(&permit.id), &RpcError::new(ErrorCode::Internal, "Internal error")));
        match caught(work).await.unwrap_or_else(internal) {
            Ok(frame) => permit.settle(frame),
            Err(error) => permit.refuse(&error),
        }
        shared.begin_queued();
        shared.outbox.notice();
    }
}

/// Checks the arguments and runs the call.
async fn perform<C: Catalog>(catalog: Arc<C>, tool: Arc<Tool>, call: Call) -> CallResult {
    if let Some(refusal) = catalog.refuse_early(&call) {
        return refusal;
    }
    let until = catalog.deadline(call.tool).and_then(|deadline| Instant::now().checked_add(deadline));
    let mut patience = Patience { until, cancellation: None };
    if tool.takes_long(&call.arguments) {
        // A short check ends before anybody could give it up, and its call is recorded like any
        // other.
        patience.cancellation = Some(call.context.cancellation.clone());
        leave_thread().await;
    }
    if let Err(problems) = tool.check_arguments(&call.arguments, &patience) {
        catalog.arguments_refused(&call, &problems);
        return tool.refuse_arguments(&problems);
    }
    catalog.call(call).await.into_result()
}

/// Polls to the end; `None` after a panic. The panic's message goes where the process's panics go.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_panic) => Poll::Ready(None),
    })
    .await
}

/// Arguments as they are passed on.
pub(super) fn raw(arguments: String) -> Result<Box<RawValue>, RpcError> {
    let error = |_| RpcError::new(ErrorCode::Internal, "The arguments could not be kept");
    RawValue::from_string(arguments).map_err(error)
}
