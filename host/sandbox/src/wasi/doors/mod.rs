//! Doors: how a guest in a sandbox process reaches the network and its state, through the host.
//!
//! The kernel lets a sandbox process open nothing. For each operation it asks the host for a door,
//! one end of a stream socket ([`Outside`](toolcell_wall::caller::Outside)). The first frame says
//! what is wanted ([`Opening`]); frames of that operation follow, and closing the door gives it up.
//! The kernel's buffers hold back whoever sends ahead of the reader.
//!
//! On the host's side, [`CallDoors`] serves the doors of one call. All decisions are made there,
//! with the call's grants, counters and secrets. Native code may run in a sandbox process, so every
//! frame that comes out of one is bounded, checked, and never believed.
//!
//! | file | holds |
//! |---|---|
//! | [`frame`] | frames, and both ends of a door |
//! | [`bounded`] | lists and bytes in messages |
//! | [`opening`] | the first message |
//! | [`call_doors`] | the host's side of one call |
//!
//! The messages of an operation, and both sides of it, stand with its interface: `http/outside/`,
//! `keyvalue/outside.rs`, `sockets/outside/`,
//! `caller/consent.rs`. Must not hold: those.
pub(crate) mod bounded;
mod call_doors;
pub(crate) mod frame;
mod opening;
#[cfg(test)]
pub(crate) mod testing;

pub use call_doors::CallDoors;
pub(crate) use call_doors::{Misuse, http_doors_max};
pub(crate) use frame::{Door, DoorError, Frame, FrameReader, FrameWriter};
pub(crate) use opening::Opening;
