//! The standard streams and the environment of a guest. No stream is a terminal. Must not hold:
//! what happens to the output.
//!
//! | file | holds |
//! |---|---|
//! | `environment.rs` | the variables and arguments |
//! | `printing.rs` | the streams that WASI asks for, over anything that takes bytes |
//! | `capture.rs` | the call's log, kept up to its limit |
//! | `run_streams.rs` | the streams of one run of a program |
//! | `standard.rs` | the standard streams of a store |
pub(crate) mod capture;
mod environment;
pub(crate) mod printing;
mod run_streams;
pub(crate) mod standard;

pub(crate) use run_streams::{Printed, RunStreams};
