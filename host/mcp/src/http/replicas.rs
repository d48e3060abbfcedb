//! The other replicas of this server, as the embedding program reaches them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Reaches the other replicas of this server: those with the same key and the same clients. It lets
/// any replica answer a legacy session.
pub trait Replicas: Send + Sync + 'static {
    /// The unique name of this replica: 1 to 64 of `0-9` and `a-f`.
    fn name(&self) -> &str;

    /// Sends a message about a session of this caller, without waiting. Messages about one caller
    /// to one recipient arrive in order, or not at all. One caller's messages do not displace
    /// another's.
    fn send(&self, to: Recipient<'_>, caller: &str, message: Vec<u8>);

    /// Waits for the next item. Only one task may call it.
    fn hear(&self) -> ReplicaAnswer<'_, ReplicaItem>;

    /// Records for a time that a session has ended.
    fn note_ended<'r>(&'r self, session: &'r str, time: Duration) -> ReplicaAnswer<'r, Result<(), ReplicasAway>>;

    /// True if it was recorded that a session has ended.
    fn has_ended<'r>(&'r self, session: &'r str) -> ReplicaAnswer<'r, Result<bool, ReplicasAway>>;
}

/// A pending answer of other replicas, or of the shared state.
pub type ReplicaAnswer<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// Who gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient<'a> {
    /// Every replica, including this one.
    All,
    /// The replica of this name. If it is gone, the message is dropped.
    Replica(&'a str),
}

/// What a replica receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaItem {
    /// Messages arrive from now on. Earlier ones may be lost.
    Listening,
    /// A message.
    Message(Vec<u8>),
}

/// The shared state is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicasAway;
