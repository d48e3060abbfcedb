//! One call of a loaded component, from its instance to its report. Must not hold: loading, or host
//! functions.
//!
//! | file | holds |
//! |---|---|
//! | `call.rs` | a call from start to report |
//! | `store.rs`, `instance.rs` | a store with its limits, and the instance in it |
//! | `warm.rs`, `start.rs` | instances made ahead, and the start code that may run for them |
//! | `reuse.rs` | an instance that serves one caller again |
//! | `listing.rs` | lists of tools, made or kept |
//! | `failures.rs` | errors of the engine → the failures of calls |
//! | `redaction.rs`, `weight.rs` | secrets taken out of an answer, and its size |
pub(crate) mod call;
pub(crate) mod failures;
pub(crate) mod instance;
pub(crate) mod listing;
pub(crate) mod redaction;
pub(crate) mod reuse;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod warm;
pub(crate) mod weight;
