//! Polling before sleeping, when that pays.
//!
//! Waking a sleeping process on an idle core costs 30 to 50 µs, a poll about 1 µs. So polling is
//! better for a wait that ends soon. For a longer wait, or on the core that the sender needs, it
//! only wastes time. Then polling stops, and is retried ever more rarely.

use std::{
    num::NonZero,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// Polling ends after this long. A client that calls again as soon as it has its answer takes 60 to
/// 110 µs until its next call arrives: it and the host are woken once each. Twice that is enough.
pub const POLL_TIME_MAX: Duration = Duration::from_micros(200);

/// Two polls are never this far apart, unless another thread ran on this core in between. Then the
/// core is needed, perhaps by the very process that is to send.
const INTERRUPTED: Duration = Duration::from_micros(25);

/// A thread that lost its core for this long shares it with one that computes. After yielding, a
/// thread gets the core back at the kernel's next tick, in one to four milliseconds, even from a
/// thread of the lowest priority, such as one that compiles. A poll may coincide with any moment of
/// a tick. A thread that sleeps and is woken gets the core from such a thread at once.
const SHARED: Duration = Duration::from_micros(250);

/// Polling is retried after the lost time multiplied by this, so at most this fraction of the time
/// is lost to others. It is at least a tenth of a second.
const SHARED_SHARE: u32 = 400;

/// The longest such pause.
const SHARED_FOR_MAX: Duration = Duration::from_secs(2);

/// For this long, polling does not yield the core. Most waits end within it if the sender has
/// another core, and a process that computes would keep the core for some milliseconds.
const ALONE: Duration = Duration::from_micros(10);

/// A sleep of at most this long might have been avoided by polling. It includes the wake-up, and
/// those of others that sleep because this side does.
const SHORT: Duration = Duration::from_micros(400);

/// Unsuccessful polls may take one part in this many of a core.
const IN_VAIN_SHARE: u32 = 20;

/// Unsuccessful polls take at most this long at once, after a time without any.
const IN_VAIN_MAX: Duration = Duration::from_millis(1);

/// Short waits that are slept through at most before polling is retried.
const REST_MAX: u16 = 16;

/// On a single core, polling keeps the sender from running.
static OTHERS_RUN: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores > NonZero::<usize>::MIN));

/// Successful polling waits in a row that make up for a failure. A failure costs at most 200 µs,
/// and each success saves some 70 µs, since both sides sleep when one does.
const PAID: u8 = 4;

/// Remembers whether polling paid lately.
#[derive(Debug)]
pub struct Pace {
    /// Short waits to sleep through before the next try.
    rest: u16,
    /// That number after the next failure.
    rest_next: u16,
    /// Successful polling waits since the last failure.
    paid: u8,
    /// Until then, unsuccessful polls have used up their share.
    spent_until: Option<Instant>,
    /// Until then, another thread computes on this core.
    shared_until: Option<Instant>,
}

/// One wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    begun: Instant,
    looked: Instant,
    /// True while polling is still worthwhile.
    polls: bool,
}

impl Wait {
    /// True if it is worth polling again before sleeping.
    pub fn polls(&self) -> bool {
        self.polls
    }

    /// Call this after the thread did other work since the last poll.
    pub fn goes_on(&mut self, now: Instant) {
        self.begun += now - self.looked;
        self.looked = now;
    }
}

impl Default for Pace {
    /// A link starts asleep.
    fn default() -> Self {
        Self { rest: 1, rest_next: 1, paid: 0, spent_until: None, shared_until: None }
    }
}

impl Pace {
    /// True if polling is worthwhile for a wait that begins now.
    fn polls(&self) -> bool {
        self.rest == 0 && *OTHERS_RUN
    }

    /// A wait that begins now.
    pub fn wait(&self, now: Instant) -> Wait {
        let has_spent = self.spent_until.is_some_and(|until| until > now + IN_VAIN_MAX * IN_VAIN_SHARE);
        let is_shared = self.shared_until.is_some_and(|until| until > now);
        Wait { begun: now, looked: now, polls: self.polls() && !has_spent && !is_shared }
    }

    /// After an unsuccessful poll: true if another one is worthwhile. Yields the core to others,
    /// unless the wait is very short so far.
    pub fn stays(&mut self, wait: &mut Wait) -> bool {
        if self.polls_again(wait, Instant::now()) && wait.looked - wait.begun >= ALONE {
            thread::yield_now();
            self.polls_again(wait, Instant::now());
        }
        wait.polls
    }

    /// After an unsuccessful poll: true if another one is worthwhile.
    fn polls_again(&mut self, wait: &mut Wait, now: Instant) -> bool {
        let interrupted = self.was_interrupted(wait, now);
        wait.looked = now;
        if wait.polls && (interrupted || now - wait.begun >= POLL_TIME_MAX) {
            wait.polls = false;
            self.failed();
            let spent = (now - wait.begun).min(POLL_TIME_MAX) * IN_VAIN_SHARE;
            self.spent_until = Some(self.spent_until.unwrap_or(now).max(now) + spent);
        }
        wait.polls
    }

    /// After the wait.
    pub fn ended(&mut self, wait: &Wait, now: Instant) {
        if wait.polls && self.was_interrupted(wait, now) {
            self.failed();
        } else if wait.polls {
            self.paid += 1;
            if self.paid == PAID {
                self.paid = 0;
                self.rest_next = 1;
            }
        } else if now - wait.begun <= SHORT {
            self.rest = self.rest.saturating_sub(1);
        }
    }

    /// True if another thread had the core since the last poll.
    fn was_interrupted(&mut self, wait: &Wait, now: Instant) -> bool {
        let away = now - wait.looked;
        if wait.polls && away >= SHARED {
            self.shared_until = Some(now + away.saturating_mul(SHARED_SHARE).min(SHARED_FOR_MAX));
        }
        away >= INTERRUPTED
    }

    /// A pace whose unsuccessful polls have used up their share until then.
    #[cfg(test)]
    pub(super) fn spent(until: Instant) -> Self {
        Self { rest: 0, spent_until: Some(until), ..Self::default() }
    }

    fn failed(&mut self) {
        self.rest = self.rest_next;
        self.rest_next = (self.rest_next * 2).min(REST_MAX);
        self.paid = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits, polling every microsecond until the frame comes. True if a poll found it.
    fn waits(pace: &mut Pace, time: Duration) -> bool {
        let begun = Instant::now();
        let mut wait = Wait { polls: pace.rest == 0, ..pace.wait(begun) };
        let mut now = begun;
        while now < begun + time && pace.polls_again(&mut wait, now) {
            now += Duration::from_micros(1);
        }
        pace.ended(&wait, begun + time);
        wait.polls
    }

    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_millis(5);

    #[test]
    fn polling_begins_after_a_short_sleep_and_goes_on_while_it_pays() {
        let mut pace = Pace::default();
        assert!(!waits(&mut pace, LATE));
        assert!(!waits(&mut pace, LATE));
        assert!(!waits(&mut pace, SOON));
        assert!((0..100).all(|_| waits(&mut pace, SOON)));
    }

    #[test]
    fn looking_in_vain_is_tried_ever_more_rarely() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let slept: Vec<_> = (0..12)
            .map(|_| {
                assert!(!waits(&mut pace, LATE));
                let mut count = 0;
                while pace.rest > 0 {
                    assert!(!waits(&mut pace, SOON));
                    count += 1;
                }
                count
            })
            .collect();
        assert_eq!(slept, [1, 2, 4, 8, 16, 16, 16, 16, 16, 16, 16, 16]);
    }

    #[test]
    fn looking_that_often_pays_but_costs_more_becomes_rare() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let mut looked = 0;
        for round in 0..10_000 {
            let looks = pace.rest == 0;
            looked += usize::from(looks);
            waits(&mut pace, if looks && round % 3 == 0 { LATE } else { SOON });
        }
        assert!(looked < 2_000, "{looked} of 10,000 waits");
    }

    #[test]
    fn a_link_without_traffic_never_looks() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        assert!((0..1000).all(|_| !waits(&mut pace, LATE)));
        assert_eq!((pace.rest, pace.rest_next), (1, 2));
    }

    #[test]
    fn looks_that_find_nothing_take_a_small_share_of_a_core() {
        let mut pace = Pace::default();
        let begun = Instant::now();
        let mut now = begun;
        let mut looked = Duration::ZERO;
        // As if each wait before had been short, and each one is long.
        while now < begun + Duration::from_secs(2) {
            pace.rest = 0;
            let mut wait = pace.wait(now);
            if *OTHERS_RUN && wait.polls {
                assert!(!pace.polls_again(&mut wait, now + POLL_TIME_MAX));
                looked += POLL_TIME_MAX;
            }
            now += POLL_TIME_MAX;
        }
        let most = (now - begun) / IN_VAIN_SHARE + IN_VAIN_MAX * 2;
        assert!(looked <= most, "{looked:?} of {:?}", now - begun);
    }

    #[test]
    fn work_between_two_looks_is_no_interruption() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let now = Instant::now();
        let mut wait = Wait { begun: now, looked: now, polls: true };
        wait.goes_on(now + LATE);
        assert!(pace.polls_again(&mut wait, now + LATE + Duration::from_micros(1)));
    }

    #[test]
    fn looking_stops_where_another_process_takes_the_core() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let now = Instant::now();
        let mut wait = Wait { begun: now, looked: now, polls: true };
        assert!(!pace.polls_again(&mut wait, now + INTERRUPTED));
        assert_eq!(pace.rest, 1);
        // The same if the frame came meanwhile.
        pace.rest = 0;
        let wait = Wait { begun: now, looked: now, polls: true };
        pace.ended(&wait, now + INTERRUPTED);
        assert_eq!(pace.rest, 2);
    }

    #[test]
    fn nobody_looks_for_a_while_on_a_core_where_another_process_computes() {
        let milliseconds = Duration::from_millis;
        for (away, shared_for) in [
            (SHARED, milliseconds(100)),
            (milliseconds(1), milliseconds(400)),
            (milliseconds(4), milliseconds(1_600)),
            (milliseconds(400), milliseconds(2_000)),
        ] {
            let mut pace = Pace { rest: 0, ..Pace::default() };
            let now = Instant::now();
            let mut wait = Wait { begun: now, looked: now, polls: true };
            assert!(!pace.polls_again(&mut wait, now + away));
            // As if short waits had come since, so polling might pay.
            pace.rest = 0;
            pace.spent_until = None;
            assert!(!pace.wait(now + away + shared_for - Duration::from_nanos(1)).polls, "{away:?}");
            assert_eq!(pace.wait(now + away + shared_for).polls, *OTHERS_RUN, "{away:?}");
        }
    }

    /// A tick of the kernel may begin at any moment of a wait.
    #[test]
    fn little_time_is_lost_to_one_who_computes_at_the_lowest_priority() {
        let mut pace = Pace::default();
        let begun = Instant::now();
        let mut now = begun;
        let mut lost = Duration::ZERO;
        let mut random = 1_u64;
        while now < begun + Duration::from_secs(60) {
            pace.rest = 0;
            let mut wait = pace.wait(now);
            if wait.polls {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let away = Duration::from_micros((random >> 33) % 4_000);
                pace.polls_again(&mut wait, now + away);
                now += away;
                lost += away;
            }
            now += Duration::from_micros(100);
        }
        assert!(lost * 100 < now - begun, "{lost:?} of {:?}", now - begun);
    }
}
