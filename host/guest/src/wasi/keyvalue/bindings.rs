//! The generated bindings of `wasi:keyvalue`. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit/deps/keyvalue",
    world: "wasi:keyvalue/imports@0.2.0-draft",
    imports: { default: async | trappable },
    with: { "wasi:keyvalue/store.bucket": crate::wasi::keyvalue::host::Bucket },
    trappable_error_type: { "wasi:keyvalue/store.error" => crate::wasi::keyvalue::host::Trouble },
});
