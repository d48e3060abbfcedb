//! Calls that are tasks, or become one while they run.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use toolcell_shared::{Changed, Creation, NewTask, TaskChange, TaskRecord, TaskStatus, Tasks};

use super::ConnectionParts;
use super::calls::{AnswerDuty, BegunCall, caught, perform};
use crate::frame::{Object, RpcError, result_frame};
use crate::host::{CallContext, Host, ServedCatalog as _};
use crate::meta::SERVER_INFO;
use crate::revision::{Revision, push_result};
use crate::sealing::random_name;
use crate::task::{BegunTask, TaskBody, TaskHandle, TaskOptions, TaskStart, push_created, push_legacy};

/// Pause between two status messages of a task: nobody polls more often.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// Pause between two attempts to store a result while the shared state is unreachable.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// How a call is a task, or becomes one.
pub(super) struct PlannedTask {
    start: TaskStart,
    handle: Arc<TaskHandle>,
}

/// The outcome of a call: its result as JSON, and true if the tool failed.
type TaskOutcome = Result<(Vec<u8>, bool), RpcError>;

impl PlannedTask {
    /// Prepares a call for it.
    pub(super) fn new(start: TaskStart, context: &mut CallContext) -> Self {
        let handle = Arc::<TaskHandle>::default();
        context.task = true;
        context.events.of_task(&handle);
        context.asking = context.asking.clone().of_task(&handle);
        Self { start, handle }
    }
}

/// A running task.
struct RunningTask<'h> {
    id: String,
    store: &'h Arc<dyn Tasks>,
    options: &'h TaskOptions,
    handle: Arc<TaskHandle>,
    ends: Instant,
    revision: Revision,
}

impl<H: Host> BegunCall<H> {
    /// Runs the call as a task, or until it becomes one.
    pub(super) async fn run_as(self, PlannedTask { start, handle }: PlannedTask) {
        let Self { permit, catalog, tool, call, is_long, .. } = self;
        let shared = Arc::clone(&permit.shared);
        let Some((store, options)) = shared.server.tasks.kept() else { return };
        let revision = call.context.revision;
        let bytes = call.arguments.get().len();
        let asking = call.context.asking.clone();
        let events = call.context.events.clone();
        let cancellation = call.context.cancellation.clone();
        let work = pin!(async {
            let origin = call.tool;
            let result = perform(Arc::clone(&catalog), Arc::clone(&tool), call, is_long).await;
            let result = shared.kept(catalog.origin(origin), result).await;
            let mut out = Vec::new();
            let identity = &shared.server.identity;
            match asking.ending() {
                None => push_result(&mut out, &result, revision.features(), identity),
                Some(Ok(required)) => required.push(&mut out, identity),
                Some(Err(error)) => return Err(error),
            }
            Ok((out, result.is_error))
        });
        let internal = || Err(RpcError::internal("Internal error"));
        let mut work = pin!(async { caught(work).await.unwrap_or_else(internal) });
        if !start.after.is_zero() {
            tokio::select! {
                biased;
                outcome = &mut work => return answer(permit, outcome),
                () = sleep(start.after) => {}
            }
        }
        let ttl = start.ttl.map_or(options.ttl, |ttl| ttl.min(options.ttl_max)).max(Duration::from_millis(1));
        let begun = async {
            let id = random_name().ok_or_else(|| unkept("The machine gives no random numbers"))?;
            let new = NewTask { id: &id, caller: shared.caller.name(), ttl, bytes };
            match store.create(&new).await {
                Ok(Creation::Created) => match store.find(shared.caller.name(), &id).await {
                    Ok(Some(task)) => Ok(task),
                    _ => Err(unkept("The task is not found")),
                },
                Ok(Creation::CallerFull) => Err(unkept("This caller has as many tasks as it may")),
                Ok(Creation::Full) => Err(unkept("There are as many tasks as there may be")),
                Err(_) => Err(unkept("The state that replicas share cannot be reached")),
            }
        };
        let created = match begun.await {
            Ok(created) => created,
            // It has not begun to run.
            Err(refusal) if start.after.is_zero() => {
                permit.refuse(&refusal);
                return shared.go_on();
            }
            // Without a task, the call is answered when it ends.
            Err(_) => return answer(permit, work.await),
        };
        let ends = Instant::now() + ttl;
        let id = created.id.clone();
        let task = RunningTask { id, store, options, handle, ends, revision };
        let legacy = !revision.is_modern();
        let begun = BegunTask { id: task.id.clone(), store: Arc::clone(store), legacy };
        if !asking.begin_task(|| task.handle.begin(begun)) {
            task.forget().await;
            return answer(permit, work.await);
        }
        shared.server.tasks.runs(&task.id, &task.handle, &cancellation);
        if legacy {
            // The session's client is notified of its own tasks.
            shared.state().tasks.add(&task.id, shared.server.options.watched_max);
        }
        let frame = result_frame(&permit.id, |out| task.push_creation(out, &created, &shared.server.identity));
        // From here on the request is answered, and its connection is free.
        if permit.settle(frame) {
            if legacy {
                events.go_on(&shared.outbox);
            }
            shared.go_on();
            let outcome = task.run(work, &cancellation).await;
            events.end();
            // A task that ended with its process is lost, whatever its result was.
            if shared.server.tasks.has(&task.id) {
                task.keep(outcome).await;
            }
        } else {
            // The client does not know of the task.
            cancellation.cancel();
            let _ = work.await;
            task.forget().await;
            shared.go_on();
        }
        shared.server.tasks.ended(&task.id);
    }
}

impl<H: Host> ConnectionParts<H> {
    /// Begins calls that waited for this one.
    fn go_on(self: &Arc<Self>) {
        self.begin_queued();
        self.outbox.notice();
    }
}

/// Answers a call that did not become a task.
fn answer<H: Host>(permit: AnswerDuty<H>, outcome: TaskOutcome) {
    let shared = Arc::clone(&permit.shared);
    match outcome {
        Ok((result, _)) => {
            let frame = result_frame(&permit.id, |out| out.extend_from_slice(&result));
            permit.settle(frame);
        }
        Err(error) => permit.refuse(&error),
    }
    shared.go_on();
}

/// The error for a task that could not be stored.
fn unkept(why: &'static str) -> RpcError {
    RpcError::internal(format!("{why}, so the call was not begun; try again later"))
}

impl RunningTask<'_> {
    /// Appends the answer to the call: the new task.
    fn push_creation(&self, out: &mut Vec<u8>, task: &TaskRecord, identity: &str) {
        let mut result = Object::open(out);
        if self.revision.is_modern() {
            result.text("resultType", "task");
            push_created(&mut result, task, self.options.poll);
            Object::open(result.key("_meta")).raw(SERVER_INFO, identity);
        } else {
            push_legacy(&mut Object::open(result.key("task")), task, self.options.poll);
        }
    }

    /// Runs the call to its end. Meanwhile its client may answer questions, cancel, and get its
    /// messages.
    async fn run(
        &self,
        work: impl Future<Output = TaskOutcome>,
        cancellation: &crate::cancellation::Cancellation,
    ) -> TaskOutcome {
        let mut work = pin!(work);
        let mut says_next = Instant::now();
        // It may already have been cancelled.
        self.handle.wake();
        loop {
            let speaks = self.handle.has_message();
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = self.handle.woken() => {}
                () = sleep_until(says_next), if speaks => {}
                () = sleep_until(self.ends), if !cancellation.is_cancelled() => cancellation.cancel(),
            }
            if self.handle.take_withdrawn() {
                let _ = self.store.change(&self.id, TaskChange::Asks(&[])).await;
            }
            if self.handle.take_changed() {
                match self.store.pull(&self.id).await {
                    Ok(Some(answers)) if answers.is_empty() => {}
                    Ok(Some(answers)) => self.handle.answer(answers),
                    Ok(None) => cancellation.cancel(),
                    // The next change, or the return of the state, triggers another attempt.
                    Err(_) => {}
                }
            }
            if Instant::now() >= says_next
                && let Some(message) = self.handle.take_message()
            {
                says_next = Instant::now() + REPORT_EVERY;
                let _ = self.store.change(&self.id, TaskChange::Says(&message)).await;
            }
        }
    }

    /// Stores the outcome for its client: at once, or when the state is back within the task's
    /// lifetime.
    async fn keep(&self, outcome: TaskOutcome) {
        let (status, body, message) = self.ended(outcome);
        let ends = TaskChange::Ends { status, body: &body, message: &message };
        loop {
            match self.store.change(&self.id, ends).await {
                Ok(Changed::Done | Changed::Over) => return,
                Ok(Changed::NoRoom) => {
                    let error = RpcError::internal("There is no room to keep the result of the task");
                    let body = TaskBody::of_error(&error);
                    let fails = TaskChange::Ends { status: TaskStatus::Failed, body: &body, message: &error.message };
                    let _ = self.store.change(&self.id, fails).await;
                    return;
                }
                Err(_) if Instant::now() < self.ends => sleep(TRY_AGAIN_AFTER).await,
                Err(_) => return,
            }
        }
    }

    fn ended(&self, outcome: TaskOutcome) -> (TaskStatus, String, String) {
        let failed = |error: &RpcError| (TaskStatus::Failed, TaskBody::of_error(error), error.message.to_string());
        match outcome {
            Ok((result, _)) if result.len() > self.options.result_bytes_max => {
                let bytes = result.len();
                let most = self.options.result_bytes_max;
                let text = format!("The result of the task has {bytes} bytes, and at most {most} are kept");
                failed(&RpcError::internal(text))
            }
            // In 2025-11-25 a tool's failure is one of the task ("Task Status").
            Ok((result, true)) if !self.revision.is_modern() => {
                (TaskStatus::Failed, TaskBody::of_result(&result), "The tool failed".to_owned())
            }
            Ok((result, _)) => (TaskStatus::Completed, TaskBody::of_result(&result), String::new()),
            Err(error) => failed(&error),
        }
    }

    async fn forget(&self) {
        // If this fails, the task expires.
        let _ = self.store.forget(&self.id).await;
    }
}
