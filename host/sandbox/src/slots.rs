//! Room in the instance pool. A call waits here for its share before it instantiates, so that the pool never runs dry.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Component;
use wasmtime::{Enabled, PoolingAllocationConfig};

use toolcell_policy::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};

/// Linear memories that the pool has for each call, on the average. Most components have one, CPython has ten; a slot
/// reserves 4 GiB of address space and its guards.
const MEMORIES_PER_CALL: u32 = 4;
/// Tables that the pool has for each call, on the average.
const TABLES_PER_CALL: u32 = 8;
/// Elements of one table. The largest of a language runtime measured is 7,688 (JavaScript); some need 30,000.
const TABLE_ELEMENTS: usize = 32 * 1024;
/// Bytes of one core instance's or one component instance's own record in the host.
const INSTANCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a used slot that stay resident between calls, where the kernel can tell which pages were touched.
/// Zeroing what a small guest touches is cheaper than giving the pages back and faulting them in again.
const KEEP_RESIDENT_BYTES: usize = 4 << 20;

/// Pool room is counted in units: a call with one memory and one or two tables needs `UNITS_MIN`.
const UNITS_PER_CALL: u32 = MEMORIES_PER_CALL * TABLES_PER_CALL;
const UNITS_MIN: u32 = UNITS_PER_CALL / MEMORIES_PER_CALL;

/// Hands out pool room.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    units: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    calls_max: u32,
}

/// One call's share of the pool, given back when dropped.
#[derive(Debug)]
#[allow(dead_code, reason = "held for its drop")]
pub(crate) struct Slot(OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Slots {
    /// Room for so many calls at once; at least one.
    pub(crate) fn new(calls_max: usize) -> Self {
        let most = u32::MAX / UNITS_PER_CALL;
        let calls_max = u32::try_from(calls_max).unwrap_or(most).clamp(1, most);
        let units = calls_max.saturating_mul(UNITS_PER_CALL) as usize;
        Self { units: Arc::new(Semaphore::new(units)), calls: Arc::new(Semaphore::new(calls_max as usize)), calls_max }
    }

    /// The pool's sizes, for the engine.
    pub(crate) fn pool(&self) -> PoolingAllocationConfig {
        let mut pool = PoolingAllocationConfig::new();
        let per_component = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // A single call may be as large as a component may be, however few calls there are.
        let at_least = |count: u32, one: usize| count.max(per_component(one));
        pool.total_component_instances(self.calls_max)
            .total_stacks(self.calls_max)
            .total_core_instances(self.calls_max.saturating_mul(per_component(INSTANCES_MAX)))
            .total_memories(at_least(self.calls_max.saturating_mul(MEMORIES_PER_CALL), MEMORIES_MAX))
            .total_tables(at_least(self.calls_max.saturating_mul(TABLES_PER_CALL), TABLES_MAX))
            .table_elements(TABLE_ELEMENTS)
            .max_core_instances_per_component(per_component(INSTANCES_MAX))
            .max_memories_per_component(per_component(MEMORIES_MAX))
            .max_tables_per_component(per_component(TABLES_MAX))
            .max_tables_per_module(per_component(TABLES_MAX))
            .max_core_instance_size(INSTANCE_BYTES_MAX)
            .max_component_instance_size(INSTANCE_BYTES_MAX);
        if PoolingAllocationConfig::is_pagemap_scan_available() {
            pool.pagemap_scan(Enabled::Yes)
                .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
                .table_keep_resident(KEEP_RESIDENT_BYTES);
        }
        pool
    }

    /// The units one instance of this component needs.
    pub(crate) fn units(&self, component: &Component) -> u32 {
        let all = self.calls_max.saturating_mul(UNITS_PER_CALL);
        let Some(needed) = component.resources_required() else { return all };
        let memories = needed.num_memories.saturating_mul(UNITS_PER_CALL / MEMORIES_PER_CALL);
        let tables = needed.num_tables.saturating_mul(UNITS_PER_CALL / TABLES_PER_CALL);
        memories.max(tables).max(UNITS_MIN).min(all)
    }

    /// Waits for `units` of room, at most `wait`; `None` where there was none in time.
    pub(crate) async fn take(&self, units: u32, wait: Duration) -> Option<Slot> {
        if let Some(slot) = self.take_now(units) {
            return Some(slot);
        }
        let taken = async {
            let call = Arc::clone(&self.calls).acquire_owned().await.ok()?;
            let units = Arc::clone(&self.units).acquire_many_owned(units).await.ok()?;
            Some(Slot(call, units))
        };
        tokio::time::timeout(wait, taken).await.ok().flatten()
    }

    /// Takes `units` of room for an instance that nobody asked for yet: only while more than half of the room is free.
    pub(crate) fn take_spare(&self, units: u32) -> Option<Slot> {
        let spare = |semaphore: &Semaphore, all: u32| semaphore.available_permits() > (all / 2) as usize;
        let enough =
            spare(&self.calls, self.calls_max) && spare(&self.units, self.calls_max.saturating_mul(UNITS_PER_CALL));
        enough.then(|| self.take_now(units)).flatten()
    }

    /// Takes `units` of room if they are there.
    pub(crate) fn take_now(&self, units: u32) -> Option<Slot> {
        let call = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        let units = Arc::clone(&self.units).try_acquire_many_owned(units).ok()?;
        Some(Slot(call, units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_pool_makes_the_next_call_wait_and_then_says_no() {
        let slots = Slots::new(2);
        let held = slots.take(2 * UNITS_PER_CALL, Duration::ZERO).await.unwrap();
        assert!(slots.take(1, Duration::from_millis(1)).await.is_none());
        drop(held);
        assert!(slots.take(2 * UNITS_PER_CALL, Duration::ZERO).await.is_some());
    }

    #[tokio::test]
    async fn no_more_calls_run_than_may_however_small() {
        let slots = Slots::new(2);
        let _held = [slots.take(1, Duration::ZERO).await.unwrap(), slots.take(1, Duration::ZERO).await.unwrap()];
        assert!(slots.take(1, Duration::from_millis(1)).await.is_none());
    }
}
