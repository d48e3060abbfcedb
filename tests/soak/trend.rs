//! The growth of the process's resources: the median of the last rounds against the median of the
//! first.

use std::time::Duration;

use crate::process::Held;

/// Change of resident memory after warm-up that is allowed, in percent.
pub const DRIFT_PERCENT_MAX: f64 = 5.0;

/// One in this many rounds is warm-up.
const WARM_UP_OF: usize = 4;

/// The shortest run whose memory is judged. A quarter of it, two minutes, is warm-up. The resources
/// that the host keeps ready are filled before the first round. Tables, code and the allocator's
/// reserves fill in these two minutes.
pub const JUDGED_FROM: Duration = Duration::from_secs(480);

/// The number of warm-up rounds among that many rounds.
pub const fn warm_up_rounds(rounds: usize) -> usize {
    rounds.div_ceil(WARM_UP_OF)
}

/// The trend of one figure over the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The median of the first third of the rounds after warm-up.
    pub first: u64,
    /// The median of the last third.
    pub last: u64,
    /// The most in any round after warm-up.
    pub most: u64,
}

impl Trend {
    /// The trend of one figure over all rounds, in their order. `None` if there are too few.
    pub fn of(rounds: &[Held], figure: fn(&Held) -> u64) -> Option<Self> {
        let counted: Vec<u64> = rounds.iter().skip(warm_up_rounds(rounds.len())).map(figure).collect();
        let third = (counted.len() / 3).max(1);
        let last = counted.len().checked_sub(third)?;
        Some(Self {
            first: median(counted.get(..third)?)?,
            last: median(counted.get(last..)?)?,
            most: counted.iter().copied().max()?,
        })
    }

    /// The growth from the first to the last rounds, in percent.
    pub fn drift_percent(self) -> f64 {
        (self.last as f64 - self.first as f64) * 100.0 / (self.first as f64).max(1.0)
    }
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Trend;
    use crate::process::Held;

    fn of(values: &[u64]) -> Option<Trend> {
        let rounds: Vec<Held> =
            values.iter().map(|value| Held { resident_bytes: *value, threads: 1, files: 1 }).collect();
        Trend::of(&rounds, |held| held.resident_bytes)
    }

    #[test]
    fn warm_up_does_not_count_and_growth_does() {
        let flat = of(&[10, 50, 90, 100, 101, 99, 100, 250, 100, 101, 100, 99]).unwrap();
        assert_eq!(flat, Trend { first: 100, last: 100, most: 250 });
        let grows = of(&[10, 50, 90, 100, 102, 104, 106, 108, 110, 112, 114, 116]).unwrap();
        assert_eq!((grows.first, grows.last), (102, 114));
        assert!(grows.drift_percent() > 11.0);
        assert_eq!(of(&[]), None);
    }
}
