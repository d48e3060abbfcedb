//! What is known of the server while it runs: the log, metrics, traces, alerts, refused requests,
//! running calls, and its health. Must not hold: a decision.

pub(crate) mod activity;
pub mod alerts;
pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod observation;
pub(crate) mod refusals;
pub(crate) mod traces;
mod window;
