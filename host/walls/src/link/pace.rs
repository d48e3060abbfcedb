//! Looking again before sleeping, where that pays. Must not hold: what is looked for.
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

/// So long nobody else is given the core: most waits end within it where the sender has another
/// core, and a process that computes would keep the core for some milliseconds.
const ALONE: Duration = Duration::from_micros(10);

/// A wait that lasted at most so long while asleep might have been ended by looking: waking is part
/// of it, also that of others who sleep because this side does.
const SHORT: Duration = Duration::from_micros(400);

/// Short waits that are slept through at the most before looking is tried again.
const REST_MAX: u16 = 256;

/// On one core whoever looks keeps the one that would send from running.
static OTHERS_RUN: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores > NonZero::<usize>::MIN));

/// Waits ended by looking, in a row, after which a failure counts half: in vain it costs as much
/// as several successes save.
const PAID: u8 = 16;

/// Remembers whether looking paid lately.
#[derive(Debug)]
pub(super) struct Pace {
    /// Short waits to sleep through before the next try.
    rest: u16,
    /// As many as that after the next failure.
    rest_next: u16,
    /// Waits ended by looking since the last failure.
    paid: u8,
}

/// One wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    begun: Instant,
    looked: Instant,
    /// It is still worth looking.
    looks: bool,
}

impl Wait {
    pub(super) fn looks(&self) -> bool {
        self.looks
    }

    /// Between two looks: leaves the core to who may need it, if the wait is not very short.
    pub(super) fn gives_way(&self) {
        if self.looked - self.begun >= ALONE {
            thread::yield_now();
        }
    }
}

impl Default for Pace {
    /// A link begins asleep.
    fn default() -> Self {
        Self { rest: 1, rest_next: 1, paid: 0 }
    }
}

impl Pace {
    /// Is a wait that begins now worth looking?
    pub(super) fn looks(&self) -> bool {
        self.rest == 0 && *OTHERS_RUN
    }

    pub(super) fn wait(&self, now: Instant) -> Wait {
        Wait { begun: now, looked: now, looks: self.looks() }
    }

    /// After a look that found nothing: is another one worth it?
    pub(super) fn looks_again(&mut self, wait: &mut Wait, now: Instant) -> bool {
        if !wait.looks {
            return false;
        }
        let interrupted = now - wait.looked >= INTERRUPTED;
        wait.looked = now;
        if interrupted || now - wait.begun >= LOOK_TIME_MAX {
            wait.looks = false;
            self.failed();
        }
        wait.looks
    }

    /// After the wait.
    pub(super) fn ended(&mut self, wait: &Wait, now: Instant) {
        if wait.looks && now - wait.looked >= INTERRUPTED {
            self.failed();
        } else if wait.looks {
            self.paid += 1;
            if self.paid == PAID {
                self.paid = 0;
                self.rest_next = (self.rest_next / 2).max(1);
            }
        } else if now - wait.begun <= SHORT {
            self.rest = self.rest.saturating_sub(1);
        }
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
        assert_eq!(slept, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256]);
    }

    #[test]
    fn looking_that_mostly_pays_but_costs_more_becomes_rare() {
        let mut pace = Pace { rest: 0, ..Pace::default() };
        let mut looked = 0;
        for round in 0..10_000 {
            let looks = pace.rest == 0;
            looked += usize::from(looks);
            waits(&mut pace, if looks && round % 8 == 0 { LATE } else { SOON });
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
}
