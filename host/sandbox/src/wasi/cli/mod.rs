//! The standard streams of a guest. None of them is a terminal. Must not hold: what becomes of what
//! was printed.
//!
//! | file | holds |
//! |---|---|
//! | `printing.rs` | the streams that WASI asks for, over anything that takes bytes |
//! | `capture.rs` | the call's log, kept up to its limit |
//! | `run_streams.rs` | the streams of one run of a program |
pub(crate) mod capture;
pub(crate) mod printing;
mod run_streams;

pub(crate) use run_streams::{Printed, RunStreams};
