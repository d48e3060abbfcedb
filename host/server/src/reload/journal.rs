//! History of the catalog: the last attempts to replace it, and current problems. In memory, and
//! bounded; the audit has everything.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::failure::ReloadFailure;
use crate::lock::DriftDetails;

/// Attempts that are remembered: a day's work, and a page to read.
const ATTEMPTS_MAX: usize = 32;

/// One attempt to replace the catalog.
#[derive(Clone, Debug)]
pub struct ReloadAttempt {
    /// Time of its end.
    pub time: SystemTime,
    /// What triggered it.
    pub trigger: &'static str,
    /// The generation that served afterwards.
    pub generation: u64,
    /// True if the attempt replaced the catalog.
    pub replaced: bool,
    /// True if clients were notified of a changed list.
    pub announced: bool,
    /// Duration, without the debounce.
    pub took: Duration,
    /// Summary in one line.
    pub summary: String,
}

/// History of the catalog. Shared with requests for the status.
#[derive(Default)]
pub struct Journal(Mutex<History>);

#[derive(Default)]
struct History {
    attempts: VecDeque<ReloadAttempt>,
    failed: Option<ReloadFailure>,
    replaced: u64,
    /// When the catalog was last replaced.
    replaced_at: Option<SystemTime>,
    refused: u64,
    unchanged: u64,
    /// Settings that take effect at the next start.
    waiting: Vec<String>,
    quarantined: Vec<Quarantined>,
    /// Components that are served with less than the lock pins.
    differing: Vec<String>,
}

/// A component whose new version is held back because it differs from the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name in the manifest.
    pub component: String,
    /// `sha256:…` of the bytes that are held back.
    pub digest: String,
    /// Differences from the lock, a line each.
    pub differences: Vec<String>,
    /// The differences in their parts.
    pub details: Arc<DriftDetails>,
    /// True if nothing has parsed its bytes: then `details` has no tools.
    pub is_withheld: bool,
    /// The differences of a withheld component in parts, once somebody asked to read it. The next
    /// attempt forgets them, since the manifest may have other grants.
    pub read: Option<Arc<DriftDetails>>,
    /// True if its signers differ from the lock.
    pub other_signers: bool,
    /// Since when versions of it are held back.
    pub since: SystemTime,
}

impl Journal {
    /// Notes an attempt; `failed` holds its problems if it failed.
    pub fn attempted(&self, attempted: ReloadAttempt, failed: Option<ReloadFailure>) {
        let mut history = self.0.lock();
        let count = if attempted.replaced { &mut history.replaced } else { &mut history.refused };
        if attempted.replaced || failed.is_some() {
            *count += 1;
        }
        if attempted.replaced {
            history.replaced_at = Some(attempted.time);
        }
        history.failed = failed;
        history.attempts.push_back(attempted);
        if history.attempts.len() > ATTEMPTS_MAX {
            history.attempts.pop_front();
        }
    }

    /// The files are those of the current generation, so nothing is wrong.
    pub fn is_well(&self) {
        let mut history = self.0.lock();
        history.failed = None;
        history.unchanged += 1;
    }

    /// Number of attempts that found nothing changed.
    pub fn unchanged(&self) -> u64 {
        self.0.lock().unchanged
    }

    /// Sets the keys of `[server]` that take effect at the next start. True if that is new.
    pub fn waits_for_start(&self, keys: Vec<String>) -> bool {
        let mut history = self.0.lock();
        let news = history.waiting != keys && !keys.is_empty();
        history.waiting = keys;
        news
    }

    /// Sets the quarantined components. Returns those that are new or changed. A component that was
    /// already quarantined keeps its time.
    pub fn quarantine(&self, mut now: Vec<Quarantined>) -> Vec<Quarantined> {
        let mut history = self.0.lock();
        history.quarantined.iter_mut().for_each(|before| before.read = None);
        for held in &mut now {
            let before = history.quarantined.iter().find(|before| before.component == held.component);
            held.since = before.map_or(held.since, |before| before.since);
        }
        let news = now.iter().filter(|held| !history.quarantined.contains(held)).cloned().collect();
        history.quarantined = now;
        news
    }

    /// Notes how a withheld component differs, after it was read. False if it is no longer held
    /// back.
    pub fn was_read(&self, component: &str, digest: &str, details: DriftDetails) -> bool {
        let mut history = self.0.lock();
        let is_it = |held: &&mut Quarantined| held.component == component && held.digest == digest;
        let held = history.quarantined.iter_mut().find(is_it);
        held.map(|held| held.read = Some(Arc::new(details))).is_some()
    }

    /// When the current catalog replaced another one; `None` for the first.
    pub fn replaced_at(&self) -> Option<SystemTime> {
        self.0.lock().replaced_at
    }

    /// The quarantined components.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.0.lock().quarantined.clone()
    }

    /// Sets the components that are served with less than the lock pins. True if that is new.
    pub fn serves_less(&self, components: Vec<String>) -> bool {
        let mut history = self.0.lock();
        let news = history.differing != components && !components.is_empty();
        history.differing = components;
        news
    }

    /// The components that are served with less than the lock pins.
    pub fn differing(&self) -> Vec<String> {
        self.0.lock().differing.clone()
    }

    /// The remembered attempts, oldest first.
    pub fn attempts(&self) -> Vec<ReloadAttempt> {
        self.0.lock().attempts.iter().cloned().collect()
    }

    /// Problems of the last attempt; `None` if it succeeded.
    pub fn failed(&self) -> Option<ReloadFailure> {
        self.0.lock().failed.clone()
    }

    /// Number of replacements, and of failed attempts.
    pub fn counts(&self) -> (u64, u64) {
        let history = self.0.lock();
        (history.replaced, history.refused)
    }

    /// The keys of `[server]` that take effect at the next start.
    pub fn waiting(&self) -> Vec<String> {
        self.0.lock().waiting.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempted(replaced: bool) -> ReloadAttempt {
        ReloadAttempt {
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
            journal.attempted(attempted(replaced), (!replaced).then(ReloadFailure::default));
        }
        assert_eq!(journal.attempts().len(), ATTEMPTS_MAX);
        assert_eq!(journal.counts(), (50, 50));
        assert!(journal.failed().is_some(), "the last one failed");
        journal.is_well();
        assert!(journal.failed().is_none());
    }

    #[test]
    fn what_stays_quarantined_is_news_once_and_keeps_the_time_since_when() {
        let journal = Journal::default();
        let held = |component: &str, digest: &str, second: u64| Quarantined {
            component: component.to_owned(),
            digest: digest.to_owned(),
            differences: Vec::new(),
            details: Arc::default(),
            is_withheld: true,
            read: None,
            other_signers: false,
            since: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
        };
        assert_eq!(journal.quarantine(vec![held("a", "1", 1)]), [held("a", "1", 1)]);
        assert_eq!(journal.quarantine(vec![held("a", "1", 2), held("b", "1", 2)]), [held("b", "1", 2)]);
        assert_eq!(journal.quarantine(vec![held("a", "2", 3)]), [held("a", "2", 1)], "another version");
        assert_eq!(journal.quarantined(), [held("a", "2", 1)]);
        assert!(!journal.was_read("a", "1", DriftDetails::default()), "that version is not held any more");
        assert!(journal.was_read("a", "2", DriftDetails::default()) && journal.quarantined()[0].read.is_some());
        assert_eq!(journal.quarantine(vec![held("a", "2", 3)]), [], "no news, and to be read again");
        assert_eq!(journal.quarantined(), [held("a", "2", 1)]);
        assert_eq!(journal.quarantine(Vec::new()), []);
        assert_eq!(journal.quarantine(vec![held("a", "2", 4)]), [held("a", "2", 4)], "held anew");
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
