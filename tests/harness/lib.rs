//! The test harness: starts the real `toolcell` binary in a folder of its own, speaks MCP with it
//! line by line, and runs its other commands. It knows JSON-RPC frames and fixtures, and nothing of
//! the host's own crates.
//!
//! ```no_run
//! use serde_json::json;
//! use toolcell_tests::TestHost;
//!
//! let mut host = TestHost::serving(&["good"]);
//! assert_eq!(host.call("echo", json!({"text": "hello"})).text(), "hello");
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a harness that cannot go on fails the test it serves"
)]

mod answer;
mod balanced;
mod binary;
mod bridge;
pub mod bulk;
mod command;
#[path = "../../host/shared/tests/engine/mod.rs"]
pub mod engine;
mod figures;
mod fixture;
mod folder;
mod frames;
mod host;
pub mod http2;
pub mod loopback;
pub mod nginx;
mod paging;
mod readings;
mod saving;
pub mod terminal;
pub mod toolchain;
mod watch;
pub mod web;

pub use answer::{Answer, is_told_to_wait};
pub use balanced::{Alone, alone};
pub use binary::{drill, toolcell};
pub use command::{Command, Finished};
pub use engine::patience::patience;
pub use figures::Figures;
pub use fixture::{bytes as fixture_bytes, manifest_of, names as fixture_names, telling_usage};
pub use folder::Folder;
pub use frames::modern_meta;
pub use host::TestHost;
pub use paging::Paging;
pub use readings::Readings;
pub use saving::{LIST_CHANGED, Saving};
pub use watch::Watch;

/// The revisions spoken after an `initialize` handshake, oldest first.
pub const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revision in which every request names its version.
pub const MODERN_REVISION: &str = "2026-07-28";
