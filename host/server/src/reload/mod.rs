//! Replacing the catalog while the server runs: triggers, the swap to a new generation, and the
//! history.
//!
//! One thread does it all ([`Driver`]), so reloads never overlap. The next attempt serves orders
//! that come during one. Must not hold: loading of components (see the catalog), or messages to
//! clients (see the protocol).
mod attempt;
mod current;
mod difference;
mod driver;
mod failure;
mod files;
mod journal;
mod path_entries;
mod restart;
mod watch;

pub use attempt::{LOCK_UNWRITABLE, ReloadOutcome, Reloader, Setup};
pub use current::Current;
pub use driver::{Driver, Orders};
pub use files::WatchedFiles;
pub use journal::{Journal, Quarantined, ReloadAttempt};
pub use watch::{WatchInput, watch};
