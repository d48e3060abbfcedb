//! The generated bindings of `wasi:filesystem`. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "wasi:filesystem/imports",
    imports: {
        // These do not access the disk. All others take as long as the disk does.
        "wasi:filesystem/types.[method]descriptor.read-via-stream": trappable,
        "wasi:filesystem/types.[method]descriptor.write-via-stream": trappable,
        "wasi:filesystem/types.[method]descriptor.append-via-stream": trappable,
        "wasi:filesystem/types.[method]descriptor.advise": trappable,
        "wasi:filesystem/types.[method]descriptor.get-flags": trappable,
        "wasi:filesystem/types.[method]descriptor.get-type": trappable,
        "wasi:filesystem/types.filesystem-error-code": trappable,
        "wasi:filesystem/preopens.get-directories": trappable,
        default: async | trappable,
    },
    trappable_error_type: { "wasi:filesystem/types.error-code" => crate::wasi::files::Refused },
    with: {
        "wasi:io": wasmtime_wasi::p2::bindings::io,
        "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
        "wasi:filesystem/types.descriptor": crate::wasi::files::Descriptor,
        "wasi:filesystem/types.directory-entry-stream": crate::wasi::files::Listing,
    },
});

pub use wasi::filesystem::{preopens, types};
