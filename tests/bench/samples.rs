//! Samples and their statistics. Quantiles are of the nearest rank: each is a value that was
//! measured.

use std::time::Duration;

/// Values of one kind, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds a duration, in microseconds.
    pub fn push_us(&mut self, took: Duration) {
        self.push(took.as_secs_f64() * 1e6);
    }

    /// Adds all values of the other.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest value that is not below this share, from 0 to 1, of all values. `None` without
    /// values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank, between 0 and the length")]
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// The middle value.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// Each value less the other's at the same index.
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(own, other)| own - other).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let samples = Samples(vec![30.0, 10.0, 20.0, 40.0]);
        let of = |share| samples.quantile(share);
        assert_eq!(
            [of(0.0), of(0.25), of(0.5), of(0.75), of(0.99), of(1.0)].map(Option::unwrap),
            [10.0, 10.0, 20.0, 30.0, 40.0, 40.0]
        );
        assert_eq!(Samples::default().median(), None);
    }
}
