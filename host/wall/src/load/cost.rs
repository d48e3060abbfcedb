//! What one instance of a component costs the host, counted before the component is compiled.
use serde::{Deserialize, Serialize};
use toolcell_policy::MEMORIES_MAX;

use super::facts::GuestEngine;

/// Elements of one table of an instance in the pool. The largest of a language runtime measured is
/// 7,688 (JavaScript); some need 30,000.
pub const TABLE_ELEMENTS: usize = 32 * 1024;

/// Bytes of the host's own records up to which any thread may make an instance, even one with other
/// duties. Most components have less than a tenth of it.
const LIGHT_HOST_BYTES: u64 = 64 << 10;
/// Bytes that instantiation copies, up to which it is light: about 100 µs at most.
const LIGHT_COPIED_BYTES: u64 = 1 << 20;
/// Core instances up to which instantiation is light: each takes a few microseconds.
const LIGHT_INSTANCES: u64 = 16;

/// Component instances with functions of their own that an async component may have: as many as it
/// may have memories. A composed one has two to ten.
pub const WAITING_PARTS_MAX: u32 = MEMORIES_MAX as u32;

/// What one instance costs the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceCost {
    /// Core instances.
    pub instances: u64,
    /// Linear memories.
    pub memories: u64,
    /// Elements that the largest table starts with.
    pub table_elements_max: u64,
    /// Bytes of the host's own records, without memories and tables.
    pub host_bytes: u64,
    /// Bytes that making an instance copies or writes.
    pub copied_bytes: u64,
    /// Component instances with functions of their own. In the engine of async components, each of
    /// them may wait on a stack of its own.
    pub waiting_parts: u64,
}

impl InstanceCost {
    /// True if each table fits a slot of the pool.
    #[must_use]
    pub fn fits_pool(&self) -> bool {
        self.table_elements_max <= TABLE_ELEMENTS as u64
    }

    /// Stacks that a call of it may hold at once in this engine: one for each part that waits, and
    /// one for the part that runs.
    #[must_use]
    pub fn stacks(&self, engine: GuestEngine) -> u32 {
        match engine {
            GuestEngine::Sync => 1,
            GuestEngine::Async => u32::try_from(self.waiting_parts).unwrap_or(u32::MAX).saturating_add(1),
        }
    }

    /// True if making an instance takes so little time that any thread may do it.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.host_bytes <= LIGHT_HOST_BYTES
            && self.copied_bytes <= LIGHT_COPIED_BYTES
            && self.instances <= LIGHT_INSTANCES
    }
}
