//! `toolcell.lock`: what a person approved of each component, so that nothing else is served under
//! its name.
//!
//! Holds the file, its form of a catalog, and the differences of two in words and in parts. Must
//! not hold: the effect of a difference (see `reload` and the commands).
mod approval;
mod confirmation;
mod details;
mod differ;
mod earlier;
mod file;
mod grants;
mod json_diff;
mod pinned;
mod text;

pub use approval::{Approval, SeenDigest, command as approving};
pub use details::{Bounded, DefinitionChange, DriftDetails, GrantChange};
pub use differ::{Drift, drift, withheld};
pub use file::{LockError, LockPath, path_beside, read, remove_drafts, write};
pub use pinned::{Lock, PinnedComponent};
pub use text::text_of;

pub use grants::narrowed;
