//! Outgoing HTTP for guests (wasi:http 0.2). Each request is decided on by the policy, counted, and
//! sent to a checked address of a server that proved its name. Must not hold: rules, or anything
//! incoming.
//!
//! A request passes these files in this order:
//!
//! | file | does |
//! |---|---|
//! | [`hooks`] | takes it from the guest |
//! | [`held`] | learns the length of a body that the guest ends at once |
//! | [`outside`] | sends it to the host, where the guest runs in a sandbox process |
//! | [`requests`] | asks policy, counts the request, refuses forged or too many headers |
//! | [`exchange`] | waits for a turn, takes a connection, sends, bounds every phase in time |
//! | [`inject`] | adds the secrets that the manifest names for this request |
//! | [`connect`], [`proxy`], [`tls`] | name, permitted addresses, TCP, TLS, HTTP/1.1 or HTTP/2 |
//! | [`framing`] | refuses responses that two readers take for different ones |
//! | [`outgoing`], [`incoming`] | the two bodies: lengths, trailers, time, redaction |
//! | [`connections`] | connections that wait for the call's next request to the same server |
//!
//! Never done here: redirects are not followed, bodies are not decompressed, nothing is remembered
//! from one call to the next, and the environment's proxies are not looked at.

mod client;
mod connect;
mod connections;
mod exchange;
mod fault;
mod fields;
mod framing;
mod held;
mod hooks;
mod incoming;
mod inject;
mod outgoing;
pub(crate) mod outside;
mod proxy;
mod requests;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use client::HttpClient;
pub(crate) use hooks::{HttpHooks, add_handle, context};
pub(crate) use requests::Requests;
