//! The commands, one file each. A command returns its exit code; only failures of the host itself
//! are errors.
pub mod annotate;
pub mod approve;
pub mod audit;
pub mod bench;
pub mod bundle;
pub mod calibrate;
pub mod call;
pub mod check;
pub mod client_config;
pub mod compile;
pub mod completions;
pub mod dev;
pub mod diff;
pub mod grant;
pub mod inspect;
pub mod list;
pub mod lock;
pub mod log_level;
pub mod man;
pub mod new;
pub mod policy;
pub mod reload;
mod sample;
pub mod serve;
pub mod status;
pub mod token;
