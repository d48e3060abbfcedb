//! Folders that one side of a wall hands to the other: their content, counted by both in the same
//! way. Must not hold: rules, or the opening of files for a guest.
//!
//! | file | holds |
//! |---|---|
//! | `facts.rs` | the facts about a file or folder |
//! | `amount.rs` | the amount that a folder holds |
//! | `counts.rs` | that amount in memory that processes share |
//! | `remove.rs` | removing a folder, however deep it is |
mod amount;
mod counts;
mod facts;
mod remove;

pub use amount::{Amount, file, folder};
pub use counts::Counts;
pub use facts::{Facts, FileTime, Identity};
pub use remove::remove;
