//! Numbers of events within a time window, by subject.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::observing::window::Window;

/// Tools, callers or ranges of addresses that are counted at once, for each rule. Beyond that, the
/// one that was quiet for longest is forgotten.
const SUBJECTS_MAX: usize = 256;

/// Longest subject that is kept, in bytes. Names of tools have 64; subjects of issuers may be
/// longer.
const SUBJECT_BYTES_MAX: usize = 256;

/// Parts of a window. The oldest part leaves as a whole, so a window is up to an eighth shorter
/// than configured.
const PARTS: usize = 8;

/// When an alert is raised.
pub(super) struct Thresholds {
    pub(super) threshold: u64,
    pub(super) window: Duration,
    pub(super) cooldown: Duration,
}

/// The counts of one rule.
#[derive(Default)]
pub(super) struct RuleCounts {
    began: Option<Instant>,
    subjects: HashMap<String, SubjectCount>,
}

struct SubjectCount {
    window: Window<PARTS>,
    quiet_until: Option<Instant>,
    touched: Instant,
}

impl RuleCounts {
    /// Counts one event. Returns the number within the window if an alert is due.
    pub(super) fn note(&mut self, subject: &str, bounds: &Thresholds, now: Instant) -> Option<u64> {
        let began = *self.began.get_or_insert(now);
        let subject = subject.get(..subject.floor_char_boundary(SUBJECT_BYTES_MAX)).unwrap_or_default();
        if !self.subjects.contains_key(subject) {
            if self.subjects.len() >= SUBJECTS_MAX {
                let quiet = self.subjects.iter().min_by_key(|(_, count)| count.touched);
                let quiet = quiet.map(|(subject, _)| subject.clone());
                quiet.and_then(|quiet| self.subjects.remove(&quiet));
            }
            let count = SubjectCount { window: Window::default(), quiet_until: None, touched: now };
            self.subjects.insert(subject.to_owned(), count);
        }
        let count = self.subjects.get_mut(subject)?;
        let part = bounds.window.as_nanos().checked_div(PARTS as u128).unwrap_or_default().max(1);
        let part = u64::try_from(now.saturating_duration_since(began).as_nanos() / part).unwrap_or(u64::MAX);
        count.window.add(part);
        count.touched = now;
        let sum = count.window.sum(part);
        let is_quiet = count.quiet_until.is_some_and(|until| now < until);
        if sum < bounds.threshold || is_quiet {
            return None;
        }
        count.quiet_until = now.checked_add(bounds.cooldown);
        count.window.clear();
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Thresholds =
        Thresholds { threshold: 3, window: Duration::from_secs(80), cooldown: Duration::from_secs(200) };

    #[test]
    fn an_alert_is_due_once_enough_came_within_the_window() {
        let mut counts = RuleCounts::default();
        let start = Instant::now();
        let mut at = |second: u64, subject: &str| counts.note(subject, &BOUNDS, start + Duration::from_secs(second));
        assert_eq!([at(0, "a"), at(0, "b"), at(1, "a"), at(2, "a")], [None, None, None, Some(3)]);
        // It is quiet for the cooldown, however much comes.
        assert_eq!([at(3, "a"), at(4, "a"), at(5, "a"), at(201, "a")], [None; 4]);
        // What came before has left the window.
        assert_eq!([at(203, "a"), at(204, "a")], [None, Some(3)]);
        // Too slow for the window.
        assert_eq!([at(500, "b"), at(570, "b"), at(640, "b"), at(710, "b")], [None; 4]);
        assert_eq!(at(715, "b"), Some(3));
    }

    #[test]
    fn strangers_take_a_bounded_number_of_places() {
        let mut counts = RuleCounts::default();
        let start = Instant::now();
        for number in 0..10_000_u64 {
            let long = format!("{number}{}", "é".repeat(1_000));
            let _ = counts.note(&long, &BOUNDS, start + Duration::from_millis(number));
        }
        assert_eq!(counts.subjects.len(), SUBJECTS_MAX);
        assert!(counts.subjects.keys().all(|subject| subject.len() <= SUBJECT_BYTES_MAX));
    }
}
