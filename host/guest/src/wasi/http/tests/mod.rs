//! Requests of guests against servers on loopback, through doors.
#![allow(clippy::unwrap_used, clippy::panic)]
mod bodies;
mod connections;
mod decisions;
mod doors;
mod framing;
mod limits;
mod misuse;
mod proxies;
mod secrets;
mod servers;
mod support;
mod times;
mod trust;
