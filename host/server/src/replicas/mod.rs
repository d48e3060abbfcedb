//! What the replicas of one server share, and their messages. Must not hold: the meaning of a
//! shared entry.

pub(crate) mod announcements;
pub(crate) mod bus;
pub(crate) mod readiness;
pub(crate) mod replicated_sets;
pub(crate) mod updates;
