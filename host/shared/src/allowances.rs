//! The allowances of many callers at one rate, in memory.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::{Allowance, Pace};

/// Name under which callers beyond `callers_max` share one allowance; no caller has this name.
const EVERYBODY_ELSE: &str = "";

/// The allowances of many callers at one rate.
#[derive(Debug)]
pub struct Allowances {
    pace: Pace,
    /// Callers with an allowance of their own, about 100 bytes each. Further ones share one.
    callers_max: usize,
    callers: HashMap<Box<str>, Allowance>,
}

impl Allowances {
    /// A full allowance for each caller, up to `callers_max`. Further callers share one.
    #[must_use]
    pub fn new(pace: Pace, callers_max: usize) -> Self {
        Self { pace, callers_max, callers: HashMap::new() }
    }

    /// Takes one call of this caller at this instant.
    ///
    /// # Errors
    ///
    /// The time until the next call is allowed.
    pub fn take(&mut self, caller: &str, now: Instant) -> Result<(), Duration> {
        if let Some(allowance) = self.callers.get_mut(caller) {
            return allowance.take(now);
        }
        let name = self.kept_as(caller, now);
        self.callers.entry(name.into()).or_insert_with(|| Allowance::new(self.pace)).take(now)
    }

    /// Time until this caller's next call is allowed; `None` if it is allowed now.
    pub(crate) fn missing(&mut self, caller: &str, now: Instant) -> Option<Duration> {
        if let Some(allowance) = self.callers.get(caller) {
            return allowance.missing(now);
        }
        let name = self.kept_as(caller, now);
        self.callers.get(name)?.missing(now)
    }

    /// The name under which a new caller's allowance is kept.
    fn kept_as<'a>(&mut self, caller: &'a str, now: Instant) -> &'a str {
        if self.callers.len() >= self.callers_max {
            self.forget_whole(now);
        }
        if self.callers.len() >= self.callers_max { EVERYBODY_ELSE } else { caller }
    }

    /// Drops full allowances: a new one equals them.
    pub(crate) fn forget_whole(&mut self, now: Instant) {
        self.callers.retain(|_, allowance| !allowance.is_whole(now));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn callers_do_not_use_up_each_others_allowance() {
        let mut allowances = Allowances::new(Pace::new(1, 3600 * SECOND), 10);
        let now = Instant::now();
        for caller in ["one", "two"] {
            assert_eq!(allowances.take(caller, now), Ok(()), "{caller}");
            assert_eq!(allowances.take(caller, now), Err(3600 * SECOND), "{caller}");
        }
    }

    #[test]
    fn more_callers_than_are_kept_apart_share_one_allowance() {
        let mut allowances = Allowances::new(Pace::new(1, SECOND), 1_000);
        let now = Instant::now();
        for number in 0..1_000 {
            assert_eq!(allowances.take(&number.to_string(), now), Ok(()));
        }
        assert_eq!(allowances.take("one more", now), Ok(()));
        assert_eq!(allowances.take("another", now), Err(SECOND));
        assert_eq!(allowances.callers.len(), 1_001);
        assert_eq!(allowances.take("another", now + SECOND), Ok(()), "the others have not called for a while");
        assert_eq!(allowances.callers.len(), 1);
    }
}
