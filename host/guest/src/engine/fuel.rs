//! Fuel of host functions. wasmtime counts only what the guest itself computes. This counter is
//! checked on every tick of the clock and when a call ends.
use wasmtime::Trap;

/// Fuel of one call of any host function. The cheapest takes 110 ns, in which a guest computes 7 to
/// 8 units a nanosecond. Without this price, a guest that only calls the host would get eighty
/// times the time of one that computes.
pub(crate) const HOST_CALL_FUEL: u64 = 1_000;

/// Ticks of the clock between two reports of what a call has used: about a quarter of a second of
/// computing, often enough for a person who watches. The first reports come after 1, 2, 4, … ticks,
/// since most calls compute for a few milliseconds and then wait.
const REPORT_TICKS: u32 = 250;

/// Fuel that host functions used since the budget was last refilled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFuel {
    /// Host functions called.
    calls: u64,
    /// Fuel of their work, without the price of each call.
    work: u64,
    /// The call's whole budget.
    budget: u64,
    /// Ticks of the clock at which the guest computed.
    ticks: u32,
}

impl HostFuel {
    pub(crate) fn new(budget: u64) -> Self {
        Self { calls: 0, work: 0, budget, ticks: 0 }
    }

    /// Counts one call of a host function.
    pub(crate) fn count_call(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Host functions called.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Fuel of their work, without the price of each call.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Counts what a recorded function counted as.
    ///
    /// # Errors
    /// As [`spend`](Self::spend).
    pub(crate) fn replay(&mut self, calls: u64, work: u64) -> wasmtime::Result<()> {
        self.calls = self.calls.saturating_add(calls);
        self.spend(work)
    }

    /// Fuel of all calls and their work.
    pub(crate) fn spent(&self) -> u64 {
        self.calls.saturating_mul(HOST_CALL_FUEL).saturating_add(self.work)
    }

    /// Counts a tick of the clock. True if it is time to report what the call has used.
    pub(crate) fn tick(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_add(1);
        self.ticks.is_multiple_of(REPORT_TICKS) || self.ticks < REPORT_TICKS && self.ticks.is_power_of_two()
    }

    /// Fuel that the call has used, if `left` of its budget remains to its guest.
    pub(crate) fn used(&self, left: u64) -> u64 {
        self.budget.saturating_sub(left).saturating_add(self.spent())
    }

    /// Adds fuel of work that is done.
    pub(crate) fn add(&mut self, fuel: u64) {
        self.work = self.work.saturating_add(fuel);
    }

    /// Takes fuel for the work that a host function is about to do.
    ///
    /// # Errors
    /// A trap if host functions alone used more than the whole budget. The guest's own fuel is
    /// added at the next tick.
    pub(crate) fn spend(&mut self, fuel: u64) -> wasmtime::Result<()> {
        self.add(fuel);
        if self.spent() > self.budget { Err(Trap::OutOfFuel.into()) } else { Ok(()) }
    }
}
