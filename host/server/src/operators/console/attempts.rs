//! A limit on attempts to sign in.
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::listening::AddressRange;

/// How often the count starts again: short enough to wait for.
const WINDOW: Duration = Duration::from_secs(60);

/// Failed attempts of one range of addresses in a [`WINDOW`]. A person pastes the wrong token a few
/// times, not ten.
pub const ATTEMPTS_PER_RANGE_MAX: u32 = 10;

/// Failed attempts of all ranges together in a [`WINDOW`]. Checking ten signatures a second is
/// little work, and it takes sixty ranges to reach this.
pub const ATTEMPTS_MAX: u32 = 600;

/// Attempts of the current window.
#[derive(Default)]
pub struct Attempts(Mutex<AttemptCounts>);

#[derive(Default)]
struct AttemptCounts {
    began: Option<Instant>,
    all: u32,
    /// Each has at least one attempt of [`AttemptCounts::all`], which bounds their number.
    ranges: HashMap<AddressRange, u32>,
}

impl Attempts {
    /// Counts an attempt before it is checked. `false` if there were too many.
    pub fn begin(&self, from: IpAddr, now: Instant) -> bool {
        let mut counts = self.0.lock();
        if counts.began.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            *counts = AttemptCounts { began: Some(now), ..AttemptCounts::default() };
        }
        let range = AddressRange::of(Some(from));
        let of_range = counts.ranges.get(&range).copied().unwrap_or(0);
        if counts.all >= ATTEMPTS_MAX || of_range >= ATTEMPTS_PER_RANGE_MAX {
            return false;
        }
        counts.all += 1;
        counts.ranges.insert(range, of_range + 1);
        true
    }

    /// Removes an attempt that signed in.
    pub fn succeeded(&self, from: IpAddr) {
        let mut counts = self.0.lock();
        // A new window may have begun meanwhile.
        if let Some(of_range) = counts.ranges.get_mut(&AddressRange::of(Some(from))).filter(|count| **count > 0) {
            *of_range -= 1;
            counts.all = counts.all.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_bounded_for_a_range_and_in_all_and_count_anew_after_a_while() {
        let attempts = Attempts::default();
        let now = Instant::now();
        let one = IpAddr::from([203, 0, 113, 7]);
        for _ in 0..1_000 {
            assert!(attempts.begin(one, now));
            attempts.succeeded(one);
        }
        assert!((0..ATTEMPTS_PER_RANGE_MAX).all(|_| attempts.begin(one, now)));
        assert!(!attempts.begin(one, now) && !attempts.begin(IpAddr::from([203, 0, 113, 8]), now), "its neighbour");
        let begun = (0..2_000_u32).filter(|number| {
            let [_, a, b, c] = number.to_be_bytes();
            attempts.begin(IpAddr::from([a, b, c, 1]), now)
        });
        assert_eq!(begun.count(), (ATTEMPTS_MAX - ATTEMPTS_PER_RANGE_MAX) as usize);
        assert!(attempts.0.lock().ranges.len() <= ATTEMPTS_MAX as usize);
        assert!(!attempts.begin(IpAddr::from([198, 51, 100, 1]), now + WINDOW - Duration::from_millis(1)));
        assert!(attempts.begin(one, now + WINDOW));
    }
}
