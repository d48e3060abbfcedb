//! Looking again before sleeping, where that pays. Must not hold: what is looked for.
//!
//! Waking a sleeping process costs 30 to 50 µs, a look about 1 µs. So who waits for something that
//! comes at once is better off looking, and who waits longer must not burn a core for it.

use std::{
    num::NonZero,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// Looking ends after this long: twice what waking costs, so that a wrong guess at most trebles
/// the cost of a wait.
pub const LOOK_TIME_MAX: Duration = Duration::from_micros(100);

/// A wait that lasted at most so long would have been ended by looking: sleeping adds the time of
/// waking, for which half of the looking time stands.
const NEAR: Duration = Duration::from_micros(150);

/// Waits remembered at the most: a link that was busy stops looking after half as many long waits.
const SCORE_MAX: u8 = 8;

/// On one core whoever looks keeps the one that would send from running.
static OTHERS_RUN: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores > NonZero::<usize>::MIN));

/// Remembers how long the last waits were.
#[derive(Debug, Default)]
pub(super) struct Pace {
    score: u8,
}

impl Pace {
    /// Is looking again worth it, for something awaited since then?
    pub(super) fn looks_again(&self, since: Instant) -> bool {
        self.expects_soon() && since.elapsed() < LOOK_TIME_MAX
    }

    /// Were the last waits short?
    pub(super) fn expects_soon(&self) -> bool {
        self.score > 0 && *OTHERS_RUN
    }

    /// Notes how long a wait was.
    pub(super) fn waited(&mut self, time: Duration) {
        self.score = if time <= NEAR { (self.score + 1).min(SCORE_MAX) } else { self.score.saturating_sub(2) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const LONG: Duration = Duration::from_millis(5);

    #[test]
    fn short_waits_make_it_look_and_long_ones_stop_it() {
        let mut pace = Pace::default();
        assert_eq!(pace.score, 0);
        (0..20).for_each(|_| pace.waited(SHORT));
        assert_eq!(pace.score, SCORE_MAX);
        (0..4).for_each(|_| pace.waited(LONG));
        assert!(!pace.expects_soon());
    }

    #[test]
    fn a_short_wait_between_long_ones_does_not_count() {
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.waited(SHORT);
            pace.waited(LONG);
            assert!(!pace.expects_soon());
        }
    }
}
