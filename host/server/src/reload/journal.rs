//! What happened to the catalog: the last attempts to replace it, and what is wrong just now. In memory and bounded; the
//! audit has it all.
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// Attempts that are remembered: a day's work, and a page to read.
const ATTEMPTS_MAX: usize = 32;

/// One attempt to replace the catalog.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// When it ended.
    pub time: SystemTime,
    /// What made the host look.
    pub trigger: &'static str,
    /// The generation that served afterwards.
    pub generation: u64,
    /// Whether it took the old one's place.
    pub replaced: bool,
    /// Whether clients were told of another list.
    pub announced: bool,
    /// How long it took, debounce not included.
    pub took: Duration,
    /// In one line.
    pub summary: String,
}

/// Why the last attempt failed.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// In one line.
    pub summary: String,
    /// Each problem with its place, drawn without colours.
    pub drawn: String,
    /// The same for scripts.
    pub problems: Vec<Value>,
}

/// What is remembered. Shared with whoever asks for the status.
#[derive(Default)]
pub struct Journal(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    attempts: VecDeque<Attempted>,
    failed: Option<Failed>,
    replaced: u64,
    refused: u64,
    unchanged: u64,
    /// Settings that wait for the next start.
    waiting: Vec<String>,
    quarantined: Vec<Quarantined>,
    /// Components that serve with less than the lock has.
    differing: Vec<String>,
}

/// A component that is not served as it is now, since the lock does not have it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name in the manifest.
    pub component: String,
    /// `sha256:…` of the bytes that are not served.
    pub digest: String,
    /// What differs from the lock, a line each.
    pub differences: Vec<String>,
}

impl Journal {
    /// An attempt ended so; `failed` is why where it failed.
    pub fn attempted(&self, attempted: Attempted, failed: Option<Failed>) {
        let mut kept = self.kept();
        let count = if attempted.replaced { &mut kept.replaced } else { &mut kept.refused };
        if attempted.replaced || failed.is_some() {
            *count += 1;
        }
        kept.failed = failed;
        kept.attempts.push_back(attempted);
        if kept.attempts.len() > ATTEMPTS_MAX {
            kept.attempts.pop_front();
        }
    }

    /// The files say what is served: nothing is wrong any more.
    pub fn is_well(&self) {
        let mut kept = self.kept();
        kept.failed = None;
        kept.unchanged += 1;
    }

    /// How often the files said what was served.
    pub fn unchanged(&self) -> u64 {
        self.kept().unchanged
    }

    /// These keys of `[server]` wait for the next start. Gives whether that is news.
    pub fn waits_for_start(&self, keys: Vec<String>) -> bool {
        let mut kept = self.kept();
        let news = kept.waiting != keys && !keys.is_empty();
        kept.waiting = keys;
        news
    }

    /// These are quarantined now. Gives those that were not, or not so, before.
    pub fn quarantine(&self, now: Vec<Quarantined>) -> Vec<Quarantined> {
        let mut kept = self.kept();
        let news = now.iter().filter(|held| !kept.quarantined.contains(held)).cloned().collect();
        kept.quarantined = now;
        news
    }

    /// What is quarantined.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.kept().quarantined.clone()
    }

    /// These serve with less than the lock has. Gives whether that is news.
    pub fn serves_less(&self, components: Vec<String>) -> bool {
        let mut kept = self.kept();
        let news = kept.differing != components && !components.is_empty();
        kept.differing = components;
        news
    }

    /// The components that serve with less than the lock has.
    pub fn differing(&self) -> Vec<String> {
        self.kept().differing.clone()
    }

    /// The attempts that are remembered, the oldest first.
    pub fn attempts(&self) -> Vec<Attempted> {
        self.kept().attempts.iter().cloned().collect()
    }

    /// Why the last attempt failed; `None` where it did not.
    pub fn failed(&self) -> Option<Failed> {
        self.kept().failed.clone()
    }

    /// How often the catalog was replaced, and how often an attempt failed.
    pub fn counts(&self) -> (u64, u64) {
        let kept = self.kept();
        (kept.replaced, kept.refused)
    }

    /// The keys of `[server]` that wait for the next start.
    pub fn waiting(&self) -> Vec<String> {
        self.kept().waiting.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempted(replaced: bool) -> Attempted {
        Attempted {
            time: SystemTime::UNIX_EPOCH,
            trigger: "files",
            generation: 1,
            replaced,
            announced: replaced,
            took: Duration::ZERO,
            summary: String::new(),
        }
    }

    #[test]
    fn the_last_attempts_are_remembered_and_all_are_counted() {
        let journal = Journal::default();
        for number in 0..100 {
            let replaced = number % 2 == 0;
            journal.attempted(attempted(replaced), (!replaced).then(Failed::default));
        }
        assert_eq!(journal.attempts().len(), ATTEMPTS_MAX);
        assert_eq!(journal.counts(), (50, 50));
        assert!(journal.failed().is_some(), "the last one failed");
        journal.is_well();
        assert!(journal.failed().is_none());
    }

    #[test]
    fn what_waits_for_a_start_is_news_once() {
        let journal = Journal::default();
        let keys = vec!["name".to_owned()];
        assert!(journal.waits_for_start(keys.clone()));
        assert!(!journal.waits_for_start(keys));
        assert!(!journal.waits_for_start(Vec::new()));
    }
}
