//! What operators and their programs ask of the server: the console, the control socket, the page
//! of metrics, and its health. Must not hold: what clients ask, or counters.

pub(crate) mod console;
pub mod control;
pub(crate) mod health;
pub(crate) mod metrics;
