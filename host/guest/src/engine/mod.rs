//! The engine of WebAssembly: its settings, its clock, its pool of slots, and the memory limit of
//! a store. Must not hold: WASI, components, or calls.
//!
//! | file | holds |
//! |---|---|
//! | `epoch.rs` | the clock that makes computing guests yield |
//! | `errors.rs` | errors of the engine on one line |
//! | `fuel.rs` | fuel of host functions |
//! | `limiter.rs` | the memory limit of one store |
//! | `slots.rs` | shares of the instance pool |
pub(crate) mod epoch;
pub(crate) mod errors;
pub(crate) mod fuel;
pub(crate) mod limiter;
pub(crate) mod slots;

use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::pool_sizes::HOST_STACK_BYTES;
use wasmtime::Config;

pub(crate) use slots::INSTANCE_BYTES_MAX;

/// Every setting that bounds a guest or makes a call cheap. host/docs/measured.md has the figures.
pub(crate) fn config(engine: GuestEngine, stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        // It doubles the cost of an instance, so only components that need it pay for it. It brings
        // async functions with callbacks, subtasks, waitable sets, streams and futures.
        .concurrency_support(engine == GuestEngine::Async)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(stack_bytes)
        .async_stack_size(stack_bytes.saturating_add(HOST_STACK_BYTES))
        // A call leaves nothing on its stack: neither data for the next call, nor resident pages.
        .async_stack_zeroing(true)
        .memory_init_cow(true)
        // A guest's frames are walked by their frame pointers. Nothing reads these tables, and they
        // would be mapped and registered for each component.
        .native_unwind_info(false)
        // A composed component passes strings between its parts through a module that the engine
        // makes, with the memories of both. Without this setting the engine panics.
        .wasm_multi_memory(true)
        // Features that no guest language needs are off: each had escapes or crashes of its own.
        .wasm_memory64(false);
    config
}
