//! The questions that can be asked of shared state.
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Away, Pace, Place, Request};

/// State that is one for all replicas. Names may have any length and any bytes; no name of one
/// operation is one of another.
#[async_trait]
pub trait SharedState: fmt::Debug + Send + Sync {
    /// Takes one call from each allowance, or from none where one of them is used up. All are of
    /// one caller.
    ///
    /// # Errors
    /// [`Away`].
    async fn take(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away>;

    /// Takes one of `most` places of this name among those that run at once. `None` if all are
    /// taken, or if others wait. Memory has a place for everybody: a process counts those that run
    /// itself.
    ///
    /// # Errors
    /// [`Away`]. A place that was taken all the same comes free within ten seconds.
    async fn enter(&self, name: &str, most: usize) -> Result<Option<Place>, Away>;

    /// Waits for one of `most` places of this name. Waiters of one replica get theirs in order, and
    /// replicas take turns. Dropping the future stops waiting.
    ///
    /// # Errors
    /// [`Away`], as [`enter`](Self::enter).
    async fn wait(&self, name: &str, most: usize) -> Result<Place, Away>;

    /// Uses what has this name for a time, unless somebody has used it. `None` if somebody has, or
    /// if the use cannot be noted.
    ///
    /// # Errors
    /// [`Away`].
    async fn claim(&self, name: &str, time: Duration) -> Result<Option<Claim>, Away>;

    /// Makes what was claimed usable again.
    ///
    /// # Errors
    /// [`Away`]: it stays used for the time of the claim.
    async fn give_back(&self, claim: Claim) -> Result<(), Away>;

    /// Begins a request for a time, unless it began before.
    ///
    /// # Errors
    /// [`Away`]. It may have begun, and then counts as running for that time.
    async fn begin(&self, request: &Request<'_>, time: Duration) -> Result<Begun, Away>;

    /// Ends a request that was begun here. Its answer is kept for a time; without one it may begin
    /// again. An empty answer counts as no answer.
    ///
    /// # Errors
    /// [`Away`]: it counts as running for the time of its beginning.
    async fn end(&self, request: Claim, answer: &str, time: Duration) -> Result<(), Away>;

    /// Notes this name for a time. Without room it is not noted.
    ///
    /// # Errors
    /// [`Away`].
    async fn note(&self, name: &str, time: Duration) -> Result<(), Away>;

    /// True while this name is noted.
    ///
    /// # Errors
    /// [`Away`].
    async fn is_noted(&self, name: &str) -> Result<bool, Away>;

    /// Posts an entry in a replicated set for a time. One that is there stays for the longer of
    /// both times. False where the replicated set has no room, or the entry is too long.
    ///
    /// # Errors
    /// [`Away`]. It may be posted.
    async fn post(&self, set: &str, entry: &str, time: Duration) -> Result<bool, Away>;

    /// Takes an entry off a replicated set, if it is there.
    ///
    /// # Errors
    /// [`Away`]. It may be off the replicated set.
    async fn take_down(&self, set: &str, entry: &str) -> Result<(), Away>;

    /// The entries of a replicated set.
    ///
    /// # Errors
    /// [`Away`].
    async fn posted(&self, set: &str) -> Result<Vec<Posted>, Away>;
}

/// Most entries of a replicated set. Each replica holds a copy of half a megabyte at most, and
/// reads it in one piece.
pub const REPLICATED_SET_ENTRIES_MAX: usize = 4_096;

/// Longest entry of a replicated set, in bytes: two digests.
pub const REPLICATED_SET_ENTRY_BYTES_MAX: usize = 128;

/// An entry of a replicated set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The entry.
    pub entry: String,
    /// Time for which it stays.
    pub left: Duration,
}

/// One allowance of a caller.
#[derive(Clone, Copy, Debug)]
pub struct AllowanceName<'a> {
    /// The rule that allows it, with its rate: another rate is another allowance.
    pub scope: &'a str,
    /// The rate.
    pub pace: Pace,
    /// Callers with an allowance of their own where it is kept in memory. Beyond these, new ones
    /// share one.
    pub callers_max: usize,
}

/// Answer to a call that counts against allowances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Each allowance has one call less.
    All,
    /// None has.
    Refused {
        /// The first that is used up, by its place among those that were asked.
        place: usize,
        /// Time until it has a call again.
        wait: Duration,
    },
}

/// Answer to the beginning of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It begins now.
    Now(Claim),
    /// It runs.
    Runs,
    /// It ended with this answer.
    Ended(String),
    /// A request of this name asked for something else.
    Other,
    /// The caller's requests, or all of them, are at their bound.
    NoRoom,
}

/// A use of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who made the request; nothing for other uses.
    pub(crate) caller: String,
    pub(crate) name: String,
    /// Tells this use from a later one.
    pub(crate) holder: String,
}
