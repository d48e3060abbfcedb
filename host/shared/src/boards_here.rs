//! Boards of one process, in memory.
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::state::{BOARD_ENTRIES_MAX, BOARD_ENTRY_BYTES_MAX, Posted};

/// Most boards. A program has one for each kind of thing that is posted.
const BOARDS_MAX: usize = 64;

/// By name: the entries of each board, by the time at which each ends.
type Boards = HashMap<String, HashMap<String, Instant>>;

/// Boards of one process.
#[derive(Debug, Default)]
pub struct BoardsHere(Mutex<Boards>);

impl BoardsHere {
    /// See [`SharedState::post`](crate::SharedState::post).
    pub fn post(&self, board: &str, entry: &str, time: Duration) -> bool {
        let mut boards = self.boards();
        let now = Instant::now();
        if entry.len() > BOARD_ENTRY_BYTES_MAX || (boards.len() >= BOARDS_MAX && !boards.contains_key(board)) {
            return false;
        }
        let entries = boards.entry(board.to_owned()).or_default();
        entries.retain(|_, until| *until > now);
        if entries.len() >= BOARD_ENTRIES_MAX && !entries.contains_key(entry) {
            return false;
        }
        let until = entries.entry(entry.to_owned()).or_insert(now);
        *until = (*until).max(now + time);
        true
    }

    /// See [`SharedState::take_down`](crate::SharedState::take_down).
    pub fn take_down(&self, board: &str, entry: &str) {
        let mut boards = self.boards();
        if let Some(entries) = boards.get_mut(board) {
            entries.remove(entry);
            if entries.is_empty() {
                boards.remove(board);
            }
        }
    }

    /// See [`SharedState::posted`](crate::SharedState::posted).
    pub fn posted(&self, board: &str) -> Vec<Posted> {
        let boards = self.boards();
        let now = Instant::now();
        let entries = boards.get(board).into_iter().flatten();
        let left = entries.map(|(entry, until)| (entry, until.saturating_duration_since(now)));
        left.filter(|(_, left)| !left.is_zero()).map(|(entry, left)| Posted { entry: entry.clone(), left }).collect()
    }

    /// A panic elsewhere leaves whole entries behind.
    fn boards(&self) -> MutexGuard<'_, Boards> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_few_and_an_empty_one_makes_room() {
        let boards = BoardsHere::default();
        let minute = Duration::from_secs(60);
        for number in 0..BOARDS_MAX + 1 {
            assert_eq!(boards.post(&number.to_string(), "a", minute), number < BOARDS_MAX);
        }
        boards.take_down("0", "a");
        assert!(boards.post("one more", "a", minute));
    }
}
