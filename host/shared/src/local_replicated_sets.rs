//! Replicated sets of one process, in memory.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::state::{Posted, REPLICATED_SET_ENTRIES_MAX, REPLICATED_SET_ENTRY_BYTES_MAX};

/// Most sets. A program has one for each kind of entry.
const SETS_MAX: usize = 64;

/// The entries of each replicated set by its name, with the time at which each ends.
type Sets = HashMap<String, HashMap<String, Instant>>;

/// Replicated sets of one process.
#[derive(Debug, Default)]
pub struct LocalReplicatedSets(Mutex<Sets>);

impl LocalReplicatedSets {
    /// See [`SharedState::post`](crate::SharedState::post).
    pub fn post(&self, set: &str, entry: &str, time: Duration) -> bool {
        let mut sets = self.0.lock();
        let now = Instant::now();
        if entry.len() > REPLICATED_SET_ENTRY_BYTES_MAX || (sets.len() >= SETS_MAX && !sets.contains_key(set)) {
            return false;
        }
        let entries = sets.entry(set.to_owned()).or_default();
        entries.retain(|_, until| *until > now);
        if entries.len() >= REPLICATED_SET_ENTRIES_MAX && !entries.contains_key(entry) {
            return false;
        }
        let until = entries.entry(entry.to_owned()).or_insert(now);
        *until = (*until).max(now + time);
        true
    }

    /// See [`SharedState::take_down`](crate::SharedState::take_down).
    pub fn take_down(&self, set: &str, entry: &str) {
        let mut sets = self.0.lock();
        if let Some(entries) = sets.get_mut(set) {
            entries.remove(entry);
            if entries.is_empty() {
                sets.remove(set);
            }
        }
    }

    /// See [`SharedState::posted`](crate::SharedState::posted).
    pub fn posted(&self, set: &str) -> Vec<Posted> {
        let sets = self.0.lock();
        let now = Instant::now();
        let entries = sets.get(set).into_iter().flatten();
        let left = entries.map(|(entry, until)| (entry, until.saturating_duration_since(now)));
        left.filter(|(_, left)| !left.is_zero()).map(|(entry, left)| Posted { entry: entry.clone(), left }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_few_and_an_empty_one_makes_room() {
        let sets = LocalReplicatedSets::default();
        let minute = Duration::from_secs(60);
        for number in 0..SETS_MAX + 1 {
            assert_eq!(sets.post(&number.to_string(), "a", minute), number < SETS_MAX);
        }
        sets.take_down("0", "a");
        assert!(sets.post("one more", "a", minute));
    }
}
