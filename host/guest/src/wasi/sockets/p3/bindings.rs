//! The generated bindings of `wasi:sockets` of WASI 0.3. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: ["../../wit/wasi-0.3/clocks.wit", "../../wit/wasi-0.3/sockets.wit"],
    world: "wasi:sockets/imports",
    imports: {
        "wasi:sockets/types.[method]tcp-socket.send": store | trappable,
        "wasi:sockets/types.[method]tcp-socket.receive": store | trappable,
        "wasi:sockets/types.[method]udp-socket.bind": async | trappable,
        "wasi:sockets/types.[method]udp-socket.connect": async | trappable,
        "wasi:sockets/types.[method]udp-socket.disconnect": async | trappable,
        default: trappable,
    },
    trappable_error_type: { "wasi:sockets/types.error-code" => crate::wasi::sockets::p3::Refused },
    with: {
        "wasi:clocks": wasmtime_wasi::p3::bindings::clocks,
        "wasi:sockets/types.tcp-socket": crate::wasi::sockets::tcp::TcpSocket,
        "wasi:sockets/types.udp-socket": crate::wasi::sockets::udp::UdpSocket,
    },
});

pub use wasi::sockets::{ip_name_lookup, types};
