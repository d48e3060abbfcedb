//! Loading a component: what is known of it, and what is found out. Must not hold: reading a
//! component, or the messages to a loader.
//!
//! | file | holds |
//! |---|---|
//! | `facts.rs`, `inspection.rs` | facts about a component, its exports and imports |
//! | `cost.rs` | the host's cost of an instance |
//! | `offers.rs` | the interfaces that a component may import |
//! | `definitions.rs`, `descriptions.rs` | the schemas of its tools, and texts about them |
pub mod cost;
pub mod definitions;
pub mod descriptions;
pub mod facts;
pub mod inspection;
pub mod offers;

/// Bytes of a component file. The largest language runtime measured is 18 MB; compiling takes
/// memory and time in proportion.
pub const COMPONENT_BYTES_MAX: u64 = 128 << 20;
