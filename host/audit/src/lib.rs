//! The audit: what happened, as records that cannot be changed unseen.
//!
//! Holds the event types, the sink that writes them as JSON Lines, and the check of what was written. Must not hold:
//! policy, or any decision on what is recorded.
//!
//! # The file
//! One JSON object a line. `seq` counts from 1, `prev` is the SHA-256 (lower-case hex) of the line before without its
//! newline, 64 zeros for the first; then `time` (RFC 3339, UTC) and `event`, and the event's own fields in a fixed
//! order. Whoever changes, removes or inserts a line breaks the chain at that place. Cutting off the end leaves a
//! whole chain: keep [`Summary::head`] elsewhere to see that too.
#![forbid(unsafe_code)]

mod chain;
mod clock;
mod event;
mod sink;
mod tail;
mod verify;

pub use chain::RECORD_BYTES_MAX;
pub use event::{
    CallFinished, CallStarted, Clipped, ComponentLoaded, ComponentRefused, Event, HostStarted, HostStopped, Outcome,
    TEXT_BYTES_MAX, Usage,
};
pub use sink::{OpenError, Opened, Sink, SinkError};
pub use verify::{Break, Reason, Summary, verify};
