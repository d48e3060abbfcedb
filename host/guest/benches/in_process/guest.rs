//! The components that are measured, and a runtime to run them on.
use std::path::Path;

use tokio::runtime::{Builder, Runtime};

/// The arguments that `echo` and `tiny` are called with.
pub const ARGUMENTS: &str = r#"{"text":"the quick brown fox jumps over the lazy dog"}"#;

/// The example of this name, as `make guests` built it.
pub fn built(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-examples/components").join(format!("{name}.wasm"));
    std::fs::read(&path).map_err(|error| format!("{}: {error}; `make guests` builds it", path.display())).unwrap()
}

/// A runtime on this thread, with the timers that deadlines need.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}
