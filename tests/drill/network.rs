//! The network, without asking the host.
use serde_json::json;

use crate::row::End::{Fails, Killed};
use crate::row::errors::{BADF, INVAL};
use crate::row::{Row, call, holds, only, row, sealed};

/// `sockaddr_in` of 127.0.0.1:80.
fn address() -> serde_json::Value {
    json!({"bytes": [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]})
}

/// The attacks.
pub const ROWS: &[Row] = &[
    row("make a socket for TCP", |_| only("socket", json!([2, 1, 0])), Killed),
    sealed("make one without any grant", |_| only("socket", json!([2, 1, 0])), Killed),
    row("make a socket for UDP", |_| only("socket", json!([2, 2, 0])), Killed),
    row("make a socket for IPv6", |_| only("socket", json!([10, 1, 0])), Killed),
    row("make a Unix socket", |_| only("socket", json!([1, 1, 0])), Killed),
    row("make a socket to the kernel", |_| only("socket", json!([16, 3, 0])), Killed),
    row("make a socket for raw packets", |_| only("socket", json!([17, 3, 0])), Killed),
    row("make a socket to the host of a virtual machine", |_| only("socket", json!([40, 1, 0])), Killed),
    row("make a pair of sockets", |_| only("socketpair", json!([1, 1, 0, {"room": 8}])), Killed),
    row("connect the link elsewhere", |_| only("connect", json!([{"link": null}, address(), 16])), Killed),
    row("bind the link", |_| only("bind", json!([{"link": null}, address(), 16])), Killed),
    row("listen on the link", |_| only("listen", json!([{"link": null}, 1])), Killed),
    row("take a connection of the link", |_| only("accept4", json!([{"link": null}, 0, 0, 0])), Killed),
    row("send from the link elsewhere", |_| only("sendto", json!([{"link": null}, "x", 1, 0, address(), 16])), Killed),
    row(
        "send a descriptor to the host",
        |_| only("sendmsg", json!([{"link": null}, {"words": [0, 0, 0, 0, 0, 0, 0]}, 0])),
        Killed,
    ),
    row("bind the link to a device", |_| only("setsockopt", json!([{"link": null}, 1, 25, "lo", 3])), Killed),
    row(
        "take the name of the host from the link",
        |_| only("ioctl", json!([{"link": null}, 0x8912, {"room": 64}])),
        Killed,
    ),
    row("mark packets", |_| only("setsockopt", json!([{"link": null}, 1, 36, {"bytes": [1, 0, 0, 0]}, 4])), Killed),
    row(
        "connect a door elsewhere",
        |_| json!(["door", call("connect", json!([{"answer": 0}, address(), 16]))]),
        Killed,
    ),
    row("shut a descriptor that is none", |_| only("shutdown", json!([9_999, 2])), Fails(&[BADF, INVAL])),
];

#[test]
fn nothing_is_connected_without_the_host() {
    holds(ROWS);
}
