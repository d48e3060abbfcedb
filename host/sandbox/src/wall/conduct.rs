//! Components whose calls end their sandbox processes. Must not hold: how a process is ended, or
//! where a component runs.
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ends of a component's sandbox that count, and how long it is held back.
const WITHIN: Duration = Duration::from_secs(600);

/// Ends after which a component runs apart from the others of its group. With the first it may have
/// been beside another that did it.
const APART_AFTER: usize = 2;

/// Ends after which it is held back. Three of them happened in processes that it had for itself.
const HELD_BACK_AFTER: usize = 5;

/// The standing of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs with its group.
    Good,
    /// It runs in processes of its own.
    Apart,
    /// It does not run.
    HeldBack,
}

/// The ends of the sandboxes of a group's members.
#[derive(Debug, Default)]
pub(super) struct Conduct(Mutex<HashMap<usize, VecDeque<Instant>>>);

impl Conduct {
    /// A sandbox was ended that ran a call of this member.
    pub(super) fn ended(&self, member: usize) {
        self.ended_at(member, Instant::now());
    }

    fn ended_at(&self, member: usize, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = all.entry(member).or_default();
        ends.push_back(now);
        // Older ones change nothing.
        while ends.len() > HELD_BACK_AFTER {
            ends.pop_front();
        }
    }

    /// The standing of this member now.
    pub(super) fn of(&self, member: usize) -> Standing {
        self.of_at(member, Instant::now())
    }

    fn of_at(&self, member: usize, now: Instant) -> Standing {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ends) = all.get_mut(&member) else { return Standing::Good };
        ends.retain(|end| now.saturating_duration_since(*end) < WITHIN);
        match ends.len() {
            0 => {
                all.remove(&member);
                Standing::Good
            }
            few if few < APART_AFTER => Standing::Good,
            more if more < HELD_BACK_AFTER => Standing::Apart,
            _ => Standing::HeldBack,
        }
    }

    /// The answer to a call of a component that is held back.
    pub(super) fn held_back() -> String {
        format!(
            "calls of this component ended its sandbox {HELD_BACK_AFTER} times within {} minutes, so it is held back; \
             look into the component, and replace it or try again later",
            WITHIN.as_secs() / 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_sandboxes_runs_apart_and_then_not_at_all_until_time_has_passed() {
        let (conduct, began) = (Conduct::default(), Instant::now());
        let second = Duration::from_secs(1);
        let standings: Vec<_> = (0..6)
            .map(|time| {
                let now = began + second * time;
                let standing = conduct.of_at(1, now);
                conduct.ended_at(1, now);
                standing
            })
            .collect();
        use Standing::{Apart, Good, HeldBack};
        assert_eq!(standings, [Good, Good, Apart, Apart, Apart, HeldBack]);
        assert_eq!(conduct.of_at(2, began), Good, "another component");
        assert_eq!(conduct.of_at(1, began + WITHIN), HeldBack, "five are not old enough");
        assert_eq!(conduct.of_at(1, began + WITHIN + second * 2), Apart);
        assert_eq!(conduct.of_at(1, began + WITHIN + second * 6), Good);
    }
}
