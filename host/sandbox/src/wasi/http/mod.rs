//! Outgoing HTTP for guests (wasi:http 0.2): each request is decided by policy, sent to an address that policy checked,
//! to a server that proved its name, and counted. Must not hold: rules, or anything incoming.
//!
//! A request runs through the rooms in this order:
//!
//! | room | does |
//! |---|---|
//! | [`hooks`] | asks policy, counts the request, refuses forged or too many headers |
//! | [`exchange`] | waits for a turn, takes a connection, sends, bounds every phase in time |
//! | [`inject`] | adds the secrets that the manifest names for this request |
//! | [`connect`], [`proxy`], [`tls`] | name → addresses → permitted ones → TCP → TLS for that name → HTTP/1.1 or HTTP/2 |
//! | [`framing`] | refuses responses that two readers take for different ones |
//! | [`outgoing`], [`incoming`] | the two bodies: lengths, trailers, time, redaction |
//! | [`links`] | connections that wait for the next request of the same call to the same server |
//!
//! Never done here: redirects are not followed, bodies are not decompressed, nothing is remembered from one call to the
//! next, and the environment's proxies are not looked at.

mod connect;
mod exchange;
mod fault;
mod fields;
mod framing;
mod hooks;
mod incoming;
mod inject;
mod links;
mod outgoing;
mod proxy;
mod reach;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use hooks::{HttpHooks, context};
pub(crate) use reach::HttpReach;
