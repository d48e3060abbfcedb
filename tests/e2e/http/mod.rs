//! Serving over HTTP: both eras on one endpoint, access, answers to hostile clients, and the end of
//! a server.
//!
//! Every test uses raw sockets, so that the bytes on the wire are exactly those it means to send.
//! Real clients are in the module `clients`.

mod asking;
mod attacks;
mod callers;
mod doors;
mod ending;
mod entries;
mod known;
mod mismatch;
mod modern;
mod nested;
mod oauth;
mod proxied;
mod readiness;
mod replicas;
mod rolled;
mod sessions;
mod shared;
mod shares;
mod tasks;
mod tls;
mod tokens;
