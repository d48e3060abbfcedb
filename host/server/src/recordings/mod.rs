//! Recordings of calls: what a component got from the host, kept for reading and for replaying.
//! Must not hold: how a call is recorded or replayed (that is `toolcell_guest`).
//!
//! | file | holds |
//! |---|---|
//! | `recording.rs` | a recording, and its file |
//! | `taped.rs` | a recorded call that has ended, before a recording is made of it |
//! | `making.rs` | from the tape of a call that has ended to a recording |
//! | `keeping.rs` | recordings on their way to files: the queue, and the thread that writes |
//! | `folder.rs` | the folder of recordings, and its bounds |
//! | `naming.rs` | the names of the files there |
//! | `standing_in.rs` | secrets that were taken out, and what stands for them in a replay |
//! | `replaying.rs` | a recorded call, run again |
//! | `uses.rs` | the grants that a recorded call used |
mod folder;
mod keeping;
mod making;
mod naming;
mod recording;
mod replaying;
mod standing_in;
mod taped;
mod uses;

pub(crate) use folder::RecordingsPlace;
pub(crate) use keeping::RecordingKeeper;
pub use recording::{NotARecording, RecordedUse, Recording, RecordingHead};
pub use replaying::{Replayed, excerpt_to_replay};
pub(crate) use taped::TapedCall;
pub use uses::RecordedUses;
