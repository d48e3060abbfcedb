//! The memory of all processes of a starter together.

use std::time::{Duration, Instant};

use super::handle::Running;

/// How often it is added up.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The same while they use more than half of the bound. In a second one process fills some
/// gigabytes, and several fill that much each.
const POLL_OFTEN_EVERY: Duration = Duration::from_millis(50);

/// The bound, and the time of the next check.
#[derive(Debug)]
pub(super) struct Together {
    bytes_max: u64,
    next: Instant,
}

impl Together {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, next: Instant::now() }
    }

    /// The time of the next check.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Adds up if it is time, and ends the largest until the others fit.
    pub(super) fn poll<'r>(&mut self, now: Instant, running: impl Iterator<Item = &'r Running>) {
        if now < self.next {
            return;
        }
        let mut taken: Vec<(u64, &Running)> = running.filter_map(|one| Some((one.memory()?.own, one))).collect();
        taken.sort_unstable_by_key(|(bytes, _)| *bytes);
        let mut sum = taken.iter().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add);
        while sum > self.bytes_max {
            let Some((bytes, largest)) = taken.pop() else { break };
            largest.make_room(self.bytes_max);
            sum -= bytes;
        }
        self.next = now + if sum > self.bytes_max / 2 { POLL_OFTEN_EVERY } else { POLL_EVERY };
    }
}
