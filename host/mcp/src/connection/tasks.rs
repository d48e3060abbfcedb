//! The methods of tasks.

use std::future::poll_fn;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use toolcell_shared::{TaskRecord, TaskStatus, Tasks};

use super::calls::{AnswerDuty, UnansweredCall, caught};
use super::dispatch::RequestExchange;
use super::{ConnectionParts, UnansweredRequest};
use crate::asking::{AskCapabilities, ReplyText, RoundInput, stored_needs};
use crate::cancellation::Cancellation;
use crate::events::CallEvents;
use crate::frame::{Object, RpcError, push_list, result_frame, scan};
use crate::host::{Audience, Host, Outbox};
use crate::task::{
    CANCELLED_MESSAGE, TaskBody, TaskOptions, name_of, push_detailed, push_legacy, push_legacy_result, undeclared,
};

/// Longest name of a task that is looked up or watched, in bytes. This server's have 32.
pub(super) const TASK_ID_BYTES_MAX: usize = 64;

/// Bytes of all answers in one `tasks/update`: sixteen of the longest that the manifest allows.
const ANSWERS_BYTES_MAX: usize = 16 << 20;

/// The error for a task that does not exist, or belongs to another caller.
fn unknown() -> RpcError {
    RpcError::params("Unknown task: it may have expired")
}

fn away<E>(_: E) -> RpcError {
    RpcError::internal("The state that replicas share cannot be reached; try again")
}

fn gone() -> RpcError {
    RpcError::internal("The client is gone")
}

/// A question that was sent to a client, and its future answer.
type SentQuestion = (String, Pin<Box<dyn Future<Output = ReplyText> + Send>>);

impl<H: Host> ConnectionParts<H> {
    /// True if this caller's tasks can be listed. Anonymous callers cannot be told apart, so theirs
    /// cannot (2025-11-25, "Task Isolation and Access Control").
    pub(super) fn lists_tasks(&self) -> bool {
        self.caller.is_recognised()
    }

    /// The store of tasks, and the name of the task in a request.
    fn task_asked(&self, exchange: &RequestExchange<'_, H>) -> Result<(Arc<dyn Tasks>, TaskOptions, String), RpcError> {
        if exchange.peer.revision.is_modern() && !exchange.peer.capabilities.tasks() {
            return Err(undeclared("This client"));
        }
        let id = exchange.request.params.string("taskId")?.into_owned();
        let (store, options) = self.server.tasks.kept().ok_or_else(unknown)?;
        if id.len() > TASK_ID_BYTES_MAX { Err(unknown()) } else { Ok((Arc::clone(store), *options, id)) }
    }

    /// Answers with the current state of a task.
    pub(super) fn get_task(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let (store, options, task) = self.task_asked(exchange)?;
        let modern = exchange.peer.revision.is_modern();
        self.answer_later(exchange, move |shared, id| async move {
            let task = store.find(shared.caller.name(), &task).await.map_err(away)?.ok_or_else(unknown)?;
            Ok(shared.complete_frame(&id, modern, |result| match modern {
                true => push_detailed(result, &task, options.poll),
                false => push_legacy(result, &task, options.poll),
            }))
        })
    }

    /// Accepts answers to the questions of a task.
    pub(super) fn update_task(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let (store, _, task) = self.task_asked(exchange)?;
        let params = &exchange.request.params;
        if params.get("inputResponses").is_none() {
            return Err(RpcError::params("params.inputResponses must be an object"));
        }
        let answers = RoundInput::read(params, exchange.peer.revision)?.into_stored();
        let bytes: usize = answers.iter().map(|(_, answer)| answer.len()).sum();
        if bytes > ANSWERS_BYTES_MAX {
            return Err(RpcError::params(format!("params.inputResponses has more than {ANSWERS_BYTES_MAX} bytes")));
        }
        self.answer_later(exchange, move |shared, id| async move {
            let known = store.answer(shared.caller.name(), &task, &answers).await.map_err(away)?;
            if known { Ok(shared.complete_frame(&id, true, |_| {})) } else { Err(unknown()) }
        })
    }

    pub(super) fn cancel_task(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let (store, options, task) = self.task_asked(exchange)?;
        let modern = exchange.peer.revision.is_modern();
        self.answer_later(exchange, move |shared, id| async move {
            let cancelled = store.cancel(shared.caller.name(), &task, CANCELLED_MESSAGE).await.map_err(away)?;
            let (before, task) = cancelled.ok_or_else(unknown)?;
            if modern {
                return Ok(shared.complete_frame(&id, true, |_| {}));
            }
            if before.is_over() {
                let text = format!("The task cannot be cancelled: it is {} already", name_of(before));
                return Err(RpcError::params(text));
            }
            Ok(shared.complete_frame(&id, false, |result| push_legacy(result, &task, options.poll)))
        })
    }

    /// Lists one page of the caller's tasks.
    pub(super) fn list_tasks(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        if !self.lists_tasks() {
            return Err(RpcError::method("tasks/list"));
        }
        let after = match exchange.request.params.cursor() {
            None => 0,
            Some(cursor) => page_after(cursor)?,
        };
        let (store, options) = self.server.tasks.kept().ok_or_else(unknown)?;
        let store = Arc::clone(store);
        let options = *options;
        let most = self.server.options.page_size.max(1);
        self.answer_later(exchange, move |shared, id| async move {
            let mut tasks = store.list(shared.caller.name(), after, most.saturating_add(1)).await.map_err(away)?;
            let more = tasks.len() > most;
            tasks.truncate(most);
            Ok(shared.complete_frame(&id, false, |result| {
                push_list(result.key("tasks"), &tasks, |out, task| {
                    push_legacy(&mut Object::open(out), task, options.poll);
                });
                let last = tasks.last().filter(|_| more);
                result.text_if("nextCursor", last.map(|task| format!("{:x}", task.number)).as_deref());
            }))
        })
    }

    /// Waits for the end of a task, and answers with its result. Meanwhile the client gets the
    /// task's questions (2025-11-25, "Input Required Status").
    pub(super) fn task_result(self: &Arc<Self>, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let (store, _, task) = self.task_asked(exchange)?;
        let cancellation = Cancellation::new();
        let outbox = Arc::clone(exchange.reply.outbox());
        // Another client's wait may still ask what this one's cannot.
        let capabilities = exchange.peer.capabilities;
        let capabilities = (outbox.audience() == Audience::Client).then_some(capabilities);
        let id = exchange.id();
        let reply = exchange.reply;
        let sequence = {
            let mut state = self.state();
            let most = self.server.options.pending_calls_max.max(1);
            if state.waiting >= most {
                let text = format!("At most {most} requests of one connection may wait for tasks");
                return Err(RpcError::internal(text));
            }
            state.waiting += 1;
            state.sequence += 1;
            let open = UnansweredCall {
                sequence: state.sequence,
                cancellation: cancellation.clone(),
                events: CallEvents::nowhere(),
                reply: reply.clone(),
            };
            state.open.insert(id.clone(), UnansweredRequest::Call(open));
            state.sequence
        };
        let permit = AnswerDuty::waiting(self, id, sequence, reply);
        let shared = Arc::clone(self);
        self.executor.run(Box::pin(async move {
            let work = shared.ended(&store, &task, capabilities, &outbox, &cancellation);
            let internal = || Err(RpcError::internal("Internal error"));
            match caught(pin!(work)).await.unwrap_or_else(internal) {
                Ok(ended) => match TaskBody::read(&ended.body) {
                    Some(TaskBody::Result(result)) => {
                        let frame = result_frame(&permit.id, |out| push_legacy_result(out, result, &task));
                        permit.settle(frame);
                    }
                    Some(TaskBody::Error(error)) => {
                        let mut frame = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
                        permit.id.push(&mut frame);
                        frame.extend_from_slice(format!(",\"error\":{error}}}").as_bytes());
                        permit.settle(frame);
                    }
                    None => permit.refuse(&RpcError::internal(message_of(&ended))),
                },
                Err(error) => permit.refuse(&error),
            }
        }));
        Ok(())
    }

    /// Waits for the end of a task. Meanwhile a client with these capabilities gets its questions.
    async fn ended(
        &self,
        store: &Arc<dyn Tasks>,
        id: &str,
        capabilities: Option<AskCapabilities>,
        outbox: &Arc<dyn Outbox>,
        cancellation: &Cancellation,
    ) -> Result<TaskRecord, RpcError> {
        let awaited = self.server.tasks.watch(id, capabilities);
        let mut sent: Vec<SentQuestion> = Vec::new();
        let mut answered: Vec<String> = Vec::new();
        loop {
            if cancellation.is_cancelled() {
                return Err(RpcError::internal("The server is shutting down"));
            }
            let changed = awaited.changed();
            let task = store.find(self.caller.name(), id).await.map_err(away)?.ok_or_else(unknown)?;
            if task.status.is_over() {
                return Ok(task);
            }
            let may_ask = |question: &str| stored_needs(question).is_some_and(|needs| awaited.may_ask(&needs));
            let own: Vec<&(String, String)> = task.questions.iter().filter(|(_, text)| may_ask(text)).collect();
            // Dropping a question withdraws it.
            sent.retain(|(key, _)| own.iter().any(|(asked, _)| asked == key));
            if task.status == TaskStatus::InputRequired {
                for (key, question) in own {
                    if sent.iter().any(|(known, _)| known == key) || answered.contains(key) {
                        continue;
                    }
                    let pending = self.asks.send_stored(question, outbox, cancellation).ok_or_else(gone)?;
                    sent.push((key.clone(), Box::pin(pending.reply())));
                }
                outbox.flush();
            }
            tokio::select! {
                biased;
                (key, reply) = poll_fn(|context| poll_first(&mut sent, context)) => {
                    if let Some(answer) = reply.stored() {
                        store.answer(self.caller.name(), id, &[(key.clone(), answer)]).await.map_err(away)?;
                        answered.push(key);
                    }
                }
                () = changed => {}
                () = cancellation.cancelled() => {}
                // Nobody would read the result, and another may ask what this one has asked.
                () = poll_fn(|context| outbox.poll_gone(context)) => return Err(gone()),
            }
        }
    }
}

/// The message of a task without a body: it was cancelled.
fn message_of(task: &TaskRecord) -> String {
    let message = if task.message.is_empty() { name_of(task.status) } else { &task.message };
    message.to_owned()
}

/// Removes and returns the first answer that is ready.
fn poll_first(sent: &mut Vec<SentQuestion>, context: &mut Context<'_>) -> Poll<(String, ReplyText)> {
    for place in 0..sent.len() {
        let Some((_, reply)) = sent.get_mut(place) else { break };
        if let Poll::Ready(reply) = reply.as_mut().poll(context) {
            let (key, _) = sent.remove(place);
            return Poll::Ready((key, reply));
        }
    }
    Poll::Pending
}

/// The number in a cursor (its JSON text).
fn page_after(cursor: &str) -> Result<u64, RpcError> {
    let text = scan::string(cursor).ok_or_else(|| RpcError::params("The cursor must be a string"))?;
    scan::hex(&text).ok_or_else(|| RpcError::params("The cursor is not one that this server gave"))
}
