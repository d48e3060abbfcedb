//! Questions about rights to the person behind a call's sender, the times in which a call waits,
//! and calls of other tools. Must not hold: the sender (`toolcell_wall::caller`).
//!
//! | file | holds |
//! |---|---|
//! | `calling.rs` | calls of other tools that a guest makes |
//! | `consent.rs` | requests that no rule allows, and that a person may |
//! | `uses.rs` | what a call used of its grants |
//! | `waited.rs` | the time in which a call waits for a person |
pub(crate) mod calling;
pub(crate) mod consent;
pub(crate) mod uses;
pub(crate) mod waited;
