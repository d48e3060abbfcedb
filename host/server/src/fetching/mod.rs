//! What the host gets from elsewhere: downloads, and components from registries, with who signed
//! them. Must not hold: requests of guests.

pub mod download;
pub mod registries;
pub mod requested_permissions;
pub mod trust;
