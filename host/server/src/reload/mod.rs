//! Replacing the catalog while it serves: what makes the host look again, how a new generation takes the place of the old
//! one, and what is remembered of it.
//!
//! One thread does it all ([`Driver`]): reloads never overlap, and what asks for one while another is under way is served by
//! the next. Must not hold: how a component is loaded (that is the catalog's), or what clients are told (the protocol's).
mod attempt;
mod current;
mod difference;
mod driver;
mod files;
mod journal;
mod restart;
mod trail;
mod watch;

pub use attempt::{Outcome, Reloader, Setup};
pub use current::Current;
pub use driver::{Driver, Orders};
pub use files::Files;
pub use journal::{Attempted, Journal};
pub use watch::{Watch, Watcher};
