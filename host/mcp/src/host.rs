//! What this crate asks of the program around it: a catalog of tools, a way to run them, a place for frames.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::asking::Asking;
use crate::caller::Caller;
use crate::cancellation::Cancellation;
use crate::content::CallResult;
use crate::events::CallEvents;
use crate::frame::ErrorCode;
use crate::meta::{ClientInfo, TraceContext};
use crate::mirrored::Mirrored;
use crate::observer::Observer;
use crate::resources::DeclaredResource;
use crate::revision::Revision;
use crate::schema::ArgumentProblems;
use crate::tool::{CheckedResult, ToolList};

/// Holds the catalog that is current.
pub trait Host: Send + Sync + 'static {
    /// One immutable generation of tools.
    type Catalog: Catalog;

    /// The generation to use from now on. Asked once per request; everything that request does uses the
    /// `Arc` it got, whatever is swapped in meanwhile. Must be cheap.
    fn snapshot(&self) -> Arc<Self::Catalog>;

    /// Who is told of every request; nobody by default.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }
}

/// One immutable generation of tools.
pub trait Catalog: Send + Sync + 'static {
    /// The tools, in the order they are listed.
    fn tools(&self) -> &ToolList;

    /// The tools that this caller sees and calls, where these are not all of them: a [part](ToolList::part) of
    /// [`tools`](Self::tools). Any other tool is unknown to it. Asked for each request; must be cheap.
    fn view(&self, caller: &Caller) -> Option<Arc<ToolList>> {
        let _ = caller;
        None
    }

    /// Whether the list of tools depends on the caller: then only the caller may keep it (`cacheScope`).
    fn tells_callers_apart(&self) -> bool {
        false
    }

    /// Whether its tools may embed resources in their results, which clients can then read once more. False, the default:
    /// resources are not offered.
    fn offers_resources(&self) -> bool {
        false
    }

    /// The component that a tool belongs to: a resource that one origin embeds is never replaced by another's. Empty by
    /// default: all tools are of one origin.
    fn origin(&self, tool: usize) -> &str {
        let _ = tool;
        ""
    }

    /// Resources that a call of a tool reads.
    fn resources(&self) -> &[DeclaredResource] {
        &[]
    }

    /// How an address is read: one of [`resources`](Self::resources).
    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        let _ = uri;
        None
    }

    /// What a call of a tool runs, beside what its definition says, such as the digest of its code: what was asked for
    /// one call is answered for no other. `None`, the default: calls of this tool never ask anything.
    fn asks(&self, tool: usize) -> Option<String> {
        let _ = tool;
        None
    }

    /// What there is to say against a call before anything looks into its arguments: asked before they are checked
    /// against the tool's input schema, for bounds that must hold by then, such as their size. Of the arguments nothing
    /// is known but that they are an object. What it gives is the call's result, as it is; `None`, the default, lets the
    /// call go on.
    ///
    /// Must not block. A panic in it becomes error -32603.
    fn refuse_early(&self, call: &Call) -> Option<CallResult> {
        let _ = call;
        None
    }

    /// How long a call of this tool may take, from its arguments on. `None`, the default: as long
    /// as their check may.
    fn deadline(&self, tool: usize) -> Option<Duration> {
        let _ = tool;
        None
    }

    /// A call is answered without being run, since its arguments do not conform to the tool's input schema: for whoever
    /// keeps a record of calls.
    ///
    /// Must not block. A panic in it becomes error -32603.
    fn arguments_refused(&self, call: &Call, problems: &ArgumentProblems) {
        let _ = (call, problems);
    }

    /// Runs one tool. The arguments already conform to its input schema; that the result conforms to the output schema
    /// is for [`Tool::finish`](crate::Tool::finish) of that tool to find out, so that the catalog knows what is answered.
    ///
    /// The future must end soon after `call.context.cancellation` is cancelled: until then the call keeps
    /// its in-flight permit, though nothing more is sent for it. A panic in it becomes error -32603.
    fn call(self: Arc<Self>, call: Call) -> impl Future<Output = CheckedResult> + Send + 'static;
}

/// One call, ready to run.
#[derive(Debug)]
pub struct Call {
    /// The tool's place in [`Catalog::tools`].
    pub tool: usize,
    /// A JSON object; `{}` where the caller sent none.
    pub arguments: Box<RawValue>,
    /// Everything else that came with the request.
    pub context: CallContext,
}

/// What came with the arguments.
#[derive(Debug)]
pub struct CallContext {
    /// The request's id, for logs.
    pub request_id: String,
    /// The revision the caller speaks.
    pub revision: Revision,
    /// Who calls.
    pub caller: Caller,
    /// What the caller's program says it is.
    pub client: Option<Arc<ClientInfo>>,
    /// The caller's trace context.
    pub trace: Option<TraceContext>,
    /// The request's `_meta` as a JSON object, without the protocol's own keys and the progress token.
    pub meta_json: String,
    /// Whether the caller has given up.
    pub cancellation: Cancellation,
    /// Where progress and log messages go.
    pub events: CallEvents,
    /// Whom the tool can ask.
    pub asking: Asking,
}

/// Has the work that awaits it go on as if it had waited: an executor that began it on a thread
/// with other duties takes it to another. To be awaited before what takes longer than such a thread
/// can spare.
pub async fn leave_thread() {
    let mut left = false;
    poll_fn(|context| {
        if std::mem::replace(&mut left, true) {
            return Poll::Ready(());
        }
        // At once, so that nobody else comes to think that it waits for something.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A piece of work to poll to its end.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs calls, on threads of its own.
pub trait Executor: Send + Sync + 'static {
    /// Begins to run the work, without waiting for it. Work that is dropped unfinished counts as failed.
    fn run(&self, work: Work);

    /// The same for work that comes alone, from a thread that has nothing else to do just now: it may be begun there.
    /// It must be given up at its first wait, and soon in any case.
    fn run_here(&self, work: Work) {
        self.run(work);
    }

    /// The same for work that comes alone, from any thread: where that drives connections, it may be begun there. What it leaves
    /// to be done must not keep its answer from being written.
    fn run_driving(&self, work: Work) {
        self.run(work);
    }
}

impl Executor for tokio::runtime::Handle {
    fn run(&self, work: Work) {
        drop(self.spawn(work));
    }
}

/// Who hears what an outbox takes beside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// The client does.
    Client,
    /// Nobody: the client takes the answer and nothing before it.
    AnswerOnly,
    /// Nobody any more: the client is gone, or the answer is given.
    Gone,
}

/// The transport's side of one connection: takes frames, tells whether it still has room.
pub trait Outbox: Send + Sync + 'static {
    /// Takes one frame (no newline) to send before later ones. May wait for [`flush`](Self::flush), must not block.
    fn queue(&self, frame: Vec<u8>);

    /// Takes the answer to the message that came with this outbox, or the array of answers to a batch. It is the last
    /// frame for it. Each message ends in exactly one of this, [`refuse`](Self::refuse) and
    /// [`unanswered`](Self::unanswered).
    fn answer(&self, frame: Vec<u8>) {
        self.queue(frame);
    }

    /// Takes the answer to a message that is refused before anything of it was done.
    fn refuse(&self, frame: Vec<u8>, code: ErrorCode) {
        let _ = code;
        self.answer(frame);
    }

    /// Nothing will be answered: to a notification, a response, or a request that was cancelled.
    fn unanswered(&self) {}

    /// Whether a request of the server's own would reach the client.
    fn hearing(&self) -> Hearing {
        Hearing::Client
    }

    /// Arguments of a call that the transport carries beside the message too, where it does such a thing.
    fn mirrored(&self) -> Option<&Mirrored> {
        None
    }

    /// The trace context that the transport carries beside the message, where it does such a thing.
    fn trace(&self) -> Option<TraceContext> {
        None
    }

    /// Sends what is queued, as far as that goes without blocking; the rest follows by itself.
    fn flush(&self) {}

    /// Whether so much is unread that nothing optional should be queued and no further call begun.
    fn congested(&self) -> bool {
        false
    }

    /// Something that the transport's reader may wait for has changed: a call ended or was taken back.
    fn notice(&self) {}
}
