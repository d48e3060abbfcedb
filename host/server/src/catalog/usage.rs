//! Use of limits by the calls of a tool: by the newest of them, and the most by any since the
//! process started.
//!
//! Noting a call takes a lock of the tool's own and about 30 ns. It allocates while the window
//! grows, and never afterwards.
use std::time::Duration;

use parking_lot::Mutex;
use toolcell_audit::{Outcome, Usage};
use toolcell_policy::{Limit, PeakUsage};

/// Calls in the window of a tool. Their 99th percentile is the third most, so that one odd call
/// does not decide it. A full window takes 20 KiB.
pub const NEWEST_CALLS: usize = 256;

/// Use by a call besides its [`Usage`].
#[derive(Clone, Copy, Debug, Default)]
pub struct FurtherUse {
    /// The arguments as JSON text.
    pub arguments_bytes: u64,
    /// Pieces of content in the result.
    pub output_items: u64,
    /// Output and log lines past their limit.
    pub log_dropped_bytes: u64,
    /// True if the limit of tasks bounded its time.
    pub is_task: bool,
}

/// Use by one call, or the most of several.
#[derive(Clone, Copy, Debug, Default)]
struct CallUse {
    fuel: u64,
    /// Time of a call without a task; 0 for one with a task.
    nanos: u64,
    /// Time of a task; 0 for any other call.
    task_nanos: u64,
    memory_bytes: u64,
    output_bytes: u64,
    output_items: u64,
    log_bytes: u64,
    arguments_bytes: u64,
    egress_bytes: u64,
    ingress_bytes: u64,
}

/// The newest values, in no order that means anything.
#[derive(Clone, Debug)]
struct Newest<T> {
    kept: Vec<T>,
    /// Place of the oldest, once all places are taken.
    next: usize,
}

/// Use by all calls so far. A copy is a snapshot.
#[derive(Clone, Debug, Default)]
pub struct UseSoFar {
    newest: Newest<CallUse>,
    most: CallUse,
    /// Calls that ran. The newest [`NEWEST_CALLS`] of them are in the window.
    pub calls: u64,
    waits: Newest<u64>,
    longest_wait: u64,
    most_answered: CallUse,
    /// Calls among them that the tool answered without an error.
    pub answered: u64,
}

/// Use by the calls of one tool, as they end.
#[derive(Debug, Default)]
pub struct UseWindow(Mutex<UseSoFar>);

/// Use of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Median of the newest calls.
    pub p50: u64,
    /// Their 99th percentile.
    pub p99: u64,
    /// The most by any call since the process started.
    pub max: u64,
}

impl UseWindow {
    /// Notes a call that ran and ended so.
    pub fn ended(&self, outcome: Outcome, usage: &Usage, further: &FurtherUse) {
        let used = CallUse::of(usage, further);
        let mut so_far = self.0.lock();
        so_far.newest.push(used);
        so_far.most = so_far.most.max(&used);
        so_far.calls += 1;
        if outcome == Outcome::Ok {
            so_far.most_answered = so_far.most_answered.max(&used);
            so_far.answered += 1;
        }
    }

    /// Notes a wait for a slot.
    pub fn waited(&self, nanos: u64) {
        let mut so_far = self.0.lock();
        so_far.waits.push(nanos);
        so_far.longest_wait = so_far.longest_wait.max(nanos);
    }

    /// All that was used so far.
    pub fn read(&self) -> UseSoFar {
        self.0.lock().clone()
    }
}

impl UseSoFar {
    /// The most that answered calls used, as `toolcell calibrate` measures it.
    pub const fn peak(&self) -> PeakUsage {
        let CallUse { nanos, task_nanos, fuel, memory_bytes, output_bytes, output_items, .. } = self.most_answered;
        PeakUsage {
            fuel,
            duration: Duration::from_nanos(if nanos > task_nanos { nanos } else { task_nanos }),
            memory_bytes,
            output_bytes,
            output_items,
            log_bytes: self.most_answered.log_bytes,
            arguments_bytes: self.most_answered.arguments_bytes,
        }
    }

    /// Use of a limit in its unit, and of time in nanoseconds. `None` where it is not measured, or
    /// no call was.
    pub fn of(&self, limit: Limit) -> Option<Quantiles> {
        if limit == Limit::QueueWait {
            return quantiles(self.waits.kept.clone(), self.longest_wait);
        }
        let read: fn(&CallUse) -> u64 = match limit {
            Limit::Fuel => |used| used.fuel,
            Limit::Deadline => |used| used.nanos,
            Limit::TaskDeadline => |used| used.task_nanos,
            Limit::Memory => |used| used.memory_bytes,
            Limit::Output => |used| used.output_bytes,
            Limit::OutputItems => |used| used.output_items,
            Limit::Log => |used| used.log_bytes,
            Limit::Arguments => |used| used.arguments_bytes,
            Limit::Egress => |used| used.egress_bytes,
            Limit::Ingress => |used| used.ingress_bytes,
            _ => return None,
        };
        let values = self.newest.kept.iter().map(read);
        // A call takes some time, so that 0 stands for one that the other of the two limits bounds.
        let is_time = matches!(limit, Limit::Deadline | Limit::TaskDeadline);
        quantiles(values.filter(|value| !is_time || *value > 0).collect(), read(&self.most))
    }
}

impl CallUse {
    fn of(usage: &Usage, further: &FurtherUse) -> Self {
        let nanos = u64::try_from(usage.duration.as_nanos()).unwrap_or(u64::MAX);
        Self {
            fuel: usage.fuel,
            nanos: if further.is_task { 0 } else { nanos },
            task_nanos: if further.is_task { nanos } else { 0 },
            memory_bytes: usage.memory_peak_bytes,
            output_bytes: usage.output_bytes,
            output_items: further.output_items,
            log_bytes: usage.log_bytes.saturating_add(further.log_dropped_bytes),
            arguments_bytes: further.arguments_bytes,
            egress_bytes: usage.egress_bytes,
            ingress_bytes: usage.ingress_bytes,
        }
    }

    /// The larger of each use.
    fn max(&self, other: &Self) -> Self {
        Self {
            fuel: self.fuel.max(other.fuel),
            nanos: self.nanos.max(other.nanos),
            task_nanos: self.task_nanos.max(other.task_nanos),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            output_bytes: self.output_bytes.max(other.output_bytes),
            output_items: self.output_items.max(other.output_items),
            log_bytes: self.log_bytes.max(other.log_bytes),
            arguments_bytes: self.arguments_bytes.max(other.arguments_bytes),
            egress_bytes: self.egress_bytes.max(other.egress_bytes),
            ingress_bytes: self.ingress_bytes.max(other.ingress_bytes),
        }
    }
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), next: 0 }
    }
}

impl<T> Newest<T> {
    fn push(&mut self, value: T) {
        if self.kept.len() < NEWEST_CALLS {
            self.kept.push(value);
            return;
        }
        if let Some(oldest) = self.kept.get_mut(self.next) {
            *oldest = value;
        }
        self.next = (self.next + 1) % NEWEST_CALLS;
    }
}

/// Quantiles by nearest rank; `None` without values. The most is older than all of them perhaps.
fn quantiles(mut values: Vec<u64>, max: u64) -> Option<Quantiles> {
    values.sort_unstable();
    let at = |percent: usize| values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some(Quantiles { p50: at(50)?, p99: at(99)?, max })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn call(fuel: u64) -> Usage {
        Usage { fuel, memory_peak_bytes: fuel << 10, duration: Duration::from_nanos(fuel + 1), ..Usage::default() }
    }

    fn used(calls: impl IntoIterator<Item = u64>) -> UseSoFar {
        let window = UseWindow::default();
        calls.into_iter().for_each(|fuel| window.ended(Outcome::Ok, &call(fuel), &FurtherUse::default()));
        window.read()
    }

    #[test]
    fn quantiles_are_values_of_calls_and_not_bounds_of_ranges() {
        let so_far = used((1..=100).rev());
        assert_eq!(so_far.of(Limit::Fuel), Some(Quantiles { p50: 50, p99: 99, max: 100 }));
        assert_eq!(so_far.of(Limit::Memory), Some(Quantiles { p50: 50 << 10, p99: 99 << 10, max: 100 << 10 }));
        assert_eq!(used([7]).of(Limit::Fuel), Some(Quantiles { p50: 7, p99: 7, max: 7 }));
        assert_eq!(used([]).of(Limit::Fuel), None);
        assert_eq!(so_far.of(Limit::Handles), None, "nobody measures it");
    }

    #[test]
    fn the_window_has_the_newest_calls_and_the_most_is_that_of_all() {
        let newest = NEWEST_CALLS as u64;
        let so_far = used((0..newest).map(|_| 1_000_000).chain(1..=newest));
        assert_eq!(so_far.newest.kept.len(), NEWEST_CALLS);
        assert_eq!(so_far.of(Limit::Fuel), Some(Quantiles { p50: 128, p99: 254, max: 1_000_000 }));
        assert_eq!((so_far.calls, so_far.answered), (2 * newest, 2 * newest));
        let one_more = used((0..newest).chain([999]));
        assert!(one_more.newest.kept.iter().all(|used| used.fuel > 0), "the oldest gives way");
    }

    #[test]
    fn only_answered_calls_are_evidence_for_a_proposal() {
        let window = UseWindow::default();
        let further = FurtherUse { arguments_bytes: 3, output_items: 2, log_dropped_bytes: 10, is_task: false };
        window.ended(Outcome::Ok, &Usage { log_bytes: 5, output_bytes: 9, ..call(7) }, &further);
        window.ended(Outcome::OutOfFuel, &call(1_000), &FurtherUse::default());
        let so_far = window.read();
        assert_eq!((so_far.calls, so_far.answered), (2, 1));
        assert_eq!(so_far.of(Limit::Fuel).unwrap().max, 1_000);
        let peak = PeakUsage {
            fuel: 7,
            duration: Duration::from_nanos(8),
            memory_bytes: 7 << 10,
            output_bytes: 9,
            output_items: 2,
            log_bytes: 15,
            arguments_bytes: 3,
        };
        assert_eq!(so_far.peak(), peak);
    }

    #[test]
    fn the_time_of_a_task_is_not_held_against_the_deadline_of_calls() {
        let window = UseWindow::default();
        let task = FurtherUse { is_task: true, ..FurtherUse::default() };
        window.ended(Outcome::Ok, &call(500), &task);
        assert_eq!(window.read().of(Limit::Deadline), None);
        window.ended(Outcome::Ok, &call(1), &FurtherUse::default());
        let so_far = window.read();
        assert_eq!(so_far.of(Limit::Deadline), Some(Quantiles { p50: 2, p99: 2, max: 2 }));
        assert_eq!(so_far.of(Limit::TaskDeadline), Some(Quantiles { p50: 501, p99: 501, max: 501 }));
        assert_eq!(so_far.peak().duration, Duration::from_nanos(501));
    }

    #[test]
    fn waits_are_a_window_of_their_own() {
        let window = UseWindow::default();
        [30, 10, 20].into_iter().for_each(|nanos| window.waited(nanos));
        assert_eq!(window.read().of(Limit::QueueWait), Some(Quantiles { p50: 20, p99: 30, max: 30 }));
        assert_eq!(window.read().of(Limit::Deadline), None);
    }
}
