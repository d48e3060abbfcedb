//! The generated bindings of the tool contract (`wit/`). Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "toolcell:mcp/tool-component",
    imports: {
        "toolcell:mcp/asking.ask": async | trappable,
        "toolcell:mcp/log.write": async | trappable,
        "toolcell:mcp/progress.report": async | trappable,
    },
    exports: { default: async },
    // They cross the wall between the host and its sandbox processes.
    additional_derives: [serde::Serialize, serde::Deserialize],
});

/// The contract's plain types, as the guest returned them.
pub mod contract {
    pub use super::toolcell::mcp::types::{
        Annotations, CallResult, Content, EmbeddedResource, Failure, Hints, Icon, MediaContent, ResourceBody,
        ResourceLink, Role, TextContent, Theme, Tool,
    };
}
