//! The sender of a call, as the sandbox process that runs it sees it: messages of the guest go to
//! the host.
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use toolcell_policy::{Denial, Limit, Limits};
use toolcell_walls::link::{SendError, Sender};

use crate::run::call::GuestEnd;
use toolcell_wall::asking::{AskKind, AskResult, Inquiry};
use toolcell_wall::caller::{CallerLink, GuestLogLevel, Outside, Trace};
use toolcell_wall::contract::GuestResult;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::encoding;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{
    self, CallId, CallerFacts, FromSandbox, KINDS, LEVELS, PROGRESS_TEXT_BYTES_MAX, capability_number,
};
use toolcell_wall::rate::MessageRate;
use toolcell_wall::report::CallReport;

/// Progress reports, log lines, changes and denials that one call may send at once, and then each
/// second, in addition to its log limit. It is half of what the host accepts. Long messages count
/// as several.
///
/// No client wants more. A guest that sends them endlessly must not lose its process for it.
const REPORTS_AT_ONCE: u64 = 50_000;
const REPORTS_PER_SECOND: u64 = 50_000;

/// How often sending is retried while the link is full.
const POLL_EVERY: Duration = Duration::from_millis(1);

/// The caller of one call, on the other side of the link.
pub(super) struct RemoteCaller {
    call: CallId,
    facts: CallerFacts,
    link: Sender,
    cancelled: watch::Sender<bool>,
    /// Rate of its progress reports, log lines, changes and denials.
    told: MessageRate,
    /// Bytes of a log line: what the call may log in all.
    log_bytes_max: usize,
    /// Bytes of a message about the call that the host takes.
    message_bytes_max: u64,
    /// Where the answers to its questions go.
    asking: Mutex<Option<oneshot::Sender<AskResult>>>,
    doors: Arc<WaitingDoors>,
}

/// The doors that a call waits for.
struct WaitingDoors {
    call: CallId,
    link: Sender,
    next: AtomicU32,
    waiting: Mutex<HashMap<u32, oneshot::Sender<Option<OwnedFd>>>>,
}

impl Outside for WaitingDoors {
    fn open(&self, first: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (give, given) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, give);
        let asked = encoding::encode(&FromSandbox::OpenDoor(self.call, number, Blob(first))).map_err(io::Error::other);
        let asked = asked.and_then(|bytes| self.link.send(&bytes, &[]).map_err(io::Error::other));
        Box::pin(async move {
            asked?;
            given.await.ok().flatten().ok_or_else(|| io::Error::other("the host gives no door"))
        })
    }
}

impl RemoteCaller {
    pub(super) fn new(call: CallId, facts: CallerFacts, link: Sender, limits: &Limits) -> Self {
        let next = AtomicU32::new(0);
        let waiting = Mutex::default();
        let doors = Arc::new(WaitingDoors { call, link: link.clone(), next, waiting });
        let logged = message::counted(limits.log_bytes());
        let told = MessageRate::new(REPORTS_AT_ONCE.saturating_add(logged), REPORTS_PER_SECOND);
        let log_bytes_max = usize::try_from(limits.log_bytes()).unwrap_or(usize::MAX);
        let cancelled = watch::Sender::new(false);
        let message_bytes_max = message::bytes_max(limits);
        Self { call, facts, link, cancelled, told, log_bytes_max, message_bytes_max, asking: Mutex::default(), doors }
    }

    /// Hands over a door, or `None` if the host opens none.
    pub(super) fn door(&self, number: u32, door: Option<OwnedFd>) {
        let waits = self.doors.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        // The operation may have been given up meanwhile.
        if let Some(waits) = waits {
            drop(waits.send(door));
        }
    }

    /// Notes that the caller has given up.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Hands over the answers to a question.
    pub(super) fn answer(&self, asked: AskResult) {
        let waits = self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The guest may have given up waiting.
        if let Some(waits) = waits {
            drop(waits.send(asked));
        }
    }

    /// Reports to the host how the call ended; otherwise the call would hang. If that fails, the
    /// link ends, and the host notices.
    pub(super) async fn end(&self, end: GuestEnd<GuestResult>) {
        let GuestEnd { report, spent } = end;
        let usage = report.usage;
        let kept = report.kept;
        let mut given = self.give(report).await;
        if matches!(given, Err(NotGiven::TooMuch)) {
            // The message exceeds the limits, so this is how the call ends. The host fills in the
            // limit's value.
            let failure = CallFailure::OverLimit { limit: Limit::Output, value: String::new() };
            given = self.give(CallReport { usage, kept, ..CallReport::not_run(failure) }).await;
        }
        if given.is_err() {
            self.link.close();
        }
        drop(spent);
    }

    /// Sends a report, once the host has read enough of the earlier messages.
    async fn give(&self, report: CallReport<GuestResult>) -> Result<(), NotGiven> {
        let ended = FromSandbox::Ended(self.call, Box::new(report.to_send()));
        let bytes = self.taken(&ended).ok_or(NotGiven::TooMuch)?;
        loop {
            match self.link.send(&bytes, &[]) {
                Ok(()) => return Ok(()),
                Err(SendError::TooLarge(_)) => return Err(NotGiven::TooMuch),
                Err(SendError::Full) => tokio::time::sleep(POLL_EVERY).await,
                Err(_) => return Err(NotGiven::Gone),
            }
        }
    }

    /// The bytes of a message, if the host would accept it. A process that sends any other is
    /// ended.
    fn taken(&self, message: &FromSandbox) -> Option<Vec<u8>> {
        #[cfg(feature = "drill")]
        if crate::drill::is_open() {
            return encoding::encode(message).ok();
        }
        let bytes = encoding::encode_fitting(message).ok()?;
        (bytes.len() as u64 <= self.message_bytes_max).then_some(bytes)
    }

    /// Sends something on the way, unless the call sends too much of it.
    fn mention(&self, message: &FromSandbox) {
        if let Some(bytes) = self.taken(message)
            && self.told.take(message::counted(bytes.len() as u64))
        {
            self.send(&bytes);
        }
    }

    /// Sends a message. Returns false, and sends nothing, if it is more than the host accepts.
    fn send_message(&self, message: &FromSandbox) -> bool {
        let bytes = self.taken(message);
        bytes.iter().for_each(|bytes| self.send(bytes));
        bytes.is_some()
    }

    /// Sends a message. It is lost if the link is full, as when a client does not read.
    fn send(&self, bytes: &[u8]) {
        let _ = self.link.send(bytes, &[]);
    }
}

/// Why a report did not reach the host.
enum NotGiven {
    /// It is larger than the host accepts.
    TooMuch,
    /// The host is gone, or stopped reading.
    Gone,
}

/// Withdraws questions once nobody waits for the answers.
struct PendingQuestion<'c> {
    caller: &'c RemoteCaller,
    answered: bool,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.caller.send_message(&FromSandbox::TakeBack(self.caller.call));
        }
    }
}

impl CallerLink for RemoteCaller {
    fn instantiated(&self) {
        if self.facts.times {
            self.send_message(&FromSandbox::Instantiated(self.call));
        }
    }

    fn notes_use(&self) -> bool {
        self.facts.times
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(|message| cut(message, PROGRESS_TEXT_BYTES_MAX));
        self.mention(&FromSandbox::Progress { call: self.call, progress, total, message });
    }

    fn used(&self, fuel: u64, memory_bytes: u64) {
        self.mention(&FromSandbox::Used { call: self.call, fuel, memory_bytes });
    }

    fn log(&self, level: GuestLogLevel, message: &str) {
        self.mention(&FromSandbox::Log { call: self.call, level, message: cut(message, self.log_bytes_max) });
    }

    fn updated(&self, uri: &str) {
        self.mention(&FromSandbox::Updated(self.call, uri.to_owned()));
    }

    fn outside(&self) -> Option<Arc<dyn Outside>> {
        Some(Arc::<WaitingDoors>::clone(&self.doors))
    }

    fn log_enabled(&self, level: GuestLogLevel) -> bool {
        message::has_bit(self.facts.log_levels, &LEVELS, &level)
    }

    fn denied(&self, denial: &Denial) {
        let capability = capability_number(denial.capability());
        let asked = denial.asked().to_owned();
        self.mention(&FromSandbox::Denied { call: self.call, capability, asked });
    }

    fn name(&self) -> &str {
        &self.facts.name
    }

    fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut cancelled = self.cancelled.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`, which is borrowed here.
            let _ = cancelled.wait_for(|cancelled| *cancelled).await;
        })
    }

    fn supports(&self, kind: AskKind) -> bool {
        message::has_bit(self.facts.asks, &KINDS, &kind)
    }

    fn supports_sampling_tools(&self) -> bool {
        self.facts.sampling_tools
    }

    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>> {
        let (answer, answered) = oneshot::channel();
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        if !self.send_message(&FromSandbox::Ask(self.call, asks)) {
            let refused = "the questions are more than the host takes at once".to_owned();
            return Box::pin(std::future::ready(AskResult::Ended(Some(refused))));
        }
        let waiting = PendingQuestion { caller: self, answered: false };
        Box::pin(async move {
            // Moves it whole, so that it is dropped with this future.
            let mut waiting = waiting;
            match answered.await {
                Ok(asked) => {
                    waiting.answered = true;
                    asked
                }
                // Other questions replaced these, or the host is gone.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn trace(&self) -> Option<Trace> {
        self.facts.trace.clone()
    }

    fn meta_json(&self) -> String {
        self.facts.meta_json.clone()
    }

    fn extensions_json(&self) -> String {
        self.facts.extensions_json.clone()
    }
}

/// The beginning of a text.
fn cut(text: &str, bytes_max: usize) -> String {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default().to_owned()
}
