//! The generated bindings of `wasi:filesystem` of WASI 0.3. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: ["../../wit/wasi-0.3/clocks.wit", "../../wit/wasi-0.3/filesystem.wit"],
    world: "wasi:filesystem/imports",
    imports: {
        "wasi:filesystem/types.[method]descriptor.read-via-stream": store | trappable,
        "wasi:filesystem/types.[method]descriptor.write-via-stream": store | trappable,
        "wasi:filesystem/types.[method]descriptor.append-via-stream": store | trappable,
        "wasi:filesystem/types.[method]descriptor.read-directory": store | trappable,
        "wasi:filesystem/types.[drop]descriptor": async | trappable,
        default: trappable,
    },
    trappable_error_type: { "wasi:filesystem/types.error-code" => crate::wasi::files::Refused },
    with: {
        "wasi:clocks": wasmtime_wasi::p3::bindings::clocks,
        "wasi:filesystem/types.descriptor": crate::wasi::files::Descriptor,
    },
});

pub use wasi::filesystem::{preopens, types};
