//! The views Now, Denials and Approvals of serving processes, on a terminal. Drawing and keys are
//! pure: values in, cells and steps out. Must not hold: arguments, or carrying out decisions.
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
