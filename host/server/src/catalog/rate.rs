//! Rate limits: an allowance of some calls per time, all of which may come at once, and which then
//! refills evenly (a token bucket). Must not hold: what is counted, or a clock; callers pass the
//! instants.
//!
//! This is our own code, since all of it is one comparison of instants. The `governor` crate would
//! add a concurrent map, a clock and a random number generator, and still need this bound on
//! callers.
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcell_policy::quantity::Rate;

/// Callers with an allowance of their own for one tool, about 100 bytes each. Beyond these, new
/// ones share one.
const CALLERS_MAX: usize = 1_000;

/// Name under which callers beyond [`CALLERS_MAX`] share one allowance; no caller has this name.
const EVERYBODY_ELSE: &str = "";

/// A rate as durations.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Time between two calls that come evenly.
    interval: Duration,
    /// Time ahead of the clock up to which the allowance may be spent: all calls but one.
    ahead: Duration,
}

/// One allowance.
#[derive(Debug)]
pub struct Allowance {
    pace: Pace,
    /// Instant at which the allowance is whole again.
    spent_until: Option<Instant>,
}

/// The allowances of one tool's callers.
#[derive(Debug)]
pub struct Allowances {
    pace: Pace,
    callers: Mutex<HashMap<Box<str>, Allowance>>,
}

impl Pace {
    fn of(rate: Rate) -> Self {
        let count = u32::try_from(rate.count.max(1)).unwrap_or(u32::MAX);
        let interval = rate.per.duration() / count;
        Self { interval, ahead: interval * (count - 1) }
    }
}

impl Allowance {
    /// A whole allowance.
    pub fn new(rate: Rate) -> Self {
        Self::of(Pace::of(rate))
    }

    fn of(pace: Pace) -> Self {
        Self { pace, spent_until: None }
    }

    /// Takes one call at this instant, or returns the time until there is one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let spent_until = self.spent_until.filter(|until| *until > now).unwrap_or(now);
        let missing = spent_until.duration_since(now).saturating_sub(self.pace.ahead);
        if !missing.is_zero() {
            return Err(missing);
        }
        self.spent_until = Some(spent_until + self.pace.interval);
        Ok(())
    }

    /// True if the whole allowance is left.
    pub fn is_whole(&self, now: Instant) -> bool {
        self.spent_until.is_none_or(|until| until <= now)
    }
}

impl Allowances {
    /// A whole allowance for each caller.
    pub fn new(rate: Rate) -> Self {
        Self { pace: Pace::of(rate), callers: Mutex::default() }
    }

    /// Takes one call of this caller at this instant, or returns the time until there is one.
    pub fn take(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let mut callers = self.lock();
        if let Some(allowance) = callers.get_mut(caller) {
            return allowance.take(now);
        }
        if callers.len() >= CALLERS_MAX {
            // A whole allowance need not be kept: a new one equals it.
            callers.retain(|_, allowance| !allowance.is_whole(now));
        }
        let name = if callers.len() >= CALLERS_MAX { EVERYBODY_ELSE } else { caller };
        callers.entry(name.into()).or_insert_with(|| Allowance::of(self.pace)).take(now)
    }

    /// A panic elsewhere leaves whole entries behind.
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Allowance>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::quantity::Per;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(count: u64, per: Per) -> Rate {
        Rate { count, per }
    }

    #[test]
    fn all_may_come_at_once_and_one_more_waits() {
        for (rate, wait) in [
            (rate(1, Per::Second), SECOND),
            (rate(20, Per::Second), SECOND / 20),
            (rate(600, Per::Minute), SECOND / 10),
            (rate(7, Per::Hour), SECOND * 3600 / 7),
            (Rate::MOST, SECOND / 1_000_000),
        ] {
            let (mut allowance, now) = (Allowance::new(rate), Instant::now());
            for number in 0..rate.count {
                assert_eq!(allowance.take(now), Ok(()), "{rate}: number {number}");
            }
            assert_eq!(allowance.take(now), Err(wait), "{rate}");
            assert_eq!(allowance.take(now), Err(wait), "{rate}: asking costs nothing");
            assert_eq!(allowance.take(now + wait), Ok(()), "{rate}");
            assert_eq!(allowance.take(now + wait), Err(wait), "{rate}: only one came back");
        }
    }

    #[test]
    fn in_the_long_run_it_is_the_rate() {
        let (mut allowance, start) = (Allowance::new(rate(10, Per::Second)), Instant::now());
        let taken = (0..10_000).filter(|ms| allowance.take(start + Duration::from_millis(*ms)).is_ok()).count();
        assert_eq!(taken, 10 + 99, "ten at once, then ten in each of ten seconds");
    }

    #[test]
    fn what_is_not_used_does_not_add_up() {
        let (mut allowance, start) = (Allowance::new(rate(2, Per::Second)), Instant::now());
        let later = start + 100 * SECOND;
        assert_eq!(allowance.take(start), Ok(()));
        let taken = (0..10).filter(|_| allowance.take(later).is_ok()).count();
        assert_eq!(taken, 2);
    }

    #[test]
    fn callers_do_not_use_up_each_others_allowance() {
        let (allowances, now) = (Allowances::new(rate(1, Per::Hour)), Instant::now());
        for caller in ["one", "two"] {
            assert_eq!(allowances.take(caller, now), Ok(()), "{caller}");
            assert_eq!(allowances.take(caller, now), Err(3600 * SECOND), "{caller}");
        }
    }

    #[test]
    fn more_callers_than_are_kept_apart_share_one_allowance() {
        let (allowances, now) = (Allowances::new(rate(1, Per::Second)), Instant::now());
        for number in 0..CALLERS_MAX {
            assert_eq!(allowances.take(&number.to_string(), now), Ok(()));
        }
        assert_eq!(allowances.take("one more", now), Ok(()));
        assert_eq!(allowances.take("another", now), Err(SECOND));
        assert!(allowances.lock().len() <= CALLERS_MAX + 1);
        assert_eq!(allowances.take("another", now + SECOND), Ok(()), "the others have not called for a while");
        assert_eq!(allowances.lock().len(), 1);
    }
}
