//! Engines that differ only in how they meter guests, set up as the sandbox sets up its own.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, InstancePre, Linker, ResourceTable, Val};
use wasmtime::{Config, Enabled, Engine, Error, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// The export that every tool component has.
const TOOLS: &str = "toolcell:mcp/tools@1.0.0";

const CONTRACT: &str = "toolcell:mcp/";

/// Fuel of one run: a call's default.
const FUEL: u64 = 10_000_000_000;

/// Time between two advances of the epoch, as in the sandbox.
const TICK: Duration = Duration::from_millis(1);

/// Bytes of a used memory and of a table that are written over, as in the sandbox.
const KEEP_MEMORY_BYTES: usize = 256 * 1024;
const KEEP_TABLE_BYTES: usize = 64 * 1024;

/// The metering of guests.
#[derive(Clone, Copy)]
pub struct Metering {
    pub name: &'static str,
    fuel: bool,
    epochs: bool,
    /// Fuel after which a guest yields. `None` where fuel is only a budget and never yields.
    yields_after: Option<u64>,
}

/// All ways of metering. A budget needs fuel. Sharing a thread with other guests needs epochs or a
/// yield by fuel.
pub const METERINGS: [Metering; 5] = [
    Metering { name: "no metering", fuel: false, epochs: false, yields_after: None },
    Metering { name: "fuel", fuel: true, epochs: false, yields_after: None },
    Metering { name: "epochs", fuel: false, epochs: true, yields_after: None },
    Metering { name: "fuel and epochs", fuel: true, epochs: true, yields_after: None },
    Metering { name: "fuel, yields by fuel", fuel: true, epochs: false, yields_after: Some(1_000_000) },
];

/// An engine, with the thread that advances its epoch if it has one.
pub struct Metered {
    metering: Metering,
    engine: Engine,
    open: Arc<AtomicBool>,
    clock: Option<JoinHandle<()>>,
}

/// The data of a store.
pub struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Metered {
    pub fn new(metering: Metering) -> Self {
        let mut config = Config::new();
        config
            .concurrency_support(false)
            .consume_fuel(metering.fuel)
            .epoch_interruption(metering.epochs)
            .memory_init_cow(true)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
        let engine = Engine::new(&config).unwrap();
        let open = Arc::new(AtomicBool::new(true));
        let clock = metering.epochs.then(|| {
            let engine = engine.clone();
            let open = Arc::clone(&open);
            std::thread::spawn(move || {
                while open.load(Ordering::Relaxed) {
                    std::thread::sleep(TICK);
                    engine.increment_epoch();
                }
            })
        });
        Self { metering, engine, open, clock }
    }

    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn store(&self) -> Store<State> {
        let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        if self.metering.fuel {
            store.set_fuel(FUEL).unwrap();
            store.fuel_async_yield_interval(self.metering.yields_after).unwrap();
        }
        if self.metering.epochs {
            store.set_epoch_deadline(1);
            store.epoch_deadline_async_yield_and_update(1);
        }
        store
    }

    /// A component, ready to be instantiated. Its imports from the contract trap, since nothing
    /// here calls them.
    pub fn prepare(&self, component: &[u8]) -> InstancePre<State> {
        let component = Component::from_binary(&self.engine, component).unwrap();
        let mut linker = Linker::new(&self.engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        trap_contract(&mut linker, &component);
        linker.instantiate_pre(&component).unwrap()
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Relaxed);
        // A panic of the clock has already been printed.
        let _ = self.clock.take().map(JoinHandle::join);
    }
}

fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(Enabled::No).linear_memory_keep_resident(KEEP_MEMORY_BYTES).table_keep_resident(KEEP_TABLE_BYTES);
    pool
}

/// Defines a trap for each function of the contract that the component imports.
fn trap_contract(linker: &mut Linker<State>, component: &Component) {
    let engine = component.engine();
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        if !name.starts_with(CONTRACT) {
            continue;
        }
        let mut instance = linker.instance(name).unwrap();
        for (function, item) in interface.exports(engine) {
            if matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                instance.func_new(function, |_, _, _, _| Err(Error::msg("nobody is there"))).unwrap();
            }
        }
    }
}

/// Calls a tool of an instance, and checks that it answers with a result.
pub async fn call(store: &mut Store<State>, instance: &Instance, tool: &str, arguments: &str) {
    let tools = instance.get_export_index(&mut *store, None, TOOLS).unwrap();
    let export = instance.get_export_index(&mut *store, Some(&tools), "call-tool").unwrap();
    let function = instance.get_func(&mut *store, export).unwrap();
    let mut results = [Val::Bool(false)];
    let parameters = [Val::String(tool.to_owned()), Val::String(arguments.to_owned())];
    function.call_async(&mut *store, &parameters, &mut results).await.unwrap();
    assert!(matches!(results, [Val::Result(Ok(_))]), "{tool} answered {results:?}");
}
