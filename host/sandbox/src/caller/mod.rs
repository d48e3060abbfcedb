//! Questions about rights to the person behind a call's sender, and the times in which a call
//! waits. Must not hold: the sender (`toolcell_wall::caller`).
//!
//! | file | holds |
//! |---|---|
//! | `consent.rs` | requests that no rule allows, and that a person may |
//! | `waited.rs` | the time in which a call waits for a person |
pub(crate) mod consent;
pub(crate) mod waited;
