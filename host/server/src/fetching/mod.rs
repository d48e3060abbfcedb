//! What the host gets from elsewhere: over HTTP, and components from registries, with who signed
//! them. Must not hold: requests of guests.

pub mod download;
pub(crate) mod http_client;
pub mod registries;
pub mod trust;
pub mod wishes;
