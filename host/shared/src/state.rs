//! The operations of shared state.
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Away, Pace, Place, Request};

/// State that all replicas share. Names may have any length and any bytes; each operation has names
/// of its own.
#[async_trait]
pub trait SharedState: fmt::Debug + Send + Sync {
    /// Takes one call from each allowance, or from none if one of them is used up. All belong to
    /// one caller.
    ///
    /// # Errors
    /// [`Away`].
    async fn take(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away>;

    /// Takes one of `most` places of this name. `None` if all are taken, or if others wait. In
    /// memory there is always a place: a process counts its own running calls.
    ///
    /// # Errors
    /// [`Away`]. If the place was taken all the same, it is released within ten seconds.
    async fn enter(&self, name: &str, most: usize) -> Result<Option<Place>, Away>;

    /// Waits for one of `most` places of this name. Within a replica, waiters are served in order;
    /// replicas take turns. Dropping the future stops waiting.
    ///
    /// # Errors
    /// [`Away`], as [`enter`](Self::enter).
    async fn wait(&self, name: &str, most: usize) -> Result<Place, Away>;

    /// Claims this name for a caller and a time. Each caller has a share of the names; the host
    /// itself, whose name is empty, may have all of them.
    ///
    /// # Errors
    /// [`Away`].
    async fn claim(&self, caller: &str, name: &str, time: Duration) -> Result<Claimed, Away>;

    /// Releases a claim.
    ///
    /// # Errors
    /// [`Away`]: the name stays claimed for its time.
    async fn give_back(&self, claim: Claim) -> Result<(), Away>;

    /// Begins a request for a time, unless it has begun already.
    ///
    /// # Errors
    ///
    /// [`Away`]. It may have begun, and then counts as running for that time.
    async fn begin(&self, request: &Request<'_>, time: Duration) -> Result<Begun, Away>;

    /// Ends a request that was begun here. Its answer is kept for a time; without one it may begin
    /// again. An empty answer counts as no answer.
    ///
    /// # Errors
    /// [`Away`]: it counts as running for the time of its beginning.
    async fn end(&self, request: Claim, answer: &str, time: Duration) -> Result<(), Away>;

    /// Notes this name for a time, if there is room.
    ///
    /// # Errors
    ///
    /// [`Away`].
    async fn note(&self, name: &str, time: Duration) -> Result<(), Away>;

    /// True while this name is noted.
    ///
    /// # Errors
    ///
    /// [`Away`].
    async fn is_noted(&self, name: &str) -> Result<bool, Away>;

    /// Adds an entry to a replicated set for a time. An existing entry stays for the longer of both
    /// times. False if the set has no room, or the entry is too long.
    ///
    /// # Errors
    /// [`Away`]. It may have been added.
    async fn post(&self, set: &str, entry: &str, time: Duration) -> Result<bool, Away>;

    /// Removes an entry from a replicated set.
    ///
    /// # Errors
    ///
    /// [`Away`]. It may have been removed.
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
    /// The time that it has left.
    pub left: Duration,
}

/// One allowance of a caller.
#[derive(Clone, Copy, Debug)]
pub struct AllowanceName<'a> {
    /// The rule that sets the rate: another rate is another allowance.
    pub scope: &'a str,
    /// The rate.
    pub pace: Pace,
    /// Callers with an allowance of their own in memory. Further ones share one.
    pub callers_max: usize,
}

/// The answer to [`SharedState::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Each allowance has one call less.
    All,
    /// None was taken from.
    Refused {
        /// The index of the first allowance that is used up.
        place: usize,
        /// Time until it allows a call again.
        wait: Duration,
    },
}

/// The answer to [`SharedState::begin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It begins now.
    Now(Claim),
    /// It is running.
    Runs,
    /// It ended with this answer.
    Ended(String),
    /// An earlier request with this key asked for something else.
    Other,
    /// The caller's requests, or all of them, are at their bound.
    NoRoom,
}

/// The answer to [`SharedState::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is claimed now.
    Now(Claim),
    /// It was claimed before.
    Before,
    /// The caller's claims, or all of them, are at their bound.
    NoRoom,
}

impl Claimed {
    /// The claim, if it was made now.
    #[must_use]
    pub fn now(self) -> Option<Claim> {
        match self {
            Self::Now(claim) => Some(claim),
            Self::Before | Self::NoRoom => None,
        }
    }
}

/// A claim to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who made the request or the claim; empty for the host itself.
    pub(crate) caller: String,
    pub(crate) name: String,
    /// Distinguishes this claim from later ones.
    pub(crate) holder: String,
}
