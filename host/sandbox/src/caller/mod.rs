//! Questions about rights to the person behind a call's sender, and the times in which a call
//! waits. Must not hold: the sender (`toolcell_wall::caller`).
pub(crate) mod consent;
pub(crate) mod waited;
