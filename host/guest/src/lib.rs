//! Guests: loads WebAssembly components and runs each call in a fresh store and instance of its
//! own, with fuel, memory, output and time limits. It is the main of sandbox processes and loaders.
//!
//! This is the only crate that names wasmtime. It does not know the host: [`toolcell_wall`] has the
//! messages of both directions. It knows nothing of MCP or JSON-RPC.
//!
//! - [`run_sandbox_process`] is a sandbox process or a loader, from its first message to its last;
//!   [`sandbox_threads`] does the same on a thread, if the manifest says `walls = "none"`.
//! - [`Sandbox`] holds the engine; one per process.
//! - [`ToolComponent`] is one loaded component, ready to be instantiated.
//! - [`ToolComponent::call_tool`] runs one call and returns its report, never an error. A guest's
//!   misbehaviour ends in a [`CallFailure`](toolcell_wall::failure::CallFailure).
//!
//! Imports run in one direction only, from the top of this table to its end:
//!
//! | folder | holds |
//! |---|---|
//! | `inside/` | a sandbox process and a loader: the messages that they receive and send |
//! | `run/` | one call: instance, export, deadline, report; instances prewarmed or used again |
//! | `load/` | from bytes to a component: survey, compiling, linking |
//! | `shape/` | a component's exports as tools: contract, typed, program |
//! | `wasi/` | the state of a store, and the WASI interfaces over it |
//! | `recording/` | calls that are recorded or replayed |
//! | `calling.rs` | calls of other tools that a guest makes |
//! | `consent.rs` | questions about rights to the person behind a call's sender |
//! | `drill/` | the power of native code for guests, in builds for tests alone |
//! | `engine/` | settings, slots, memory limit, fuel and clock of the engine |
//! | `bindings.rs` | the contract's generated types |
//! | `testing.rs` | both ends of a call's doors, for tests |
#![deny(unsafe_code)] // but for one function of `precompiled`, which says why

mod bindings;
mod calling;
mod consent;
#[cfg(feature = "drill")]
mod drill;
mod engine;
mod inside;
mod load;
mod recording;
mod run;
mod shape;
#[cfg(test)]
mod testing;
mod wasi;

pub use inside::{InsideError, run_sandbox_process, sandbox_threads};
pub use load::component::ToolComponent;
pub use load::error::LoadError;
pub use load::preview1::NotAProgram;
pub use load::sandbox::{Sandbox, SandboxError};
pub use load::survey::{Excess, LoadBound};
pub use recording::{RelayError, TapedCall, relay};
pub use run::call::{CallInput, GuestEnd, InstanceSource, SpentInstance};
pub use shape::typed::{Descriptions, WitError, WitTexts, annotate};
pub use wasi::guest_grants::GuestGrants;
