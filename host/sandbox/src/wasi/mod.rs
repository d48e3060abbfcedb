//! The host's end of the interfaces that guests import. Must not hold: rules, which are the
//! policy's, or the guest's end (`toolcell_guest`).
//!
//! | interface | folder |
//! |---|---|
//! | `wasi:http` | `http/`, over `net/` |
//! | `wasi:keyvalue` | `keyvalue/` |
//! | `wasi:sockets` | `sockets/`, over `net/` |
//!
//! `doors/` receives what guests ask for. `capabilities.rs` prepares a tool's grants at load, and
//! `grant_problem.rs` has their problems. All other interfaces need nothing of the host while a
//! call runs.
pub(crate) mod capabilities;
pub(crate) mod doors;
pub(crate) mod grant_problem;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod net;
pub(crate) mod sockets;
