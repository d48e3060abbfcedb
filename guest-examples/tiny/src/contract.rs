//! The contract's types, carried in the component next to the code, so that the linker can make it a component;
//! and the two functions under the names the contract gives them. Holds no logic.
#![allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]

use crate::abi::{List, Success, Text, Tool};

/// Only for the description of the world that the macro leaves in a section of the object file. None of the Rust
/// it generates is called, so none of it gets into the component.
mod description {
    #![allow(dead_code, unused_macros, unused_imports)]
    wit_bindgen::generate!({ path: "../../wit", world: "tool-component", std_feature });
}

#[unsafe(export_name = "toolcell:mcp/tools@1.3.0#list-tools")]
extern "C" fn list_tools() -> *const List<Tool> {
    crate::list_tools()
}

#[unsafe(export_name = "toolcell:mcp/tools@1.3.0#call-tool")]
extern "C" fn call_tool(
    name: *const u8,
    name_bytes: usize,
    arguments: *const u8,
    arguments_bytes: usize,
) -> *const Success {
    crate::call_tool(Text::at(name, name_bytes), Text::at(arguments, arguments_bytes))
}
