//! The commands, one file each. A command returns its exit code; only failures of the host itself
//! are errors.
pub mod add;
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
pub mod remove;
pub mod rename;
mod sample;
pub mod secret;
pub mod serve;
pub mod status;
pub mod token;
pub mod walls;

pub use add::relative;
pub use inspect::component_name;
