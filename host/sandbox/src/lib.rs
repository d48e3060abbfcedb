//! The sandbox: loads WebAssembly components and runs each call in a fresh store and instance of
//! its own, with fuel, memory, output and time limits.
//!
//! This is the only crate that names wasmtime. It knows nothing of MCP or JSON-RPC, of manifest
//! text, or of command lines. It takes bytes and [`toolcell_policy::Limits`], and returns values.
//!
//! - [`Sandbox`] holds the engine; one per process.
//! - [`ToolComponent`] is one loaded component, ready to be instantiated.
//! - [`ToolComponent::call_tool`] runs one call and returns a [`CallReport`], never an error. A
//!   guest's misbehaviour ends in a [`Failure`] with a text for the model and another for the
//!   operator.
//!
//! Imports run in one direction only, from the top of this table to its end:
//!
//! | folder | holds |
//! |---|---|
//! | `wall/` | calls in sandbox processes: both ends of what is said, groups of components |
//! | `run/` | one call: instance, export, deadline, report; instances made ahead or used again |
//! | `load/` | from bytes to a component: survey, compiling, cache, linking |
//! | `shape/` | a component's exports as tools: contract, typed, program |
//! | `wasi/` | the state of a store, and the WASI interfaces over it |
//! | `caller/` | questions about rights to the person behind the sender of a call |
//! | `secrets/` | secret values, and their redaction |
//! | `drill/` | the power of native code for guests, in builds for tests alone |
//! | `engine/` | settings, slots, memory limit, fuel and clock of the engine |
//! | `files/` | the files that tools are granted: opened, counted, handed to sandbox processes |
//! | `owned.rs` | folders that are made where they are missing, and their owner |
//! | `bindings.rs` | the contract's generated types |
#![deny(unsafe_code)] // but for one function of `precompiled`, which says why

mod bindings;
mod caller;
#[cfg(feature = "drill")]
mod drill;
mod engine;
mod files;
mod load;
mod owned;
mod run;
mod secrets;
mod shape;
mod wall;
mod wasi;

pub use files::{GrantedFiles, Identity};
pub use load::cache::{CACHE_BYTES_MAX, CacheError, CodeCache};
pub use load::component::ToolComponent;
pub use load::drafts::remove_abandoned as remove_abandoned_drafts;
pub use load::error::LoadError;
pub use load::held::{CodeOrigin, HeldComponent};
pub use load::preview1::NotAProgram;
pub use load::sandbox::{Sandbox, SandboxError};
pub use load::survey::{Excess, LoadBound};
pub use owned::{adopt, make_folders};
pub use run::call::{CallInput, GuestEnd, InstanceSource, SpentInstance};
pub use secrets::{
    HeldSecret, LiveSecret, NoValue, Redactor, SECRET_BYTES_MAX, SECRET_BYTES_SAFE, SecretValue, ValueInTime,
};
pub use shape::typed::{Descriptions, WitError, WitTexts, annotate};
pub use toolcell_wall::asking::{Answer, Asked, Form, Inquiry, Kind, Page, Question, Refusal, Root};
pub use toolcell_wall::caller::{Caller, Consent, LogLevel, NoCaller, Outside, Requested, Trace};
pub use toolcell_wall::contract;
pub use toolcell_wall::digest::Digest;
pub use toolcell_wall::export;
pub use toolcell_wall::failure::Failure;
pub use toolcell_wall::load::COMPONENT_BYTES_MAX;
pub use toolcell_wall::load::definitions::{SchemaLimits, check_definitions};
pub use toolcell_wall::load::descriptions::{WitFile, WrittenDescriptions};
pub use toolcell_wall::load::facts::{LeftOut, ShapeName};
pub use toolcell_wall::load::inspection::Inspection;
pub use toolcell_wall::message::ToolSchemas;
pub use toolcell_wall::mounts::DEV_SOURCE;
pub use toolcell_wall::pool_sizes::{AddressSpace, SLOT_RESETS, SandboxOptions};
pub use toolcell_wall::report::{CallReport, Captured, ListedBeside};
pub use toolcell_wall::sections::SectionDamage;
pub use toolcell_wall::sections::metadata::{carried_metadata, with_metadata};
pub use toolcell_wall::sections::producers::carries_javascript;
pub use toolcell_wall::sections::wishes::{CarriedWishes, carried_wishes, with_wishes};
pub use toolcell_wall::start_call::StartCall;
pub use toolcell_walls::background::step_back;
pub use wall::address_space::check_address_space;
pub use wall::attention::{begin_attending, leave_attending, wait_attending};
pub use wall::conduct::{SharedEnds, Standing};
pub use wall::duties::{leave, leaves, with_other_duties};
pub use wall::group::{ComponentNotice, GroupMember, GroupOptions, SandboxGroup};
pub use wall::inside::{InsideError, run_sandbox_process, sandbox_threads};
pub use wall::loading::listing::Listing;
pub use wall::loading::loader::{Lister, LoadJob, Loader, LoaderOptions, NotLoaded};
pub use wall::pool::{PoolNotices, PoolOptions, SandboxPool};
pub use wall::process::{RemoteInstance, SandboxCall};
pub use wall::required::RequiredWalls;
pub use wall::reuse::ReusedInstance;
pub use wasi::capabilities::{Capabilities, GrantSources, SecretProblem};
pub use wasi::doors::CallDoors;
pub use wasi::grant_problem::{GrantNote, GrantProblem};
pub use wasi::guest_grants::GuestGrants;
