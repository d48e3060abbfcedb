//! The table of what a call may use of the network. Must not hold: where it may go (that is `grants`).

use super::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) const HTTP_REQUESTS: Spec = Spec {
    key: "http_requests",
    unit: Unit::Count,
    default: 64,
    min: 0,
    max: 10_000,
    reason: "HTTP requests of a call. A tool that answers a question asks a few times; the default stops one that crawls.",
};

pub(super) const HTTP_CONCURRENCY: Spec = Spec {
    key: "http_concurrency",
    unit: Unit::Count,
    default: 8,
    min: 1,
    max: 256,
    reason: "HTTP requests of a call that run at once; more wait. As many as a browser opens to one host, and two.",
};

pub(super) const EGRESS: Spec = Spec {
    key: "egress",
    unit: Unit::Bytes,
    default: 8 * MIB,
    min: 0,
    max: 4 * GIB,
    reason: "Header fields and bodies of all HTTP requests of a call: what a tool can carry out.",
};

pub(super) const INGRESS: Spec = Spec {
    key: "ingress",
    unit: Unit::Bytes,
    default: 32 * MIB,
    min: 0,
    max: 16 * GIB,
    reason: "Header fields and bodies of all HTTP responses to a call. Half of the default memory: the guest has to hold \
             what it reads.",
};

pub(super) const HTTP_CONNECT: Spec = Spec {
    key: "http_connect",
    unit: Unit::Millis,
    default: 5_000,
    min: 1,
    max: 600_000,
    reason: "Looking up a host, connecting to it and TLS. Hosts that answer at all do so in a second.",
};

pub(super) const HTTP_FIRST_BYTE: Spec = Spec {
    key: "http_first_byte",
    unit: Unit::Millis,
    default: 15_000,
    min: 1,
    max: 3_600_000,
    reason: "From the request sent to the response's first byte: half of a call's default deadline.",
};

pub(super) const HTTP_TIME: Spec = Spec {
    key: "http_time",
    unit: Unit::Millis,
    default: 30_000,
    min: 1,
    max: 3_600_000,
    reason: "One HTTP request in all, the response's body included: a call's default deadline.",
};

pub(super) const HTTP_HEADERS: Spec = Spec {
    key: "http_headers",
    unit: Unit::Count,
    default: 100,
    min: 1,
    max: 1_000,
    reason: "Header fields of one request or response: what servers commonly accept.",
};

pub(super) const HTTP_HEADER_BYTES: Spec = Spec {
    key: "http_header_bytes",
    unit: Unit::Bytes,
    default: 32 * KIB,
    min: KIB,
    max: MIB,
    reason: "Names and values of the header fields of one request or response, which the host keeps in memory whole.",
};

pub(super) const SOCKETS: Spec = Spec {
    key: "sockets",
    unit: Unit::Count,
    default: 16,
    min: 0,
    max: 1_000,
    reason: "TCP and UDP sockets of a call, those already closed included. Each takes a file descriptor of the host.",
};

pub(super) const LOOKUPS: Spec = Spec {
    key: "lookups",
    unit: Unit::Count,
    default: 64,
    min: 0,
    max: 10_000,
    reason: "Name look-ups of a call: as many as requests, since each request may go to another host.",
};
