//! What the process keeps beyond a call: the state that replicas share, as the manifest has it
//! opened, and tasks. Must not hold: what replicas tell each other.

pub(crate) mod shared;
pub(crate) mod tasks;
