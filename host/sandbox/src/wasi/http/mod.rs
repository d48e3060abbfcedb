//! Outgoing HTTP for guests (wasi:http 0.2). Each request is decided on by the policy, counted, and
//! sent to a checked address of a server that proved its name. Must not hold: rules, or anything
//! incoming.
//!
//! A request passes these files in this order; the last two rows serve all of them:
//!
//! | file | does |
//! |---|---|
//! | [`serve`] | takes it from its door |
//! | [`requests`] | asks policy, counts the request, refuses forged or too many headers |
//! | [`exchange`] | waits for a turn, takes a connection, sends, bounds every phase in time |
//! | [`inject`] | adds the secrets that the manifest names for this request |
//! | [`connect`], [`proxy`], [`tls`] | name, permitted addresses, TCP, TLS, HTTP/1.1 or HTTP/2 |
//! | [`framing`] | refuses responses that two readers take for different ones |
//! | [`outgoing`], [`incoming`] | the two bodies: lengths, trailers, time, redaction |
//! | [`connections`] | connections that wait for the call's next request to the same server |
//! | [`client`] | what a tool's requests have in common, prepared at load |
//! | [`fields`], [`fault`] | the largest number of headers; errors in the words of wasi:http |
//!
//! What it never does: follow redirects, decompress bodies, remember anything from one call to the
//! next, or use the environment's proxies.

mod client;
mod connect;
mod connections;
mod exchange;
mod fault;
mod fields;
mod framing;
mod incoming;
mod inject;
mod outgoing;
mod proxy;
mod requests;
mod serve;
mod tls;

pub(crate) use client::ToolHttpClient;
pub(crate) use requests::CallRequests;
pub(crate) use serve::serve;
