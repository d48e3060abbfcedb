//! The store of a call: limits set, budgets filled up.
use std::sync::Arc;

use toolcell_policy::Limits;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use crate::engine::fuel::HostFuel;
use crate::wasi::guest_grants::GuestGrants;
use crate::wasi::state::CallState;
use toolcell_wall::caller::CallerLink;

/// What a guest runs with: limits, grants, and the caller.
pub(crate) struct Terms<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) capabilities: &'a Arc<GuestGrants>,
    pub(crate) caller: Arc<dyn CallerLink>,
}

/// A fresh store with every limit set.
pub(crate) fn fresh(engine: &Engine, terms: &Terms<'_>) -> wasmtime::Result<Store<CallState>> {
    let Terms { limits, capabilities, caller } = terms;
    let mut store = Store::new(engine, CallState::new(limits, Arc::clone(capabilities), Arc::clone(caller)));
    store.limiter(|state| &mut state.limiter);
    fill_budgets(&mut store, limits)?;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| {
        // The store knows the fuel left at the guest's last host call, so a guest that only calls
        // the host is stopped here.
        let left = store.get_fuel()?;
        let state = store.data_mut();
        if left < state.fuel.spent() {
            return Err(Trap::OutOfFuel.into());
        }
        if let Some(tape) = state.tape() {
            tape.flush();
        }
        if state.fuel.tick() {
            state.caller.used(state.fuel.used(left), state.limiter.peak_bytes());
        }
        Ok(UpdateDeadline::Yield(1))
    });
    Ok(store)
}

/// Refills the budgets of a call.
pub(crate) fn fill_budgets(store: &mut Store<CallState>, limits: &Limits) -> wasmtime::Result<()> {
    store.set_fuel(limits.fuel())?;
    store.data_mut().fuel = HostFuel::new(limits.fuel());
    store.set_hostcall_fuel(usize::try_from(limits.host_data_bytes()).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.handles());
    // Tasks, waitable sets, streams and futures: as many again as handles.
    if let Some(table) = store.concurrent_resource_table() {
        table.set_max_capacity(limits.handles());
    }
    Ok(())
}
