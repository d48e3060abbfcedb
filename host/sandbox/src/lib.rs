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

mod asking;
mod background;
mod bindings;
mod cache;
mod call;
mod caller;
mod capture;
mod component;
mod config;
mod denials;
mod digest;
mod drafts;
mod duties;
mod engine;
mod epoch;
mod failure;
mod files;
mod http;
mod imports;
mod inspect;
mod instance;
mod kept;
mod keyvalue;
mod limiter;
mod link;
mod net;
mod precompiled;
mod preview1;
mod printing;
mod program;
mod random;
mod reach;
mod redaction;
mod secrets;
mod shape;
mod slots;
mod sockets;
mod start;
mod state;
mod survey;
mod typed;
mod warm;
mod weight;

pub use asking::{Answer, Asked, Form, Inquiry, Kind, Page, Question, Refusal, Root};
pub use background::in_background;
pub use bindings::contract;
pub use cache::{CACHE_BYTES_MAX, CacheError, CodeCache};
pub use call::{CallInput, CallReport, Remains, Supply};
pub use caller::{Caller, LogLevel, NoCaller, Requested, Trace};
pub use capture::Captured;
pub use component::{LoadError, ToolComponent};
pub use digest::Digest;
pub use drafts::remove_abandoned as remove_abandoned_drafts;
pub use duties::{leave, leaves, with_other_duties};
pub use engine::{COMPONENT_BYTES_MAX, Sandbox, SandboxError, SandboxOptions};
pub use failure::Failure;
pub use files::{Identity, Note};
pub use inspect::Inspection;
pub use kept::Kept;
pub use precompiled::CodeOrigin;
pub use preview1::NotAProgram;
pub use reach::{Reach, ReachProblem, SecretProblem, Setting};
pub use secrets::{Redactor, SECRET_BYTES_MAX, SECRET_BYTES_SAFE, SecretValue};
pub use shape::ShapeName;
pub use slots::SLOT_RESETS;
pub use start::StartCall;
pub use survey::{Excess, LoadBound};
pub use typed::{Descriptions, LeftOut, WitError, WitFile, WitTexts, annotate};
pub use warm::{Ahead, Spawn, Tell, Warm, WarmBudget};
