//! The MCP server as a library: a manifest's tools, served over stdio or HTTP until something stops
//! it.
//!
//! [`ManifestFile`] reads and opens a manifest, [`Server::start`] serves its catalog, and
//! [`Running`] is that server. The crates below do not know each other: `toolcell_policy` reads the
//! manifest, `toolcell_sandbox` has guests run, `toolcell_mcp` speaks to clients, `toolcell_audit`
//! records. Must not hold: command lines, terminals, exit codes.
#![forbid(unsafe_code)]

mod call;
pub mod catalog;
pub mod dev;
mod error;
mod fetching;
mod files;
mod foreseen;
pub mod http;
pub mod identity;
pub mod inspect;
mod listening;
pub mod lock;
pub mod machine;
mod observing;
mod open;
mod operators;
mod owned_task;
pub mod recordings;
pub mod reload;
mod replicas;
mod resources;
mod serve;
mod state;

pub use call::{CallTraces, Measured, Replayed, USAGE_KEY};
pub use catalog::{Compiling, LoadStep, VALUE_MISSING};
pub use error::StartError;
pub use fetching::{download, registries, remotes, requested_permissions, trust};
pub use files::{Watch, file, shipped, wit};
pub use identity::{login, secret_program, secret_store, secrets};
pub use machine::{CodeCacheOptions, Note, shell, workers};
pub use observing::log::{LogLevel, OperatorLog};
pub use observing::open_audit;
pub use open::{ManifestFile, OpenOptions, Opened, Progress, Ready, Records, Refusal, lost_signers};
pub use operators::console::{ConsoleAddress, HeldVersion, HoldAgainst};
pub use operators::control;
pub use serve::{Running, Server, ServerOptions, TransportOptions};
pub use state::shared::caller_logins;
