//! The other replicas of this server, as the program around this crate reaches them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Reaches the other replicas of this server: those that share its key and answer the same clients.
/// With it, any replica answers a legacy session.
pub trait Replicas: Send + Sync + 'static {
    /// The name of this replica, unlike any other's: 1 to 64 of `0-9` and `a-f`.
    fn name(&self) -> &str;

    /// Sends a message about a session of this caller, without waiting. Messages about one caller
    /// to one recipient arrive in their order, or not at all. One caller's messages take no room
    /// from another's.
    fn send(&self, to: Recipient<'_>, caller: &str, message: Vec<u8>);

    /// Waits for the next item. One task asks.
    fn hear(&self) -> ReplicaAnswer<'_, ReplicaItem>;

    /// Notes for a time that a session has ended.
    fn note_ended<'r>(&'r self, session: &'r str, time: Duration) -> ReplicaAnswer<'r, Result<(), ReplicasAway>>;

    /// True if it was noted that a session has ended.
    fn has_ended<'r>(&'r self, session: &'r str) -> ReplicaAnswer<'r, Result<bool, ReplicasAway>>;
}

/// The answer of other replicas, or of what they share, while it is waited for.
pub type ReplicaAnswer<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// Those who get a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient<'a> {
    /// Every replica, this one included.
    All,
    /// The replica of this name. If it is gone, the message is dropped.
    Replica(&'a str),
}

/// The item that a replica hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaItem {
    /// Messages arrive from now on. Earlier ones may be lost.
    Listening,
    /// A message.
    Message(Vec<u8>),
}

/// The state that replicas share cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicasAway;
