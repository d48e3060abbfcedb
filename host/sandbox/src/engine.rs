//! The engine, the linker and the epoch clock: one of each per process, shared by all components.
use std::sync::Arc;

use toolcell_policy::Limits;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, Store};

use crate::bindings;
use crate::cache::CodeCache;
use crate::caller::Caller;
use crate::epoch::EpochClock;
use crate::slots::{self, Slots};
use crate::state::CallState;

/// Bytes of a component file. The largest language runtime measured is 18 MB; compiling takes memory and time in
/// proportion.
pub const COMPONENT_BYTES_MAX: u64 = 128 << 20;

/// Bytes of WebAssembly stack per call. wasmtime's default; recursion past it is a trap of its own.
const WASM_STACK_BYTES: usize = 512 * 1024;

/// The host could not set up its engine.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// wasmtime refused the configuration, or the machine lacks what it needs (address space, for instance).
    #[error("the WebAssembly engine does not start on this machine")]
    Engine(#[source] wasmtime::Error),
    /// The thread that keeps time for guests did not start.
    #[error("the thread that keeps time for guests does not start")]
    Clock(#[source] std::io::Error),
}

/// How a sandbox is set up.
#[derive(Debug, Default)]
pub struct SandboxOptions {
    /// Where compiled code is kept from one start to the next; nowhere by default.
    pub cache: Option<CodeCache>,
}

/// The engine that runs guests. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Sandbox(Arc<Shared>);

struct Shared {
    // Before `engine`: the clock's thread holds an engine of its own and is joined on drop.
    clock: EpochClock,
    engine: Engine,
    linker: Linker<CallState>,
    slots: Slots,
    cache: Option<CodeCache>,
}

impl Sandbox {
    /// Starts the engine.
    ///
    /// # Errors
    /// [`SandboxError`] where the machine lacks what the engine needs; nothing is left running then.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let engine = Engine::new(&config()).map_err(SandboxError::Engine)?;
        let linker = linker(&engine).map_err(SandboxError::Engine)?;
        let clock = EpochClock::start(engine.clone()).map_err(SandboxError::Clock)?;
        Ok(Self(Arc::new(Shared { clock, engine, linker, slots: Slots::new(), cache: options.cache })))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn linker(&self) -> &Linker<CallState> {
        &self.0.linker
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    pub(crate) fn cache(&self) -> Option<&CodeCache> {
        self.0.cache.as_ref()
    }

    pub(crate) fn clock(&self) -> &EpochClock {
        &self.0.clock
    }

    /// A fresh store with every limit set.
    pub(crate) fn store(&self, limits: &Limits, caller: Arc<dyn Caller>) -> wasmtime::Result<Store<CallState>> {
        let mut store = Store::new(&self.0.engine, CallState::sealed(limits, caller));
        store.limiter(|state| &mut state.limiter);
        store.set_fuel(limits.fuel())?;
        store.set_hostcall_fuel(usize::try_from(limits.host_data_bytes()).unwrap_or(usize::MAX));
        store.set_max_component_handles(limits.handles());
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        Ok(store)
    }
}

/// Every setting that bounds a guest or makes a call cheap; measured figures are in ARCHITECTURE.md.
fn config() -> Config {
    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(slots::pool()))
        // The concurrency of WASI 0.3 costs every instantiation and is not offered.
        .concurrency_support(false)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .memory_init_cow(true)
        // What no guest language needs stays off: each had escapes or crashes of its own.
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    config
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    bindings::ToolComponent::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    Ok(linker)
}
