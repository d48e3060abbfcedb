//! The options that a guest set, applied to the socket that the host made for it.
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use toolcell_wall::doors::socket_options::SocketOptions;

/// The largest buffer that is requested, in bytes; the system may allow less.
const BUFFER_BYTES_MAX: u64 = 4 << 20;
/// The longest time between two probes, in seconds: the most that Linux accepts.
const KEEP_ALIVE_SECONDS_MAX: u64 = 32_767;
/// The most probes: as many as Linux accepts.
const KEEP_ALIVE_COUNT_MAX: u32 = 127;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Sets the options. They are hints: one that the system refuses is skipped.
pub(super) fn apply(options: &SocketOptions, socket: impl AsFd, six: bool) {
    let socket = socket.as_fd();
    let buffer = |bytes: u64| usize::try_from(bytes.clamp(1, BUFFER_BYTES_MAX)).unwrap_or(usize::MAX);
    let time = |nanos: u64| Duration::from_secs(nanos.div_ceil(NANOS_PER_SECOND).clamp(1, KEEP_ALIVE_SECONDS_MAX));
    let set = [
        options.keep_alive.map(|on| sockopt::set_socket_keepalive(socket, on)),
        options.keep_alive_idle_nanos.map(|nanos| sockopt::set_tcp_keepidle(socket, time(nanos))),
        options.keep_alive_interval_nanos.map(|nanos| sockopt::set_tcp_keepintvl(socket, time(nanos))),
        options.keep_alive_count.map(|count| sockopt::set_tcp_keepcnt(socket, count.clamp(1, KEEP_ALIVE_COUNT_MAX))),
        options.receive_bytes.map(|bytes| sockopt::set_socket_recv_buffer_size(socket, buffer(bytes))),
        options.send_bytes.map(|bytes| sockopt::set_socket_send_buffer_size(socket, buffer(bytes))),
        options.hop_limit.map(|hops| match six {
            true => sockopt::set_ipv6_unicast_hops(socket, Some(hops)),
            false => sockopt::set_ip_ttl(socket, u32::from(hops.max(1))),
        }),
    ];
    // They are hints.
    set.into_iter().flatten().for_each(drop);
}
