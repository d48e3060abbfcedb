//! The host's side of WASI: the state of one store, and the interfaces that guests import. Must not hold: rules, which
//! are the policy's, or how a call is run.
//!
//! | interface | file |
//! |---|---|
//! | `wasi:cli` | `cli/` |
//! | `wasi:config` | `config.rs` |
//! | `wasi:filesystem` | `files/` |
//! | `wasi:http` | `http/`, over `net/` |
//! | `wasi:keyvalue` | `keyvalue/` |
//! | `wasi:random` | `random.rs` |
//! | `wasi:sockets` | `sockets/`, over `net/` |
//! | `wasi:clocks`, `wasi:io` | none: wasmtime-wasi's own |
//!
//! `reach.rs` makes a tool's grants ready at load; `state.rs` is what the store of a call holds.
pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod net;
pub(crate) mod problem;
pub(crate) mod random;
pub(crate) mod reach;
pub(crate) mod sockets;
pub(crate) mod state;
