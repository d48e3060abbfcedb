//! The console: a page in a browser where operators look at the server, and decide. Must not hold:
//! markup (see the crate `toolcell_console`), or what is known of calls (see `activity`).
//!
//! A person comes in by a one-time link, or with the token of an operator: see [`operators`]. Both
//! begin a session: see [`session`]. A request passes [`guard`] before anything is done for it.
//! Views are made of [`gather`], at most once a second for all viewers together, and only while
//! somebody looks.
mod actions;
mod attempts;
mod body;
mod decisions;
mod events;
mod form;
mod gather;
mod guard;
mod listen;
mod operators;
mod places;
mod reply;
mod service;
mod session;
mod session_gate;
mod sign_in;
mod spoken;
mod trying;

pub use decisions::{Came, DecidedBy};
pub use gather::{Offers, Sources};
pub use listen::{BoundConsole, ConsoleAddress, ServedConsole};
pub use operators::Operators;
pub use service::{Console, ConsoleParts};
pub use session_gate::SessionGate;
