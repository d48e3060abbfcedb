//! The operator's view of a host: figures, the log, traces of calls.

mod alerts;
mod deployed;
mod figures;
mod log;
mod traces;
mod usage_by_day;
