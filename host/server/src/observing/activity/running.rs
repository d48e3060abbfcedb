//! Calls that run or wait: a table of slots, each with its own lock.
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toolcell_audit::Outcome;
use toolcell_mcp::{Cancellation, McpTool};
use toolcell_policy::Limits;

use super::figures::Figures;
use super::phases::{CallPhase, Phases};
use super::recent::{CallNotes, RecentCalls};

/// Slots of the table. A host runs 256 calls at once by default, and as many may wait.
const PLACES: usize = 1_024;

/// Slots that a call tries. In a table that is half full, one call in 65,000 finds none; it still
/// runs, but is only counted.
const TRIES: usize = 16;

/// Marks an unknown use. No limit is as large.
const UNKNOWN: u64 = u64::MAX;

/// Texts for a call that an operator ended: while its guest ran, while the guest asked somebody,
/// while the call waited for its approval, and while it was queued.
const STOPPED: &str = "the operator ended the call";
const STOPPED_ASKING: &str = "the operator ended the call while it waited for an answer to its question";
const STOPPED_BEFORE_APPROVAL: &str =
    "the operator ended the call while it waited for a person's approval: it did not run";
const STOPPED_IN_QUEUE: &str = "the operator ended the call while it waited in a queue: it did not run";

/// A slot of the table. Its lock is held only to take or leave the slot.
type LivePlace = Mutex<Option<Arc<LiveCall>>>;

/// Calls that run or wait.
pub struct RunningCalls {
    places: Box<[LivePlace]>,
    count: AtomicUsize,
    pub figures: Figures,
    pub recent: RecentCalls,
}

/// One of them.
pub struct LiveCall {
    /// The host's number of the call.
    pub id: u64,
    /// Its place beneath a client's call.
    pub place: TreePlace,
    pub tool: Arc<McpTool>,
    /// The component's name in the manifest.
    pub component: String,
    pub caller: String,
    pub began: Instant,
    /// How long it may spend in each phase.
    waits: Waits,
    pub fuel: u64,
    pub memory_bytes: u64,
    /// Fuel and bytes of memory in the last report, or [`UNKNOWN`].
    used: [AtomicU64; 2],
    phases: Phases,
    /// True once its guest began to run.
    has_begun: AtomicBool,
    is_stopped: AtomicBool,
    /// Who ended it.
    stopped_by: OnceLock<String>,
    /// Cancelled when an operator ends the call.
    pub stop: Cancellation,
    /// For the page of the call after its end, if such pages are kept.
    notes: Option<Mutex<CallNotes>>,
}

/// The place of a call among those that a client's call made.
#[derive(Clone, Copy, Debug)]
pub struct TreePlace {
    /// The client's call.
    pub root: u64,
    /// Calls above it.
    pub depth: u32,
}

/// How long a call may spend in each phase.
#[derive(Clone, Copy)]
struct Waits {
    runs: Duration,
    queues: Duration,
    asks: Duration,
}

/// A call in the table; removed when dropped.
pub struct TrackedCall {
    calls: Arc<RunningCalls>,
    call: Arc<LiveCall>,
    place: Option<usize>,
    ended: bool,
}

impl Default for RunningCalls {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| LivePlace::default()).collect();
        Self { places, count: AtomicUsize::new(0), figures: Figures::default(), recent: RecentCalls::new() }
    }
}

impl RunningCalls {
    /// Adds a call to the table.
    pub(crate) fn track(
        self: &Arc<Self>,
        id: u64,
        caller: &str,
        tool: &Arc<McpTool>,
        component: &str,
        limits: &Limits,
        place: Option<TreePlace>,
    ) -> TrackedCall {
        let call = Arc::new(LiveCall {
            id,
            place: place.unwrap_or(TreePlace { root: id, depth: 0 }),
            tool: Arc::clone(tool),
            component: component.to_owned(),
            caller: caller.to_owned(),
            began: Instant::now(),
            waits: Waits { runs: limits.deadline(), queues: limits.queue_wait(), asks: limits.ask_wait() },
            fuel: limits.fuel(),
            memory_bytes: limits.memory_bytes(),
            used: [const { AtomicU64::new(UNKNOWN) }; 2],
            phases: Phases::default(),
            has_begun: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            stopped_by: OnceLock::new(),
            stop: Cancellation::new(),
            notes: self.recent.is_open().then(Mutex::default),
        });
        let place = self.enter(&call);
        self.count.fetch_add(1, Ordering::Relaxed);
        TrackedCall { calls: Arc::clone(self), call, place, ended: false }
    }

    /// The calls in the table, oldest first and each above those that it made, and the number of
    /// all calls.
    pub fn list(&self) -> (Vec<Arc<LiveCall>>, usize) {
        let mut calls: Vec<_> = self.places.iter().filter_map(|place| place.lock().clone()).collect();
        calls.sort_by_key(|call| (call.place.root, call.id));
        (calls, self.count.load(Ordering::Relaxed))
    }

    pub fn find(&self, id: u64) -> Option<Arc<LiveCall>> {
        tries(id).find_map(|place| self.places.get(place)?.lock().clone().filter(|call| call.id == id))
    }

    /// The slot that the call took; `None` if all that it tried are taken.
    fn enter(&self, call: &Arc<LiveCall>) -> Option<usize> {
        tries(call.id).find(|place| {
            let Some(place) = self.places.get(*place) else { return false };
            let mut place = place.lock();
            let is_free = place.is_none();
            if is_free {
                *place = Some(Arc::clone(call));
            }
            is_free
        })
    }
}

/// The slots that a call tries.
fn tries(id: u64) -> impl Iterator<Item = usize> {
    let first = usize::try_from(id % PLACES as u64).unwrap_or_default();
    (0..TRIES).map(move |more| (first + more) % PLACES)
}

impl LiveCall {
    pub fn phase(&self) -> CallPhase {
        self.phases.phase()
    }

    /// Sets the call's phase. Only the call itself does.
    pub fn enter(&self, phase: CallPhase) {
        let (left, start, took) = self.phases.enter(phase, self.began.elapsed());
        if left == CallPhase::Asking {
            self.note(|notes| notes.asked(start, took));
        }
        if phase == CallPhase::Running {
            self.has_begun.store(true, Ordering::Release);
            self.note(CallNotes::runs);
        }
    }

    /// The time in the current phase, and the longest it may last. For a guest that asked a
    /// question: only the time in which it ran.
    pub fn in_phase(&self) -> (Duration, Duration) {
        let most = match self.phase() {
            CallPhase::Running => self.waits.runs,
            CallPhase::Asking => self.waits.asks,
            CallPhase::Waiting => self.waits.queues,
        };
        (self.phases.in_phase(self.began.elapsed()), most)
    }

    /// Notes what the call has used, at most its limits: a sandbox process may report anything.
    pub fn note_used(&self, fuel: u64, memory_bytes: u64) {
        let [of_fuel, of_memory] = &self.used;
        of_fuel.store(fuel.min(self.fuel), Ordering::Relaxed);
        of_memory.store(memory_bytes.min(self.memory_bytes), Ordering::Relaxed);
    }

    /// Fuel and bytes of memory in the last report; `None` until then. Reports come when the
    /// instance is made, and while it computes.
    pub fn used(&self) -> [Option<u64>; 2] {
        self.used.each_ref().map(|used| Some(used.load(Ordering::Relaxed)).filter(|used| *used != UNKNOWN))
    }

    /// True if the parts of its time are kept.
    pub const fn notes_parts(&self) -> bool {
        self.notes.is_some()
    }

    pub fn instantiated(&self) {
        self.note(CallNotes::instantiated);
    }

    pub fn ran(&self) {
        self.note(CallNotes::ran);
    }

    pub fn printed(&self, line: &str) {
        self.note(|notes| notes.printed(line));
    }

    /// The guest made a request of this name, which began at this time and is answered now.
    pub fn requested(&self, name: &str, began: SystemTime, failed: bool) {
        self.note(|notes| notes.requested(self.began, name, began, failed));
    }

    fn note(&self, note: impl FnOnce(&mut CallNotes)) {
        if let Some(notes) = &self.notes {
            note(&mut notes.lock());
        }
    }

    /// Ends the call for an operator: a session of the console, or the user of a terminal.
    pub fn stop(&self, by: &str) {
        // The first operator counts.
        let _ = self.stopped_by.set(by.to_owned());
        self.is_stopped.store(true, Ordering::Release);
        self.stop.cancel();
    }

    /// True once the operator ended it.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// The operator who ended it; empty if none did.
    pub fn stopped_by(&self) -> &str {
        self.stopped_by.get().map_or("", String::as_str)
    }

    /// True if it waits for its approval.
    pub fn waits_for_approval(&self) -> bool {
        self.phase() == CallPhase::Asking && !self.has_begun.load(Ordering::Acquire)
    }

    /// The text for the client of a call that an operator ended; `None` for others. It depends on
    /// what the call was doing.
    pub fn stopped_text(&self) -> Option<&'static str> {
        let text = match (self.phase(), self.has_begun.load(Ordering::Acquire)) {
            (CallPhase::Asking, false) => STOPPED_BEFORE_APPROVAL,
            (CallPhase::Waiting | CallPhase::Running, false) => STOPPED_IN_QUEUE,
            (CallPhase::Asking, true) => STOPPED_ASKING,
            (CallPhase::Waiting | CallPhase::Running, true) => STOPPED,
        };
        self.is_stopped().then_some(text)
    }

    /// Waits until an operator ends the call before its guest runs. A running guest is cancelled
    /// instead.
    pub async fn stopped_while_waiting(&self) {
        self.stop.cancelled().await;
        if self.has_begun.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
    }
}

impl TrackedCall {
    pub const fn call(&self) -> &Arc<LiveCall> {
        &self.call
    }

    pub fn ended(&mut self, outcome: Outcome) {
        self.ended = true;
        let took = self.call.phases.own_time(self.call.began.elapsed());
        self.calls.figures.ended(Some(took), outcome.is_error());
    }
}

impl Drop for TrackedCall {
    fn drop(&mut self) {
        if !self.ended {
            self.ended(Outcome::Cancelled);
        }
        if let Some(notes) = &self.call.notes {
            let notes = std::mem::take(&mut *notes.lock());
            self.calls.recent.keep(notes.end(self.call.id, self.call.began));
        }
        self.calls.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(place) = self.place.and_then(|place| self.calls.places.get(place)) {
            drop(place.lock().take());
        }
    }
}
