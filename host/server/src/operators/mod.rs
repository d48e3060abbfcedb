//! The ways in for operators: the console and the control socket. Must not hold: what clients ask.

pub(crate) mod console;
pub mod control;
