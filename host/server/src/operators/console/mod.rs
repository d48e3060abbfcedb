//! The console: web pages where operators watch the server, and decide. Must not hold: markup (see
//! the crate `toolcell_console`), or data about calls (see `activity`).
//!
//! A person enters with a one-time link or with an operator's token (see [`operators`]). Both begin
//! a session (see [`session`]). Every request passes [`guard`] first. [`gather`] collects the data
//! of views, at most once a second for all viewers together, and only while there are any.
mod actions;
mod attempts;
mod body;
mod decisions;
mod events;
mod form;
mod gather;
mod guard;
mod holding;
mod listen;
mod operators;
mod recording;
mod reply;
mod service;
mod session;
mod session_gate;
mod sign_in;
mod spoken;
mod trying;

pub use decisions::{Came, DecidedBy};
pub use gather::{Offers, Sources};
pub use holding::{HeldOutcomes, HeldVersion, HoldAgainst};
pub use listen::{BoundConsole, ConsoleAddress, ServedConsole, public_fault};
pub use operators::Operators;
pub use service::{Console, ConsoleState};
pub use session_gate::SessionGate;
