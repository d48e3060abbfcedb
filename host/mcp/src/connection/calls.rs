//! Calls of tools, in the order of their life: read, queued, begun, run, answered or cancelled.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use serde_json::value::RawValue;
use toolcell_schema::Patience;

use super::dispatch::{RequestCatalog, RequestExchange};
use super::reply::ReplyTo;
use super::resources::ResourceCall;
use super::subscriptions::ChangedLists;
use super::task_calls::PlannedTask;
use super::{ConnectionParts, ConnectionState, LegacyState, UnansweredRequest};
use crate::asking::{CallAsking, Round, RoundInput, Rounds};
use crate::caller::Caller;
use crate::cancellation::Cancellation;
use crate::completion::Completing;
use crate::content::CallResult;
use crate::events::CallEvents;
use crate::frame::{RequestId, RpcError, echo, error_frame, result_frame, scan};
use crate::host::{Call, CallContext, Host, ServedCatalog, leave_thread};
use crate::meta::{Peer, RequestMeta};
use crate::method::Method;
use crate::observer;
use crate::revision::{Revision, push_result};
use crate::task::{TaskParam, TaskStart};
use crate::tool::{CheckedResult, InnerCall, McpTool, OwnTool, ToolList};

/// Estimated memory of a queued call besides its texts, in bytes.
const QUEUED_BYTES: usize = 512;

/// The call that a request asks for.
pub(super) struct RequestedCall {
    /// The entry's name: the tool's, as it is listed, or the path of a prompt.
    pub(super) name: String,
    /// A JSON object.
    pub(super) arguments: Box<RawValue>,
    /// The answer that its result becomes.
    pub(super) becomes: Becomes,
    /// The answers that the client brings.
    pub(super) input: RoundInput,
    /// True if it came through `call_tool`.
    pub(super) is_inner: bool,
    /// The client's request for a task.
    pub(super) task_param: Option<TaskParam>,
}

/// What a call's result becomes.
pub(super) enum Becomes {
    /// The answer to `tools/call`.
    ToolResult,
    /// The answer to `resources/read`.
    Resource(ResourceCall),
    /// The answer to `prompts/get`.
    Prompt,
    /// The answer to `completion/complete`.
    Completions(Completing),
}

/// A tool, and its index in the whole list.
type PlacedTool<'t> = (usize, &'t Arc<McpTool>);

/// The answer to an invalid call of `call_tool`, and the unknown name.
type NoInner = (Box<CallResult>, Option<String>);

/// A call that was read but has not begun.
pub(super) struct QueuedCall<C> {
    id: RequestId,
    sequence: u64,
    catalog: RequestCatalog<C>,
    target: RequestedCall,
    peer: Peer,
    context: Box<CallContext>,
    reply: ReplyTo,
    bytes: usize,
}

/// An unanswered call, as other requests see it.
pub(super) struct UnansweredCall {
    pub(super) sequence: u64,
    pub(super) cancellation: Cancellation,
    pub(super) events: CallEvents,
    pub(super) reply: ReplyTo,
}

impl Becomes {
    const fn method(&self) -> Method {
        match self {
            Self::ToolResult => Method::CallTool,
            Self::Resource(_) => Method::ReadResource,
            Self::Prompt => Method::GetPrompt,
            Self::Completions(_) => Method::Complete,
        }
    }

    /// True if this entry can have such an answer.
    fn is_of(&self, entry: &McpTool) -> bool {
        match self {
            Self::ToolResult => entry.is_tool(),
            Self::Prompt => entry.prompt().is_some(),
            Self::Resource(_) => entry.prompt().is_none(),
            Self::Completions(_) => true,
        }
    }

    /// The error for an entry that no longer exists.
    fn unknown(&self, name: &str) -> RpcError {
        match self {
            Self::Prompt => RpcError::params("Unknown prompt"),
            _ => RpcError::params(format!("Unknown tool: {}", echo(name))),
        }
    }
}

impl RequestedCall {
    pub(super) fn new(name: String, arguments: Box<RawValue>, becomes: Becomes, input: RoundInput) -> Self {
        Self { name, arguments, becomes, input, is_inner: false, task_param: None }
    }

    /// The call that this call of `call_tool` stands for, and its tool; or the answer if it is
    /// invalid, with the unknown name.
    fn inner<'t>(self, call: &McpTool, tools: &'t ToolList) -> Result<(Self, PlacedTool<'t>), NoInner> {
        let refused = |refusal: Box<CallResult>| (refusal, None);
        let InnerCall { name, arguments } = InnerCall::read(call, &self.arguments).map_err(refused)?;
        let Some(found) = tools.find(&name).filter(|(_, entry)| entry.is_for_models()) else {
            return Err((Box::new(InnerCall::unknown(&name)), Some(name)));
        };
        let arguments = arguments.filter(|arguments| arguments.get() != "null");
        let arguments = match arguments {
            Some(arguments) if !scan::is_object(arguments.get()) => {
                return Err(refused(Box::new(call.refuse_arguments(&"- /arguments must be an object"))));
            }
            Some(arguments) => arguments,
            None => raw("{}".to_owned()).map_err(|error| refused(Box::new(CallResult::error(error.message))))?,
        };
        Ok((Self { name, arguments, is_inner: true, ..self }, found))
    }
}

impl UnansweredRequest {
    fn into_call(self) -> Option<UnansweredCall> {
        match self {
            Self::Call(call) => Some(call),
            Self::Subscription(_) => None,
        }
    }
}

impl UnansweredCall {
    /// Ends the call without an answer.
    fn abandon(&self) {
        self.events.end();
        self.cancellation.cancel();
        self.reply.nothing();
    }
}

impl<H: Host> ConnectionParts<H> {
    /// Reads a call of a tool and begins or queues it.
    pub(super) fn call_tool(self: &Arc<Self>, exchange: RequestExchange<'_, H>) -> Result<(), RpcError> {
        let params = &exchange.request.params;
        let input = RoundInput::read(params, exchange.peer.revision)?;
        let name = params.string("name")?.into_owned();
        let arguments = params.get("arguments").unwrap_or("{}");
        if !scan::is_object(arguments) {
            return Err(RpcError::params("params.arguments must be an object"));
        }
        let arguments = raw(arguments.to_owned())?;
        let task_param = TaskParam::read(params, exchange.peer.revision)?;
        let target = RequestedCall::new(name, arguments, Becomes::ToolResult, input);
        self.start(exchange, RequestedCall { task_param, ..target })
    }

    /// Begins a call whose target is known, or queues it.
    pub(super) fn start(
        self: &Arc<Self>,
        exchange: RequestExchange<'_, H>,
        target: RequestedCall,
    ) -> Result<(), RpcError> {
        let RequestExchange { request, reply, peer, catalog } = exchange;
        let meta = RequestMeta::read(&request.params)?;
        let outbox = Arc::clone(reply.outbox());
        let context = Box::new(CallContext {
            request_id: request.id.to_string(),
            revision: peer.revision,
            caller: self.caller.clone(),
            client: peer.client.clone(),
            trace: meta.trace.or_else(|| outbox.trace()),
            meta_json: meta.rest,
            extensions: peer.extensions.clone(),
            cancellation: Cancellation::new(),
            events: CallEvents::new(outbox, peer.revision, meta.progress_token, peer.log_level),
            // Set once the tool is known.
            asking: CallAsking::nobody(),
            task: false,
            keeps_resources: self.keeps_resources(),
        });
        let read = target.arguments.get().len() + target.name.len() + target.input.bytes();
        let extensions = context.extensions.as_ref().map_or(0, |text| text.len());
        let bytes = QUEUED_BYTES + read + context.meta_json.len() + extensions;
        let id = request.id.clone();
        let reply = reply.clone();
        let queued = QueuedCall { id, sequence: 0, catalog, target, peer, context, reply, bytes };
        if let Some(queued) = self.admit(queued)? {
            self.begin(queued);
        }
        Ok(())
    }

    /// Registers a call as open. Returns it if it may begin now, and queues it otherwise.
    fn admit(&self, mut call: QueuedCall<H::Catalog>) -> Result<Option<QueuedCall<H::Catalog>>, RpcError> {
        let congested = self.outbox.congested();
        let mut state = self.state();
        if state.past_bounds && !state.has_room(&self.server.options) {
            let text = "Too many calls wait to run: answer what the server asks, then call again";
            return Err(RpcError::internal(text));
        }
        state.sequence += 1;
        call.sequence = state.sequence;
        let open = UnansweredCall {
            sequence: call.sequence,
            cancellation: call.context.cancellation.clone(),
            events: call.context.events.clone(),
            reply: call.reply.clone(),
        };
        state.open.insert(call.id.clone(), UnansweredRequest::Call(open));
        let free = state.active < self.server.options.in_flight_max.max(1);
        if free && state.queue.is_empty() && !congested {
            state.active += 1;
            return Ok(Some(call));
        }
        state.queue_bytes += call.bytes;
        state.queue.push_back(call);
        Ok(None)
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
        let QueuedCall { id, sequence, catalog, mut target, peer, mut context, reply, .. } = call;
        let permit = AnswerDuty { shared: Arc::clone(self), id, sequence, reply, settled: false, runs: true };
        let catalog = catalog.get(&*self.server.host);
        let view = catalog.view(&context.caller);
        let entries = view.as_deref().unwrap_or_else(|| catalog.tools());
        let own = entries.own(&target.name).filter(|_| matches!(target.becomes, Becomes::ToolResult));
        let found = match own {
            Some(OwnTool::Answering) => {
                let asked = SearchCall { permit, catalog: Arc::clone(catalog), view, target };
                return self.executor.run(Box::pin(asked.run(peer.revision)));
            }
            // From here on it is an ordinary call of the named tool.
            Some(OwnTool::Call(call)) => match target.inner(&call, entries) {
                Ok((inner, found)) => {
                    target = inner;
                    Some(found)
                }
                Err((refusal, unknown)) => {
                    if let Some(name) = unknown {
                        self.observe_unseen(&**catalog, &context.caller, &name, &Becomes::ToolResult);
                    }
                    self.observe_refused(Method::CallTool, &context, &RpcError::params("refused"));
                    return permit.settle_result(&refusal, peer.revision);
                }
            },
            None => entries.find(&target.name).filter(|(_, entry)| target.becomes.is_of(entry)),
        };
        let Some((index, tool)) = found else {
            let error = target.becomes.unknown(&target.name);
            self.observe_unseen(&**catalog, &context.caller, &target.name, &target.becomes);
            self.observe_refused(target.becomes.method(), &context, &error);
            let frame = error_frame(Some(&permit.id), &error);
            permit.settle(frame);
            return;
        };
        // Only direct calls repeat arguments in headers: the definition of `call_tool` has no such
        // parameters.
        let repeats = matches!(target.becomes, Becomes::ToolResult) && !target.is_inner;
        let mirrored = permit.reply.outbox().mirrored().filter(|_| repeats);
        let compared = mirrored.map_or(Ok(()), |mirrored| tool.compare(mirrored, &target.arguments));
        let RequestedCall { name, arguments, becomes, input, task_param, .. } = target;
        let method = becomes.method();
        let terms = catalog.terms(index);
        let is_long = terms.arguments_bytes_max.is_some_and(|most| arguments.get().len() as u64 > most);
        let asks = terms.asks.filter(|_| !matches!(becomes, Becomes::Completions(_)));
        let asking = || {
            let Some(binding) = asks else { return input.refuse_state().map(|()| CallAsking::nobody()) };
            if !peer.revision.is_modern() {
                let outbox = permit.reply.outbox();
                return Ok(CallAsking::by_request(&self.asks, outbox, &peer, &context.cancellation));
            }
            let principal = self.caller.name();
            let round = Round { principal, method, tool: &name, binding: &binding, arguments: &arguments };
            Rounds::resume(&self.server.options.state_key, &peer, &round, input).map(CallAsking::in_rounds)
        };
        let asking = compared
            .and_then(|()| self.task_of(tool, &becomes, task_param, catalog.tools().has_tasks(), &peer))
            .and_then(|task| Ok((task, asking()?)));
        let task = match asking {
            Ok((task, asking)) => {
                context.asking = asking;
                task.map(|start| PlannedTask::new(start, &mut context))
            }
            Err(error) => {
                self.observe_refused(method, &context, &error);
                return permit.refuse(&error);
            }
        };
        let catalog = Arc::clone(catalog);
        let tool = Arc::clone(tool);
        let call = Call { tool: index, arguments, context };
        let work = Box::pin(BegunCall { permit, catalog, tool, becomes, call, is_long, task }.run());
        self.executor.run_waiting(work);
    }

    /// Decides if a call is a task, or may become one.
    fn task_of(
        &self,
        tool: &McpTool,
        becomes: &Becomes,
        task_param: Option<TaskParam>,
        has_tasks: bool,
        peer: &Peer,
    ) -> Result<Option<TaskStart>, RpcError> {
        if !matches!(becomes, Becomes::ToolResult) || self.server.tasks.kept().is_none() {
            return Ok(None);
        }
        // If no tool runs as a task, tasks are not offered, and requests for one are ignored.
        let task_param = task_param.filter(|_| has_tasks);
        tool.task().decide(&tool.definition().name, task_param, peer.revision, peer.capabilities)
    }

    /// Reports a name that is not in the caller's list.
    pub(super) fn observe_unseen(&self, catalog: &H::Catalog, caller: &Caller, name: &str, becomes: &Becomes) {
        if let Some(observer) = self.server.host.observer() {
            let hidden = catalog.tools().find(name).filter(|(_, entry)| becomes.is_of(entry));
            observer.unseen(caller, hidden.map(|(_, entry)| entry.definition().name.as_str()));
        }
    }

    /// Reports a call that never reaches the catalog.
    fn observe_refused(&self, method: Method, context: &CallContext, error: &RpcError) {
        if let Some(observer) = self.server.host.observer() {
            observer::refused(observer, method, context, error);
        }
    }

    /// Stops a call or ends a subscription for its client. Nothing more is sent for it. Returns
    /// false if neither exists.
    pub(super) fn cancel(self: &Arc<Self>, id: &RequestId) -> bool {
        let removed = self.state().remove(id);
        let is_open = removed.is_some();
        if let Some(UnansweredRequest::Call(call)) = removed {
            self.asks.take_back(&call.cancellation);
            call.abandon();
            self.outbox.notice();
        }
        is_open
    }

    /// Stops all open requests without answering: the client is gone.
    pub(super) fn abandon(self: &Arc<Self>) {
        let mut state = self.state();
        state.queue_bytes = 0;
        let queue = std::mem::take(&mut state.queue);
        let open = std::mem::take(&mut state.open).into_values();
        let earlier = std::mem::take(&mut state.earlier);
        drop(state);
        drop(queue);
        let calls = open.filter_map(UnansweredRequest::into_call);
        calls.chain(earlier.into_iter().map(|(_, call)| call)).for_each(|call| call.abandon());
    }

    /// Cancels running calls and refuses queued ones.
    pub(super) fn cancel_all(self: &Arc<Self>) {
        let mut state = self.state();
        let refused = std::mem::take(&mut state.queue);
        state.queue_bytes = 0;
        for queued in &refused {
            state.take_call(&queued.id, queued.sequence);
        }
        let calls = state.open.values().filter_map(|open| match open {
            UnansweredRequest::Call(call) => Some(call),
            UnansweredRequest::Subscription(_) => None,
        });
        let calls = calls.chain(state.earlier.iter().map(|(_, call)| call));
        let running: Vec<Cancellation> = calls.map(|call| call.cancellation.clone()).collect();
        drop(state);
        for cancellation in running {
            cancellation.cancel();
        }
        let error = RpcError::internal("The server is shutting down");
        for queued in refused {
            queued.reply.send(Some(&queued.id), error_frame(Some(&queued.id), &error));
        }
        self.outbox.flush();
    }
}

impl<C> ConnectionState<C> {
    /// The next call that may begin, with a permit.
    fn next_queued(&mut self, in_flight_max: usize) -> Option<QueuedCall<C>> {
        if self.active >= in_flight_max {
            return None;
        }
        let queued = self.queue.pop_front()?;
        self.queue_bytes = self.queue_bytes.saturating_sub(queued.bytes);
        self.active += 1;
        Some(queued)
    }

    /// Begins a session. Calls of an earlier one continue and are answered, but their ids are free
    /// again: each client counts from the start.
    pub(super) fn begin_session(&mut self, session: LegacyState) {
        self.session = Some(session);
        self.lists = ChangedLists::default();
        let calls = self.open.extract_if(.., |_, open| matches!(open, UnansweredRequest::Call(_)));
        self.earlier.extend(calls.filter_map(|(id, open)| Some((id, open.into_call()?))));
    }

    /// Removes a call by its id and number.
    fn take_call(&mut self, id: &RequestId, sequence: u64) -> Option<UnansweredCall> {
        match self.open.get(id) {
            Some(UnansweredRequest::Call(call)) if call.sequence == sequence => self.open.remove(id)?.into_call(),
            _ => {
                let place = self.earlier.iter().position(|(_, call)| call.sequence == sequence)?;
                Some(self.earlier.swap_remove(place).1)
            }
        }
    }

    /// Removes an open request, also from the queue. An id may also belong to an earlier session.
    fn remove(&mut self, id: &RequestId) -> Option<UnansweredRequest> {
        let open = self.open.remove(id).or_else(|| {
            let place = self.earlier.iter().position(|(earlier, _)| earlier == id)?;
            Some(UnansweredRequest::Call(self.earlier.swap_remove(place).1))
        })?;
        if let UnansweredRequest::Call(call) = &open {
            let position = self.queue.iter().position(|queued| queued.sequence == call.sequence);
            if let Some(queued) = position.and_then(|position| self.queue.remove(position)) {
                self.queue_bytes = self.queue_bytes.saturating_sub(queued.bytes);
            }
        }
        Some(open)
    }
}

/// The permit of a call that has begun, and the duty to answer it. If dropped without an answer, it
/// answers with an error.
pub(super) struct AnswerDuty<H: Host> {
    pub(super) shared: Arc<ConnectionParts<H>>,
    pub(super) id: RequestId,
    pub(super) sequence: u64,
    pub(super) reply: ReplyTo,
    settled: bool,
    /// False if it only waits, without occupying a place for running calls.
    runs: bool,
}

impl<H: Host> AnswerDuty<H> {
    /// The duty to answer a request that only waits.
    pub(super) fn waiting(shared: &Arc<ConnectionParts<H>>, id: &RequestId, sequence: u64, reply: &ReplyTo) -> Self {
        let shared = Arc::clone(shared);
        let id = id.clone();
        let reply = reply.clone();
        Self { shared, id, sequence, reply, settled: false, runs: false }
    }

    /// Returns the permit and sends the frame, unless the call was cancelled meanwhile. Returns
    /// true if it was sent.
    pub(super) fn settle(mut self, frame: Vec<u8>) -> bool {
        self.settle_with(|reply, id| reply.send(Some(id), frame))
    }

    /// Returns the permit, with the answer of one of the host's own tools.
    fn settle_result(self, result: &CallResult, revision: Revision) {
        let identity = &self.shared.server.identity;
        let frame = result_frame(&self.id, |out| push_result(out, result, revision.features(), identity));
        self.settle(frame);
    }

    /// Returns the permit, with an error as the answer.
    pub(super) fn refuse(mut self, error: &RpcError) {
        self.settle_with(|reply, id| reply.refuse(Some(id), error));
    }

    fn settle_with(&mut self, answer: impl FnOnce(&ReplyTo, &RequestId)) -> bool {
        self.settled = true;
        let answered = {
            let mut state = self.shared.state();
            let count = if self.runs { &mut state.active } else { &mut state.waiting };
            *count = count.saturating_sub(1);
            state.take_call(&self.id, self.sequence)
        };
        let Some(call) = answered else { return false };
        call.events.end();
        answer(&self.reply, &self.id);
        self.reply.outbox().flush();
        true
    }
}

impl<H: Host> Drop for AnswerDuty<H> {
    fn drop(&mut self) {
        if !self.settled {
            let error = RpcError::internal("The call was abandoned before it ended");
            self.settle_with(|reply, id| reply.send(Some(id), error_frame(Some(id), &error)));
            self.shared.outbox.notice();
        }
    }
}

/// A call of `find_tools` or `describe_tools` that has begun.
struct SearchCall<H: Host> {
    permit: AnswerDuty<H>,
    catalog: Arc<H::Catalog>,
    view: Option<Arc<ToolList>>,
    target: RequestedCall,
}

impl<H: Host> SearchCall<H> {
    /// Searches, and answers.
    async fn run(self, revision: Revision) {
        let Self { permit, catalog, view, target } = self;
        let shared = Arc::clone(&permit.shared);
        // It never asks, so it never issued a state.
        match target.input.refuse_state() {
            Ok(()) => {
                let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
                let search = pin!(async { tools.answer_own(&target.name, &target.arguments, revision) });
                let found = caught(search).await.unwrap_or_else(|| CallResult::error("The search failed"));
                permit.settle_result(&found, revision);
            }
            Err(error) => permit.refuse(&error),
        }
        shared.begin_queued();
        shared.outbox.notice();
    }
}

/// A call that has begun.
pub(super) struct BegunCall<H: Host> {
    pub(super) permit: AnswerDuty<H>,
    pub(super) catalog: Arc<H::Catalog>,
    pub(super) tool: Arc<McpTool>,
    becomes: Becomes,
    pub(super) call: Call,
    /// True if its arguments are longer than allowed.
    pub(super) is_long: bool,
    task: Option<PlannedTask>,
}

impl<H: Host> BegunCall<H> {
    /// Runs the call, from its arguments to its reply.
    async fn run(mut self) {
        if let Some(task) = self.task.take() {
            // Boxed: it is several times larger than the rest.
            return Box::pin(self.run_as(task)).await;
        }
        let Self { permit, catalog, tool, becomes, call, is_long, .. } = self;
        let shared = Arc::clone(&permit.shared);
        let revision = call.context.revision;
        let asking = call.context.asking.clone();
        let answered = caught(pin!(async {
            let id = &permit.id;
            let identity = &shared.server.identity;
            let becomes = match becomes {
                Becomes::Completions(completing) => {
                    let completions = Box::pin(catalog.complete(call, completing)).await;
                    return shared.completed(id, completions, revision);
                }
                other => other,
            };
            let index = call.tool;
            let mut result = perform(Arc::clone(&catalog), Arc::clone(&tool), call, is_long).await;
            if !matches!(becomes, Becomes::Resource(_)) {
                result = shared.kept(catalog.origin(index), result).await;
            }
            match (asking.ending(), &becomes) {
                (None, Becomes::Resource(read)) => {
                    let views = |uri: &str| catalog.view_meta(uri);
                    shared.contents_of(id, read, &views, result, revision)
                }
                (None, Becomes::Prompt) => shared.prompt_of(id, &tool, result, revision),
                (None, _) => Ok(result_frame(id, |out| push_result(out, &result, revision.features(), identity))),
                // The questions to the client are the answer.
                (Some(Ok(required)), _) => Ok(result_frame(id, |out| required.push(out, identity))),
                (Some(Err(error)), _) => Err(error),
            }
        }))
        .await;
        let internal = || Ok(error_frame(Some(&permit.id), &RpcError::internal("Internal error")));
        match answered.unwrap_or_else(internal) {
            Ok(frame) => _ = permit.settle(frame),
            Err(error) => permit.refuse(&error),
        }
        shared.begin_queued();
        shared.outbox.notice();
    }
}

/// Checks the arguments and runs the call.
pub(super) async fn perform<C: ServedCatalog>(
    catalog: Arc<C>,
    tool: Arc<McpTool>,
    call: Call,
    is_long: bool,
) -> CheckedResult {
    if is_long {
        return CheckedResult::conforming(catalog.refuse_long(&call)).blaming_arguments(true);
    }
    let mut patience = Patience::default();
    if tool.takes_long(&call.arguments) {
        // Short checks end before anybody could cancel them.
        patience.given_up = Some(call.context.cancellation.given_up());
        leave_thread().await;
    }
    if let Err(problems) = tool.check_arguments(&call.arguments, &patience) {
        catalog.arguments_refused(&call, &problems);
        return CheckedResult::conforming(tool.refuse_arguments(&problems)).blaming_arguments(true);
    }
    catalog.call(call).await
}

/// Polls to the end; `None` after a panic. The panic's message goes where the process's panics go.
///
/// What it polls stays where it is: as an argument by value it would lie in this future twice.
pub(super) async fn caught<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_panic) => Poll::Ready(None),
    })
    .await
}

/// Arguments in the form that is passed on.
pub(super) fn raw(arguments: String) -> Result<Box<RawValue>, RpcError> {
    let error = |_| RpcError::internal("The arguments could not be kept");
    RawValue::from_string(arguments).map_err(error)
}
