//! Figures of the last minute: a ring of seconds, each with counters and a histogram of times.
//! Must not hold: figures since the start (see `catalog/meters`).
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Seconds of the ring: a minute, and a few that are written or cleared meanwhile.
const SECONDS: usize = 64;

/// Seconds that figures are of.
pub const MINUTE: u64 = 60;

/// Steps of each doubling of time. An eighth more or less is the precision of quantiles.
const STEPS: u64 = 8;

/// Ranges of time: from a microsecond to two to the power of 36 of them, some nineteen hours.
const RANGES: usize = 272;

/// Counters of seconds. A second takes about a kilobyte.
pub struct Figures {
    began: Instant,
    seconds: Box<[SecondCounters]>,
}

/// Counters of one second. Whoever comes first in another second clears them; what others count
/// at that very moment may be lost.
struct SecondCounters {
    /// The number of the second, from 1; 0: none yet.
    number: AtomicU64,
    calls: AtomicU32,
    errors: AtomicU32,
    denials: AtomicU32,
    times: [AtomicU32; RANGES],
}

/// Figures of the last minute.
#[derive(Debug, Default, PartialEq)]
pub struct MinuteFigures {
    /// Calls that ended, errors among them, and denials: for each second, oldest first.
    pub seconds: Vec<[u64; 3]>,
    /// The median of the time of calls; `None` without calls.
    pub p50: Option<Duration>,
    /// The 99th percentile.
    pub p99: Option<Duration>,
}

impl Default for Figures {
    fn default() -> Self {
        Self { began: Instant::now(), seconds: (0..SECONDS).map(|_| SecondCounters::new()).collect() }
    }
}

impl Figures {
    /// Counts a call that ended after this time; `None`: nothing of it ran.
    pub fn ended(&self, took: Option<Duration>, is_error: bool) {
        let Some(second) = self.now() else { return };
        second.calls.fetch_add(1, Ordering::Relaxed);
        if is_error {
            second.errors.fetch_add(1, Ordering::Relaxed);
        }
        let range = took.and_then(|took| second.times.get(range_of(took)));
        if let Some(range) = range {
            range.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a denial.
    pub fn denied(&self) {
        if let Some(second) = self.now() {
            second.denials.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Figures of the last minute, the second that runs included.
    pub fn last_minute(&self) -> MinuteFigures {
        let now = self.number_of_now();
        let mut times = [0_u64; RANGES];
        let mut seconds = Vec::with_capacity(SECONDS);
        for number in (now + 1).saturating_sub(MINUTE).max(1)..=now {
            let Some(second) = self.at(number).filter(|second| second.is(number)) else {
                seconds.push([0; 3]);
                continue;
            };
            let counts = [&second.calls, &second.errors, &second.denials];
            seconds.push(counts.map(|count| u64::from(count.load(Ordering::Relaxed))));
            for (sum, range) in times.iter_mut().zip(&second.times) {
                *sum += u64::from(range.load(Ordering::Relaxed));
            }
        }
        MinuteFigures { seconds, p50: quantile(&times, 50), p99: quantile(&times, 99) }
    }

    fn number_of_now(&self) -> u64 {
        self.began.elapsed().as_secs() + 1
    }

    fn at(&self, number: u64) -> Option<&SecondCounters> {
        let place = usize::try_from(number % SECONDS as u64).ok()?;
        self.seconds.get(place)
    }

    /// The counters of this second, cleared if they were another's.
    fn now(&self) -> Option<&SecondCounters> {
        let number = self.number_of_now();
        let second = self.at(number)?;
        let known = second.number.load(Ordering::Acquire);
        if known < number && second.number.compare_exchange(known, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            second.clear();
        }
        Some(second)
    }
}

impl SecondCounters {
    fn new() -> Self {
        Self {
            number: AtomicU64::new(0),
            calls: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            denials: AtomicU32::new(0),
            times: [const { AtomicU32::new(0) }; RANGES],
        }
    }

    fn is(&self, number: u64) -> bool {
        self.number.load(Ordering::Acquire) == number
    }

    fn clear(&self) {
        let counts = [&self.calls, &self.errors, &self.denials];
        counts.into_iter().chain(&self.times).for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// The range of a time.
fn range_of(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let range = if micros < STEPS {
        micros
    } else {
        let shift = u64::from(micros.ilog2()) - u64::from(STEPS.ilog2());
        (shift + 1) * STEPS + ((micros >> shift) & (STEPS - 1))
    };
    usize::try_from(range).unwrap_or(RANGES).min(RANGES - 1)
}

/// The longest time of a range.
fn end_of(range: usize) -> Duration {
    let range = range as u64;
    if range < STEPS {
        return Duration::from_micros(range);
    }
    let shift = range / STEPS - 1;
    Duration::from_micros(((STEPS + range % STEPS + 1) << shift) - 1)
}

/// The time that so many of a hundred do not exceed.
fn quantile(times: &[u64; RANGES], percent: u64) -> Option<Duration> {
    let all: u64 = times.iter().sum();
    let wanted = all.saturating_mul(percent).div_ceil(100);
    let mut seen = 0;
    let reached = |count: &u64| {
        seen += count;
        seen >= wanted
    };
    (all > 0).then(|| times.iter().position(reached)).flatten().map(end_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_a_range_that_ends_within_an_eighth_of_it() {
        for micros in (0..2_000).chain([30_000_000, 3_600_000_000]) {
            let time = Duration::from_micros(micros);
            let end = end_of(range_of(time));
            assert!(end >= time && end <= time + time / 8 + Duration::from_micros(1), "{time:?} {end:?}");
            assert!(micros == 0 || end_of(range_of(time) - 1) < time, "{time:?}");
        }
        assert_eq!(range_of(Duration::MAX), RANGES - 1);
    }

    #[test]
    fn the_last_minute_has_its_counts_and_quantiles() {
        let figures = Figures::default();
        assert_eq!(figures.last_minute().p50, None);
        (0..99).for_each(|_| figures.ended(Some(Duration::from_millis(1)), false));
        figures.ended(Some(Duration::from_secs(1)), true);
        figures.ended(None, true);
        figures.denied();
        let minute = figures.last_minute();
        let sums = minute.seconds.iter().fold([0; 3], |[a, b, c], [x, y, z]| [a + x, b + y, c + z]);
        assert_eq!(sums, [101, 2, 1]);
        let near = |time: Option<Duration>, micros: u64| {
            let time = time.unwrap();
            time >= Duration::from_micros(micros) && time <= Duration::from_micros(micros + micros / 8)
        };
        assert!(near(minute.p50, 1_000) && near(minute.p99, 1_000), "{minute:?}");
    }
}
