//! Recordings of calls: what a component got from the host, kept for reading and for replaying.
//! Must not hold: how a call is recorded or replayed (that is `call/`, and `toolcell_guest`).
//!
//! | file | holds |
//! |---|---|
//! | `recording.rs` | a recording, and its file |
//! | `anonymous.rs` | a recording without its content, for a bug report |
//! | `taped.rs` | a recorded call that has ended, and the recording that is made of it |
//! | `keeping.rs` | recordings on their way to files: the queue, and the thread that writes |
//! | `folder.rs` | the folder of recordings, and its bounds |
//! | `naming.rs` | the names of the files there |
//! | `ordered.rs` | the next calls of a tool, which an operator has recorded |
//! | `standing_in.rs` | secrets that were taken out, and what stands for them in a replay |
//! | `uses.rs` | the grants that a recorded call used |
mod anonymous;
mod folder;
mod keeping;
mod naming;
mod ordered;
mod recording;
pub(crate) mod standing_in;
mod taped;
mod uses;

pub use anonymous::SchemaNames;
pub(crate) use folder::RecordingsPlace;
pub(crate) use keeping::RecordingKeeper;
pub(crate) use ordered::{ORDERED_CALLS_MAX, OrderedBy, OrderedPlace, OrderedRecordings, OrderedTool};
pub use recording::{NotARecording, RecordedUse, Recording, RecordingHead};
pub(crate) use taped::TapedCall;
pub use uses::RecordedUses;
