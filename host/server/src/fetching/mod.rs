//! What the host gets from elsewhere: downloads, components from registries with who signed them,
//! and lists of other MCP servers. Must not hold: requests of guests.

pub mod download;
pub mod registries;
pub mod remotes;
pub mod requested_permissions;
pub mod trust;
