//! What whoever runs a host sees of it: figures, the log, traces of calls.

mod figures;
mod log;
mod traces;
