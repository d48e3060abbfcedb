//! Calls of this replica that wait for a place, in the order in which they came.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use crate::{Away, Place};

/// Gives a place to a call that waits.
pub(super) type Sender = oneshot::Sender<Result<Place, Away>>;

/// The lines for the places of each key. A line that was left by all is there until the task ends
/// that asks for it.
#[derive(Debug, Default)]
pub(super) struct PlaceLines(HashMap<String, Line>);

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(Sender, usize)>,
    /// Told when one of its places is left.
    left: Arc<Notify>,
}

/// The question of the first in a line.
#[derive(Debug)]
pub(super) struct LineQuestion {
    /// Number of places that there are.
    pub most: usize,
    /// Told when one of them is left.
    pub left: Arc<Notify>,
}

impl PlaceLines {
    /// True if a call waits for the places of this key.
    pub fn is_waited_for(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|line| line.waiting.iter().any(|(sender, _)| !sender.is_closed()))
    }

    /// Joins the line for one of `most` places. True if nobody asks for this line yet.
    pub fn join(&mut self, key: &str, most: usize) -> (oneshot::Receiver<Result<Place, Away>>, bool) {
        let (sender, receiver) = oneshot::channel();
        let is_first = !self.0.contains_key(key);
        self.0.entry(key.to_owned()).or_default().waiting.push_back((sender, most));
        (receiver, is_first)
    }

    /// The question of the first who still waits. Without one the line ends.
    pub fn next(&mut self, key: &str) -> Option<LineQuestion> {
        let line = self.0.get_mut(key)?;
        while line.waiting.front().is_some_and(|(sender, _)| sender.is_closed()) {
            line.waiting.pop_front();
        }
        let next = line.waiting.front().map(|(_, most)| LineQuestion { most: *most, left: Arc::clone(&line.left) });
        if next.is_none() {
            self.0.remove(key);
        }
        next
    }

    /// Takes the first out of its line.
    pub fn leave(&mut self, key: &str) -> Option<Sender> {
        self.0.get_mut(key)?.waiting.pop_front().map(|(sender, _)| sender)
    }

    /// Takes all out of their line.
    pub fn leave_all(&mut self, key: &str) -> Vec<Sender> {
        let line = self.0.get_mut(key).map(|line| std::mem::take(&mut line.waiting));
        line.into_iter().flatten().map(|(sender, _)| sender).collect()
    }

    /// Tells who asks for a line that a place was left.
    pub fn is_left(&self, key: &str) {
        if let Some(line) = self.0.get(key) {
            line.left.notify_one();
        }
    }
}
