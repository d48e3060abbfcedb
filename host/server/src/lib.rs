//! The MCP server as a library: a manifest's tools, served over stdio or HTTP until something stops
//! it.
//!
//! [`ManifestFile`] reads and opens a manifest, [`Server::start`] serves its catalog, and
//! [`Running`] is that server. The crates below do not know each other: `toolcell_policy` reads the
//! manifest, `toolcell_sandbox` has guests run, `toolcell_mcp` speaks to clients, `toolcell_audit`
//! records. Must not hold: command lines, terminals, exit codes.
#![forbid(unsafe_code)]

mod activity;
pub mod alerts;
pub mod blocking_files;
mod boards;
mod call;
pub mod catalog;
mod console;
pub mod control;
mod descriptors;
pub mod dev;
pub mod download;
mod error;
pub mod file;
pub mod file_stamp;
mod folders;
mod health;
pub mod http;
mod http_client;
pub mod inspect;
mod kept_entries;
mod listener_process;
pub mod lock;
mod log;
pub mod login;
pub mod machine;
mod machine_memory;
mod metrics;
mod observation;
mod open;
mod readiness;
mod refusals;
pub mod registries;
pub mod reload;
mod replicas;
mod resources;
pub mod secret_store;
pub mod secrets;
mod serve;
mod service_manager;
mod shared;
pub mod shell;
mod tasks;
mod traces;
pub mod trust;
mod updates;
mod window;
pub mod wishes;
pub mod wit;
pub mod workers;

pub use call::{Beside, Measured, USAGE_KEY};
pub use catalog::{Compiling, LoadStep, VALUE_MISSING};
pub use console::ConsoleAddress;
pub use error::StartError;
pub use log::{LogLevel, OperatorLog};
pub use open::{
    CodeCacheOptions, ManifestFile, Note, OpenOptions, Opened, Progress, Ready, Records, Refusal, lost_signers,
};
pub use serve::{Running, Server, ServerOptions, TransportOptions};
