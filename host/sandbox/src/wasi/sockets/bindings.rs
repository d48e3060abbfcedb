//! The generated bindings of `wasi:sockets/ip-name-lookup`, over wasmtime-wasi's own bindings of
//! everything that it uses. wasmtime-wasi's look-ups cannot be given another resolver. Nothing is
//! written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package toolcell:sockets;
        world lookup {
            import wasi:sockets/ip-name-lookup@0.2.12;
        }
    ",
    imports: { default: trappable },
    with: {
        "wasi:io": wasmtime_wasi::p2::bindings::io,
        "wasi:sockets/network": wasmtime_wasi::p2::bindings::sockets::network,
        "wasi:sockets/ip-name-lookup.resolve-address-stream": crate::wasi::sockets::lookup::Answers,
    },
    trappable_error_type: { "wasi:sockets/network.error-code" => wasmtime_wasi::p2::SocketError },
    require_store_data_send: true,
});
