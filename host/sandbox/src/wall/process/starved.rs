//! The time in which a process had no processor, and so could not answer.
use std::time::{Duration, Instant};

/// Time without a processor that a process gets back for one call, in addition to the time it has
/// to end the call. Threads of a process that compete for processors with each other gain no more.
pub(super) const STARVED_MAX: Duration = Duration::from_secs(10);

/// The time without a processor so far, from checks at regular intervals.
#[derive(Debug)]
pub(super) struct Starved {
    every: Duration,
    total: Duration,
    looked: Instant,
    /// Time that the process's threads had waited by then.
    waited: Option<Duration>,
}

impl Starved {
    /// For a process that is checked at this interval from now on.
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        Self { every, total: Duration::ZERO, looked: now, waited: None }
    }

    /// The total.
    pub(super) const fn total(&self) -> Duration {
        self.total
    }

    /// Adds a check. `waited` is the total time that the process's threads have waited for
    /// processors so far; `None` if it is unknown, or was not asked for.
    ///
    /// A process was starved since the last check if its threads waited for half of that time. If
    /// this check is late, the host was starved, too, and may have left an answer unread.
    pub(super) fn check(&mut self, now: Instant, waited: Option<Duration>) {
        let passed = now.saturating_duration_since(self.looked);
        let more = self.waited.zip(waited).map_or(Duration::ZERO, |(before, now)| now.saturating_sub(before));
        let late = passed.saturating_sub(self.every);
        self.total = self.total.saturating_add(match () {
            () if more.saturating_mul(2) >= passed => passed,
            () if late > self.every => late,
            () => Duration::ZERO,
        });
        (self.looked, self.waited) = (now, waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_or_the_host_waited_for_processors_is_added() {
        let start = Instant::now();
        let tick = Duration::from_millis(250);
        let at = |millis: u64| start + Duration::from_millis(millis);
        let waited = |millis: u64| Some(Duration::from_millis(millis));
        // Time of the check, what the threads have waited, and the total from then on.
        let table = [
            (250, None, 0),
            (500, waited(9_000), 0),     // What was before is not known.
            (750, waited(9_124), 0),     // Less than half.
            (1_000, waited(9_249), 250), // Half of it.
            (1_250, waited(9_900), 500), // Several threads.
            (1_500, None, 500),
            (1_740, waited(20_000), 500),
            (2_240, waited(20_000), 500),   // A little late.
            (3_240, waited(20_000), 1_250), // The host slept for four intervals.
            (4_240, None, 2_000),
        ];
        let mut starved = Starved::new(tick, start);
        for (when, waited, total) in table {
            starved.check(at(when), waited);
            assert_eq!(starved.total(), Duration::from_millis(total), "at {when}");
        }
    }
}
