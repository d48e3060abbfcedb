//! What the replicas of one server share, and what they tell each other. Must not hold: what a
//! shared entry is good for.

pub(crate) mod announcements;
pub(crate) mod bus;
pub(crate) mod readiness;
pub(crate) mod replicated_sets;
pub(crate) mod updates;
