//! What the process keeps beyond a call: the state that replicas share, and tasks. Must not hold:
//! messages between replicas.

pub(crate) mod shared;
pub(crate) mod tasks;
