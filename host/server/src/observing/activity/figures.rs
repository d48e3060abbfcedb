//! Figures of the last minute and the last hour: two rings of time slots, each with counters and a
//! histogram.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub const MINUTE: u64 = 60;

/// Slots of the last hour.  A chart is some 300 points wide, and a slot takes a kilobyte.
const HOUR_PARTS: u64 = 240;

/// Length of such a slot: an hour has 240 of them.
const HOUR_PART: Duration = Duration::from_secs(15);

/// Additional slots of a ring, which are written or cleared meanwhile.
const SPARE: u64 = 4;

/// Buckets per power of two. An eighth more or less is the precision of quantiles.
const STEPS: u64 = 8;

/// Buckets of time: from a microsecond to 2^36 microseconds, some nineteen hours.
const RANGES: usize = 272;

/// Counters of the last minute and the last hour: some 330 KiB.
pub struct Figures {
    began: Instant,
    seconds: Ring,
    parts: Ring,
}

/// Time slots of one length. Each replaces an old one.
struct Ring {
    length: Duration,
    parts: Box<[PartCounters]>,
}

/// Counters of one slot, which take about a kilobyte. The first writer in a new slot clears them;
/// what others count at that moment may be lost.
struct PartCounters {
    /// The number of the slot, from 1; 0 if unused.
    number: AtomicU64,
    calls: AtomicU32,
    errors: AtomicU32,
    denials: AtomicU32,
    times: [AtomicU32; RANGES],
}

/// Figures of the last minute.
#[derive(Debug, Default, PartialEq)]
pub struct MinuteFigures {
    /// For each second, oldest first: calls that ended, errors among them, and denials.
    pub seconds: Vec<[u64; 3]>,
    /// The median of the time of calls; `None` without calls.
    pub p50: Option<Duration>,
    /// The 99th percentile.
    pub p99: Option<Duration>,
}

/// Figures of the last hour.
#[derive(Debug, PartialEq)]
pub struct HourFigures {
    /// Length of a slot.
    pub part: Duration,
    /// Time since the end of the newest slot.
    pub age: Duration,
    /// Slots that have ended, oldest first: at most an hour of them, and none from before the
    /// start.
    pub parts: Vec<PartFigures>,
}

/// Figures of one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PartFigures {
    /// Calls that ended, errors among them, and denials.
    pub counts: [u64; 3],
    /// The median of the time of calls; `None` without calls.
    pub p50: Option<Duration>,
    /// The 99th percentile.
    pub p99: Option<Duration>,
}

impl Default for Figures {
    fn default() -> Self {
        let seconds = Ring::new(Duration::from_secs(1), MINUTE);
        let parts = Ring::new(HOUR_PART, HOUR_PARTS);
        Self { began: Instant::now(), seconds, parts }
    }
}

impl Figures {
    /// Counts a call that ended after this time; `None` if nothing of it ran.
    pub fn ended(&self, took: Option<Duration>, is_error: bool) {
        let range = took.map(range_of);
        for part in self.parts_of_now() {
            part.ended(range, is_error);
        }
    }

    /// Counts a denial.
    pub fn denied(&self) {
        for part in self.parts_of_now() {
            part.denials.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Figures of the last minute, including the current second.
    pub fn last_minute(&self) -> MinuteFigures {
        let now = self.seconds.number(self.began.elapsed());
        let mut times = [0; RANGES];
        let mut seconds = Vec::new();
        for number in (now + 1).saturating_sub(MINUTE).max(1)..=now {
            let second = self.seconds.at(number);
            seconds.push(second.map(PartCounters::counts).unwrap_or_default());
            second.into_iter().for_each(|second| second.add_times(&mut times));
        }
        MinuteFigures { seconds, p50: quantile(&times, 50), p99: quantile(&times, 99) }
    }

    /// Figures of the last hour, without the current slot.
    pub fn last_hour(&self) -> HourFigures {
        self.hour_before(self.began.elapsed())
    }

    fn hour_before(&self, since: Duration) -> HourFigures {
        let now = self.parts.number(since);
        let parts = now.saturating_sub(HOUR_PARTS).max(1)..now;
        let parts = parts.map(|number| self.parts.at(number).map(PartCounters::figures).unwrap_or_default()).collect();
        let ended = HOUR_PART.saturating_mul(u32::try_from(now - 1).unwrap_or(u32::MAX));
        HourFigures { part: HOUR_PART, age: since.saturating_sub(ended), parts }
    }

    /// The counters of the current second and of the current slot of the hour.
    fn parts_of_now(&self) -> impl Iterator<Item = &PartCounters> {
        let since = self.began.elapsed();
        [&self.seconds, &self.parts].into_iter().filter_map(move |ring| ring.now(since))
    }
}

impl Ring {
    /// For this many slots of this length.
    fn new(length: Duration, parts: u64) -> Self {
        Self { length, parts: (0..parts + SPARE).map(|_| PartCounters::new()).collect() }
    }

    /// The number of the slot at this time.
    fn number(&self, since: Duration) -> u64 {
        u64::try_from(since.as_nanos() / self.length.as_nanos().max(1)).unwrap_or(u64::MAX - 1) + 1
    }

    fn place(&self, number: u64) -> Option<&PartCounters> {
        let place = usize::try_from(number).ok()?.checked_rem(self.parts.len())?;
        self.parts.get(place)
    }

    /// The counters of this slot, if anything was counted in it.
    fn at(&self, number: u64) -> Option<&PartCounters> {
        self.place(number).filter(|part| part.number.load(Ordering::Acquire) == number)
    }

    /// The counters of the slot at this time, cleared if they were another slot's.
    fn now(&self, since: Duration) -> Option<&PartCounters> {
        let number = self.number(since);
        let part = self.place(number)?;
        let known = part.number.load(Ordering::Acquire);
        if known < number && part.number.compare_exchange(known, number, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            part.clear();
        }
        Some(part)
    }
}

impl PartCounters {
    fn new() -> Self {
        Self {
            number: AtomicU64::new(0),
            calls: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            denials: AtomicU32::new(0),
            times: [const { AtomicU32::new(0) }; RANGES],
        }
    }

    fn ended(&self, range: Option<usize>, is_error: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if is_error {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(count) = range.and_then(|range| self.times.get(range)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> [u64; 3] {
        [&self.calls, &self.errors, &self.denials].map(|count| u64::from(count.load(Ordering::Relaxed)))
    }

    fn add_times(&self, sums: &mut [u64; RANGES]) {
        for (sum, count) in sums.iter_mut().zip(&self.times) {
            *sum += u64::from(count.load(Ordering::Relaxed));
        }
    }

    fn figures(&self) -> PartFigures {
        let mut times = [0; RANGES];
        self.add_times(&mut times);
        PartFigures { counts: self.counts(), p50: quantile(&times, 50), p99: quantile(&times, 99) }
    }

    fn clear(&self) {
        let counts = [&self.calls, &self.errors, &self.denials];
        counts.into_iter().chain(&self.times).for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// The bucket of a time.
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

/// The longest time of a bucket.
fn end_of(range: usize) -> Duration {
    let range = range as u64;
    if range < STEPS {
        return Duration::from_micros(range);
    }
    let shift = range / STEPS - 1;
    Duration::from_micros(((STEPS + range % STEPS + 1) << shift) - 1)
}

/// The time that this percentage of calls does not exceed.
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

    #[test]
    fn the_last_hour_has_the_parts_that_ended() {
        let figures = Figures::default();
        let after = |seconds: u64| figures.hour_before(Duration::from_secs(seconds));
        let count = |seconds: u64, millis: u64, is_error: bool| {
            let part = figures.parts.now(Duration::from_secs(seconds)).unwrap();
            part.ended(Some(range_of(Duration::from_millis(millis))), is_error);
        };
        count(0, 1, false);
        assert_eq!(after(14).parts, [], "the part that runs is not shown");
        count(16, 1_000, true);
        count(44, 1, false);
        let hour = after(47);
        assert_eq!((hour.part, hour.age), (Duration::from_secs(15), Duration::from_secs(2)));
        assert_eq!(hour.parts.iter().map(|part| part.counts).collect::<Vec<_>>(), [[1, 0, 0], [1, 1, 0], [1, 0, 0]]);
        assert!(
            hour.parts[1].p50.unwrap() >= Duration::from_secs(1)
                && hour.parts[2].p99.unwrap() < Duration::from_millis(2)
        );
        // Parts without calls are empty, an hour is the most, and places are taken anew.
        assert_eq!(after(90).parts.len(), 6);
        assert_eq!(after(90).parts.last(), Some(&PartFigures::default()));
        let later = after(3_660 + 30);
        assert_eq!((later.parts.len(), later.parts[0].counts), (240, [0, 0, 0]));
        count(3_660, 1, false);
        assert_eq!(after(3_690).parts.iter().map(|part| part.counts[0]).sum::<u64>(), 1);
    }
}
