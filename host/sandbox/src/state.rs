//! What one call's store holds: the WASI context with nothing granted, the resource table, the limiter, the log.
//!
//! Rarely edited on purpose: touching the type the linker is built over recompiles every WASI function.
use std::sync::Arc;

use toolcell_policy::Limits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::caller::Caller;
use crate::capture::LogBudget;
use crate::limiter::MemoryLimiter;

/// The data of one store. Built for one call and dropped with it.
pub(crate) struct CallState {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) log: LogBudget,
    pub(crate) caller: Arc<dyn Caller>,
}

impl CallState {
    /// Sealed: no arguments, environment, preopens, sockets or name look-ups; closed standard input; standard
    /// output and error go to the call's log.
    pub(crate) fn sealed(limits: &Limits, caller: Arc<dyn Caller>) -> Self {
        let log = LogBudget::new(limits.log_bytes());
        let wasi = WasiCtx::builder()
            .stdout(log.clone())
            .stderr(log.clone())
            .max_random_size(limits.random_bytes())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles());
        Self { wasi, table, limiter: MemoryLimiter::new(limits.memory_bytes()), log, caller }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
