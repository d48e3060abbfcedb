//! The clock of a call, as those beneath it see it: it stands still while the call, or one beneath
//! it, waits for a person.
use std::time::{Duration, Instant};

use parking_lot::Mutex;
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
        self.left_at(Instant::now())
    }

    fn left_at(&self, now: Instant) -> Duration {
        let waits = self.waits.lock();
        let waited = waits.total.saturating_add(waits.until(now));
        self.deadline.saturating_add(waited).saturating_sub(now.saturating_duration_since(self.began))
    }

    fn begin_at(&self, now: Instant) {
        let mut waits = self.waits.lock();
        waits.open = waits.open.saturating_add(1);
        waits.since.get_or_insert(now);
    }

    fn end_at(&self, now: Instant) {
        let mut waits = self.waits.lock();
        waits.open = waits.open.saturating_sub(1);
        if waits.open == 0 {
            waits.total = waits.total.saturating_add(waits.until(now));
            waits.since = None;
        }
    }
}

impl Waits {
    /// The length of the wait that is open; zero if none is.
    fn until(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl PersonWaits for CallClock {
    fn begin(&self) {
        self.begin_at(Instant::now());
    }

    fn end(&self) {
        self.end_at(Instant::now());
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
        let clock = CallClock::new(Duration::from_secs(60));
        let after = |seconds: u64| clock.began + Duration::from_secs(seconds);
        let left = |seconds: u64| clock.left_at(after(seconds)).as_secs();
        assert_eq!(left(10), 50);
        clock.begin_at(after(10));
        assert_eq!(left(15), 50);
        clock.begin_at(after(15));
        clock.end_at(after(20));
        assert_eq!(left(25), 50, "the second wait goes on");
        clock.end_at(after(30));
        assert_eq!(left(40), 40);
        assert_eq!(left(200), 0);
    }

    #[test]
    fn a_stopped_clock_runs_on_once_its_wait_is_dropped() {
        let clock = CallClock::new(Duration::from_secs(60));
        let waits = || clock.waits.lock().open;
        let stopped = StoppedClocks::of([&clock as &dyn PersonWaits]);
        assert_eq!(waits(), 1);
        drop(stopped);
        assert_eq!(waits(), 0);
    }
}
