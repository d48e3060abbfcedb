//! `wasi:logging`: lines that a guest writes to its log. They go the way of the contract's `log`.
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker};

use crate::bindings::toolcell::mcp::log;
use crate::wasi::state::CallState;

/// The interface under each name that components were built with; all are the same. Toolchains that
/// copy its WIT often drop the version.
pub(crate) const INTERFACES: [&str; 3] =
    ["wasi:logging/logging", "wasi:logging/logging@0.1.0", "wasi:logging/logging@0.1.0-draft"];

/// The interface's `level`.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "the engine makes them of a guest's numbers")]
enum Level {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
}

impl From<Level> for log::Level {
    fn from(level: Level) -> Self {
        match level {
            // MCP has nothing below it.
            Level::Trace | Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warning,
            Level::Error => Self::Error,
            Level::Critical => Self::Critical,
        }
    }
}

/// Adds the interface under each of its names.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for interface in INTERFACES {
        linker.instance(interface)?.func_wrap_async(
            "log",
            |mut store: StoreContextMut<'_, CallState>, (level, context, message): (Level, String, String)| {
                Box::new(async move {
                    let line = if context.is_empty() { message } else { context + ": " + &message };
                    log::Host::write(store.data_mut().called(), level.into(), line).await
                })
            },
        )?;
    }
    Ok(())
}
