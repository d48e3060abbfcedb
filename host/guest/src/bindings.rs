//! The generated bindings of the tool contract (`wit/`). Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "toolcell:mcp/tool-component",
    imports: {
        "toolcell:mcp/asking.ask": async | trappable,
        "toolcell:mcp/calling.call": async | trappable,
        "toolcell:mcp/calling.call-all": async | trappable,
        "toolcell:mcp/calling.run-began": async | trappable,
        "toolcell:mcp/calling.find": async | trappable,
        "toolcell:mcp/calling.describe": async | trappable,
        "toolcell:mcp/log.write": async | trappable,
        "toolcell:mcp/progress.report": async | trappable,
        "toolcell:mcp/updates.updated": async | trappable,
    },
    exports: { default: async },
});

/// The exports that a component may leave out, each in a world of its own.
pub mod optional {
    mod with_prompts {
        wasmtime::component::bindgen!({
            path: "../../wit",
            inline: "package host:prompts; world prompts-export { export toolcell:mcp/prompts@1.3.0; }",
            world: "host:prompts/prompts-export",
            with: { "toolcell:mcp/types": crate::bindings::toolcell::mcp::types },
            exports: { default: async },
        });
    }

    mod with_completion {
        wasmtime::component::bindgen!({
            path: "../../wit",
            inline: "package host:completion; world completion-export { export toolcell:mcp/completion@1.3.0; }",
            world: "host:completion/completion-export",
            with: { "toolcell:mcp/types": crate::bindings::toolcell::mcp::types },
            exports: { default: async },
        });
    }

    mod with_resources {
        wasmtime::component::bindgen!({
            path: "../../wit",
            inline: "package host:resources; world resources-export { export toolcell:mcp/resources@1.3.0; }",
            world: "host:resources/resources-export",
            with: { "toolcell:mcp/types": crate::bindings::toolcell::mcp::types },
            exports: { default: async },
        });
    }

    pub use with_completion::exports::toolcell::mcp::completion;
    pub use with_completion::{CompletionExport, CompletionExportIndices};
    pub use with_prompts::exports::toolcell::mcp::prompts;
    pub use with_prompts::{PromptsExport, PromptsExportIndices};
    pub use with_resources::exports::toolcell::mcp::resources;
    pub use with_resources::{ResourcesExport, ResourcesExportIndices};
}
