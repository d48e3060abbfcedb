//! The tool contract, generated from `wit/`. Holds nothing written by hand.
#![allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "tool-component",
    pub_export_macro: true,
    default_bindings_module: "toolkit::bindings",
});
