//! Components that a loader prepared: their code, and the folder that keeps it. Nothing is compiled
//! here.
//!
//! | file | holds |
//! |---|---|
//! | `held.rs` | [`HeldComponent`](crate::HeldComponent): what the host has of a component |
//! | `cache.rs`, `drafts.rs` | the folder that keeps machine code |
//! | `kept_facts.rs` | facts about components, kept next to their code |
pub(crate) mod cache;
pub(crate) mod drafts;
pub(crate) mod held;
pub(crate) mod kept_facts;
