//! Counters of each caller's calls, since the process started, for a bounded number of callers.
//!
//! Counting a call takes a lock that nothing holds for long, and allocates at a caller's first
//! call.
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use toolcell_audit::{Outcome, Usage};

/// Callers that are counted by name: as many as `callers` in `[metrics]` may say. Those who come
/// later are counted together.
pub const CALLERS_MAX: usize = 1_000;

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

/// The calls of all callers.
#[derive(Debug, Default)]
pub struct FiguresByCaller(Mutex<CallersSoFar>);

#[derive(Debug, Default)]
struct CallersSoFar {
    /// Each with its place in the order of first calls.
    named: HashMap<Box<str>, (usize, CallerFigures)>,
    others: CallerFigures,
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
    /// Counts a call that ended.
    pub fn ended(&self, caller: &str, outcome: Outcome, usage: &Usage, arguments_bytes: u64) {
        let failed = u64::from(outcome.is_error());
        let bytes = arguments_bytes.saturating_add(usage.output_bytes);
        let call = CallerFigures { calls: 1, failed, fuel: usage.fuel, bytes };
        let mut so_far = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = so_far.named.len();
        match so_far.named.get_mut(caller) {
            Some((_, figures)) => figures.add(call),
            None if place < CALLERS_MAX => _ = so_far.named.insert(caller.into(), (place, call)),
            None => so_far.others.add(call),
        }
    }

    /// The figures of the first `most` callers by name, in the order of their first calls, and
    /// those of all others together, if there are any.
    pub fn read(&self, most: usize) -> Vec<(String, CallerFigures)> {
        let so_far = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = so_far.others;
        let mut first: Vec<_> = Vec::new();
        for (name, (place, figures)) in &so_far.named {
            if *place < most {
                first.push((*place, name.to_string(), *figures));
            } else {
                others.add(*figures);
            }
        }
        first.sort_by_key(|(place, ..)| *place);
        let others = (others.calls > 0).then(|| (OTHERS.to_owned(), others));
        first.into_iter().map(|(_, name, figures)| (name, figures)).chain(others).collect()
    }
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
}
