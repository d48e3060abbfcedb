//! Now, Denials and Approvals of processes that serve, on a terminal. Drawing and keys are pure:
//! values in, cells and steps out. Must not hold: arguments, or how a decision is done.
mod ask;
mod details;
mod draw;
mod plain;
mod press;
mod screen;
mod state;
mod table;
mod text;

pub use ask::{Processes, Seen};
pub use plain::page;
pub use screen::run;
