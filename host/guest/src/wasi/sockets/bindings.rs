//! The generated bindings of `wasi:sockets/tcp`, `udp` and `ip-name-lookup`, over our own sockets
//! and lookups. Nothing is written by hand here.
#![allow(missing_docs, clippy::all, rust_2018_idioms)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package toolcell:sockets;
        world sockets {
            import wasi:sockets/tcp@0.2.12;
            import wasi:sockets/tcp-create-socket@0.2.12;
            import wasi:sockets/udp@0.2.12;
            import wasi:sockets/udp-create-socket@0.2.12;
            import wasi:sockets/ip-name-lookup@0.2.12;
        }
    ",
    imports: {
        "wasi:sockets/tcp.[method]tcp-socket.start-connect": async | trappable,
        "wasi:sockets/udp.[method]udp-socket.start-bind": async | trappable,
        "wasi:sockets/udp.[method]udp-socket.stream": async | trappable,
        "wasi:sockets/udp.[method]outgoing-datagram-stream.send": async | trappable,
        default: trappable,
    },
    with: {
        "wasi:io": wasmtime_wasi::p2::bindings::io,
        "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
        "wasi:sockets/network": wasmtime_wasi::p2::bindings::sockets::network,
        "wasi:sockets/ip-name-lookup.resolve-address-stream": crate::wasi::sockets::lookup::Answers,
        "wasi:sockets/tcp.tcp-socket": crate::wasi::sockets::tcp::TcpSocket,
        "wasi:sockets/udp.udp-socket": crate::wasi::sockets::udp::UdpSocket,
        "wasi:sockets/udp.incoming-datagram-stream": crate::wasi::sockets::udp::Incoming,
        "wasi:sockets/udp.outgoing-datagram-stream": crate::wasi::sockets::udp::Outgoing,
    },
    trappable_error_type: { "wasi:sockets/network.error-code" => wasmtime_wasi::p2::SocketError },
    require_store_data_send: true,
});
