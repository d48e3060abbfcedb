//! Requests of guests against servers on loopback.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bodies;
mod decisions;
mod framing;
mod limits;
mod links;
mod proxies;
mod secrets;
mod servers;
mod support;
mod times;
mod trust;
