//! The tool contract, generated from `wit/`. Holds nothing written by hand.
#![allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]

wit_bindgen::generate!({ path: "../../wit", world: "tool-component" });

pub use self::exports::toolcell::mcp::tools::Guest;
pub use self::toolcell::mcp::types::{CallResult, Content, Failure, Hints, TextContent, Tool};

export!(Echo with_types_in self);
use super::Echo;
