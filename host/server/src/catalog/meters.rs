//! Counters of a tool's calls, over all generations that have the tool.
//!
//! Counting costs a call a few additions to the tool's own numbers, and one lock of the tool's own
//! that nothing holds for long (see [`usage`](super::usage)).
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolcell_audit::{Outcome, Usage};
use toolcell_policy::Capability;

use super::usage::{FurtherUse, UseSoFar, UseWindow};
use crate::observing::counts::Counts;

/// Upper bounds of the time buckets, in nanoseconds. They run from a small fresh guest to the
/// default deadline in steps of about three, which is the precision of quantiles.
pub const TIME_BOUNDS: [u64; 12] = [
    100_000,
    250_000,
    1_000_000,
    2_500_000,
    10_000_000,
    25_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// Upper bounds of the memory buckets, in bytes. The fourth is the default limit of a tool.
pub const MEMORY_BOUNDS: [u64; 6] = [1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30];

/// Counts of values by range, and their sum. The last range has no upper bound.
#[derive(Debug)]
pub struct Histogram<const BOUNDS: usize> {
    bounds: &'static [u64; BOUNDS],
    counts: [AtomicU64; BOUNDS],
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const BOUNDS: usize> Histogram<BOUNDS> {
    const fn new(bounds: &'static [u64; BOUNDS]) -> Self {
        Self { bounds, counts: [const { AtomicU64::new(0) }; BOUNDS], above: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    fn add(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(place).unwrap_or(&self.above).fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Each range's upper bound with its count, without a bound for the last; and the sum.
    pub fn read(&self) -> (Vec<(Option<u64>, u64)>, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let ranges = self.bounds.iter().zip(&self.counts).map(|(bound, count)| (Some(*bound), load(count)));
        (ranges.chain([(None, load(&self.above))]).collect(), load(&self.sum))
    }
}

/// Counters of one tool.
#[derive(Debug)]
pub struct Meters {
    /// Calls by how they ended.
    pub outcomes: Counts<Outcome, { Outcome::ALL.len() }>,
    fuel: AtomicU64,
    /// Run times of guests, in nanoseconds.
    pub durations: Histogram<{ TIME_BOUNDS.len() }>,
    /// Waits of calls that had to wait, in nanoseconds.
    pub waits: Histogram<{ TIME_BOUNDS.len() }>,
    /// Peak memory of each guest, in bytes.
    pub memory: Histogram<{ MEMORY_BOUNDS.len() }>,
    used: UseWindow,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            outcomes: Counts::new(&Outcome::ALL),
            fuel: AtomicU64::new(0),
            durations: Histogram::new(&TIME_BOUNDS),
            waits: Histogram::new(&TIME_BOUNDS),
            memory: Histogram::new(&MEMORY_BOUNDS),
            used: UseWindow::default(),
        }
    }
}

impl Meters {
    /// Counts a call with this outcome. Its usage counts if any of it ran.
    pub fn ended(&self, outcome: Outcome, usage: &Usage, further: &FurtherUse) {
        self.outcomes.count(outcome);
        if usage.duration.is_zero() {
            return;
        }
        self.used.ended(outcome, usage, further);
        self.fuel.fetch_add(usage.fuel, Ordering::Relaxed);
        self.durations.add(nanos(usage.duration));
        self.memory.add(usage.memory_peak_bytes);
    }

    /// Counts a wait for a slot, with or without success.
    pub fn waited(&self, time: Duration) {
        self.waits.add(nanos(time));
        self.used.waited(nanos(time));
    }

    /// How much of its limits calls used.
    pub fn used(&self) -> UseSoFar {
        self.used.read()
    }

    /// Units of fuel that calls burned.
    pub fn fuel(&self) -> u64 {
        self.fuel.load(Ordering::Relaxed)
    }
}

/// Denials of a component, by capability.
pub type DenialCounts = Counts<Capability, { Capability::ALL.len() }>;

/// The counters of the earlier generation, or new ones.
pub fn continued(earlier: Option<&Arc<Meters>>) -> Arc<Meters> {
    earlier.map_or_else(Arc::default, Arc::clone)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_range_that_does_not_end_below_it() {
        let spread = Histogram::new(&[10, 20]);
        [0, 10, 11, 20, 21, 1_000].into_iter().for_each(|value| spread.add(value));
        assert_eq!(spread.read(), (vec![(Some(10), 2), (Some(20), 2), (None, 2)], 1_062));
    }

    #[test]
    fn what_a_call_used_is_counted_only_where_something_ran() {
        let meters = Meters::default();
        meters.ended(Outcome::Busy, &Usage::default(), &FurtherUse::default());
        let usage = Usage { fuel: 7, memory_peak_bytes: 5, duration: Duration::from_nanos(3), ..Usage::default() };
        meters.ended(Outcome::Trap, &usage, &FurtherUse::default());
        let counted: Vec<_> = meters.outcomes.read().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(Outcome::Trap, 1), (Outcome::Busy, 1)]);
        assert_eq!(meters.fuel(), 7);
        assert_eq!(meters.durations.read().1, 3);
        assert_eq!(meters.used().calls, 1);
        assert_eq!(meters.memory.read().0.iter().map(|(_, count)| count).sum::<u64>(), 1);
    }

    #[test]
    fn every_capability_is_counted_by_itself() {
        let denied = DenialCounts::new(&Capability::ALL);
        Capability::ALL.into_iter().for_each(|capability| denied.count(capability));
        assert!(denied.read().all(|(_, count)| count == 1));
    }
}
