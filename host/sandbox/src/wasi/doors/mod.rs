//! Doors: how a guest in a sandbox process reaches the network and its state, through the host.
//!
//! The kernel lets a sandbox process open nothing. For each operation it asks the host for a door,
//! one end of a stream socket. The first frame names the operation
//! ([`Opening`](toolcell_wall::doors::Opening)); its other frames follow, and closing the door
//! abandons it. The kernel's buffers hold back a sender that is ahead of the reader.
//!
//! On the host's side, [`CallDoors`] serves the doors of one call. All decisions are made there,
//! with the call's grants, counters and secrets. Native code may run in a sandbox process, so every
//! frame from one is bounded, checked, and never trusted.
//!
//! | file | holds |
//! |---|---|
//! | [`call_doors`] | the host's side of one call |
//!
//! Frames are `toolcell_walls::door`'s, and messages `toolcell_wall::doors`'. The host's side of an
//! operation stands with its interface: `http/serve.rs`, `keyvalue/serve.rs`, `sockets/serve_*.rs`,
//! `caller/consent.rs`. Must not hold: those.
mod call_doors;

pub(crate) use call_doors::Misuse;
pub use call_doors::{CallDoors, DoorPlace};
