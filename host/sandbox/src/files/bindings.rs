//! The generated bindings of `wasi:filesystem`. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "wasi:filesystem/imports",
    imports: {
        // The disk decides how long these take; all others are short.
        "wasi:filesystem/types.[method]descriptor.sync": async | trappable,
        "wasi:filesystem/types.[method]descriptor.sync-data": async | trappable,
        default: trappable,
    },
    trappable_error_type: { "wasi:filesystem/types.error-code" => crate::files::Refused },
    with: {
        "wasi:io": wasmtime_wasi::p2::bindings::io,
        "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
        "wasi:filesystem/types.descriptor": crate::files::Descriptor,
        "wasi:filesystem/types.directory-entry-stream": crate::files::Listing,
    },
});

pub use wasi::filesystem::{preopens, types};
