//! The settings of an engine that runs guests. Must not hold: the pool's sizes, which are in `slots.rs`.
use wasmtime::Config;

/// Bytes of stack that host functions have beside the guest's own: as much as wasmtime's defaults leave (2 MiB less
/// 512 KiB).
const HOST_STACK_BYTES: usize = 1536 * 1024;

/// Every setting that bounds a guest or makes a call cheap; measured figures are in ARCHITECTURE.md.
pub(crate) fn guest(stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        // The concurrency of WASI 0.3 costs every instantiation and is not offered.
        .concurrency_support(false)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(stack_bytes)
        .async_stack_size(stack_bytes.saturating_add(HOST_STACK_BYTES))
        // Nothing of a call stays on the stack of the next, nor resident for it.
        .async_stack_zeroing(true)
        .memory_init_cow(true)
        // What no guest language needs stays off: each had escapes or crashes of its own.
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    config
}
