//! Counters of each caller's calls, since the process started and on each of the last days, for a
//! bounded number of callers.
//!
//! Counting a call takes a lock that nothing holds for long, and allocates at a caller's first
//! call.
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use toolcell_audit::{Outcome, Usage};

/// Callers that are counted by name: as many as `callers` in `[metrics]` may say. Those who come
/// later are counted together.
pub const CALLERS_MAX: usize = 1_000;

/// Days that are counted by themselves, today included: a week. Those of [`CALLERS_MAX`] callers
/// take some 300 KiB.
const DAYS_MAX: usize = 7;

const DAY_SECONDS: u64 = 86_400;

/// The name under which the calls of all others are shown. No caller has it.
pub const OTHERS: &str = "(other)";

/// The calls of one caller, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerFigures {
    /// Calls that ended, those that tools made included.
    pub calls: u64,
    /// Those of them that gave no result.
    pub failed: u64,
    /// Units of fuel.
    pub fuel: u64,
    /// Bytes of arguments and results.
    pub bytes: u64,
}

/// The calls of one caller, or of all others together, that ended on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayOfCaller {
    /// When the day began in UTC.
    pub start: SystemTime,
    /// The caller's name, or [`OTHERS`].
    pub caller: String,
    /// The calls.
    pub figures: CallerFigures,
}

/// The calls of all callers.
#[derive(Debug, Default)]
pub struct FiguresByCaller(Mutex<CallersSoFar>);

#[derive(Debug, Default)]
struct CallersSoFar {
    /// Each with its place in the order of first calls.
    named: HashMap<Box<str>, (usize, FiguresSoFar)>,
    others: FiguresSoFar,
}

#[derive(Debug, Default)]
struct FiguresSoFar {
    all: CallerFigures,
    /// At most [`DAYS_MAX`], oldest first.
    days: VecDeque<Day>,
}

#[derive(Debug)]
struct Day {
    /// Days since 1970-01-01.
    number: u64,
    figures: CallerFigures,
}

impl FiguresSoFar {
    fn add(&mut self, day: u64, call: CallerFigures) {
        self.all.add(call);
        if let Some(known) = self.days.iter_mut().find(|known| known.number == day) {
            known.figures.add(call);
            return;
        }
        if self.days.len() == DAYS_MAX {
            self.days.pop_front();
        }
        self.days.push_back(Day { number: day, figures: call });
    }
}

impl CallerFigures {
    fn add(&mut self, more: Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.failed = self.failed.saturating_add(more.failed);
        self.fuel = self.fuel.saturating_add(more.fuel);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

impl FiguresByCaller {
    /// Counts a call that ended now.
    pub fn ended(&self, caller: &str, outcome: Outcome, usage: &Usage, arguments_bytes: u64) {
        let failed = u64::from(outcome.is_error());
        let bytes = arguments_bytes.saturating_add(usage.output_bytes);
        let call = CallerFigures { calls: 1, failed, fuel: usage.fuel, bytes };
        self.add(caller, day_of(SystemTime::now()), call);
    }

    fn add(&self, caller: &str, day: u64, call: CallerFigures) {
        let mut so_far = self.0.lock();
        let place = so_far.named.len();
        match so_far.named.get_mut(caller) {
            Some((_, figures)) => figures.add(day, call),
            None if place < CALLERS_MAX => {
                let mut figures = FiguresSoFar::default();
                figures.add(day, call);
                so_far.named.insert(caller.into(), (place, figures));
            }
            None => so_far.others.add(day, call),
        }
    }

    /// The figures of each caller on each day of the week that ends at this time: the newest day
    /// first, and of a day those with most calls.
    pub fn by_day(&self, now: SystemTime) -> Vec<DayOfCaller> {
        let today = day_of(now);
        let mut found: Vec<DayOfCaller> = Vec::new();
        let so_far = self.0.lock();
        let named = so_far.named.iter().map(|(name, (_, figures))| (&**name, figures));
        for (caller, figures) in named.chain([(OTHERS, &so_far.others)]) {
            let is_recent = |day: &&Day| day.number <= today && today - day.number < DAYS_MAX as u64;
            found.extend(figures.days.iter().filter(is_recent).map(|day| {
                let start = UNIX_EPOCH + Duration::from_secs(day.number * DAY_SECONDS);
                DayOfCaller { start, caller: caller.to_owned(), figures: day.figures }
            }));
        }
        drop(so_far);
        found.sort_by_cached_key(|of| (Reverse((of.start, of.figures.calls)), of.caller.clone()));
        found
    }

    /// The figures of the first `most` callers by name, in the order of their first calls, and
    /// those of all others together, if there are any.
    pub fn read(&self, most: usize) -> Vec<(String, CallerFigures)> {
        let so_far = self.0.lock();
        let mut others = so_far.others.all;
        let mut first: Vec<_> = Vec::new();
        for (name, (place, figures)) in &so_far.named {
            if *place < most {
                first.push((*place, name.to_string(), figures.all));
            } else {
                others.add(figures.all);
            }
        }
        first.sort_by_key(|(place, ..)| *place);
        let others = (others.calls > 0).then(|| (OTHERS.to_owned(), others));
        first.into_iter().map(|(_, name, figures)| (name, figures)).chain(others).collect()
    }
}

/// The number of a time's day in UTC since 1970-01-01.
fn day_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_counted_by_name_up_to_a_bound_and_then_together() {
        let figures = FiguresByCaller::default();
        let usage = Usage { fuel: 7, output_bytes: 5, ..Usage::default() };
        for number in 0..CALLERS_MAX + 10 {
            figures.ended(&format!("caller-{number}"), Outcome::Ok, &usage, 3);
        }
        figures.ended("caller-0", Outcome::Trap, &usage, 3);
        let of = |calls, failed| CallerFigures { calls, failed, fuel: 7 * calls, bytes: 8 * calls };
        let others = CALLERS_MAX as u64 + 9;
        let expected = vec![("caller-0".to_owned(), of(2, 1)), (OTHERS.to_owned(), of(others, 0))];
        assert_eq!(figures.read(1), expected);
        assert_eq!(figures.read(CALLERS_MAX).len(), CALLERS_MAX + 1);
    }

    #[test]
    fn a_week_of_days_is_counted_by_caller() {
        let figures = FiguresByCaller::default();
        let of = |calls| CallerFigures { calls, failed: 0, fuel: calls, bytes: calls };
        // The last day is shown alone, after the clock went back as well.
        for day in [90, 91, 92, 93, 94, 95, 96, 97, 96, 97] {
            figures.add("ann", day, of(1));
        }
        figures.add("bob", 97, of(5));
        (2..CALLERS_MAX).for_each(|number| figures.add(&format!("caller-{number}"), 80, of(1)));
        ["cleo", "dan"].iter().for_each(|caller| figures.add(caller, 96, of(1)));
        let time = |day| UNIX_EPOCH + Duration::from_secs(day * DAY_SECONDS);
        let rows = |day| {
            let found = figures.by_day(time(day) + Duration::from_secs(DAY_SECONDS - 1));
            let row = |of: DayOfCaller| (day_of(of.start), of.caller, of.figures.calls);
            found.into_iter().map(row).collect::<Vec<_>>()
        };
        let row = |day: u64, caller: &str, calls: u64| (day, caller.to_owned(), calls);
        let mut expected = vec![row(97, "bob", 5), row(97, "ann", 2), row(96, OTHERS, 2), row(96, "ann", 2)];
        expected.extend([95, 94, 93, 92, 91].map(|day| row(day, "ann", 1)));
        assert_eq!(rows(97), expected);
        assert_eq!(rows(103), expected[..2]);
        assert_eq!(rows(104), []);
        let ann = figures.read(1).into_iter().next();
        assert_eq!(ann, Some(("ann".to_owned(), of(10))));
    }
}
