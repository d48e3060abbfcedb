//! The host's side of sandbox processes: starts them, sends them calls and components, and serves
//! what their guests ask for, as the policy decides.
//!
//! It uses no engine of WebAssembly: guests run in `toolcell_guest`, in other processes. It knows
//! nothing of MCP or JSON-RPC, manifest text, or command lines.
//!
//! - [`SandboxGroup`] runs calls of components that share processes.
//! - [`Loader`] compiles and lists a component, in processes of its own.
//! - [`GrantedCapabilities`] is what one tool is granted, made ready.
//! - [`CallDoors`] serves what one call asks for.
//!
//! Imports run in one direction only, from the top of this table to its end:
//!
//! | folder | holds |
//! |---|---|
//! | `wall/` | calls in sandbox processes: the host's end, and groups of components |
//! | `load/` | components that were loaded: their code, and the folder that keeps it |
//! | `wasi/` | the host's end of the interfaces that guests import |
//! | `caller/` | questions about rights to the person behind the sender of a call |
//! | `files/` | the files that tools are granted: opened, counted, handed to sandbox processes |
//! | `secrets/` | secret values, and their redaction |
//! | `tape.rs` | the tape of a call that is recorded or replayed |
//! | `owned.rs` | folders that are made where they are missing, and their owner |
#![forbid(unsafe_code)]

mod caller;
mod files;
mod load;
mod owned;
mod secrets;
mod tape;
mod wall;
mod wasi;

pub use caller::uses::CallUses;
pub use files::{GrantedFiles, Identity, ProcessScratch, ScratchHome, scratch_place};
pub use load::cache::{CACHE_BYTES_MAX, CacheError, CodeCache};
pub use load::drafts::remove_abandoned as remove_abandoned_drafts;
pub use load::held::{CodeOrigin, HeldComponent};
pub use owned::{adopt, make_folders};
pub use secrets::{
    CallLogins, HeldSecret, LiveSecret, NoValue, Redactor, SECRET_BYTES_MAX, SECRET_BYTES_SAFE, SecretValue,
    ValueInTime,
};
pub use tape::Tape;
pub use toolcell_wall::asking::{
    AskKind, AskRefusal, AskResult, EndedByAsking, GuestAnswer, GuestQuestion, Inquiry, QuestionForm, QuestionPage,
    WorkRoot,
};
pub use toolcell_wall::caller::{
    CallerLink, ConsentAnswer, GuestLogLevel, NestedFuture, NoCaller, Outside, PersonWaits, Requested, Trace,
};
pub use toolcell_wall::digest::ComponentDigest;
pub use toolcell_wall::failure::{CallFailure, ReplayEnd, ReplayQuestion};
pub use toolcell_wall::load::COMPONENT_BYTES_MAX;
pub use toolcell_wall::load::definitions::{SchemaLimits, check_definitions};
pub use toolcell_wall::load::descriptions::{WitFile, WrittenDescriptions};
pub use toolcell_wall::load::facts::{GuestEngine, LeftOutFunction, ShapeName};
pub use toolcell_wall::load::inspection::Inspection;
pub use toolcell_wall::message::ToolSchemas;
pub use toolcell_wall::mounts::DEV_SOURCE;
pub use toolcell_wall::nested::{
    CalledResult, FoundTool, NestedEnd, NotCalled, NotCalledReason, ProgramPlace, WantedCall,
};
pub use toolcell_wall::pool_sizes::{AddressSpace, SLOT_RESETS, SandboxOptions};
pub use toolcell_wall::report::{CallReport, Captured, ListedBeside};
pub use toolcell_wall::sections::SectionDamage;
pub use toolcell_wall::sections::metadata::{carried_metadata, with_metadata};
pub use toolcell_wall::sections::producers::carries_javascript;
pub use toolcell_wall::sections::requested_permissions::{CarriedPermissions, carried_permissions, with_permissions};
pub use toolcell_wall::start_call::StartCall;
pub use toolcell_wall::{contract, export, tape as tapes, uses};
pub use toolcell_walls::background::step_back;
pub use wall::address_space::check_address_space;
pub use wall::attention::{begin_attending, leave_attending, wait_attending};
pub use wall::crash_history::{SharedEnds, Standing};
pub use wall::duties::{leave, leaves, with_other_duties, without_waiting};
pub use wall::group::{ComponentNotice, GroupMember, GroupOptions, SandboxGroup};
pub use wall::loading::listing::{ListJob, ListingResult};
pub use wall::loading::loader::{Lister, LoadJob, Loader, LoaderOptions, NotLoaded};
pub use wall::pool::{PoolNotices, PoolOptions, SandboxPool};
pub use wall::process::{RemoteInstance, SandboxCall};
pub use wall::required::RequiredWalls;
pub use wall::reuse::ReusedInstance;
pub use wasi::capabilities::{GrantSources, GrantedCapabilities};
pub use wasi::doors::{CallDoors, DoorPlace};
pub use wasi::grant_problem::{GrantNote, GrantProblem};
