//! One call of a loaded component, from its instance to its report. Must not hold: loading, or host
//! functions.
//!
//! | file | holds |
//! |---|---|
//! | `asking.rs` | questions of a call, and the time that they take |
//! | `calling.rs` | calls of other tools that it makes |
//! | `call.rs` | a call from start to report |
//! | `store.rs`, `instance.rs` | a store with its limits, and the instance in it |
//! | `warm.rs`, `start.rs` | prewarmed instances, and the start code that may run for them |
//! | `turns.rs` | turns of guests whose tasks yield |
//! | `listing.rs` | lists of tools, made or kept |
//! | `failures.rs` | errors of the engine → the failures of calls |
pub(crate) mod asking;
pub(crate) mod call;
pub(crate) mod calling;
pub(crate) mod failures;
pub(crate) mod instance;
pub(crate) mod listing;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod turns;
pub(crate) mod warm;
