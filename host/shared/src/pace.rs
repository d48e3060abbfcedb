//! Rates as token buckets: a number of calls per time, all of which may come at once; the bucket
//! then refills evenly.
//!
//! This is our own code, since all of it is one comparison of instants. The `governor` crate would
//! add a concurrent map, a clock and a random number generator. `valkey/rates.lua` decides in the
//! same way; a test compares the two.
use std::time::{Duration, Instant};

/// A rate as durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two calls at an even pace.
    pub(crate) interval: Duration,
    /// How far ahead of the clock the allowance may be spent: all calls but one.
    pub(crate) ahead: Duration,
}

/// The allowance of one caller.
#[derive(Debug)]
pub struct Allowance {
    pace: Pace,
    /// When the allowance is full again.
    spent_until: Option<Instant>,
}

impl Pace {
    /// This many calls in this time.
    #[must_use]
    pub fn new(count: u64, per: Duration) -> Self {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let interval = per / count;
        Self { interval, ahead: interval * (count - 1) }
    }
}

impl Allowance {
    /// A full allowance.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        Self { pace, spent_until: None }
    }

    /// Time until the next call is allowed; `None` if it is allowed at this instant.
    #[must_use]
    pub fn missing(&self, now: Instant) -> Option<Duration> {
        let spent_until = self.spent_until.filter(|until| *until > now).unwrap_or(now);
        let missing = spent_until.duration_since(now).saturating_sub(self.pace.ahead);
        (!missing.is_zero()).then_some(missing)
    }

    /// Takes one call at this instant.
    ///
    /// # Errors
    ///
    /// The time until the next call is allowed.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if let Some(missing) = self.missing(now) {
            return Err(missing);
        }
        let spent_until = self.spent_until.filter(|until| *until > now).unwrap_or(now);
        self.spent_until = Some(spent_until + self.pace.interval);
        Ok(())
    }

    /// True if the allowance is full.
    #[must_use]
    pub fn is_whole(&self, now: Instant) -> bool {
        self.spent_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn all_may_come_at_once_and_one_more_waits() {
        for (count, per, wait) in [
            (1, SECOND, SECOND),
            (20, SECOND, SECOND / 20),
            (600, 60 * SECOND, SECOND / 10),
            (7, 3_600 * SECOND, SECOND * 3600 / 7),
            (1_000_000, SECOND, SECOND / 1_000_000),
        ] {
            let mut allowance = Allowance::new(Pace::new(count, per));
            let now = Instant::now();
            for number in 0..count {
                assert_eq!(allowance.take(now), Ok(()), "{count} in {per:?}: number {number}");
            }
            assert_eq!(allowance.take(now), Err(wait), "{count} in {per:?}");
            assert_eq!(allowance.take(now), Err(wait), "{count} in {per:?}: asking costs nothing");
            assert_eq!(allowance.take(now + wait), Ok(()), "{count} in {per:?}");
            assert_eq!(allowance.take(now + wait), Err(wait), "{count} in {per:?}: only one came back");
        }
    }

    #[test]
    fn in_the_long_run_it_is_the_rate() {
        let mut allowance = Allowance::new(Pace::new(10, SECOND));
        let start = Instant::now();
        let taken = (0..10_000).filter(|ms| allowance.take(start + Duration::from_millis(*ms)).is_ok()).count();
        assert_eq!(taken, 10 + 99, "ten at once, then ten in each of ten seconds");
    }

    #[test]
    fn what_is_not_used_does_not_add_up() {
        let mut allowance = Allowance::new(Pace::new(2, SECOND));
        let start = Instant::now();
        let later = start + 100 * SECOND;
        assert_eq!(allowance.take(start), Ok(()));
        let taken = (0..10).filter(|_| allowance.take(later).is_ok()).count();
        assert_eq!(taken, 2);
    }
}
