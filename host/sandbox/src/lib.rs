//! The sandbox: loads WebAssembly components and runs each call in a fresh store and instance of its own,
//! with fuel, memory, output and time limits.
//!
//! This is the only crate that names wasmtime. It knows nothing of MCP or JSON-RPC, of manifest text, or of
//! command lines: it is handed bytes and [`toolcell_policy::Limits`], and gives back values.
//!
//! - [`Sandbox`] holds the engine; one per process.
//! - [`ToolComponent`] is one loaded component, ready to be instantiated.
//! - [`ToolComponent::call_tool`] runs one call and returns a [`CallReport`], never an error: whatever a guest
//!   does ends in a [`Failure`] with a text for the model and another for the operator.
#![deny(unsafe_code)] // but for one function of `precompiled`, which says why

mod bindings;
mod caller;
mod engine;
mod failure;
mod load;
mod run;
mod secrets;
mod shape;
mod wasi;

pub use bindings::contract;
pub use caller::asking::{Answer, Asked, Form, Inquiry, Kind, Page, Question, Refusal, Root};
pub use caller::{Caller, LogLevel, NoCaller, Requested, Trace};
pub use engine::background::in_background;
pub use engine::duties::{leave, leaves, with_other_duties};
pub use engine::slots::SLOT_RESETS;
pub use failure::Failure;
pub use load::cache::{CACHE_BYTES_MAX, CacheError, CodeCache};
pub use load::component::ToolComponent;
pub use load::digest::Digest;
pub use load::drafts::remove_abandoned as remove_abandoned_drafts;
pub use load::error::LoadError;
pub use load::inspect::Inspection;
pub use load::precompiled::CodeOrigin;
pub use load::preview1::NotAProgram;
pub use load::sandbox::{Sandbox, SandboxError, SandboxOptions};
pub use load::start_code::StartCall;
pub use load::survey::{COMPONENT_BYTES_MAX, Excess, LoadBound};
pub use run::call::{CallInput, CallReport, Remains, Supply};
pub use run::kept::Kept;
pub use run::warm::{Ahead, Spawn, Tell, Warm, WarmBudget};
pub use secrets::{Redactor, SECRET_BYTES_MAX, SECRET_BYTES_SAFE, SecretValue};
pub use shape::ShapeName;
pub use shape::typed::{Descriptions, LeftOut, WitError, WitFile, WitTexts, annotate};
pub use wasi::cli::capture::Captured;
pub use wasi::files::Identity;
pub use wasi::problem::{Note, ReachProblem};
pub use wasi::reach::{Reach, SecretProblem, Setting};
