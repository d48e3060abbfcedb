//! Number of calls that met a limit, over all generations. Must not hold: which calls, or when; the
//! audit has that.
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_audit::Outcome;

/// Outcomes that are counted: each tells an operator which limit to raise.
const COUNTED: [Outcome; 6] = [
    Outcome::OutOfFuel,
    Outcome::OutOfMemory,
    Outcome::Deadline,
    Outcome::LimitExceeded,
    Outcome::Busy,
    Outcome::RateLimited,
];

/// Counts of calls that met a limit.
#[derive(Debug, Default)]
pub struct Tally([AtomicU64; COUNTED.len()]);

impl Tally {
    /// Counts a call with this outcome, if a limit ended it.
    pub fn count(&self, outcome: Outcome) {
        let place = COUNTED.iter().position(|counted| *counted == outcome);
        if let Some(count) = place.and_then(|place| self.0.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each counted outcome with its number.
    pub fn counts(&self) -> impl Iterator<Item = (Outcome, u64)> {
        COUNTED.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
