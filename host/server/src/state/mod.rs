//! What the process keeps beyond a call: the state that replicas share, tasks, and
//! paused runs. Must not hold:
//! messages between replicas.

pub(crate) mod paused_runs;
pub(crate) mod shared;
pub(crate) mod tasks;
