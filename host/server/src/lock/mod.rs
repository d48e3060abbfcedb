//! `toolcell.lock`: what a person has seen of each component, so that nothing else is served in its name.
//!
//! Holds the file, what a catalog comes to in its terms, and how the two differ in words. Must not hold: what is done about
//! a difference (that is `reload`, and the commands).
mod approval;
mod confirmed;
mod differ;
mod file;
mod grants;
mod pinned;
mod text;
mod words;

pub use approval::{Approval, Seen, command as approving};
pub use differ::{Drift, drift, withheld};
pub use file::{LockError, path_beside, read, remove_drafts, write};
pub use pinned::{Component, Lock};

/// Whether the one grants everything that the other does: nothing was taken away.
pub use grants::narrowed;
