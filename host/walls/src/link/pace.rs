//! Looking again before sleeping, where that pays.
//!
//! Waking a sleeping process on an idle core costs 30 to 50 µs, a look about 1 µs. So who waits for
//! something that comes at once is better off looking. Who waits longer, or looks on the core that
//! the sender needs, only burns time: then looking stops, and is tried again ever more rarely.

use std::{
    num::NonZero,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// Looking ends after this long. A client that calls again as soon as it has its answer takes 60 to
/// 110 µs until its next call is here: it and the host are woken once each. Twice that is enough.
pub const LOOK_TIME_MAX: Duration = Duration::from_micros(200);

/// Two looks are never so far apart, unless another process was given this core between them. Then
/// the core is needed, perhaps by the very process that is to send.
const INTERRUPTED: Duration = Duration::from_micros(25);

/// Who was without its core for so long shares it with somebody who computes. Who gives a core up
/// gets it back at the kernel's next tick, in one to four milliseconds, even from a thread of the
/// lowest priority, as those are that compile. Any moment of a tick may be the first. Who sleeps
/// and is woken gets the core from such a thread at once.
const SHARED: Duration = Duration::from_micros(250);

/// Looking is tried again after so many times as long: so much of the time is lost to others at
/// most, one part in so many. A tenth of a second at least.
const SHARED_SHARE: u32 = 400;

/// The longest such time.
const SHARED_FOR_MAX: Duration = Duration::from_secs(2);

/// So long nobody else is given the core: most waits end within it where the sender has another
/// core, and a process that computes would keep the core for some milliseconds.
const ALONE: Duration = Duration::from_micros(10);

/// A wait that lasted at most so long while asleep might have been ended by looking: waking is part
/// of it, also that of others who sleep because this side does.
const SHORT: Duration = Duration::from_micros(400);

/// Share of a core, one in so many parts, that looks take that find nothing.
const IN_VAIN_SHARE: u32 = 20;

/// Looks that find nothing take no more than this at once, after a time without any.
const IN_VAIN_MAX: Duration = Duration::from_millis(1);

/// Short waits that are slept through at the most before looking is tried again.
const REST_MAX: u16 = 16;

/// On one core whoever looks keeps the one that would send from running.
static OTHERS_RUN: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores > NonZero::<usize>::MIN));

/// Waits ended by looking, in a row, that make up for a failure: it costs at most 200 µs, and each
/// saves some 70 µs, since both sides sleep where one does.
const PAID: u8 = 4;

/// Remembers whether looking paid lately.
#[derive(Debug)]
pub struct Pace {
    /// Short waits to sleep through before the next try.
    rest: u16,
    /// As many as that after the next failure.
    rest_next: u16,
    /// Waits ended by looking since the last failure.
    paid: u8,
    /// Until then, looks that found nothing have used up their share.
    spent_until: Option<Instant>,
    /// Until then, somebody else computes on this core.
    shared_until: Option<Instant>,
}

/// One wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    begun: Instant,
    looked: Instant,
    /// It is still worth looking.
    looks: bool,
}

impl Wait {
    /// Is it worth looking again before sleeping?
    pub fn looks(&self) -> bool {
        self.looks
    }

    /// The thread did something of its own since the last look.
    pub fn goes_on(&mut self, now: Instant) {
        self.begun += now - self.looked;
        self.looked = now;
    }
}

impl Default for Pace {
    /// A link begins asleep.
    fn default() -> Self {
        Self { rest: 1, rest_next: 1, paid: 0, spent_until: None, shared_until: None }
    }
}

impl Pace {
    /// Is a wait that begins now worth looking?
    fn looks(&self) -> bool {
        self.rest == 0 && *OTHERS_RUN
    }

    /// A wait that begins now.
    pub fn wait(&self, now: Instant) -> Wait {
        let has_spent = self.spent_until.is_some_and(|until| until > now + IN_VAIN_MAX * IN_VAIN_SHARE);
        let is_shared = self.shared_until.is_some_and(|until| until > now);
        Wait { begun: now, looked: now, looks: self.looks() && !has_spent && !is_shared }
    }

    /// After a look that found nothing: is another one worth it? It leaves the core to who may need
    /// it, if the wait is not very short.
    pub fn stays(&mut self, wait: &mut Wait) -> bool {
        if self.looks_again(wait, Instant::now()) && wait.looked - wait.begun >= ALONE {
            thread::yield_now();
            self.looks_again(wait, Instant::now());
        }
        wait.looks
    }

    /// After a look that found nothing: is another one worth it?
    fn looks_again(&mut self, wait: &mut Wait, now: Instant) -> bool {
        let interrupted = self.was_interrupted(wait, now);
        wait.looked = now;
        if wait.looks && (interrupted || now - wait.begun >= LOOK_TIME_MAX) {
            wait.looks = false;
            self.failed();
            let spent = (now - wait.begun).min(LOOK_TIME_MAX) * IN_VAIN_SHARE;
            self.spent_until = Some(self.spent_until.unwrap_or(now).max(now) + spent);
        }
        wait.looks
    }

    /// After the wait.
    pub fn ended(&mut self, wait: &Wait, now: Instant) {
        if wait.looks && self.was_interrupted(wait, now) {
            self.failed();
        } else if wait.looks {
            self.paid += 1;
            if self.paid == PAID {
                self.paid = 0;
                self.rest_next = 1;
            }
        } else if now - wait.begun <= SHORT {
            self.rest = self.rest.saturating_sub(1);
        }
    }

    /// Did somebody else have the core since the last look?
    fn was_interrupted(&mut self, wait: &Wait, now: Instant) -> bool {
        let away = now - wait.looked;
        if wait.looks && away >= SHARED {
            self.shared_until = Some(now + away.saturating_mul(SHARED_SHARE).min(SHARED_FOR_MAX));
        }
        away >= INTERRUPTED
    }

    /// One whose looks that found nothing have used up their share until then.
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

    /// Waits, and looks every microsecond until the frame comes. True if a look found it.
    fn waits(pace: &mut Pace, time: Duration) -> bool {
        let begun = Instant::now();
        let mut wait = Wait { looks: pace.rest == 0, ..pace.wait(begun) };
        let mut now = begun;
        while now < begun + time && pace.looks_again(&mut wait, now) {
            now += Duration::from_micros(1);
        }
        pace.ended(&wait, begun + time);
        wait.looks
    }

    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_millis(5);

    #[test]
    fn looking_begins_after_a_short_sleep_and_goes_on_while_it_pays() {
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
        // As if each wait before had been a short one, and each is a long one.
        while now < begun + Duration::from_secs(2) {
            pace.rest = 0;
            let mut wait = pace.wait(now);
            if *OTHERS_RUN && wait.looks {
                assert!(!pace.looks_again(&mut wait, now + LOOK_TIME_MAX));
                looked += LOOK_TIME_MAX;
            }
            now += LOOK_TIME_MAX;
        }
        let most = (now - begun) / IN_VAIN_SHARE + IN_VAIN_MAX * 2;
        assert!(looked <= most, "{looked:?} of {:?}", now - begun);
    }

    #[test]
    fn work_between_two_looks_is_no_interruption() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let now = Instant::now();
        let mut wait = Wait { begun: now, looked: now, looks: true };
        wait.goes_on(now + LATE);
        assert!(pace.looks_again(&mut wait, now + LATE + Duration::from_micros(1)));
    }

    #[test]
    fn looking_stops_where_another_process_takes_the_core() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let now = Instant::now();
        let mut wait = Wait { begun: now, looked: now, looks: true };
        assert!(!pace.looks_again(&mut wait, now + INTERRUPTED));
        assert_eq!(pace.rest, 1);
        // Also where the frame came meanwhile.
        pace.rest = 0;
        let wait = Wait { begun: now, looked: now, looks: true };
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
            let mut wait = Wait { begun: now, looked: now, looks: true };
            assert!(!pace.looks_again(&mut wait, now + away));
            // As if short waits had come since, and looking might pay.
            pace.rest = 0;
            pace.spent_until = None;
            assert!(!pace.wait(now + away + shared_for - Duration::from_nanos(1)).looks, "{away:?}");
            assert_eq!(pace.wait(now + away + shared_for).looks, *OTHERS_RUN, "{away:?}");
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
            if wait.looks {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let away = Duration::from_micros((random >> 33) % 4_000);
                pace.looks_again(&mut wait, now + away);
                now += away;
                lost += away;
            }
            now += Duration::from_micros(100);
        }
        assert!(lost * 100 < now - begun, "{lost:?} of {:?}", now - begun);
    }
}
