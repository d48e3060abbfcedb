//! What the replicas of one server share, and their messages. Must not hold: the meaning of a
//! shared entry.

pub(crate) mod announcements;
pub(crate) mod bus;
pub(crate) mod readiness;
pub(crate) mod replicated_sets;
pub(crate) mod updates;

/// A new random name, in the form of a task's. `None` if the machine gives no random numbers.
pub(crate) fn random_name() -> Option<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(random)))
}
