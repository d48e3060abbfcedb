//! Room in the instance pool. A call waits here for its share before it instantiates, so the pool
//! is never exhausted.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_policy::{INSTANCES_MAX, TABLES_MAX};
use toolcell_wall::load::cost::TABLE_ELEMENTS;
use toolcell_wall::pool_sizes::{
    AddressSpace, MEMORIES_PER_CALL, PoolSizes, SandboxOptions, TABLES_PER_CALL, UNITS_MIN, UNITS_PER_CALL,
    per_component,
};
use wasmtime::component::Component;
use wasmtime::{Enabled, PoolingAllocationConfig};

/// Bytes of one core instance's or one component instance's own record in the host.
pub(crate) const INSTANCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a memory that are zeroed by writing after a call; the rest is returned to the kernel.
/// Writing 256 KiB takes some 5 µs and stays on its core. Returning pages interrupts every core,
/// and each page costs a fault in the next call. A Rust guest with a stack of 128 KiB fits in, one
/// with Rust's default of 1 MiB does not.
const KEEP_MEMORY_BYTES: usize = 256 * 1024;
/// Bytes of a table that are zeroed in the same way: 8,192 elements, more than the largest table of
/// JavaScript's runtime.
const KEEP_TABLE_BYTES: usize = 64 * 1024;
/// Memories that stay ready for their component, with the bytes they keep. The least recently used
/// are reassigned first. The host keeps [`KEEP_MEMORY_BYTES`] of each of these, and of as many
/// memories as were ever in use at once.
const READY_MEMORIES: u32 = 64;
/// Bytes of a call's stack that are zeroed and stay resident between calls, more than most calls
/// touch; the rest is returned to the kernel. Otherwise each stack that was ever used in full would
/// keep its half megabyte.
const KEEP_STACK_BYTES: usize = 16 * 1024;

/// Hands out pool room.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    calls: Arc<Semaphore>,
    units: Arc<Semaphore>,
    warm: Arc<Semaphore>,
    sizes: PoolSizes,
}

/// The right to run one call, given back when dropped.
pub(crate) type SlotPermit = OwnedSemaphorePermit;

/// One instance's share of the pool, given back when dropped, and the right to run while it does.
#[derive(Debug)]
pub(crate) struct Slot {
    call: Option<SlotPermit>,
    _units: OwnedSemaphorePermit,
}

impl Slot {
    /// Starts the call of a prewarmed instance.
    pub(crate) fn run(&mut self, call: SlotPermit) {
        self.call = Some(call);
    }

    /// Ends the call. The instance keeps its share of the pool.
    pub(crate) fn rest(&mut self) {
        self.call = None;
    }
}

impl Slots {
    /// Room for the calls of these options. `fits` tells whether the process can reserve that many
    /// bytes of address space.
    ///
    /// # Errors
    /// The process gets too little address space.
    pub(crate) fn new(options: &SandboxOptions, fits: impl Fn(u64) -> bool) -> Result<Self, AddressSpace> {
        let sizes = PoolSizes::fitting(options, fits)?;
        let room = |units: u32| Arc::new(Semaphore::new(units as usize));
        Ok(Self {
            calls: room(sizes.calls),
            units: room(sizes.calls.saturating_mul(UNITS_PER_CALL)),
            warm: room(sizes.warm.saturating_mul(UNITS_PER_CALL)),
            sizes,
        })
    }

    /// The pool's sizes, for the engine.
    pub(crate) fn pool(&self) -> PoolingAllocationConfig {
        let mut pool = PoolingAllocationConfig::new();
        let instances = self.sizes.instances();
        let memories_max = self.memories_max();
        pool.total_component_instances(instances)
            .total_stacks(self.sizes.stacks())
            .total_core_instances(instances.saturating_mul(per_component(INSTANCES_MAX)))
            .total_memories(self.sizes.memories())
            .total_tables(self.sizes.tables())
            .table_elements(TABLE_ELEMENTS)
            .max_core_instances_per_component(per_component(INSTANCES_MAX))
            .max_memories_per_component(memories_max)
            .max_memories_per_module(memories_max)
            .max_tables_per_component(per_component(TABLES_MAX))
            .max_tables_per_module(per_component(TABLES_MAX))
            .max_core_instance_size(INSTANCE_BYTES_MAX)
            .max_component_instance_size(INSTANCE_BYTES_MAX)
            .max_unused_warm_slots(READY_MEMORIES)
            .async_stack_keep_resident(KEEP_STACK_BYTES)
            // A larger batch would keep the memories of the last calls resident until more calls
            // follow.
            .decommit_batch_size(1);
        pool.pagemap_scan(Enabled::No)
            .linear_memory_keep_resident(KEEP_MEMORY_BYTES)
            .table_keep_resident(KEEP_TABLE_BYTES);
        pool
    }

    /// The most memories that a component in the pool may have.
    pub(crate) fn memories_max(&self) -> u32 {
        self.sizes.memories_max()
    }

    /// The units that one instance of this component needs, with this number of stacks.
    pub(crate) fn units(&self, component: &Component, stacks: u32) -> u32 {
        let all = self.sizes.calls.saturating_mul(UNITS_PER_CALL);
        let Some(needed) = component.resources_required() else { return all };
        let memories = needed.num_memories.saturating_mul(UNITS_PER_CALL / MEMORIES_PER_CALL);
        let tables = needed.num_tables.saturating_mul(UNITS_PER_CALL / TABLES_PER_CALL);
        memories.max(tables).max(stacks.saturating_mul(UNITS_MIN)).min(all)
    }

    /// The units of an instance that is recorded: it has the relay beside it.
    pub(crate) fn with_relay(&self, units: u32) -> u32 {
        let all = self.sizes.calls.saturating_mul(UNITS_PER_CALL);
        units.saturating_add(UNITS_MIN.max(UNITS_PER_CALL / MEMORIES_PER_CALL)).min(all)
    }

    /// Waits at most `wait` for the right to run a call; `None` if the time is up.
    pub(crate) async fn call(&self, wait: Duration) -> Option<SlotPermit> {
        if let Ok(call) = Arc::clone(&self.calls).try_acquire_owned() {
            return Some(call);
        }
        tokio::time::timeout(wait, Arc::clone(&self.calls).acquire_owned()).await.ok()?.ok()
    }

    /// Waits at most `wait` for `units` of room for this call's instance; `None` if the time is up.
    pub(crate) async fn take(&self, call: SlotPermit, units: u32, wait: Duration) -> Option<Slot> {
        let units = match Arc::clone(&self.units).try_acquire_many_owned(units) {
            Ok(units) => units,
            Err(_) => tokio::time::timeout(wait, Arc::clone(&self.units).acquire_many_owned(units)).await.ok()?.ok()?,
        };
        Some(Slot { call: Some(call), _units: units })
    }

    /// Room for a prewarmed instance, if any is free. It never takes room that calls need.
    pub(crate) fn take_prewarm(&self, units: u32) -> Option<Slot> {
        let units = Arc::clone(&self.warm).try_acquire_many_owned(units).ok()?;
        Some(Slot { call: None, _units: units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(calls_max: usize) -> Slots {
        Slots::new(&SandboxOptions { calls_max, ..SandboxOptions::default() }, |_| true).unwrap()
    }

    async fn take(slots: &Slots, units: u32) -> Option<Slot> {
        let wait = Duration::from_millis(1);
        slots.take(slots.call(wait).await?, units, wait).await
    }

    #[tokio::test]
    async fn a_full_pool_makes_the_next_call_wait_and_then_says_no() {
        let slots = slots(2);
        let held = take(&slots, 2 * UNITS_PER_CALL).await.unwrap();
        assert!(take(&slots, 1).await.is_none());
        drop(held);
        assert!(take(&slots, 2 * UNITS_PER_CALL).await.is_some());
    }

    #[tokio::test]
    async fn no_more_calls_run_than_may_however_small() {
        let slots = slots(2);
        let mut held = [take(&slots, 1).await.unwrap(), take(&slots, 1).await.unwrap()];
        assert!(take(&slots, 1).await.is_none());
        held[0].rest();
        assert!(take(&slots, 1).await.is_some(), "an instance that rests is in nobody's way");
    }

    #[tokio::test]
    async fn instances_made_ahead_take_no_room_from_calls() {
        let slots = slots(1);
        let warm: Vec<_> = std::iter::from_fn(|| slots.take_prewarm(UNITS_PER_CALL)).collect();
        assert_eq!(warm.len(), 1, "as many as calls");
        assert!(take(&slots, UNITS_PER_CALL).await.is_some());
    }
}
