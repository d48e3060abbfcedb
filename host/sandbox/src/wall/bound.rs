//! The memory that a process may take, from the limits of what can run in it. Pure.
use toolcell_policy::Limits;

use super::group::GroupMember;
use super::pool::PoolOptions;

/// Memory of a process without its calls: the engine, the tables of its reserved address space, and
/// what the allocator keeps. An idle one with a hundred tools takes a tenth of it.
const PROCESS_BYTES: u64 = 256 << 20;

/// Memory of a call in addition to its limits: its store, its records, its buffers.
const CALL_BYTES: u64 = 2 << 20;

/// Memory of finished calls that a process may keep, as allocator and engine do to be fast. A
/// process that keeps more is ended while idle.
const KEPT_BYTES: u64 = 64 << 20;

/// Ratio of writable memory, as the kernel counts it, to memory in use. The engine leaves the
/// memory of a slot writable that an earlier call grew, and returns only its pages.
const WRITABLE_TIMES: u64 = 2;

/// The bounds of one process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryBound {
    /// Memory in use, which the host checks.
    pub(super) resident: u64,
    /// Memory that may be written to, which the kernel counts.
    pub(super) writable: u64,
    /// Memory that it may hold without a call, in addition to what it has at its start.
    pub(super) rest: u64,
}

/// The memory of a process that runs these components: the largest calls that may run at once,
/// prewarmed instances and those kept for callers; never more than `most`.
pub(super) fn of(members: &[GroupMember], pool: &PoolOptions, most: u64) -> MemoryBound {
    let tools = members.iter().flat_map(|member| &member.limits);
    let kept = members.iter().map(|member| {
        let largest = member.limits.iter().map(Limits::memory_bytes).max().unwrap_or_default();
        largest.saturating_mul(member.kept_max as u64)
    });
    let kept = kept.fold(0, u64::saturating_add);
    let calls = calls_bytes(tools, pool.calls_max, pool.stack_bytes);
    let resident = [PROCESS_BYTES, pool.prewarm_bytes, kept].into_iter().fold(calls, u64::saturating_add);
    let resident = resident.min(most);
    MemoryBound {
        resident,
        writable: resident.saturating_mul(WRITABLE_TIMES).min(most),
        rest: pool.prewarm_bytes.saturating_add(KEPT_BYTES),
    }
}

/// The memory of the largest calls that can run at once.
fn calls_bytes<'l>(tools: impl Iterator<Item = &'l Limits>, calls_max: usize, stack_bytes: usize) -> u64 {
    let mut calls: Vec<(u64, usize)> =
        tools.map(|limits| (call_bytes(limits, stack_bytes), limits.concurrency())).collect();
    calls.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = calls_max;
    calls.into_iter().fold(0, |bytes, (each, concurrency)| {
        let running = concurrency.min(left);
        left -= running;
        u64::saturating_add(bytes, each.saturating_mul(running as u64))
    })
}

/// The memory of one call at most.
fn call_bytes(limits: &Limits, stack_bytes: usize) -> u64 {
    // An answer exists as values and as a message. Output is kept as text three times as long.
    let answer = limits.output_bytes().saturating_mul(2);
    let printed = limits.log_bytes().saturating_mul(4);
    let arguments = limits.arguments_bytes().saturating_mul(2);
    let parts = [limits.host_data_bytes(), answer, printed, arguments, stack_bytes as u64, CALL_BYTES];
    parts.into_iter().fold(limits.memory_bytes(), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_policy::Limit;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// Tools with this memory and this concurrency.
    fn calls(tools: &[(u64, u64)], calls_max: usize) -> u64 {
        let limits = |(memory, concurrency): &(u64, u64)| {
            let limits = Limits::default().with(Limit::Memory, *memory).unwrap();
            limits.with(Limit::Concurrency, *concurrency).unwrap()
        };
        let tools: Vec<Limits> = tools.iter().map(limits).collect();
        calls_bytes(tools.iter(), calls_max, 512 << 10)
    }

    #[test]
    fn a_process_has_room_for_as_many_of_the_largest_calls_as_may_run() {
        let beside = calls(&[(MIB, 1)], 256) - MIB;
        assert!((16 * MIB..32 * MIB).contains(&beside), "one call has {beside} bytes beside its memory");
        type Row = (&'static [(u64, u64)], usize, u64, u64);
        let table: [Row; 5] = [
            (&[], 256, 0, 0),
            (&[(64 * MIB, 16)], 256, 16 * 64 * MIB, 16),
            (&[(64 * MIB, 16), (MIB, 4)], 256, (16 * 64 + 4) * MIB, 20),
            // Only as many as run at once, the largest of them.
            (&[(MIB, 100), (64 * MIB, 2)], 10, (2 * 64 + 8) * MIB, 10),
            (&[(64 * MIB, 16), (64 * MIB, 16)], 20, 20 * 64 * MIB, 20),
        ];
        for (tools, calls_max, memories, running) in table {
            assert_eq!(calls(tools, calls_max), memories + running * beside, "{tools:?} with {calls_max}");
        }
        assert_eq!(calls(&[(4 << 30, 1_000); 1_000], usize::MAX), calls(&[(4 << 30, 1_000)], 1_000) * 1_000);
    }
}
