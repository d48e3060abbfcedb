//! The commands, one file each. A command returns how it ended; only what the host itself could not do is an error.
pub mod annotate;
pub mod approve;
pub mod audit;
pub mod bench;
pub mod calibrate;
pub mod call;
pub mod check;
pub mod compile;
pub mod completions;
pub mod diff;
pub mod inspect;
pub mod list;
pub mod lock;
pub mod policy;
pub mod reload;
mod sample;
pub mod serve;
pub mod status;
