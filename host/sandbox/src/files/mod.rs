//! The files that tools are granted, on the host's side: opened at load, counted, and passed to
//! sandbox processes, which cannot open any themselves. Must not hold: what a guest does with one.
//!
//! | file | holds |
//! |---|---|
//! | `opened.rs` | the mounts of one tool: paths resolved, checked and opened |
//! | `room.rs` | the room in a folder that is written to, counted |
//! | `granted.rs` | the mounts of a component on their way to a sandbox process |
//! | `scratch.rs` | the place of scratch space |
mod granted;
mod opened;
mod room;
mod scratch;

pub use granted::GrantedFiles;
pub(crate) use granted::WrittenFolder;
pub(crate) use opened::{OpenedMounts, Surroundings};
pub use scratch::{ProcessScratch, ScratchHome, place as scratch_place};
pub use toolcell_walls::folder::Identity;
