//! The sender of a call, in the sandbox process that runs it: what the guest says to it goes to the
//! host. Must not hold: what the host does with it.
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};
use toolcell_policy::Denial;
use toolcell_walls::link::Sender;

use crate::bindings::contract::CallResult;
use crate::caller::asking::{Asked, Inquiry, Kind};
use crate::caller::outside::Outside;
use crate::caller::{Caller, LogLevel, Trace};
use crate::run::call::CallReport;
use crate::wall::message::{
    self, CallId, CallerFacts, FromSandbox, KINDS, LEVELS, WireAsked, WireReport, capability_number,
};

/// The caller of one call, on the other side of the link.
pub(super) struct RemoteCaller {
    call: CallId,
    facts: CallerFacts,
    link: Sender,
    cancelled: watch::Sender<bool>,
    /// Where the answers to its questions go.
    asking: Mutex<Option<oneshot::Sender<WireAsked>>>,
    doors: Arc<Doors>,
}

/// The doors that a call waits for.
struct Doors {
    call: CallId,
    link: Sender,
    next: AtomicU32,
    waiting: Mutex<HashMap<u32, oneshot::Sender<Option<OwnedFd>>>>,
}

impl Outside for Doors {
    fn open(&self) -> Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (give, given) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, give);
        let asked = message::encode(&FromSandbox::OpenDoor(self.call, number)).map_err(io::Error::other);
        let asked = asked.and_then(|bytes| self.link.send(&bytes, &[]).map_err(io::Error::other));
        Box::pin(async move {
            asked?;
            given.await.ok().flatten().ok_or_else(|| io::Error::other("the host gives no door"))
        })
    }
}

impl RemoteCaller {
    pub(super) fn new(call: CallId, facts: CallerFacts, link: Sender) -> Self {
        let (next, waiting) = (AtomicU32::new(0), Mutex::default());
        let doors = Arc::new(Doors { call, link: link.clone(), next, waiting });
        Self { call, facts, link, cancelled: watch::Sender::new(false), asking: Mutex::default(), doors }
    }

    /// A door has come, or none will.
    pub(super) fn door(&self, number: u32, door: Option<OwnedFd>) {
        let waits = self.doors.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        // Who gave the operation up wants no door.
        if let Some(waits) = waits {
            drop(waits.send(door));
        }
    }

    /// The caller has given up.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// The answers have come.
    pub(super) fn answer(&self, asked: WireAsked) {
        let waits = self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Who does not wait any more wants no answers.
        if let Some(waits) = waits {
            drop(waits.send(asked));
        }
    }

    /// Tells the host how the call ended. Without that the call would hang. Where the host cannot
    /// be told, this process ends, which the host sees.
    pub(super) fn end(&self, report: CallReport<CallResult>) {
        let mut report = report;
        let spent = std::mem::take(&mut report.spent);
        let ended = FromSandbox::Ended(self.call, Box::new(WireReport::from(report)));
        let sent = message::encode(&ended).map(|bytes| self.link.send(&bytes, &[]));
        if !matches!(sent, Ok(Ok(()))) {
            std::process::abort();
        }
        drop(spent);
    }

    /// Tells the host. What it does not take is lost, as it is for a client that does not read.
    fn tell(&self, message: &FromSandbox) {
        if let Ok(bytes) = message::encode(message) {
            let _ = self.link.send(&bytes, &[]);
        }
    }
}

/// Takes questions back that nobody waits for any more.
struct Waiting<'c> {
    caller: &'c RemoteCaller,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.caller.tell(&FromSandbox::TakeBack(self.caller.call));
        }
    }
}

impl Caller for RemoteCaller {
    fn instantiated(&self) {
        if self.facts.times {
            self.tell(&FromSandbox::Instantiated(self.call));
        }
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        self.tell(&FromSandbox::Progress { call: self.call, progress, total, message });
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.tell(&FromSandbox::Log { call: self.call, level, message: message.to_owned() });
    }

    fn outside(&self) -> Option<Arc<dyn Outside>> {
        Some(Arc::<Doors>::clone(&self.doors))
    }

    fn log_enabled(&self, level: LogLevel) -> bool {
        message::has_bit(self.facts.log_levels, &LEVELS, &level)
    }

    fn denied(&self, denial: &Denial) {
        let (capability, asked) = (capability_number(denial.capability()), denial.asked().to_owned());
        self.tell(&FromSandbox::Denied { call: self.call, capability, asked });
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

    fn supports(&self, kind: Kind) -> bool {
        message::has_bit(self.facts.asks, &KINDS, &kind)
    }

    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = Asked> + Send + '_>> {
        let (answer, answered) = oneshot::channel();
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.tell(&FromSandbox::Ask(self.call, asks));
        let waiting = Waiting { caller: self, answered: false };
        Box::pin(async move {
            // All of it, to be dropped with this future.
            let mut waiting = waiting;
            match answered.await {
                Ok(asked) => {
                    waiting.answered = true;
                    asked.into()
                }
                // Other questions took its place, or the host is gone.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn trace(&self) -> Option<Trace> {
        self.facts.trace.clone().map(Trace::from)
    }

    fn meta_json(&self) -> String {
        self.facts.meta_json.clone()
    }
}
