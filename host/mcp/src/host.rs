//! The interface to the embedding program: a catalog of tools, an executor, an outbox for frames.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::value::RawValue;
use toolcell_schema::ArgumentProblems;

use crate::asking::CallAsking;
use crate::caller::Caller;
use crate::cancellation::Cancellation;
use crate::completion::{Completing, Completions};
use crate::content::{CallResult, Map};
use crate::declared::{DeclaredResource, FolderChild, HostContents, HostReading, NotRead, ResourceEntry, Skill};
use crate::events::CallEvents;
use crate::frame::ErrorCode;
use crate::meta::{ClientInfo, TraceContext};
use crate::mirrored::Mirrored;
use crate::observer::Observer;
use crate::revision::Revision;
use crate::tool::{CheckedResult, ToolList};

/// Holds the current catalog.
pub trait Host: Send + Sync + 'static {
    /// One immutable generation of tools.
    type Catalog: ServedCatalog;

    /// The current generation. Called once per request, which uses the returned `Arc` to its end.
    /// Must be cheap.
    fn snapshot(&self) -> Arc<Self::Catalog>;

    /// The observer of every request; none by default.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }
}

/// The terms of a tool's calls.
#[derive(Clone, Debug, Default)]
pub struct CallTerms {
    /// Identifies what questions of the tool are about, such as a digest of its grants: an answer
    /// only counts for the same. `None` if its calls never ask.
    pub asks: Option<String>,
    /// Most bytes of its arguments. Longer ones are refused before they are checked against its
    /// input schema. `None`: as many as the transport accepts.
    pub arguments_bytes_max: Option<u64>,
}

/// One immutable generation of tools.
#[expect(unused_variables, reason = "defaults need none of what they are given")]
pub trait ServedCatalog: Send + Sync + 'static {
    /// The tools, in the order of the list.
    fn tools(&self) -> &ToolList;

    /// The [part](ToolList::part) of [`tools`](Self::tools) that this caller may see and call;
    /// `None` for all of them. Any other tool is unknown to the caller. Called for each request;
    /// must be cheap.
    fn view(&self, caller: &Caller) -> Option<Arc<ToolList>> {
        None
    }

    /// True if the list of tools depends on the caller. Then only the caller may cache it
    /// (`cacheScope`).
    fn tells_callers_apart(&self) -> bool {
        false
    }

    /// True if the tools may embed resources in their results, for clients to read again later.
    /// False by default: the server does not offer resources.
    fn offers_resources(&self) -> bool {
        false
    }

    /// The component of a tool. One origin's embedded resource never replaces another's. Empty by
    /// default: all tools have one origin.
    fn origin(&self, tool: usize) -> &str {
        ""
    }

    /// Resources that the operator or components declare.
    fn resources(&self) -> &[DeclaredResource] {
        &[]
    }

    /// The declared resource that reads an address: one of [`resources`](Self::resources).
    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        None
    }

    /// Resources below a template that the host reads: at most this many after this address, in a
    /// stable order. Called for each page of a list; must be cheap.
    fn entries(&self, folder: &DeclaredResource, after: Option<&str>, most: usize) -> Vec<ResourceEntry> {
        Vec::new()
    }

    /// Reads a resource whose [`reader`](Self::reader) is the host, and which its caller sees. If
    /// that may block, use another thread.
    fn read(
        self: Arc<Self>,
        reading: HostReading,
    ) -> impl Future<Output = Result<HostContents, NotRead>> + Send + 'static {
        std::future::ready(Err(NotRead::Unknown))
    }

    /// Identifies what reads an address, such as the digest of a tool's code and policy: clients
    /// that watch the address are notified when it changes. `None`, the default, if nothing reads
    /// it.
    fn reads_with(&self, uri: &str) -> Option<String> {
        None
    }

    /// The component whose resource is read at an address. `None`, the default: no component's.
    fn component_of(&self, uri: &str) -> Option<&str> {
        None
    }

    /// The terms of a tool's calls. Called once for each call, before it begins; must not block.
    fn terms(&self, tool: usize) -> CallTerms {
        CallTerms::default()
    }

    /// Records a call whose arguments are longer than its [terms](Self::terms) allow. Returns its
    /// result.
    ///
    /// Must not block. A panic in it becomes error -32603.
    fn refuse_long(&self, call: &Call) -> CallResult {
        CallResult::error("the arguments are too long")
    }

    /// Longest request, in bytes: the longest arguments that any tool accepts, and everything that
    /// comes with them. A longer one is refused before it is read. `None`, the default: the
    /// transport's limit.
    fn message_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Records a call that is answered without running, because its arguments do not fit the tool's
    /// input schema.
    ///
    /// Must not block. A panic in it becomes error -32603.
    fn arguments_refused(&self, call: &Call, problems: &ArgumentProblems) {}

    /// True if the server offers prompts. By default, if any entry is one.
    fn offers_prompts(&self) -> bool {
        self.tools().has_prompts()
    }

    /// True if the server offers completions. By default, if a prompt has arguments or a template
    /// has variables.
    fn offers_completions(&self) -> bool {
        self.tools().has_arguments() || self.resources().iter().any(|declared| !declared.variables.is_empty())
    }

    /// Finds values of an argument. `call` is that of the prompt, or of the tool that reads the
    /// addresses; it does not run. By default, the values that the catalog itself knows.
    ///
    /// The future must end soon after `call.context.cancellation` is cancelled. `Err` is one
    /// sentence for the client. A panic in it becomes error -32603.
    fn complete(
        self: Arc<Self>,
        call: Call,
        completing: Completing,
    ) -> impl Future<Output = Result<Completions, String>> + Send + 'static {
        std::future::ready(Ok(completing.known(&*self, call.tool).unwrap_or_default()))
    }

    /// True if the server offers skills. False by default.
    fn offers_skills(&self) -> bool {
        false
    }

    /// The skills, in the order of their list.
    fn skills(&self) -> &[Skill] {
        &[]
    }

    /// The direct entries of a folder of resources, ordered by address, as far as a caller with
    /// these entries sees them. `None`, the default, if the caller has no such folder.
    fn folder(&self, uri: &str, entries: &ToolList) -> Option<Vec<FolderChild>> {
        None
    }

    /// True if the server has views for results of tools. False by default.
    fn offers_apps(&self) -> bool {
        false
    }

    /// The `_meta` of a view that a tool provides, since the tool must not decide what the page may
    /// reach. `None`, the default, if the address is not a view's.
    fn view_meta(&self, uri: &str) -> Option<Map> {
        None
    }

    /// Runs one tool. The arguments already conform to its input schema. The catalog passes the
    /// result through the tool's [`finish`](crate::McpTool::finish), which checks it against the
    /// output schema. For a tool that is [checked elsewhere](crate::McpTool::checked_elsewhere),
    /// the catalog arranges both checks.
    ///
    /// The future must end soon after `call.context.cancellation` is cancelled. Until then the call
    /// keeps its permit, although nothing more is sent for it. A panic in it becomes error -32603.
    fn call(self: Arc<Self>, call: Call) -> impl Future<Output = CheckedResult> + Send + 'static;
}

/// One call, ready to run.
pub struct Call {
    /// The index of the tool, or of the prompt, in [`ServedCatalog::tools`].
    pub tool: usize,
    /// A JSON object; `{}` if the caller sent none.
    pub arguments: Box<RawValue>,
    /// Everything else that came with the request.
    pub context: Box<CallContext>,
}

/// Everything that came with the arguments.
pub struct CallContext {
    /// The request's id, for logs.
    pub request_id: String,
    /// The caller's revision.
    pub revision: Revision,
    /// Who calls.
    pub caller: Caller,
    /// The name and version that the caller's program claims.
    pub client: Option<Arc<ClientInfo>>,
    /// The caller's trace context.
    pub trace: Option<TraceContext>,
    /// The request's `_meta` as a JSON object, without the protocol's own keys and the progress
    /// token.
    pub meta_json: String,
    /// The extensions of the protocol that the caller's program declares, as a JSON object.
    pub extensions: Option<Arc<str>>,
    /// Signals that the caller has given up.
    pub cancellation: Cancellation,
    /// Where progress and log messages go.
    pub events: CallEvents,
    /// How the client is asked.
    pub asking: CallAsking,
    /// True if the call is a task, or becomes one when it runs long: it then has the deadline of
    /// tasks.
    pub task: bool,
    /// True if what a result embeds, or lays aside, is kept for the caller.
    pub keeps_resources: bool,
}

impl CallContext {
    /// The context of a call that the host makes itself, without a connection: in the newest
    /// revision, with a caller who cannot be asked and gets no messages.
    #[must_use]
    pub fn outside(request_id: &str, caller: Caller, cancellation: Cancellation) -> Self {
        Self {
            request_id: request_id.to_owned(),
            revision: Revision::V2026_07_28,
            caller,
            client: None,
            trace: None,
            meta_json: "{}".to_owned(),
            extensions: None,
            cancellation,
            events: CallEvents::nowhere(),
            asking: CallAsking::nobody(),
            task: false,
            keeps_resources: false,
        }
    }
}

thread_local! {
    /// True if work on this thread asked to move to another one.
    static LEAVES: Cell<bool> = const { Cell::new(false) };
}

/// True if the work that was just polled wants to move to another thread, and stay there. Resets
/// the flag.
#[must_use]
pub fn leaves_thread() -> bool {
    LEAVES.take()
}

/// Yields once, so that an executor can move the work off a thread with other duties: it asks
/// [`leaves_thread`]. Await it before long work.
pub async fn leave_thread() {
    let mut left = false;
    poll_fn(|context| {
        if std::mem::replace(&mut left, true) {
            return Poll::Ready(());
        }
        LEAVES.set(true);
        // Woken at once, so that it does not count as waiting.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A piece of work to poll to its end.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs calls, on threads of its own.
#[expect(unused_variables, reason = "defaults need none of what they are given")]
pub trait Executor: Send + Sync + 'static {
    /// Begins to run the work, without waiting for it. Work that is dropped unfinished counts as
    /// failed.
    fn run(&self, work: Work);

    /// Runs a single piece of work from an otherwise idle thread; it may begin there. The executor
    /// must move it off that thread at its first wait, and soon in any case.
    fn run_here(&self, work: Work) {
        self.run(work);
    }

    /// Runs a single piece of work from any thread; if that thread drives connections, the work may
    /// begin there, but must not delay other answers.
    fn run_driving(&self, work: Work) {
        self.run(work);
    }

    /// Runs work that mostly waits for another process. It may begin and go on on a thread that
    /// drives connections, or that [waits](Self::wait) afterwards.
    fn run_waiting(&self, work: Work) {
        self.run(work);
    }

    /// The same for a single piece of work: its thread may wait a moment for that process.
    fn run_waiting_alone(&self, work: Work) {
        self.run_waiting(work);
    }

    /// Runs long computations, on threads with low priority.
    fn run_long(&self, work: Work) {
        self.run(work);
    }

    /// Waits until one of these can be read or has failed, and returns the state of each. Meanwhile
    /// it may run other work of this thread. It calls `sent` after each piece.
    ///
    /// # Errors
    /// The error of the system's `poll`.
    fn wait(&self, fds: &[BorrowedFd<'_>], sent: &mut dyn FnMut()) -> Result<Vec<PollFlags>, Errno> {
        let mut polls: Vec<_> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        poll(&mut polls, None)?;
        Ok(polls.iter().map(PollFd::revents).collect())
    }

    /// This thread will no longer [wait](Self::wait): others take over its work.
    fn leave(&self) {}
}

impl Executor for tokio::runtime::Handle {
    fn run(&self, work: Work) {
        drop(self.spawn(work));
    }
}

/// Who gets messages besides the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The client.
    Client,
    /// Nobody: the client only accepts the answer.
    AnswerOnly,
    /// Nobody any more: the client is gone, or the answer is sent.
    Gone,
}

/// A frame whose middle is shared with other frames, so that many of them take little memory.
#[derive(Clone, Debug, Default)]
pub struct SharedFrame {
    /// The bytes before the shared ones.
    pub head: Vec<u8>,
    /// Bytes that other frames share.
    pub shared: Bytes,
    /// The bytes after them.
    pub tail: Vec<u8>,
}

impl SharedFrame {
    /// The frame in one piece.
    #[must_use]
    pub fn joined(self) -> Vec<u8> {
        let Self { head: mut frame, shared, tail } = self;
        frame.reserve_exact(shared.len() + tail.len());
        frame.extend_from_slice(&shared);
        frame.extend_from_slice(&tail);
        frame
    }
}

/// The transport's side of one connection: accepts frames, and reports if it has room.
#[expect(unused_variables, reason = "defaults need none of what they are given")]
pub trait Outbox: Send + Sync + 'static {
    /// Accepts one frame (no newline) to send before later ones. May wait for
    /// [`flush`](Self::flush), must not block.
    fn queue(&self, frame: Vec<u8>);

    /// Accepts the notification of changed lists. `lists` identifies the change on all replicas
    /// that send to one client.
    fn announce(&self, frames: Vec<Vec<u8>>, lists: Option<u64>) {
        frames.into_iter().for_each(|frame| self.queue(frame));
    }

    /// Accepts the answer to the message of this outbox, or the array of answers to a batch. It is
    /// the last frame. Each message ends with exactly one of this, [`refuse`](Self::refuse) and
    /// [`unanswered`](Self::unanswered).
    fn answer(&self, frame: Vec<u8>) {
        self.queue(frame);
    }

    /// Accepts the [answer](Self::answer) as a frame that shares bytes with others.
    fn answer_shared(&self, frame: SharedFrame) {
        self.answer(frame.joined());
    }

    /// Counts bytes that will become part of the answer. Returns false if the client, or all
    /// clients together, leave too much unread: then the bytes must not be kept.
    fn keeps(&self, bytes: usize) -> bool {
        true
    }

    /// Accepts the answer to a message that was refused before it had any effect.
    fn refuse(&self, frame: Vec<u8>, code: ErrorCode) {
        self.answer(frame);
    }

    /// Ends the message without an answer: a notification, a response, or a cancelled request.
    fn unanswered(&self) {}

    /// Ends a response of the client that nobody received: the client must send it again.
    fn not_taken(&self) {
        self.unanswered();
    }

    /// Whether a request of the server would reach the client.
    fn audience(&self) -> Audience {
        Audience::Client
    }

    /// Ready once nothing that is queued reaches the client any more. Wakes one task: the last that
    /// polled.
    fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Pending
    }

    /// The arguments of a call that the transport repeats outside of the message, if any.
    fn mirrored(&self) -> Option<&Mirrored> {
        None
    }

    /// The trace context that the transport carries outside of the message, if any.
    fn trace(&self) -> Option<TraceContext> {
        None
    }

    /// Sends queued frames as far as possible without blocking; the rest follows.
    fn flush(&self) {}

    /// True if so much is unread that no optional frame should be queued and no further call begun.
    fn congested(&self) -> bool {
        false
    }

    /// Wakes the transport's reader: a call ended, or was cancelled.
    fn notice(&self) {}
}
