//! The host's side of WASI: the state of one store, and the interfaces that guests import. Must not
//! hold: rules, which are the policy's, or the running of calls.
//!
//! | interface | file |
//! |---|---|
//! | `wasi:cli` | `cli/` |
//! | `wasi:config` | `config.rs`, under each name of its drafts |
//! | `wasi:filesystem` | `files/` |
//! | `wasi:http` | `http/`, over `net/` |
//! | `wasi:keyvalue` | `keyvalue/` |
//! | `wasi:logging` | `logging.rs`, under each name of its draft |
//! | `wasi:random` | `random.rs` |
//! | `wasi:sockets` | `sockets/`, over `net/` |
//! | `wasi:clocks`, `wasi:io` | none: wasmtime-wasi's own |
//!
//! `doors/` is the way of these to the host, for a guest in a sandbox process.
//!
//! `capabilities.rs` makes a tool's grants ready at load, and `guest_grants.rs` its guests' part of
//! them; `state.rs` is the data of a call's store.
//! A new interface has a file or a folder here, with its own `bindings.rs`, and two lines in
//! `load/imports.rs`.
pub(crate) mod capabilities;
pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod doors;
pub(crate) mod files;
pub(crate) mod grant_problem;
pub(crate) mod guest_grants;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod logging;
pub(crate) mod net;
pub(crate) mod random;
pub(crate) mod sockets;
pub(crate) mod state;
