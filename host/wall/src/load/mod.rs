//! Loading a component: facts, findings, and the messages to a loader. Must not hold: reading a
//! component.
//!
//! | file | holds |
//! |---|---|
//! | `facts.rs`, `inspection.rs` | facts about a component, its exports and imports |
//! | `cost.rs` | the host's cost of an instance |
//! | `message.rs` | the messages between the host and a loader |
//! | `engine_name.rs` | the name of the two engines that code is for |
//! | `offers.rs` | the interfaces that a component may import |
//! | `definitions.rs`, `descriptions.rs` | the schemas of its tools, and texts about them |
pub mod cost;
pub mod definitions;
pub mod descriptions;
pub mod engine_name;
pub mod facts;
pub mod inspection;
pub mod message;
pub mod offers;

/// Bytes of a component file. The largest language runtime measured is 18 MB; compiling takes
/// memory and time in proportion.
pub const COMPONENT_BYTES_MAX: u64 = 128 << 20;

/// Bytes of a component's code, in a file. The largest component that may be loaded has 128 MiB;
/// its code is up to eight times as large.
pub const CODE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of all functions that a loader hands back. An interpreter has 35 to 48 MB.
pub const FUNCTIONS_BYTES_MAX: u64 = 128 << 20;
