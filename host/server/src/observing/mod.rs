//! What is recorded while the server runs: the audit, the log, traces, alerts, refused requests,
//! and running calls. Must not hold: decisions, or what shows records to people.

pub(crate) mod activity;
pub(crate) mod alerts;
mod audit;
pub(crate) mod counts;
mod last_build;
pub(crate) mod log;
pub(crate) mod observation;
pub(crate) mod refusals;
pub(crate) mod requests;
pub(crate) mod traces;
mod window;

pub use audit::open_audit;
pub use last_build::LastBuild;
