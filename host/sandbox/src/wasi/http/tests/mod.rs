//! Requests of guests against servers on loopback: each test twice.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::duplicate_mod)] // on purpose

/// Requests of a guest in this process.
#[path = "."]
mod here {
    const OUTSIDE: bool = false;

    #[path = "bodies.rs"]
    mod bodies;
    #[path = "connections.rs"]
    mod connections;
    #[path = "decisions.rs"]
    mod decisions;
    #[path = "framing.rs"]
    mod framing;
    #[path = "limits.rs"]
    mod limits;
    #[path = "proxies.rs"]
    mod proxies;
    #[path = "secrets.rs"]
    mod secrets;
    #[path = "servers.rs"]
    mod servers;
    #[path = "support.rs"]
    mod support;
    #[path = "times.rs"]
    mod times;
    #[path = "trust.rs"]
    mod trust;
}

/// Requests of a guest in a sandbox process, through doors.
#[path = "."]
mod outside {
    const OUTSIDE: bool = true;

    #[path = "bodies.rs"]
    mod bodies;
    #[path = "connections.rs"]
    mod connections;
    #[path = "decisions.rs"]
    mod decisions;
    #[path = "framing.rs"]
    mod framing;
    #[path = "limits.rs"]
    mod limits;
    #[path = "misuse.rs"]
    mod misuse;
    #[path = "proxies.rs"]
    mod proxies;
    #[path = "secrets.rs"]
    mod secrets;
    #[path = "servers.rs"]
    mod servers;
    #[path = "support.rs"]
    mod support;
    #[path = "times.rs"]
    mod times;
    #[path = "trust.rs"]
    mod trust;
}
