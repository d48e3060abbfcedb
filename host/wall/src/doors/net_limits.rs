//! The part of the network that one call may use. The host counts, and decides by its count. A
//! sandbox process counts, too, so that a guest at its limit does not reach the host.
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use toolcell_policy::Limits;

/// Lookups that a sandbox process asks the host for at once: the same number as of waiting
/// requests.
pub const LOOKUPS_AT_ONCE: usize = 16;

/// Requests of a call that have a door while they wait for their turn. More wait in the sandbox
/// process, without a descriptor of the host.
const WAITING_REQUESTS_MAX: usize = 16;

/// Bytes of a request's method and URI: the longest that the `http` crate accepts, with room for
/// the rest of a head.
const LINE_BYTES_MAX: usize = 128 << 10;

/// Bytes that wasi:http counts for a field in addition to its name and value: the size of both
/// types.
const FIELD_HELD_BYTES: usize = size_of::<HeaderName>() + size_of::<HeaderValue>();

/// The limits of one call's network use.
#[derive(Clone, Copy, Debug)]
pub struct NetLimits {
    /// HTTP requests.
    pub requests: u64,
    /// HTTP requests at once.
    pub concurrency: usize,
    /// Bytes of requests, bodies and headers.
    pub egress_bytes: u64,
    /// Bytes of responses, bodies and headers.
    pub ingress_bytes: u64,
    /// Until a connection is made: turn, name lookup, TCP, proxy and TLS together.
    pub connect: Duration,
    /// From there to the response's headers.
    pub first_byte: Duration,
    /// One request in total, to the last byte of its response.
    pub total: Duration,
    /// Header fields of one message; trailers count in the same way.
    pub headers: usize,
    /// Bytes of one message's header fields.
    pub header_bytes: usize,
    /// TCP and UDP sockets that a call opens.
    pub sockets: u64,
    /// Names that a call looks up itself.
    pub lookups: u64,
}

impl NetLimits {
    /// Requests, lookups and sockets together.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.requests.saturating_add(self.lookups).saturating_add(self.sockets)
    }

    /// Doors that a sandbox process has for the requests of one call.
    #[must_use]
    pub fn http_doors_max(&self) -> usize {
        self.concurrency.saturating_add(WAITING_REQUESTS_MAX)
    }

    /// Bytes of a list of fields that a guest can make, by wasi:http's count.
    #[must_use]
    pub fn held_bytes_max(&self) -> usize {
        let held = self.headers.saturating_mul(FIELD_HELD_BYTES).saturating_add(self.header_bytes);
        held.saturating_add(held / 4)
    }

    /// The largest head or list of trailers, encoded, that a guest can make.
    #[must_use]
    pub fn head_bytes_max(&self) -> usize {
        self.held_bytes_max().saturating_add(LINE_BYTES_MAX)
    }
}

impl From<&Limits> for NetLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            requests: u64::try_from(limits.http_requests()).unwrap_or(u64::MAX),
            concurrency: limits.http_concurrency(),
            egress_bytes: limits.egress_bytes(),
            ingress_bytes: limits.ingress_bytes(),
            connect: limits.http_connect(),
            first_byte: limits.http_first_byte(),
            total: limits.http_time(),
            headers: limits.http_headers(),
            header_bytes: usize::try_from(limits.http_header_bytes()).unwrap_or(usize::MAX),
            sockets: u64::try_from(limits.sockets()).unwrap_or(u64::MAX),
            lookups: u64::try_from(limits.lookups()).unwrap_or(u64::MAX),
        }
    }
}
