//! The contract with prompts, completion and resources, and `wasi:keyvalue`, generated from `wit/`.
//! Holds nothing written by hand but the world's own lines.
#![allow(missing_docs, unsafe_code, dead_code, rust_2018_idioms, clippy::all)]

wit_bindgen::generate!({
    inline: r#"
        package toolcell-examples:library;

        world library {
            include toolcell:mcp/tool-component@1.3.0;
            import wasi:keyvalue/store@0.2.0-draft;
            import wasi:keyvalue/batch@0.2.0-draft;
            export toolcell:mcp/prompts@1.3.0;
            export toolcell:mcp/completion@1.3.0;
            export toolcell:mcp/resources@1.3.0;
        }
    "#,
    path: "../../wit",
    world: "toolcell-examples:library/library",
    generate_all,
});

export!(Library with_types_in self);
use super::Library;
