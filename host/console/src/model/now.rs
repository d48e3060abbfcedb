//! The view of what runs now.

use std::time::Duration;

use super::Moment;

/// The view "Now".
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The time of these figures.
    pub at: Moment,
    /// The start of the process.
    pub started: Moment,
    /// The generation that serves.
    pub generation: u64,
    /// Figures of the last minute.
    pub totals: Totals,
    /// The last seconds, oldest first, one point for each. At most
    /// [`SERIES_POINTS`](crate::bounds::SERIES_POINTS) are drawn, the newest.
    pub series: Vec<SeriesPoint>,
    /// The last hour.
    pub history: History,
    /// Calls that run or wait, oldest first; at most [`ROWS`](crate::bounds::ROWS) are shown.
    pub running: Vec<RunningCall>,
}

/// Figures of the last minute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Calls that run now.
    pub running: u64,
    /// Calls that wait in queues now.
    pub waiting: u64,
    /// Calls that ended, for each second.
    pub calls_per_second: f64,
    /// The median of the time from a call's arrival to its end, without that before a person; none
    /// without calls.
    pub p50: Option<Duration>,
    /// The 99th percentile of the same.
    pub p99: Option<Duration>,
    /// Calls that ended otherwise than `ok`.
    pub errors: u64,
    /// Requests of guests that no grant allows.
    pub denials: u64,
}

/// Calls and denials that were counted in some time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeriesPoint {
    /// Calls that ended.
    pub calls: u64,
    /// Those of them that ended otherwise than `ok`.
    pub errors: u64,
    /// Requests of guests that no grant allows.
    pub denials: u64,
}

/// Figures of parts of time, all of one length.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The end of the newest part.
    pub end: Moment,
    /// The length of a part.
    pub part: Duration,
    /// The parts, oldest first. At most
    /// [`HISTORY_POINTS`](crate::bounds::HISTORY_POINTS) are drawn, the newest.
    pub points: Vec<HistoryPoint>,
}

/// One part of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryPoint {
    /// Calls and denials in this part.
    pub counts: SeriesPoint,
    /// The median of the time from a call's arrival to its end; none without calls.
    pub p50: Option<Duration>,
    /// The 99th percentile of the same.
    pub p99: Option<Duration>,
}

/// A call that runs or waits.
#[derive(Debug, Clone, Default)]
pub struct RunningCall {
    /// The host's number of the call.
    pub call: u64,
    /// The number of calls above it, which tools made.
    pub depth: u32,
    /// The tool, as clients see it.
    pub tool: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The caller's name.
    pub caller: String,
    /// Where the call is on its way.
    pub phase: Phase,
    /// The time since it arrived.
    pub age: Duration,
    /// The time where it is on its way: of a call that runs, that in its guest.
    pub elapsed: Duration,
    /// The limit of `elapsed`.
    pub deadline: Option<Duration>,
    /// Units of fuel; none if not known yet.
    pub fuel: Option<Gauge>,
    /// Bytes of memory; none if not known yet.
    pub memory: Option<Gauge>,
    /// True if the call can be stopped.
    pub can_stop: bool,
}

/// A use against its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauge {
    /// The use; none if only the limit is known.
    pub used: Option<u64>,
    /// The most that may be used.
    pub limit: u64,
}

/// Where a call is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// In the queue of its tool or its caller.
    #[default]
    Waiting,
    /// Its instance is being made.
    Starting,
    /// The guest runs.
    Running,
    /// A person or a model is being asked.
    Asking,
    /// It was stopped and has not ended yet.
    Stopping,
}
