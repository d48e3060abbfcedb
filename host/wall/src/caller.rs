//! The sender of a call, as a guest's process and the host see it. It is independent of the
//! protocol: the server implements it for MCP.
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolcell_policy::{Askable, Denial, HttpAsk};

use crate::asking::{AskKind, AskRefusal, AskResult, EndedByAsking, Inquiry};
use crate::contract::GuestTool;
use crate::nested::{FoundTool, NestedEnd, NotCalled, NotCalledReason, WantedCall};

/// The level of a log line: those of RFC 5424, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestLogLevel {
    /// For debugging.
    Debug,
    /// For information.
    Info,
    /// Normal, but significant.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A component has failed.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

/// The caller's trace context (W3C Trace Context and Baggage).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// `traceparent`, such as `00-<trace id>-<span id>-01`.
    pub traceparent: String,
    /// `tracestate`, if the caller sent one.
    pub tracestate: Option<String>,
    /// `baggage`, if the caller sent one.
    pub baggage: Option<String>,
}

/// A permitted HTTP request of a guest, up to the head of its response.
#[derive(Debug)]
pub struct Requested<'a> {
    /// The request, in its normal form.
    pub ask: &'a HttpAsk,
    /// When it began, before it waited for its turn and connected.
    pub began: SystemTime,
    /// The status of the response, or the name of the error that the guest gets instead.
    pub came: Result<u16, &'a str>,
}

/// A person's answer to a request that no rule allows.
#[derive(Debug, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// It is allowed.
    Given,
    /// It is refused, or nobody could be asked.
    Refused,
    /// The call ends here: as [`AskResult::Ended`].
    Ended(Option<String>),
}

/// The future end of a nested call; the error ends the call that made it as well.
pub type NestedFuture<'a> = Pin<Box<dyn Future<Output = Result<NestedEnd, EndedByAsking>> + Send + 'a>>;

/// Hears that a call, or one that it makes, waits for a person: clocks stand still meanwhile.
pub trait PersonWaits: Send + Sync {
    /// A wait begins. Each has an end.
    fn begin(&self);
    /// It ends.
    fn end(&self);
}

/// The sender of a call. It receives the guest's messages while the guest runs, and knows if an
/// answer is still wanted.
///
/// Every method is called on the guest's worker thread and must not block.
pub trait CallerLink: Send + Sync + 'static {
    /// The guest reports progress.
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>);
    /// The guest's instance is made, and begins to run: for measuring the parts of a call.
    fn instantiated(&self) {}
    /// True if it wants to know what the instance uses before it runs.
    fn notes_use(&self) -> bool {
        false
    }
    /// What a computing guest has used so far. The fuel is that at its last call of one of its
    /// functions: a loop without calls has used more.
    fn used(&self, fuel: u64, memory_bytes: u64) {
        let _ = (fuel, memory_bytes);
    }
    /// True if it wants to know about HTTP requests.
    fn notes_requests(&self) -> bool {
        false
    }
    /// The guest made an HTTP request. Its response has begun, or has failed.
    fn requested(&self, request: &Requested<'_>) {
        let _ = request;
    }
    /// The guest reports that the content at this address has changed.
    fn updated(&self, uri: &str) {
        let _ = uri;
    }
    /// True if it wants to know about changed entries of the guest's state.
    fn notes_state(&self) -> bool {
        false
    }
    /// The call has changed these entries of a bucket, or may have.
    fn state_changed(&self, bucket: &str, keys: &[String]) {
        let _ = (bucket, keys);
    }
    /// The guest wrote a log line. The sandbox has already charged it to the call's log limit.
    fn log(&self, level: GuestLogLevel, message: &str);
    /// True if a line of this level would reach anyone.
    fn log_enabled(&self, level: GuestLogLevel) -> bool;
    /// The guest asked for something that its tool is not granted.
    fn denied(&self, denial: &Denial);
    /// The caller's name, such as `local`. It separates what different callers' calls leave behind.
    fn name(&self) -> &str;
    /// True if the caller has given up.
    fn is_cancelled(&self) -> bool;
    /// Resolves once the caller has given up; never, if it cannot.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// True if it can be asked a question of this kind.
    fn supports(&self, kind: AskKind) -> bool;
    /// True if params of a question to its model may have `tools` and `toolChoice`.
    fn supports_sampling_tools(&self) -> bool {
        false
    }
    /// Asks it. The sandbox has already charged the questions to the call's limits. Dropping the
    /// future withdraws them.
    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>>;
    /// True if a person has already allowed this for more than one call.
    fn has_consent(&self, offer: &Askable) -> bool {
        let _ = offer;
        false
    }
    /// Asks a person to allow it, for this call at least. The sandbox has already charged the
    /// question to the call's limits. Dropping the future withdraws it.
    fn consent<'a>(&'a self, offer: &'a Askable) -> Pin<Box<dyn Future<Output = ConsentAnswer> + Send + 'a>> {
        let _ = offer;
        Box::pin(std::future::ready(ConsentAnswer::Refused))
    }
    /// Calls another tool for the guest, as its caller. The sandbox has already charged the call to
    /// the guest's limits. `sequence` counts the calls of this guest from 1, in the order in which
    /// it asked for them. `waits` hears when the call waits for a person. Dropping the future ends
    /// the call.
    fn call_tool(&self, sequence: u32, wanted: WantedCall, waits: Arc<dyn PersonWaits>) -> NestedFuture<'_> {
        let _ = (sequence, wanted, waits);
        let none = NotCalled::refused(NotCalledReason::Unknown, "no tool can be called here");
        Box::pin(std::future::ready(Ok(Err(none))))
    }
    /// Tools that the guest may call, those that fit the words best first.
    fn find_tools(&self, words: &str, most: usize) -> Vec<FoundTool> {
        let _ = (words, most);
        Vec::new()
    }
    /// True if there is a tool of this name that the caller may call.
    fn has_tool(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }
    /// The tool of this name, if the guest may call it.
    fn describe_tool(&self, tool: &str) -> Option<GuestTool> {
        let _ = tool;
        None
    }
    /// When the run began that the guest's call belongs to, in milliseconds since 1970. `None` if
    /// the guest can call nothing.
    fn run_began(&self) -> Option<u64> {
        None
    }
    /// The trace context that came with the request.
    fn trace(&self) -> Option<Trace>;
    /// The request's own `_meta` as a JSON object.
    fn meta_json(&self) -> String;
    /// The extensions of the protocol that its program declares, as a JSON object.
    fn extensions_json(&self) -> String {
        "{}".to_owned()
    }
    /// The call's way out of its sandbox process. `None` if nothing is granted: while a component
    /// lists its tools.
    fn outside(&self) -> Option<Arc<dyn Outside>> {
        None
    }
    /// The call's sandbox process sent something through a door that an honest one never sends, and
    /// that door was closed. Called once in a call; the text is for the operator.
    fn misused(&self, what: &str) {
        let _ = what;
    }
    /// The server that keeps state for all replicas could not be reached, and the guest got an
    /// error. The text is for the operator.
    fn state_away(&self, why: &str) {
        let _ = why;
    }
}

/// Bytes that a door is opened with, at most. Most requests are shorter; the rest of a longer one
/// goes through the door.
pub const FIRST_BYTES_MAX: usize = 8 << 10;

/// The way out of a sandbox process. The process itself cannot open anything. For each operation it
/// asks the host for a *door*: one end of a stream socket, whose other end the host serves.
pub trait Outside: Send + Sync {
    /// A new door, and the first bytes that are written into it: the host begins at once. The first
    /// frame names the operation, and closing the door abandons that.
    ///
    /// The future fails if the host opens no door, because the call has ended or has too many.
    fn open(&self, first: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>>;
}

/// A caller that only wants the answer: used while loading and by one-shot commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCaller;

impl CallerLink for NoCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}
    fn log(&self, _: GuestLogLevel, _: &str) {}
    fn log_enabled(&self, _: GuestLogLevel) -> bool {
        false
    }
    fn denied(&self, _: &Denial) {}
    fn name(&self) -> &str {
        ""
    }
    fn is_cancelled(&self) -> bool {
        false
    }
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
    fn supports(&self, _: AskKind) -> bool {
        false
    }
    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>> {
        let kind = asks.first().map_or(AskKind::Form, |ask| ask.question.kind());
        Box::pin(std::future::ready(AskResult::Answered(Err(AskRefusal::Unsupported(kind)))))
    }
    fn trace(&self) -> Option<Trace> {
        None
    }
    fn meta_json(&self) -> String {
        "{}".to_owned()
    }
}
