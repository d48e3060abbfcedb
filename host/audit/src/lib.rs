//! The audit: what happened, as records that cannot be changed unseen.
//!
//! Holds the event types, the sink that writes them as JSON Lines, and the check of what was
//! written. Must not hold: policy, or any decision on what is recorded.
//!
//! # The file
//! One JSON object a line. `seq` counts from 1. `prev` is the SHA-256 (lower-case hex) of the line
//! before without its newline, 64 zeros for the first. Then follow `time` (RFC 3339, UTC), `event`,
//! and the event's own fields in a fixed order. Anyone who changes, removes or inserts a line
//! breaks the chain at that place. Cutting off the end leaves a whole chain: keep [`Summary::head`]
//! elsewhere to see that too.
//!
//! A file that is full is closed and gets the name `FILE.1`, those closed before move up, and the
//! oldest go. The chain goes on in the new file, whose first record is `audit.rotated`: numbers and
//! links do not begin anew.
//!
//! A process that finds the file in use writes `FILE-2`, the next `FILE-3`, each with a chain of
//! its own ([`chains`]), and what is kept of all is bounded together. Records that could not be
//! written leave `audit.missed` with their count, once records can be written again.
#![forbid(unsafe_code)]

mod archive;
mod chain;
mod clock;
mod event;
mod files;
pub mod filter;
mod follow;
mod lines;
mod open;
mod room;
mod settings;
mod sink;
mod tail;
mod verify;
mod writer;

pub use archive::{Archive, ArchivedFile, Between, Chain, chains};
pub use chain::RECORD_BYTES_MAX;
pub use clock::timestamp;
pub use event::{
    ARGUMENTS_BYTES_MAX, AlertRaised, ArgumentsText, AuditMissed, AuditRepaired, AuditRotated, CallAsked, CallDenied,
    CallFinished, CallRefused, CallResumed, CallStarted, CatalogRefused, CatalogReplaced, Clipped, ComponentApproved,
    ComponentLoaded, ComponentQuarantined, ComponentRefused, ConsoleDecided, ConsoleDeciding, Event, HostStarted,
    HostStopped, LoginChanged, Outcome, RequestRefused, ResourceRead, TEXT_BYTES_MAX, Usage,
};
pub use files::{CHAINS_MAX, FILES_MAX};
pub use filter::Filter;
pub use follow::{Follower, record_number};
pub use lines::{LineError, Lines};
pub use room::is_written;
pub use settings::{Rotation, Settings};
pub use sink::{MISSING_REPORT_INTERVAL, OpenError, Opened, Sink, SinkError};
pub use verify::{Break, Reason, Summary, Verifier, verify};
pub use writer::Dropped;
