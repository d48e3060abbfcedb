//! From a component's bytes to something that can be called. Nothing of the component runs here.
//!
//! | file | holds |
//! |---|---|
//! | `sandbox.rs` | [`Sandbox`](crate::Sandbox): the engines with what components link to |
//! | `compile.rs`, `component.rs` | compiling; [`ToolComponent`](crate::ToolComponent), linked |
//! | `survey/` | the cost of a component, counted before the engine reads it |
//! | `preview1/` | programs for WASI preview 1, made into components |
//! | `readers/` | readers of streams and futures, added to components that return some |
//! | `precompiled.rs` | machine code, and the name of what it is for |
//! | `functions/` | compiled functions, kept for the next version of a component |
//! | `start_code.rs` | a component's start code, as far as it is known |
//! | `error.rs`, `features.rs`, `file_kind.rs` | the reasons why a file is not a tool component |
//! | `inspect.rs` | exports and imports of a component |
//! | `imports.rs` | the interfaces that a component may import |
pub(crate) mod compile;
pub(crate) mod component;
pub(crate) mod error;
pub(crate) mod features;
pub(crate) mod file_kind;
pub(crate) mod functions;
pub(crate) mod imports;
pub(crate) mod inspect;
pub(crate) mod precompiled;
pub(crate) mod preview1;
pub(crate) mod readers;
pub(crate) mod sandbox;
pub(crate) mod start_code;
pub(crate) mod survey;
