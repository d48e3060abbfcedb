//! Figures of many calls.
use std::time::Duration;

use toolcell_audit::Usage;

/// Answered calls with their latencies, and the time of all together.
#[derive(Debug, Default)]
pub struct Series {
    /// Sorted once the series is finished, fastest first.
    latencies: Vec<Duration>,
    elapsed: Duration,
    fuel: Option<(u64, u64)>,
    memory_peak_bytes: u64,
}

impl Series {
    /// Counts a call.
    pub fn add(&mut self, latency: Duration, usage: &Usage) {
        self.latencies.push(latency);
        self.count_fuel(usage.fuel, usage.fuel);
        self.memory_peak_bytes = self.memory_peak_bytes.max(usage.memory_peak_bytes);
    }

    pub fn extend(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        if let Some((least, most)) = other.fuel {
            self.count_fuel(least, most);
        }
        self.memory_peak_bytes = self.memory_peak_bytes.max(other.memory_peak_bytes);
    }

    /// Ends the series; all calls together took this long.
    pub fn finish(mut self, elapsed: Duration) -> Self {
        self.latencies.sort_unstable();
        self.elapsed = elapsed;
        self
    }

    pub fn calls(&self) -> usize {
        self.latencies.len()
    }

    pub fn calls_per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency that this percentage of the calls does not exceed: a measured one (nearest
    /// rank).
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    pub fn slowest(&self) -> Duration {
        self.percentile(100)
    }

    /// Least and most fuel of a call.
    pub fn fuel(&self) -> (u64, u64) {
        self.fuel.unwrap_or_default()
    }

    pub fn memory_peak_bytes(&self) -> u64 {
        self.memory_peak_bytes
    }

    fn count_fuel(&mut self, least: u64, most: u64) {
        let (before_least, before_most) = self.fuel.unwrap_or((least, most));
        self.fuel = Some((before_least.min(least), before_most.max(most)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(micros: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        for (fuel, micros) in (1..).zip(micros) {
            series.add(Duration::from_micros(micros), &Usage { fuel, memory_peak_bytes: 7, ..Usage::default() });
        }
        series
    }

    #[test]
    fn percentiles_are_latencies_that_were_measured() {
        let series = series([30, 10, 20, 40]).finish(Duration::from_millis(1));
        let micros = [0, 25, 50, 90, 99, 100].map(|percent| series.percentile(percent).as_micros());
        assert_eq!(micros, [10, 10, 20, 40, 40, 40]);
        assert_eq!(Series::default().slowest(), Duration::ZERO);
    }

    #[test]
    fn series_join() {
        let mut all = series([1, 2]);
        all.extend(series([3]));
        all.extend(Series::default());
        let all = all.finish(Duration::from_secs(2));
        assert_eq!((all.calls(), all.fuel(), all.memory_peak_bytes()), (3, (1, 2), 7));
        assert!((all.calls_per_second() - 1.5).abs() < 1e-9);
    }
}
