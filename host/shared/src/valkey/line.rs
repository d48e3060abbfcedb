//! Calls of this replica that wait for a place, in order of arrival.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use crate::{Away, Place};

/// Gives a place to a waiting call.
pub(super) type Sender = oneshot::Sender<Result<Place, Away>>;

/// The lines for the places of each key. An empty line stays until the task that serves it ends.
#[derive(Debug, Default)]
pub(super) struct PlaceLines(HashMap<String, Line>);

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(Sender, usize)>,
    /// Notified when one of its places is released.
    left: Arc<Notify>,
}

/// The request of the first call in a line.
#[derive(Debug)]
pub(super) struct LineQuestion {
    /// Number of places of the key.
    pub most: usize,
    /// Notified when one of them is released.
    pub left: Arc<Notify>,
}

impl PlaceLines {
    /// True if a call waits for a place of this key.
    pub fn is_waited_for(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|line| line.waiting.iter().any(|(sender, _)| !sender.is_closed()))
    }

    /// Joins the line for one of `most` places. True if the line needs a task to serve it.
    pub fn join(&mut self, key: &str, most: usize) -> (oneshot::Receiver<Result<Place, Away>>, bool) {
        let (sender, receiver) = oneshot::channel();
        let is_first = !self.0.contains_key(key);
        self.0.entry(key.to_owned()).or_default().waiting.push_back((sender, most));
        (receiver, is_first)
    }

    /// The request of the first call that still waits. If there is none, the line is removed.
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

    /// Removes the first call from its line.
    pub fn leave(&mut self, key: &str) -> Option<Sender> {
        self.0.get_mut(key)?.waiting.pop_front().map(|(sender, _)| sender)
    }

    /// Removes all calls from their line.
    pub fn leave_all(&mut self, key: &str) -> Vec<Sender> {
        let line = self.0.get_mut(key).map(|line| std::mem::take(&mut line.waiting));
        line.into_iter().flatten().map(|(sender, _)| sender).collect()
    }

    /// Notifies the task of a line that a place was released.
    pub fn is_left(&self, key: &str) {
        if let Some(line) = self.0.get(key) {
            line.left.notify_one();
        }
    }
}
