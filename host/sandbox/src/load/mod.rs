//! From a component's bytes to something that can be called. Nothing of the component runs here.
//!
//! | file | holds |
//! |---|---|
//! | `sandbox.rs` | [`Sandbox`](crate::Sandbox): the engines with what components link to |
//! | `component.rs` | [`ToolComponent`](crate::ToolComponent): a component that was checked, compiled and linked |
//! | `survey/` | the cost of a component, counted before the engine reads it |
//! | `preview1/` | programs for WASI preview 1, made into components |
//! | `precompiled.rs`, `cache.rs`, `drafts.rs` | machine code, and the folder that keeps it |
//! | `inspect.rs`, `digest.rs` | exports, imports, size and digest of a component |
//! | `link.rs` | the interfaces that a component may import |
pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod component;
pub(crate) mod digest;
pub(crate) mod drafts;
pub(crate) mod error;
pub(crate) mod inspect;
pub(crate) mod link;
pub(crate) mod precompiled;
pub(crate) mod preview1;
pub(crate) mod sandbox;
pub(crate) mod start_code;
pub(crate) mod survey;
