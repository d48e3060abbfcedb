//! Calls of other tools. One door carries all of a call's, one request after the other.
use serde::{Deserialize, Serialize};

use super::blob::Blob;
use crate::nested::{FoundTool, WantedCall};

/// Bytes that a call of a list takes in a message besides its texts.
pub const CALL_BYTES: usize = 48;

/// What a guest asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallingRequest {
    /// These calls, some of them at once.
    Call(Vec<WantedCall>),
    /// Tools that fit these words, at most so many.
    Find(String, u32),
    /// The tool of this name.
    Describe(String),
    /// When the run began that this call belongs to.
    Began,
}

/// A message of the host about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallingReply {
    /// A call waits for a person from now on, or no longer.
    Waits(bool),
    /// One of the calls has ended: its place in the list, and a
    /// [`NestedEnd`](crate::nested::NestedEnd) as a message of its own, since it may be long.
    Ended(u32, Blob),
    /// The tools.
    Found(Vec<FoundTool>),
    /// The tool, a [`GuestTool`](crate::contract::GuestTool) as a message of its own.
    Described(Option<Blob>),
    /// The beginning of the run, in milliseconds since 1970.
    Began(u64),
    /// The calls cannot go on, and the call that made them ends here: why its caller is refused, or
    /// nothing if it may call again with answers.
    Stopped(Option<String>),
}
