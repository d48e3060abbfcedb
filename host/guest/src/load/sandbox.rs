//! The engines, their linkers and the epoch clock: one set per process, shared by all components.
use std::sync::{Arc, OnceLock};

use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::pool_sizes::{AddressSpace, SandboxOptions};
use toolcell_walls::kernel::has_address_space;
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy};

use crate::engine;
use crate::engine::epoch::EpochClock;
use crate::engine::slots::Slots;
use crate::load::imports;
use crate::wasi::state::CallState;

/// The host could not set up its engine.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The process gets too little address space for its pool.
    #[error(transparent)]
    AddressSpace(#[from] AddressSpace),
    /// wasmtime refused the configuration, or the machine lacks a need.
    #[error("the WebAssembly engine does not start on this machine")]
    Engine(#[source] wasmtime::Error),
    /// The thread that keeps time for guests did not start.
    #[error("the thread that keeps time for guests does not start")]
    Clock(#[source] std::io::Error),
}

/// The engine that runs guests. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Sandbox(Arc<SandboxShared>);

struct SandboxShared {
    // It comes first: its thread ticks the engines and is joined on drop.
    clock: EpochClock,
    pooled: LinkedEngine,
    on_demand: Arc<OnceLock<LinkedEngine>>,
    options: SandboxOptions,
    slots: Slots,
}

/// An engine with the linker of its components.
pub(crate) struct LinkedEngine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<CallState>,
}

impl LinkedEngine {
    fn new(config: &Config, of: GuestEngine) -> wasmtime::Result<Self> {
        let engine = Engine::new(config)?;
        let mut linker = Linker::new(&engine);
        imports::add_all(&mut linker, of)?;
        Ok(Self { engine, linker })
    }
}

/// An engine whose clock has no thread yet.
pub(crate) struct StillSandbox {
    pooled: LinkedEngine,
    options: SandboxOptions,
    slots: Slots,
}

impl StillSandbox {
    /// Sets the engine up.
    ///
    /// # Errors
    /// [`SandboxError::AddressSpace`] and [`SandboxError::Engine`].
    pub(crate) fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let slots = Slots::new(&options, has_address_space)?;
        let mut pooling = engine::config(options.engine, options.stack_bytes);
        pooling.allocation_strategy(InstanceAllocationStrategy::Pooling(slots.pool()));
        let pooled = LinkedEngine::new(&pooling, options.engine).map_err(SandboxError::Engine)?;
        Ok(Self { pooled, options, slots })
    }

    /// Starts the thread that keeps time.
    ///
    /// # Errors
    /// [`SandboxError::Clock`].
    pub(crate) fn start(self) -> Result<Sandbox, SandboxError> {
        let Self { pooled, options, slots } = self;
        let on_demand: Arc<OnceLock<LinkedEngine>> = Arc::default();
        let engine = pooled.engine.clone();
        let other = Arc::clone(&on_demand);
        let tick = move || {
            engine.increment_epoch();
            if let Some(lane) = other.get() {
                lane.engine.increment_epoch();
            }
        };
        let clock = EpochClock::start(tick).map_err(SandboxError::Clock)?;
        Ok(Sandbox(Arc::new(SandboxShared { clock, pooled, on_demand, options, slots })))
    }
}

impl Sandbox {
    /// Starts the engine.
    ///
    /// # Errors
    /// [`SandboxError`] where the machine cannot run the engine; nothing is left running then.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        StillSandbox::new(options)?.start()
    }

    /// The engine that runs components in slots of the pool.
    pub(crate) fn pooled(&self) -> &LinkedEngine {
        &self.0.pooled
    }

    /// The engine for components that do not fit a slot. Their memory is mapped for each call,
    /// which costs more.
    pub(crate) fn on_demand(&self) -> wasmtime::Result<&LinkedEngine> {
        if let Some(lane) = self.0.on_demand.get() {
            return Ok(lane);
        }
        let SandboxOptions { engine, stack_bytes, .. } = self.0.options;
        let lane = LinkedEngine::new(&engine::config(engine, stack_bytes), engine)?;
        Ok(self.0.on_demand.get_or_init(|| lane))
    }

    /// The settings that it was started with.
    pub(crate) fn options(&self) -> &SandboxOptions {
        &self.0.options
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    pub(crate) fn clock(&self) -> &EpochClock {
        &self.0.clock
    }
}
