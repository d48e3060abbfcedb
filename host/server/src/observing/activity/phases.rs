//! Phases of a call, and the time in each.
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The current phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CallPhase {
    /// In a queue.
    Waiting,
    /// In a guest.
    Running,
    /// Waiting for a person.
    Asking,
}

/// The phase of a call, and the time in earlier ones. Only the call writes: a reader between two
/// writes may be off by a moment.
#[derive(Default)]
pub(super) struct Phases {
    phase: AtomicU8,
    /// Microseconds from the call's start to the start of this phase.
    began: AtomicU64,
    /// Microseconds in the guest before this phase.
    runs: AtomicU64,
    /// Microseconds spent waiting for a person before this phase.
    asks: AtomicU64,
}

impl Phases {
    /// The phase: `Waiting` at first.
    pub fn phase(&self) -> CallPhase {
        match self.phase.load(Ordering::Relaxed) {
            phase if phase == CallPhase::Running as u8 => CallPhase::Running,
            phase if phase == CallPhase::Asking as u8 => CallPhase::Asking,
            _ => CallPhase::Waiting,
        }
    }

    /// Enters a phase this long after the call's start. Returns the phase that ends, its start and
    /// its length.
    pub fn enter(&self, phase: CallPhase, now: Duration) -> (CallPhase, Duration, Duration) {
        let left = self.phase();
        let start = Duration::from_micros(self.began.load(Ordering::Relaxed));
        let took = now.saturating_sub(start);
        let sum = match left {
            CallPhase::Running => Some(&self.runs),
            CallPhase::Asking => Some(&self.asks),
            CallPhase::Waiting => None,
        };
        sum.into_iter().for_each(|sum| sum.store(micros(sum_of(sum, took)), Ordering::Relaxed));
        self.began.store(micros(now), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
        (left, start, took)
    }

    /// The time in this phase, this long after the call's start. For a guest that asked a question
    /// meanwhile: only the time in which it ran.
    pub fn in_phase(&self, now: Duration) -> Duration {
        match self.phase() {
            CallPhase::Running => sum_of(&self.runs, self.since_began(now)),
            CallPhase::Asking | CallPhase::Waiting => self.since_began(now),
        }
    }

    /// The time since the call's start, without waiting for a person.
    pub fn own_time(&self, now: Duration) -> Duration {
        let is_asking = self.phase() == CallPhase::Asking;
        let asks = if is_asking { self.since_began(now) } else { Duration::ZERO };
        now.saturating_sub(sum_of(&self.asks, asks))
    }

    fn since_began(&self, now: Duration) -> Duration {
        now.saturating_sub(Duration::from_micros(self.began.load(Ordering::Relaxed)))
    }
}

fn sum_of(micros: &AtomicU64, more: Duration) -> Duration {
    Duration::from_micros(micros.load(Ordering::Relaxed)).saturating_add(more)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_before_a_person_is_neither_the_guests_nor_the_calls_own() {
        let phases = Phases::default();
        let s = Duration::from_secs;
        assert_eq!((phases.phase(), phases.in_phase(s(2)), phases.own_time(s(2))), (CallPhase::Waiting, s(2), s(2)));
        assert_eq!(phases.enter(CallPhase::Asking, s(2)), (CallPhase::Waiting, s(0), s(2)));
        assert_eq!((phases.in_phase(s(42)), phases.own_time(s(42))), (s(40), s(2)));
        assert_eq!(phases.enter(CallPhase::Waiting, s(42)), (CallPhase::Asking, s(2), s(40)));
        phases.enter(CallPhase::Running, s(43));
        assert_eq!((phases.in_phase(s(45)), phases.own_time(s(45))), (s(2), s(5)));
        // The guest asks.
        phases.enter(CallPhase::Asking, s(45));
        assert_eq!((phases.in_phase(s(46)), phases.own_time(s(46))), (s(1), s(5)));
        phases.enter(CallPhase::Running, s(55));
        assert_eq!((phases.in_phase(s(56)), phases.own_time(s(56))), (s(3), s(6)));
    }
}
