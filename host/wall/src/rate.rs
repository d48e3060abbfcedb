//! A rate limit for messages of one call: a burst, and then a rate per second.
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket.
#[derive(Debug)]
pub struct MessageRate {
    most: u64,
    per_second: u64,
    supply: Mutex<Supply>,
}

#[derive(Debug)]
struct Supply {
    left: u64,
    counted: Instant,
}

impl MessageRate {
    /// A full bucket of `most` tokens, refilled by `per_second`.
    #[must_use]
    pub fn new(most: u64, per_second: u64) -> Self {
        Self { most, per_second, supply: Mutex::new(Supply { left: most, counted: Instant::now() }) }
    }

    /// Takes tokens. False, and nothing is taken, if there are too few.
    pub fn take(&self, cost: u64) -> bool {
        let mut supply = self.supply.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock is read only when tokens run out: most calls never get there.
        if supply.left < cost {
            self.fill(&mut supply, Instant::now());
        }
        let left = supply.left.checked_sub(cost);
        supply.left = left.unwrap_or(supply.left);
        left.is_some()
    }

    fn fill(&self, supply: &mut Supply, now: Instant) {
        let passed = now.saturating_duration_since(supply.counted);
        let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        let more = micros.saturating_mul(self.per_second) / 1_000_000;
        // Time that did not make a whole token yet still counts.
        if more > 0 {
            supply.counted = now;
            supply.left = supply.left.saturating_add(more).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_supply_runs_out_and_fills_up_to_its_most_again() {
        let rate = MessageRate::new(10, 1_000);
        let began = rate.supply.lock().unwrap_or_else(PoisonError::into_inner).counted;
        let left = |after: Duration| {
            let mut supply = Supply { left: 0, counted: began };
            rate.fill(&mut supply, began + after);
            supply.left
        };
        assert_eq!(left(Duration::from_micros(999)), 0);
        assert_eq!(left(Duration::from_millis(3)), 3);
        assert_eq!(left(Duration::from_secs(3_600)), 10);
        let still = MessageRate::new(10, 0);
        assert!(still.take(4) && still.take(6), "so many at once");
        assert!(!still.take(1) && still.take(0));
    }
}
