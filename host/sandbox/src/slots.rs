//! Room in the instance pool. A call waits here for its share before it instantiates, so that the pool never runs dry.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Component;
use wasmtime::{Enabled, PoolingAllocationConfig};

use crate::limiter::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};

/// Calls running at once in one process: sixteen of each of sixteen tools. Each holds at least a 2 MiB stack
/// reservation and one memory slot of address space.
const CALLS_MAX: u32 = 256;
/// Linear memories at once. A slot reserves 4 GiB of address space and its guards: 4 TiB of the 128 TiB there are.
const MEMORIES_TOTAL: u32 = 1024;
/// Tables at once.
const TABLES_TOTAL: u32 = 2048;
/// Elements of one table. The largest of a language runtime measured is 7,688 (JavaScript); some need 30,000.
const TABLE_ELEMENTS: usize = 32 * 1024;
/// Bytes of one core instance's or one component instance's own record in the host.
const INSTANCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a used slot that stay resident between calls, where the kernel can tell which pages were touched.
/// Zeroing what a small guest touches is cheaper than giving the pages back and faulting them in again.
const KEEP_RESIDENT_BYTES: usize = 4 << 20;

/// Pool room is counted in these units: one is the share of a call with one memory and one or two tables.
const UNITS_TOTAL: u32 = 4096;

/// The pool's sizes, for the engine.
pub(crate) fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    let per_component = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    pool.total_component_instances(CALLS_MAX)
        .total_stacks(CALLS_MAX)
        .total_core_instances(CALLS_MAX.saturating_mul(per_component(INSTANCES_MAX)))
        .total_memories(MEMORIES_TOTAL)
        .total_tables(TABLES_TOTAL)
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

/// Hands out pool room.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<Semaphore>);

/// One call's share of the pool, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Slots {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(UNITS_TOTAL as usize)))
    }

    /// Waits for `units` of room, at most `wait`; `None` where there was none in time.
    pub(crate) async fn take(&self, units: u32, wait: Duration) -> Option<Slot> {
        if let Ok(permit) = Arc::clone(&self.0).try_acquire_many_owned(units) {
            return Some(Slot(permit));
        }
        let acquired = tokio::time::timeout(wait, Arc::clone(&self.0).acquire_many_owned(units)).await;
        acquired.ok().and_then(Result::ok).map(Slot)
    }
}

/// The units one instance of this component needs.
pub(crate) fn units(component: &Component) -> u32 {
    let (memories, tables) = component
        .resources_required()
        .map_or((MEMORIES_TOTAL, TABLES_TOTAL), |needed| (needed.num_memories, needed.num_tables));
    (memories.saturating_mul(UNITS_TOTAL / MEMORIES_TOTAL))
        .max(tables.saturating_mul(UNITS_TOTAL / TABLES_TOTAL))
        .clamp(UNITS_TOTAL / CALLS_MAX, UNITS_TOTAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_pool_makes_the_next_call_wait_and_then_says_no() {
        let slots = Slots::new();
        let held = slots.take(UNITS_TOTAL, Duration::ZERO).await.unwrap();
        assert!(slots.take(1, Duration::from_millis(1)).await.is_none());
        drop(held);
        assert!(slots.take(UNITS_TOTAL, Duration::ZERO).await.is_some());
    }
}
