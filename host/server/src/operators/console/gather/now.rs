//! The view of what runs now.
use std::time::SystemTime;

use toolcell_console::model::{Gauge, History, HistoryPoint, Moment, Now, Phase, RunningCall, SeriesPoint, Totals};

use super::Sources;
use crate::observing::activity::{CallPhase, HourFigures, LiveCall};

/// Seconds of a minute, for rates.
const MINUTE_SECONDS: f64 = 60.0;

impl Sources {
    /// The view "Now".
    pub fn now(&self) -> Now {
        let (calls, count) = self.activity.running.list();
        let waiting = calls.iter().filter(|call| call.phase() != CallPhase::Running).count();
        let minute = self.activity.figures().last_minute();
        let sum = |place: usize| minute.seconds.iter().filter_map(|counts| counts.get(place)).sum::<u64>();
        let point = |&[calls, errors, denials]: &[u64; 3]| SeriesPoint { calls, errors, denials };
        Now {
            at: SystemTime::now().into(),
            started: Moment::from(self.activity.started),
            generation: self.current.generation(),
            totals: Totals {
                running: count.saturating_sub(waiting) as u64,
                waiting: waiting as u64,
                calls_per_second: rate(sum(0)),
                p50: minute.p50,
                p99: minute.p99,
                errors: sum(1),
                denials: sum(2),
            },
            series: minute.seconds.iter().map(point).collect(),
            history: history(&self.activity.figures().last_hour()),
            running: calls.iter().map(|call| running(call)).collect(),
        }
    }
}

fn history(hour: &HourFigures) -> History {
    let end = SystemTime::now().checked_sub(hour.age).unwrap_or(SystemTime::UNIX_EPOCH);
    let points = hour.parts.iter().map(|part| {
        let [calls, errors, denials] = part.counts;
        HistoryPoint { counts: SeriesPoint { calls, errors, denials }, p50: part.p50, p99: part.p99 }
    });
    History { end: end.into(), part: hour.part, points: points.collect() }
}

fn running(call: &LiveCall) -> RunningCall {
    let gauge = |used: Option<u64>, limit: u64| Some(Gauge { used, limit });
    let [fuel, memory] = call.used();
    let (elapsed, deadline) = call.in_phase();
    RunningCall {
        call: call.id,
        depth: call.place.depth,
        tool: call.tool.definition().name.clone(),
        component: call.component.clone(),
        caller: call.caller.clone(),
        phase: match call.phase() {
            _ if call.is_stopped() => Phase::Stopping,
            CallPhase::Waiting => Phase::Waiting,
            CallPhase::Running => Phase::Running,
            CallPhase::Asking => Phase::Asking,
        },
        age: call.began.elapsed(),
        elapsed,
        deadline: Some(deadline),
        fuel: gauge(fuel, call.fuel),
        memory: gauge(memory, call.memory_bytes),
        can_stop: !call.is_stopped(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a page shows two digits")]
fn rate(calls: u64) -> f64 {
    calls as f64 / MINUTE_SECONDS
}
