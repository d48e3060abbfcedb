//! One instance with its store: made for a tool's limits, used for a call, given up or kept.
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use toolcell_audit::Usage;
use toolcell_policy::Limits;
use wasmtime::Store;

use crate::engine::slots::{Slot, SlotPermit};
use crate::load::component::ToolComponent;
use crate::recording::{CallTape, RecordingLink, TapedCall};
use crate::run::asking::CallQuestions;
use crate::run::store::{self, Terms};
use crate::shape::Exports;
use crate::wasi::state::CallState;
use toolcell_wall::caller::{CallerLink, NoCaller};
use toolcell_wall::failure::ReplayEnd;

/// Bytes of memories and tables up to which a used instance may be dropped after its call ends.
/// Most guests that did not grow have little more than one MiB. Dropping a larger instance takes so
/// long that a few microseconds do not matter.
const SMALL_BYTES_MAX: u64 = 2 << 20;

/// How much more data one host function of a recorded call may take: the engine counts a byte of a
/// list as a value of 32 bytes. So a list of bytes may have a quarter of the limit, and its values
/// take no more than some hundred megabytes.
const TAPED_DATA: u64 = 8;

/// A store with its share of the pool, and the instance once it is made.
pub struct GuestInstance {
    pub(crate) store: Store<CallState>,
    pub(crate) exports: Option<Exports>,
    slot: Slot,
    /// The links of a call that is recorded or replayed, instead of the component's own.
    taped: Option<Arc<RecordingLink>>,
}

impl GuestInstance {
    /// An empty store with every limit set.
    pub(crate) fn empty(component: &ToolComponent, terms: &Terms<'_>, slot: Slot) -> wasmtime::Result<Self> {
        let store = store::fresh(component.pre().engine(), terms)?;
        Ok(Self { store, exports: None, slot, taped: None })
    }

    /// Instantiates the component, unless that is already done. A heavy component is never
    /// instantiated on the calling thread, which may have other duties.
    pub(crate) async fn instantiate(&mut self, component: &ToolComponent) -> wasmtime::Result<()> {
        if self.exports.is_none() {
            let cost = component.cost();
            if !cost.is_light() {
                elsewhere().await;
            }
            let held_bytes = cost.host_bytes.saturating_add(component.more_stack_bytes());
            if !self.store.data_mut().limiter.hold(held_bytes) {
                return Err(wasmtime::Error::msg(
                    "the host's records of the instance and its stacks are past the memory limit",
                ));
            }
            let instance = match self.taped.clone() {
                Some(link) => link.instantiate(&mut self.store).await?,
                None => component.pre().instantiate_async(&mut self.store).await?,
            };
            self.exports = Some(component.tools().exports(&mut self.store, instance)?);
        }
        Ok(())
    }

    /// Records or replays its one call, which has these limits.
    ///
    /// # Errors
    /// The tape cannot be read.
    pub(crate) fn use_tape(&mut self, taped: &TapedCall, limits: &Limits) -> Result<(), String> {
        self.store.data_mut().set_tape(taped.tape()?);
        let data_bytes = limits.host_data_bytes().saturating_mul(TAPED_DATA);
        self.store.set_hostcall_fuel(usize::try_from(data_bytes).unwrap_or(usize::MAX));
        self.taped = Some(Arc::clone(taped.link()));
        Ok(())
    }

    /// Its call has ended: the rest of what was recorded is written.
    pub(crate) fn flush_tape(&mut self) {
        if let Some(tape) = self.store.data_mut().tape() {
            tape.end();
        }
    }

    /// Why the call, which is over, is not the recorded one.
    pub(crate) fn end_of_tape(&mut self, has_answer: bool) -> Option<ReplayEnd> {
        match self.store.data_mut().tape()? {
            CallTape::Playing(player) => player.end(has_answer),
            CallTape::Recording(_) => None,
        }
    }

    /// The resources used since the fuel was last refilled.
    pub(crate) fn usage(&self, duration: Duration) -> Usage {
        let state = self.store.data();
        Usage {
            fuel: state.fuel.used(self.store.get_fuel().unwrap_or(0)),
            memory_peak_bytes: state.limiter.peak_bytes(),
            duration,
            log_bytes: state.log.charged_bytes(),
            // The host counts what goes over the network.
            ..Usage::default()
        }
    }

    /// Reports to the caller what was used since the fuel was last refilled.
    pub(crate) fn report_use(&self, caller: &dyn CallerLink) {
        let state = self.store.data();
        caller.used(state.fuel.used(self.store.get_fuel().unwrap_or(0)), state.limiter.peak_bytes());
    }

    /// Bytes of memories and tables it holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.store.data().limiter.peak_bytes()
    }

    /// True if it may be dropped later than its call ends.
    pub(crate) fn is_small(&mut self) -> bool {
        self.held_bytes() <= SMALL_BYTES_MAX && self.is_finished()
    }

    /// True if its calls left no task, waitable set, stream or future behind. A task would go on in
    /// the next call, and each that waits keeps a stack of the pool.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.store.concurrent_resource_table().is_none_or(|table| table.is_empty())
    }

    /// Prepares a prewarmed instance, which was made with the same limits, for its one call.
    pub(crate) fn hand_to(&mut self, caller: Arc<dyn CallerLink>, call: SlotPermit) {
        self.slot.run(call);
        self.store.data_mut().hand_to(caller);
        self.store.set_epoch_deadline(1);
    }

    /// Its call has ended: the instance does not hold up other calls until it is used again or
    /// dropped.
    pub(crate) fn rest(&mut self) {
        self.slot.rest();
        self.store.data_mut().hand_to(Arc::new(NoCaller));
    }

    /// Prepares an instance that already served calls for another one: budgets are refilled, memory
    /// stays.
    pub(crate) fn refill(&mut self, terms: &Terms<'_>, call: SlotPermit) -> wasmtime::Result<()> {
        let limits = terms.limits;
        self.hand_to(Arc::clone(&terms.caller), call);
        let state = self.store.data_mut();
        state.set_capabilities(terms.capabilities);
        state.limiter.set_limit(limits.memory_bytes());
        state.set_net_limits(limits);
        state.log.refill(limits.log_bytes());
        state.asking = CallQuestions::of(limits);
        state.set_calling(limits);
        store::fill_budgets(&mut self.store, limits)
    }
}

/// Yields once. The driver of this future then moves it to a thread that runs guests.
async fn elsewhere() {
    let mut given = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::load::sandbox::Sandbox;
    use crate::wasi::guest_grants::GuestGrants;
    use toolcell_wall::pool_sizes::SandboxOptions;

    /// A component of this number of core instances.
    fn component(sandbox: &Sandbox, instances: usize) -> Arc<ToolComponent> {
        let more = "(core instance (instantiate $module))".repeat(instances - 1);
        let text = format!(
            r#"(component
                (core module $module (func (export "run")))
                {more}
                (core instance $instance (instantiate $module))
                (func (export "run") (canon lift (core func $instance "run"))))"#
        );
        Arc::new(ToolComponent::load(sandbox, &wat::parse_str(text).unwrap()).unwrap())
    }

    #[tokio::test]
    async fn what_takes_long_to_make_is_not_begun_on_the_thread_that_brings_it() {
        let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
        for (instances, at_once) in [(1, true), (16, true), (17, false), (60, false)] {
            let component = component(&sandbox, instances);
            let slot = sandbox.slots().take_prewarm(component.slot_units()).unwrap();
            let limits = Limits::default();
            let capabilities = GuestGrants::sealed("tool");
            let terms = Terms { limits: &limits, capabilities: &capabilities, caller: Arc::new(NoCaller) };
            let mut instance = GuestInstance::empty(&component, &terms, slot).unwrap();
            {
                let mut making = pin!(instance.instantiate(&component));
                // A thread with other duties polls a call once.
                let polled = making.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert_eq!(polled.is_ready(), at_once, "{instances} core instances");
                if !at_once {
                    making.await.unwrap();
                }
            }
            assert!(instance.exports.is_some());
        }
    }
}
