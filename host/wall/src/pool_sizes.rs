//! Numbers for the room in a process's pool of instances, and the address space that it reserves.
use toolcell_policy::{MEMORIES_MAX, TABLES_MAX};

use crate::load::cost::{TABLE_ELEMENTS, WAITING_PARTS_MAX};
use crate::load::facts::GuestEngine;

/// Bytes of stack for host functions, in addition to the guest's own: as much as wasmtime's
/// defaults leave (2 MiB less 512 KiB).
pub const HOST_STACK_BYTES: usize = 1536 * 1024;

/// Linear memories that the pool has for each call, on the average. Most components have one,
/// CPython has ten.
pub const MEMORIES_PER_CALL: u32 = 4;
/// Bytes of address space that the pool reserves for a memory: all that 32 bits can address, and
/// wasmtime's guard behind it.
const MEMORY_SPACE_BYTES: u64 = (4 << 30) + (32 << 20);
/// Bytes of address space that stay free for the rest of the process: code, threads, and what its
/// allocator reserves for each.
const SPARE_SPACE_BYTES: u64 = 4 << 30;
/// Tables that the pool has for each call, on the average.
pub const TABLES_PER_CALL: u32 = 8;
/// Bytes of a stack's guard, and of the part of it for host functions.
const STACK_SPACE_BYTES: u64 = HOST_STACK_BYTES as u64 + (64 << 10);
/// Pool room is counted in units: a call with one memory and one or two tables needs `UNITS_MIN`.
pub const UNITS_PER_CALL: u32 = MEMORIES_PER_CALL * TABLES_PER_CALL;
/// Units of the smallest call.
pub const UNITS_MIN: u32 = UNITS_PER_CALL / MEMORIES_PER_CALL;

/// Places for prewarmed instances that the pool has in addition to those of calls: one for each
/// call, and four small instances share one. Memory bounds their number first.
const WARM_MAX: u32 = 64;

/// How the pool's slots are reset, on every kernel: `toolcell status` and the log show it.
///
/// The engine could ask the kernel which pages a call touched (`PAGEMAP_SCAN`), and reset only
/// those. Release 48 asks for pages that are present. A page that is swapped out, or being moved,
/// is not present, and the next call in its slot read it. So the engine does not ask.
/// `host/docs/decisions/slot-resets.md` has the figures, and the question that an engine must ask
/// before this changes.
pub const SLOT_RESETS: &str = "every byte: the first 256 KiB of a memory are written over, the rest is given back";

/// The settings of a sandbox.
#[derive(Clone, Copy, Debug)]
pub struct SandboxOptions {
    /// Bytes of WebAssembly stack per call; 512 KiB by default, wasmtime's own. Deeper recursion
    /// has a trap of its own.
    pub stack_bytes: usize,
    /// Calls that run at once, over all tools; 256 by default: sixteen of each of sixteen tools.
    /// Each reserves a stack and the address space of four memories.
    pub calls_max: usize,
    /// The engine.
    pub engine: GuestEngine,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self { stack_bytes: 512 * 1024, calls_max: 256, engine: GuestEngine::Sync }
    }
}

/// Room in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSizes {
    /// Calls at once.
    pub calls: u32,
    /// Places for prewarmed instances.
    pub warm: u32,
    /// Memories at least, even for few calls.
    pub memories_min: u32,
    /// Stacks of a single call at most.
    pub stacks_of_call: u32,
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

impl PoolSizes {
    /// The largest sizes for this number of calls, at least one, that fit into the address space.
    /// Calls come first, then the memories of a single large call, then prewarmed instances. `fits`
    /// tells whether a process can reserve that many bytes of address space.
    ///
    /// # Errors
    /// Even the smallest sizes do not fit.
    pub fn fitting(options: &SandboxOptions, fits: impl Fn(u64) -> bool) -> Result<Self, AddressSpace> {
        let SandboxOptions { stack_bytes, calls_max, engine } = *options;
        let most = u32::MAX / UNITS_PER_CALL / 2;
        let calls = u32::try_from(calls_max).unwrap_or(most).clamp(1, most);
        let fits = |sizes: &Self| fits(sizes.space_bytes(stack_bytes).saturating_add(SPARE_SPACE_BYTES));
        let fewer = std::iter::successors(Some(calls.min(WARM_MAX)), |warm| (*warm > 0).then_some(warm / 2));
        let least = Self::least(calls, engine);
        let fewer = fewer.map(|warm| Self { warm, memories_min: per_component(MEMORIES_MAX), ..least });
        fewer.chain([least]).find(&fits).ok_or_else(|| AddressSpace {
            calls,
            reserved_bytes: least.space_bytes(stack_bytes),
            fitting: largest(calls, |calls| fits(&Self::least(calls, engine))),
        })
    }

    /// The smallest sizes for this number of calls.
    fn least(calls: u32, engine: GuestEngine) -> Self {
        let stacks_of_call = match engine {
            GuestEngine::Sync => 1,
            GuestEngine::Async => WAITING_PARTS_MAX + 1,
        };
        Self { calls, warm: 0, memories_min: 0, stacks_of_call }
    }

    fn places(self) -> u32 {
        self.calls.saturating_add(self.warm)
    }

    /// Linear memories of all instances.
    #[must_use]
    pub fn memories(self) -> u32 {
        self.places().saturating_mul(MEMORIES_PER_CALL).max(self.memories_min)
    }

    /// The most memories that a component in the pool may have.
    #[must_use]
    pub fn memories_max(self) -> u32 {
        per_component(MEMORIES_MAX).min(self.memories())
    }

    /// Tables of all instances.
    ///
    /// A single call may be as large as the largest component, even if there are few calls.
    #[must_use]
    pub fn tables(self) -> u32 {
        self.places().saturating_mul(TABLES_PER_CALL).max(per_component(TABLES_MAX))
    }

    /// Instances.
    ///
    /// As many instances as the units allow, where four of the smallest share a place. Each keeps a
    /// stack once it ran.
    #[must_use]
    pub fn instances(self) -> u32 {
        self.places().saturating_mul(UNITS_PER_CALL / UNITS_MIN)
    }

    /// Stacks.
    ///
    /// One for each instance, and room for the call that needs the most, even if there are few
    /// calls.
    #[must_use]
    pub fn stacks(self) -> u32 {
        let warm = self.warm.saturating_mul(UNITS_PER_CALL / UNITS_MIN);
        self.instances().max(warm.saturating_add(self.stacks_of_call))
    }

    /// Bytes of address space that the engine reserves for these.
    fn space_bytes(self, stack_bytes: usize) -> u64 {
        let stack = (stack_bytes as u64).saturating_add(STACK_SPACE_BYTES);
        let table = TABLE_ELEMENTS as u64 * size_of::<usize>() as u64;
        let memories = MEMORY_SPACE_BYTES.saturating_mul(self.memories().into());
        let stacks = stack.saturating_mul(self.stacks().into());
        memories.saturating_add(stacks).saturating_add(table.saturating_mul(self.tables().into()))
    }
}

/// The largest number from 1 to below `end` that fits, if all smaller ones do.
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

/// A count of one component, in the pool's type.
#[must_use]
pub fn per_component(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(calls_max: usize, engine: GuestEngine) -> SandboxOptions {
        SandboxOptions { calls_max, engine, ..SandboxOptions::default() }
    }

    #[test]
    fn the_pool_reserves_what_the_calls_need() {
        for (calls, warm, memories) in [(1, 1, 64), (4, 4, 64), (16, 16, 128), (256, 64, 1280), (4096, 64, 16_640)] {
            let sizes = PoolSizes::fitting(&options(calls, GuestEngine::Sync), |_| true).unwrap();
            assert_eq!((sizes.warm, sizes.memories()), (warm, memories), "{calls}");
        }
    }

    #[test]
    fn a_call_of_the_async_engine_has_stacks_for_all_parts_that_may_wait() {
        for (calls, engine, stacks) in [
            (1, GuestEngine::Sync, 8),
            (1, GuestEngine::Async, 4 + 65),
            (16, GuestEngine::Async, 64 + 65),
            (256, GuestEngine::Async, 1280),
            (256, GuestEngine::Sync, 1280),
        ] {
            assert_eq!(PoolSizes::fitting(&options(calls, engine), |_| true).unwrap().stacks(), stacks, "{calls}");
        }
    }

    #[test]
    fn a_small_address_space_leaves_instances_made_ahead_out_first_and_then_large_components() {
        for (gibibytes, warm, memories) in [(300, 4, 64), (280, 4, 64), (100, 0, 16), (70, 0, 16)] {
            let sizes = PoolSizes::fitting(&options(4, GuestEngine::Sync), |bytes| bytes <= gibibytes << 30).unwrap();
            assert_eq!((sizes.warm, sizes.memories()), (warm, memories), "{gibibytes}");
        }
        let sizes = PoolSizes::fitting(&options(64, GuestEngine::Sync), |bytes| bytes <= 1200 << 30).unwrap();
        assert_eq!((sizes.warm, sizes.memories(), sizes.memories_max()), (8, 288, 64));
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
            let refused =
                PoolSizes::fitting(&options(calls, GuestEngine::Sync), |bytes| bytes <= gibibytes << 30).unwrap_err();
            assert_eq!(refused.to_string(), says);
        }
    }
}
