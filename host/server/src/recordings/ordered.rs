//! Calls that an operator has recorded: the next ones of a tool, whatever the manifest's rules say.
//! They are counted in this process alone. Must not hold: pages, or how a call is recorded.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toolcell_audit::{Clipped, ConsoleDecided, Event, Sink};

/// Calls of one tool that an operator may have recorded at once. A person can read so many; who
/// needs more writes a rule into the manifest, where everybody sees it.
pub(crate) const ORDERED_CALLS_MAX: u32 = 100;

/// Tools whose next calls are recorded at once. Each call looks its tool up among them.
const TOOLS_MAX: usize = 64;

/// Time after which no further call is recorded: nobody remembers what was begun on another day.
const ORDER_LASTS: Duration = Duration::from_secs(24 * 3_600);

/// The decision in the audit that says how the recording of calls ended.
const ENDED: &str = "recording ended";

/// A tool: its component's name in the manifest, and its own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedTool {
    pub(crate) component: String,
    pub(crate) tool: String,
}

/// The operator who began, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderedBy {
    /// The name of the session in the console.
    pub(crate) session: String,
    /// The operator who signed in, if any.
    pub(crate) operator: Option<String>,
}

/// The next calls of one tool.
#[derive(Clone, Debug)]
pub(crate) struct RecordingOrder {
    /// The tool's name for clients.
    pub(crate) listed: String,
    pub(crate) by: OrderedBy,
    /// Calls that are to be recorded, at most [`ORDERED_CALLS_MAX`].
    pub(crate) calls: u32,
    /// Recordings that were kept.
    pub(crate) kept: u32,
    pub(crate) began: SystemTime,
    /// Calls that run and are being recorded.
    running: u32,
    until: Instant,
    /// Tells it from an earlier one of the same tool.
    number: u64,
}

/// Calls of tools that operators have recorded.
#[derive(Debug)]
pub(crate) struct OrderedRecordings {
    /// How many tools there are, for calls of all others.
    count: AtomicUsize,
    orders: Mutex<BTreeMap<OrderedTool, RecordingOrder>>,
    /// Numbers that were given.
    numbers: AtomicU64,
    sink: Arc<Sink>,
}

/// A call that runs and is being recorded. Its place is free again if it leaves no recording.
#[derive(Debug)]
pub(crate) struct OrderedPlace {
    all: Arc<OrderedRecordings>,
    tool: OrderedTool,
    number: u64,
    is_kept: bool,
}

impl OrderedRecordings {
    /// None yet. Ends are written there.
    pub(crate) fn new(sink: &Arc<Sink>) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicUsize::default(),
            orders: Mutex::default(),
            numbers: AtomicU64::default(),
            sink: Arc::clone(sink),
        })
    }

    /// Has the next calls of a tool recorded. `Err` is one sentence.
    pub(crate) fn begin(&self, tool: OrderedTool, listed: &str, calls: u64, by: OrderedBy) -> Result<u32, String> {
        let calls = u32::try_from(calls).ok().filter(|calls| (1..=ORDERED_CALLS_MAX).contains(calls));
        let calls = calls.ok_or_else(|| format!("Between 1 and {ORDERED_CALLS_MAX} calls can be recorded."))?;
        self.end_late();
        let mut orders = self.orders.lock();
        if let Some(order) = orders.get(&tool) {
            let left = order.left();
            return Err(format!("Calls of this tool are being recorded already: {left} of {} are left.", order.calls));
        }
        if orders.len() >= TOOLS_MAX {
            return Err(format!("Calls of {TOOLS_MAX} tools are being recorded already. End one of them first."));
        }
        let order = RecordingOrder {
            listed: listed.to_owned(),
            by,
            calls,
            kept: 0,
            began: SystemTime::now(),
            running: 0,
            until: Instant::now() + ORDER_LASTS,
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
        };
        orders.insert(tool, order);
        self.count.store(orders.len(), Ordering::Release);
        Ok(calls)
    }

    /// Ends the recording of a tool's calls. Calls that run leave no recording any more.
    pub(crate) fn end(&self, tool: &OrderedTool) -> Option<RecordingOrder> {
        let mut orders = self.orders.lock();
        let ended = orders.remove(tool);
        self.count.store(orders.len(), Ordering::Release);
        ended
    }

    /// The calls of a tool that are being recorded.
    pub(crate) fn of(&self, tool: &OrderedTool) -> Option<RecordingOrder> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.end_late();
        self.orders.lock().get(tool).cloned()
    }

    /// A place for a call of this tool, if it is one of those that are recorded.
    pub(crate) fn place(self: &Arc<Self>, component: &str, tool: &str) -> Option<OrderedPlace> {
        // Nearly always: a call pays for one look at a number.
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.end_late();
        let tool = OrderedTool { component: component.to_owned(), tool: tool.to_owned() };
        let mut orders = self.orders.lock();
        let order = orders.get_mut(&tool).filter(|order| order.kept + order.running < order.calls)?;
        order.running += 1;
        let number = order.number;
        drop(orders);
        Some(OrderedPlace { all: Arc::clone(self), tool, number, is_kept: false })
    }

    /// Ends those of tools whose calls can no longer be recorded: `why` says why, for the audit.
    pub(crate) fn end_where(&self, why: impl Fn(&OrderedTool) -> Option<String>) {
        self.end_all(|tool, _| why(tool));
    }

    /// Ends those that were begun too long ago.
    fn end_late(&self) {
        let now = Instant::now();
        self.end_all(|_, order| (order.until <= now).then(|| "a day has passed".to_owned()));
    }

    fn end_all(&self, why: impl Fn(&OrderedTool, &RecordingOrder) -> Option<String>) {
        let mut ended = Vec::new();
        let mut orders = self.orders.lock();
        orders.retain(|tool, order| match why(tool, order) {
            None => true,
            Some(why) => {
                ended.push((order.clone(), why));
                false
            }
        });
        self.count.store(orders.len(), Ordering::Release);
        drop(orders);
        ended.iter().for_each(|(order, why)| self.record(order, Some(why)));
    }

    /// Records how the recording of calls ended, under the name of who began it.
    fn record(&self, order: &RecordingOrder, why: Option<&str>) {
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let detail = format!("{} of {} calls were recorded{why}", order.kept, order.calls);
        let event = || {
            Event::ConsoleDecided(ConsoleDecided {
                session: &order.by.session,
                operator: order.by.operator.as_deref().map(Clipped),
                decision: ENDED,
                subject: Clipped(&order.listed),
                done: true,
                detail: Some(Clipped(&detail)),
            })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!("the end of a recording of calls is missing from the audit: {error}");
        }
    }
}

impl RecordingOrder {
    /// Calls whose recordings are not kept yet.
    pub(crate) const fn left(&self) -> u32 {
        self.calls.saturating_sub(self.kept)
    }
}

impl OrderedPlace {
    /// False if the recording was ended meanwhile.
    pub(crate) fn is_wanted(&self) -> bool {
        self.all.orders.lock().get(&self.tool).is_some_and(|order| order.number == self.number)
    }

    /// The call's recording is kept. The last one ends the order.
    pub(crate) fn kept(mut self) {
        self.is_kept = true;
        let mut orders = self.all.orders.lock();
        let Some(order) = orders.get_mut(&self.tool).filter(|order| order.number == self.number) else { return };
        order.running = order.running.saturating_sub(1);
        order.kept += 1;
        if order.left() > 0 {
            return;
        }
        let ended = orders.remove(&self.tool);
        self.all.count.store(orders.len(), Ordering::Release);
        drop(orders);
        ended.iter().for_each(|order| self.all.record(order, None));
    }
}

impl Drop for OrderedPlace {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let mut orders = self.all.orders.lock();
        if let Some(order) = orders.get_mut(&self.tool).filter(|order| order.number == self.number) {
            order.running = order.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tool(name: &str) -> OrderedTool {
        OrderedTool { component: "a".to_owned(), tool: name.to_owned() }
    }

    fn ann() -> OrderedBy {
        OrderedBy { session: "s".to_owned(), operator: Some("ann".to_owned()) }
    }

    fn none() -> Arc<OrderedRecordings> {
        OrderedRecordings::new(&Arc::new(Sink::disabled()))
    }

    #[test]
    fn as_many_calls_have_a_place_as_were_asked_for_and_one_that_leaves_nothing_gives_it_back() {
        let all = none();
        assert!(all.place("a", "t").is_none());
        assert_eq!(all.begin(tool("t"), "t", 2, ann()), Ok(2));
        assert!(all.place("a", "other").is_none() && all.place("b", "t").is_none());
        let first = all.place("a", "t").unwrap();
        let second = all.place("a", "t").unwrap();
        assert!(all.place("a", "t").is_none(), "two run");
        drop(first);
        let third = all.place("a", "t").unwrap();
        second.kept();
        assert_eq!(all.of(&tool("t")).unwrap().left(), 1);
        assert!(third.is_wanted());
        third.kept();
        assert!(all.of(&tool("t")).is_none() && all.place("a", "t").is_none());
        assert_eq!(all.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_number_out_of_bounds_and_a_second_order_are_refused() {
        let all = none();
        for calls in [0, u64::from(ORDERED_CALLS_MAX) + 1, u64::MAX] {
            assert_eq!(
                all.begin(tool("t"), "t", calls, ann()),
                Err("Between 1 and 100 calls can be recorded.".to_owned())
            );
        }
        assert_eq!(all.begin(tool("t"), "t", 100, ann()), Ok(100));
        let again = "Calls of this tool are being recorded already: 100 of 100 are left.";
        assert_eq!(all.begin(tool("t"), "t", 5, ann()), Err(again.to_owned()));
        for number in 1..TOOLS_MAX {
            assert_eq!(all.begin(tool(&number.to_string()), "t", 1, ann()), Ok(1));
        }
        assert!(all.begin(tool("more"), "t", 1, ann()).unwrap_err().starts_with("Calls of 64 tools"));
    }

    #[test]
    fn a_call_that_runs_when_its_recording_is_ended_is_not_wanted_by_the_next_one() {
        let all = none();
        all.begin(tool("t"), "t", 1, ann()).unwrap();
        let place = all.place("a", "t").unwrap();
        assert_eq!(all.end(&tool("t")).unwrap().kept, 0);
        assert!(all.end(&tool("t")).is_none());
        all.begin(tool("t"), "t", 1, ann()).unwrap();
        assert!(!place.is_wanted());
        place.kept();
        assert_eq!(all.of(&tool("t")).unwrap().left(), 1);
    }

    #[test]
    fn what_is_too_old_or_cannot_go_on_ends() {
        let all = none();
        all.begin(tool("old"), "t", 1, ann()).unwrap();
        all.begin(tool("gone"), "t", 1, ann()).unwrap();
        all.orders.lock().get_mut(&tool("old")).unwrap().until = Instant::now();
        assert!(all.place("a", "old").is_none());
        all.end_where(|tool| (tool.tool == "gone").then(|| "it is gone".to_owned()));
        assert!(all.orders.lock().is_empty());
    }
}
