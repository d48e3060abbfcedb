//! Serving over HTTP: both eras on one endpoint, who is let in, what hostile clients are answered,
//! and the end.
//!
//! Every test talks over raw sockets, so that what is sent is what is meant. Real clients are in
//! the module `clients`.

mod asking;
mod attacks;
mod callers;
mod doors;
mod ending;
mod mismatch;
mod modern;
mod oauth;
mod proxied;
mod sessions;
mod shares;
mod tls;
mod tokens;
