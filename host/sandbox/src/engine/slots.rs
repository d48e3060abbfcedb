//! Room in the instance pool. A call waits here for its share before it instantiates, so that the
//! pool never runs dry.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_wall::load::cost::TABLE_ELEMENTS;
use wasmtime::component::Component;
use wasmtime::{Enabled, PoolingAllocationConfig};

use super::HOST_STACK_BYTES;

use toolcell_policy::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};

/// Linear memories that the pool has for each call, on the average. Most components have one,
/// CPython has ten.
const MEMORIES_PER_CALL: u32 = 4;
/// Bytes of address space that the pool reserves for a memory: all that 32 bits can address, and
/// wasmtime's guard behind it.
const MEMORY_SPACE_BYTES: u64 = (4 << 30) + (32 << 20);
/// Bytes of address space that stay free for the rest of the process: code, threads, and what its
/// allocator reserves for each.
const SPARE_SPACE_BYTES: u64 = 4 << 30;
/// Tables that the pool has for each call, on the average.
const TABLES_PER_CALL: u32 = 8;
/// Bytes of a stack's guard, and of the part of it that host functions have.
const STACK_SPACE_BYTES: u64 = HOST_STACK_BYTES as u64 + (64 << 10);
/// Bytes of one core instance's or one component instance's own record in the host.
pub(crate) const INSTANCE_BYTES_MAX: usize = 1 << 20;
/// The reset of the pool's slots, on every kernel: `toolcell status` and the log say it.
///
/// The engine could ask the kernel which pages a call touched (`PAGEMAP_SCAN`), and reset those
/// alone. Release 48 asks for pages that are present. A page that is swapped out, or being moved,
/// is not present, and the next call in its slot read it. So the engine does not ask.
/// `host/docs/decisions/slot-resets.md` has the figures, and the question that an engine must ask
/// before this changes.
pub const SLOT_RESETS: &str = "every byte: the first 256 KiB of a memory are written over, the rest is given back";

/// Bytes of a memory that are written over after a call; the rest is given back to the kernel.
/// Writing 256 KiB takes some 5 µs and stays on its core. Giving pages back interrupts every core,
/// and each costs a fault in the next call. A guest of Rust with a stack of 128 KiB fits in, one
/// with Rust's default of 1 MiB does not.
const KEEP_MEMORY_BYTES: usize = 256 * 1024;
/// Bytes of a table that are written over likewise: 8,192 elements, more than the largest of
/// JavaScript's runtime.
const KEEP_TABLE_BYTES: usize = 64 * 1024;
/// Memories that stay ready for their component, with the bytes they keep. Those unused for longest
/// are given to others first. A host keeps [`KEEP_MEMORY_BYTES`] of each of these, and of as many
/// memories as were ever in use at once.
const READY_MEMORIES: u32 = 64;
/// Bytes of a call's stack that are zeroed and stay resident between calls, more than most touch;
/// the rest is given back. Without this, each stack that was ever overrun would keep its half
/// megabyte.
const KEEP_STACK_BYTES: usize = 16 * 1024;

/// Pool room is counted in units: a call with one memory and one or two tables needs `UNITS_MIN`.
const UNITS_PER_CALL: u32 = MEMORIES_PER_CALL * TABLES_PER_CALL;
const UNITS_MIN: u32 = UNITS_PER_CALL / MEMORIES_PER_CALL;

/// Places for prewarmed instances that the pool has beside those of calls, as many as there are
/// calls; four small instances share one. Memory bounds their number first.
const WARM_MAX: u32 = 64;

/// Hands out pool room.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    calls: Arc<Semaphore>,
    units: Arc<Semaphore>,
    warm: Arc<Semaphore>,
    sizes: PoolSizes,
}

/// Room in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PoolSizes {
    calls: u32,
    /// Places for prewarmed instances.
    warm: u32,
    /// Memories at the least, however few calls there are.
    memories_min: u32,
}

/// The process gets less address space than its pool reserves.
#[derive(Debug, thiserror::Error)]
#[error(
    "calls = {calls} in [server] reserves {} GiB of address space, and this process gets less (ulimit -v, or what the \
     kernel has); {}",
    .reserved_bytes.div_ceil(1 << 30),
    .fitting.map_or_else(|| "not even calls = 1 fits".to_owned(), |fitting| format!("calls = {fitting} fits"))
)]
pub struct AddressSpace {
    calls: u32,
    reserved_bytes: u64,
    /// The most calls that fit.
    fitting: Option<u32>,
}

/// The right to run one call, given back when dropped.
pub(crate) type CallPermit = OwnedSemaphorePermit;

/// One instance's share of the pool, given back when dropped, and the right to run while it does.
#[derive(Debug)]
pub(crate) struct Slot {
    call: Option<CallPermit>,
    _units: OwnedSemaphorePermit,
}

impl Slot {
    /// Lets a prewarmed instance run.
    pub(crate) fn run(&mut self, call: CallPermit) {
        self.call = Some(call);
    }

    /// The instance has run; its share is given back with it.
    pub(crate) fn rest(&mut self) {
        self.call = None;
    }
}

impl PoolSizes {
    /// Sizes for this number of calls, at least one: the largest that fit into the address space.
    /// Calls come first, then the memories of a single large call, then prewarmed instances.
    fn fitting(calls_max: usize, stack_bytes: usize, fits: impl Fn(u64) -> bool) -> Result<Self, AddressSpace> {
        let most = u32::MAX / UNITS_PER_CALL / 2;
        let calls = u32::try_from(calls_max).unwrap_or(most).clamp(1, most);
        let fits = |sizes: &Self| fits(sizes.space_bytes(stack_bytes).saturating_add(SPARE_SPACE_BYTES));
        let fewer = std::iter::successors(Some(calls.min(WARM_MAX)), |warm| (*warm > 0).then_some(warm / 2));
        let least = Self::least(calls);
        let fewer = fewer.map(|warm| Self { calls, warm, memories_min: per_component(MEMORIES_MAX) });
        fewer.chain([least]).find(&fits).ok_or_else(|| AddressSpace {
            calls,
            reserved_bytes: least.space_bytes(stack_bytes),
            fitting: largest(calls, |calls| fits(&Self::least(calls))),
        })
    }

    /// The least that this number of calls needs.
    fn least(calls: u32) -> Self {
        Self { calls, warm: 0, memories_min: 0 }
    }

    fn places(self) -> u32 {
        self.calls.saturating_add(self.warm)
    }

    fn memories(self) -> u32 {
        self.places().saturating_mul(MEMORIES_PER_CALL).max(self.memories_min)
    }

    /// A single call may be as large as a component may be, however few calls there are.
    fn tables(self) -> u32 {
        self.places().saturating_mul(TABLES_PER_CALL).max(per_component(TABLES_MAX))
    }

    /// There are as many instances as the units allow, the smallest having four in one place. Each
    /// keeps a stack once it ran.
    fn instances(self) -> u32 {
        self.places().saturating_mul(UNITS_PER_CALL / UNITS_MIN)
    }

    /// Bytes of address space that the engine reserves for these.
    fn space_bytes(self, stack_bytes: usize) -> u64 {
        let stack = (stack_bytes as u64).saturating_add(STACK_SPACE_BYTES);
        let table = TABLE_ELEMENTS as u64 * size_of::<usize>() as u64;
        let memories = MEMORY_SPACE_BYTES.saturating_mul(self.memories().into());
        let stacks = stack.saturating_mul(self.instances().into());
        memories.saturating_add(stacks).saturating_add(table.saturating_mul(self.tables().into()))
    }
}

/// The largest number from 1 to below `end` that fits, where all smaller ones do.
fn largest(end: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let mut known = 0;
    let mut end = end;
    while end.saturating_sub(known) > 1 {
        let middle = known.midpoint(end);
        if fits(middle) {
            known = middle;
        } else {
            end = middle;
        }
    }
    (known > 0).then_some(known)
}

fn per_component(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Slots {
    /// Room for this number of calls at once; at least one. `fits` says if the process can reserve
    /// so many bytes of address space.
    ///
    /// # Errors
    /// The process gets too little address space.
    pub(crate) fn new(calls_max: usize, stack_bytes: usize, fits: impl Fn(u64) -> bool) -> Result<Self, AddressSpace> {
        let sizes = PoolSizes::fitting(calls_max, stack_bytes, fits)?;
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
            .total_stacks(instances)
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
            // More at once would leave the memories of the last calls resident until others follow.
            .decommit_batch_size(1);
        pool.pagemap_scan(Enabled::No)
            .linear_memory_keep_resident(KEEP_MEMORY_BYTES)
            .table_keep_resident(KEEP_TABLE_BYTES);
        pool
    }

    /// The most memories that a component in the pool may have.
    pub(crate) fn memories_max(&self) -> u32 {
        per_component(MEMORIES_MAX).min(self.sizes.memories())
    }

    /// The units one instance of this component needs.
    pub(crate) fn units(&self, component: &Component) -> u32 {
        let all = self.sizes.calls.saturating_mul(UNITS_PER_CALL);
        let Some(needed) = component.resources_required() else { return all };
        let memories = needed.num_memories.saturating_mul(UNITS_PER_CALL / MEMORIES_PER_CALL);
        let tables = needed.num_tables.saturating_mul(UNITS_PER_CALL / TABLES_PER_CALL);
        memories.max(tables).max(UNITS_MIN).min(all)
    }

    /// Waits for the right to run a call, at most `wait`; `None` where there was none in time.
    pub(crate) async fn call(&self, wait: Duration) -> Option<CallPermit> {
        if let Ok(call) = Arc::clone(&self.calls).try_acquire_owned() {
            return Some(call);
        }
        tokio::time::timeout(wait, Arc::clone(&self.calls).acquire_owned()).await.ok()?.ok()
    }

    /// Waits for `units` of room for this call's instance, at most `wait`; `None` where there was
    /// none in time.
    pub(crate) async fn take(&self, call: CallPermit, units: u32, wait: Duration) -> Option<Slot> {
        let units = match Arc::clone(&self.units).try_acquire_many_owned(units) {
            Ok(units) => units,
            Err(_) => tokio::time::timeout(wait, Arc::clone(&self.units).acquire_many_owned(units)).await.ok()?.ok()?,
        };
        Some(Slot { call: Some(call), _units: units })
    }

    /// Room for a prewarmed instance, if there is any: never from the room of calls.
    pub(crate) fn take_warm(&self, units: u32) -> Option<Slot> {
        let units = Arc::clone(&self.warm).try_acquire_many_owned(units).ok()?;
        Some(Slot { call: None, _units: units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: usize = 512 << 10;

    fn slots(calls: usize) -> Slots {
        Slots::new(calls, STACK, |_| true).unwrap()
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
        let warm: Vec<_> = std::iter::from_fn(|| slots.take_warm(UNITS_PER_CALL)).collect();
        assert_eq!(warm.len(), 1, "as many as calls");
        assert!(take(&slots, UNITS_PER_CALL).await.is_some());
    }
    #[test]
    fn the_pool_reserves_what_the_calls_need() {
        for (calls, warm, memories) in [(1, 1, 64), (4, 4, 64), (16, 16, 128), (256, 64, 1280), (4096, 64, 16_640)] {
            let sizes = slots(calls).sizes;
            assert_eq!((sizes.warm, sizes.memories()), (warm, memories), "{calls}");
        }
    }

    #[test]
    fn a_small_address_space_leaves_instances_made_ahead_out_first_and_then_large_components() {
        for (gibibytes, warm, memories) in [(300, 4, 64), (280, 4, 64), (100, 0, 16), (70, 0, 16)] {
            let slots = Slots::new(4, STACK, |bytes| bytes <= gibibytes << 30).unwrap();
            assert_eq!((slots.sizes.warm, slots.sizes.memories()), (warm, memories), "{gibibytes}");
        }
        let slots = Slots::new(64, STACK, |bytes| bytes <= 1200 << 30).unwrap();
        assert_eq!((slots.sizes.warm, slots.sizes.memories(), slots.memories_max()), (8, 288, 64));
    }

    #[test]
    fn too_small_a_one_is_said_with_the_calls_that_fit() {
        for (gibibytes, calls, says) in [
            (
                429,
                256,
                "calls = 256 in [server] reserves 4131 GiB of address space, and this process gets less \
                        (ulimit -v, or what the kernel has); calls = 26 fits",
            ),
            (
                64,
                4,
                "calls = 4 in [server] reserves 65 GiB of address space, and this process gets less \
                     (ulimit -v, or what the kernel has); calls = 3 fits",
            ),
            (
                10,
                1,
                "calls = 1 in [server] reserves 17 GiB of address space, and this process gets less \
                     (ulimit -v, or what the kernel has); not even calls = 1 fits",
            ),
        ] {
            let refused = Slots::new(calls, STACK, |bytes| bytes <= gibibytes << 30).unwrap_err();
            assert_eq!(refused.to_string(), says);
        }
    }
}
