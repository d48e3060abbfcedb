//! The memory limit of one call: all linear memories and tables of its store, and the host's
//! records of its instances.
//!
//! wasmtime's own `StoreLimits` bounds each memory separately, so a component with many memories
//! would get the limit many times.
use toolcell_policy::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use wasmtime::ResourceLimiter;

/// Bytes one table element takes in the host (a pointer).
const TABLE_ELEMENT_BYTES: u64 = 8;

/// Counts the memories and tables of a store, and refuses growth past the limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimiter {
    limit_bytes: u64,
    held_bytes: u64,
    peak_bytes: u64,
    refused: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, held_bytes: 0, peak_bytes: 0, refused: false }
    }

    /// Sets the limit for the next call. It frees nothing that is already held.
    pub(crate) fn set_limit(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
        self.refused = false;
    }

    /// The most bytes held at once. Memories never shrink, so this is also the amount held now.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// True if the guest ever asked for more than the limit. A trap after that is most likely a
    /// consequence.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    /// Counts the host's own records of the store's instances, in addition to their memories and
    /// tables. `false` if the limit is exceeded.
    pub(crate) fn hold(&mut self, bytes: u64) -> bool {
        self.grow(0, bytes)
    }

    fn grow(&mut self, current_bytes: u64, desired_bytes: u64) -> bool {
        let more = desired_bytes.saturating_sub(current_bytes);
        let held = self.held_bytes.saturating_add(more);
        if held > self.limit_bytes {
            self.refused = true;
            return false;
        }
        self.held_bytes = held;
        self.peak_bytes = self.peak_bytes.max(held);
        true
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(current as u64, desired as u64))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes = |elements: usize| (elements as u64).saturating_mul(TABLE_ELEMENT_BYTES);
        Ok(self.grow(bytes(current), bytes(desired)))
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryLimiter, ResourceLimiter};

    #[test]
    fn memories_and_tables_are_one_sum() {
        let mut limiter = MemoryLimiter::new(1000);
        assert!(limiter.memory_growing(0, 500, None).unwrap());
        assert!(limiter.memory_growing(0, 300, None).unwrap());
        assert!(limiter.table_growing(0, 25, None).unwrap(), "25 elements are 200 bytes");
        assert!(!limiter.refused());
        assert!(!limiter.memory_growing(500, 501, None).unwrap());
        assert!(limiter.refused());
        assert_eq!(limiter.peak_bytes(), 1000);
    }

    #[test]
    fn what_the_host_keeps_of_instances_is_in_the_sum() {
        let mut limiter = MemoryLimiter::new(1000);
        assert!(limiter.hold(900));
        assert!(!limiter.memory_growing(0, 101, None).unwrap());
        assert!(limiter.refused());
        assert!(!MemoryLimiter::new(1000).hold(1001));
    }

    #[test]
    fn a_growth_past_the_module_s_own_maximum_is_no_refusal_of_ours() {
        let mut limiter = MemoryLimiter::new(1000);
        assert!(!limiter.memory_growing(0, 600, Some(500)).unwrap());
        assert!(!limiter.refused());
    }
}
