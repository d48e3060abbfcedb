//! The state of one store, and the interfaces that guests import. Must not hold: rules, which
//! belong to the policy, or the running of calls.
//!
//! | interface | file |
//! |---|---|
//! | `wasi:cli` | `cli/` |
//! | `wasi:config` | `config.rs`, under each name of its drafts |
//! | `wasi:filesystem` | `files/` |
//! | `wasi:http` | `http/`, over a door |
//! | `wasi:keyvalue` | `keyvalue/`, over a door |
//! | `wasi:logging` | `logging.rs`, under each name of its draft |
//! | `wasi:random` | `random.rs` |
//! | `wasi:sockets` | `sockets/`, over doors |
//! | `wasi:clocks`, `wasi:io` | none: wasmtime-wasi's own |
//! | all of WASI 0.3 | `p3/`, over what is here for 0.2 |
//!
//! The host's end of a door is in `toolcell_sandbox`. `guest_grants.rs` is what a tool's guests are
//! granted; `state.rs` is the data of a call's store; `net.rs` counts what a call sends.
//! A new interface has a file or a folder here, with its own `bindings.rs`, and two lines in
//! `load/imports.rs`.
pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod guest_grants;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod logging;
pub(crate) mod net;
pub(crate) mod p3;
pub(crate) mod random;
pub(crate) mod sockets;
pub(crate) mod state;
