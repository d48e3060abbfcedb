//! The options of a socket that a guest may set. They are kept until the host makes the socket;
//! what is set after that is only remembered, as a hint that came too late.
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use wasmtime_wasi::p2::SocketResult;
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

/// The largest buffer that is asked for, in bytes; the system may allow less.
const BUFFER_BYTES_MAX: u64 = 4 << 20;
/// The longest time between two probes, in seconds: the most that Linux takes.
const KEEP_ALIVE_SECONDS_MAX: u64 = 32_767;
/// The most probes: as many as Linux takes.
const KEEP_ALIVE_COUNT_MAX: u32 = 127;

/// Values of options that a guest has not set: Linux's defaults.
const KEEP_ALIVE_IDLE_NANOS: u64 = 7_200_000_000_000;
const KEEP_ALIVE_INTERVAL_NANOS: u64 = 75_000_000_000;
const KEEP_ALIVE_COUNT: u32 = 9;
const HOP_LIMIT: u8 = 64;
const BUFFER_BYTES: u64 = 212_992;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The options that a guest has set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Options {
    keep_alive: Option<bool>,
    keep_alive_idle_nanos: Option<u64>,
    keep_alive_interval_nanos: Option<u64>,
    keep_alive_count: Option<u32>,
    hop_limit: Option<u8>,
    receive_bytes: Option<u64>,
    send_bytes: Option<u64>,
}

/// A value that an option can have; 0 is none.
fn some<T: Default + PartialEq>(value: T) -> SocketResult<Option<T>> {
    if value == T::default() { Err(ErrorCode::InvalidArgument.into()) } else { Ok(Some(value)) }
}

/// Each option: its type, how it is read and set, and its value before.
macro_rules! options {
    ($($field:ident: $type:ty = $before:expr, $set:ident;)*) => {
        impl Options {
            $(
                pub(super) fn $field(&self) -> $type {
                    self.$field.unwrap_or($before)
                }

                pub(super) fn $set(&mut self, value: $type) -> SocketResult<()> {
                    self.$field = some(value)?;
                    Ok(())
                }
            )*
        }
    };
}

options! {
    keep_alive_idle_nanos: u64 = KEEP_ALIVE_IDLE_NANOS, set_keep_alive_idle_nanos;
    keep_alive_interval_nanos: u64 = KEEP_ALIVE_INTERVAL_NANOS, set_keep_alive_interval_nanos;
    keep_alive_count: u32 = KEEP_ALIVE_COUNT, set_keep_alive_count;
    hop_limit: u8 = HOP_LIMIT, set_hop_limit;
    receive_bytes: u64 = BUFFER_BYTES, set_receive_bytes;
    send_bytes: u64 = BUFFER_BYTES, set_send_bytes;
}

impl Options {
    pub(super) fn keep_alive(&self) -> bool {
        self.keep_alive.unwrap_or_default()
    }

    pub(super) fn set_keep_alive(&mut self, value: bool) {
        self.keep_alive = Some(value);
    }

    /// Sets them on a socket that the host has made. They are hints: one that the system does not
    /// take is left out.
    pub(super) fn apply(&self, socket: impl AsFd, six: bool) {
        let socket = socket.as_fd();
        let buffer = |bytes: u64| usize::try_from(bytes.clamp(1, BUFFER_BYTES_MAX)).unwrap_or(usize::MAX);
        let time = |nanos: u64| Duration::from_secs(nanos.div_ceil(NANOS_PER_SECOND).clamp(1, KEEP_ALIVE_SECONDS_MAX));
        let set = [
            self.keep_alive.map(|on| sockopt::set_socket_keepalive(socket, on)),
            self.keep_alive_idle_nanos.map(|nanos| sockopt::set_tcp_keepidle(socket, time(nanos))),
            self.keep_alive_interval_nanos.map(|nanos| sockopt::set_tcp_keepintvl(socket, time(nanos))),
            self.keep_alive_count.map(|count| sockopt::set_tcp_keepcnt(socket, count.clamp(1, KEEP_ALIVE_COUNT_MAX))),
            self.receive_bytes.map(|bytes| sockopt::set_socket_recv_buffer_size(socket, buffer(bytes))),
            self.send_bytes.map(|bytes| sockopt::set_socket_send_buffer_size(socket, buffer(bytes))),
            self.hop_limit.map(|hops| match six {
                true => sockopt::set_ipv6_unicast_hops(socket, Some(hops)),
                false => sockopt::set_ip_ttl(socket, u32::from(hops.max(1))),
            }),
        ];
        // Hints.
        set.into_iter().flatten().for_each(drop);
    }
}
