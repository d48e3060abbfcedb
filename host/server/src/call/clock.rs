//! The clock of a call, as those beneath it see it: it stands still while the call, or one beneath
//! it, waits for a person.
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcell_sandbox::PersonWaits;

/// The time that a call has.
pub(super) struct CallClock {
    began: Instant,
    deadline: Duration,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl CallClock {
    /// Of a call that begins now and may run for this long.
    pub(super) fn new(deadline: Duration) -> Self {
        Self { began: Instant::now(), deadline, waits: Mutex::default() }
    }

    /// The time that is left of it.
    pub(super) fn left(&self) -> Duration {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = waits.total.saturating_add(waits.since.map_or(Duration::ZERO, |since| since.elapsed()));
        self.deadline.saturating_add(waited).saturating_sub(self.began.elapsed())
    }
}

impl PersonWaits for CallClock {
    fn begin(&self) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.open = waits.open.saturating_add(1);
        waits.since.get_or_insert_with(Instant::now);
    }

    fn end(&self) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.open = waits.open.saturating_sub(1);
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total = waits.total.saturating_add(since.elapsed());
        }
    }
}

/// One wait for a person: these clocks stand still until it is dropped.
pub(super) struct StoppedClocks<'c>(Vec<&'c dyn PersonWaits>);

impl<'c> StoppedClocks<'c> {
    /// Stops them.
    pub(super) fn of(clocks: impl IntoIterator<Item = &'c dyn PersonWaits>) -> Self {
        let clocks: Vec<_> = clocks.into_iter().collect();
        clocks.iter().for_each(|clock| clock.begin());
        Self(clocks)
    }
}

impl Drop for StoppedClocks<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|clock| clock.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_still_while_somebody_waits() {
        let clock = CallClock::new(Duration::from_secs(3_600));
        let one = StoppedClocks::of([&clock as &dyn PersonWaits]);
        let before = clock.left();
        let two = StoppedClocks::of([&clock as &dyn PersonWaits]);
        drop(one);
        std::thread::sleep(Duration::from_millis(20));
        assert!(clock.left() >= before, "the second wait goes on");
        drop(two);
        std::thread::sleep(Duration::from_millis(20));
        assert!(clock.left() < before);
        assert_eq!(CallClock::new(Duration::ZERO).left(), Duration::ZERO);
    }
}
