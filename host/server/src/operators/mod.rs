//! What operators and their programs use: the console, the control socket, the metrics page, and
//! its health. Must not hold: requests of clients, or counters.

pub(crate) mod console;
pub mod control;
pub(crate) mod health;
pub(crate) mod metrics;
