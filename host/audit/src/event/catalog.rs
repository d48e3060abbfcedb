//! Records of reloads. The components of a new catalog are recorded one by one before it, as they
//! are at the start.

use serde::Serialize;

use super::Clipped;

/// A new catalog starts to serve.
#[derive(Debug, Clone, Serialize)]
pub struct CatalogReplaced<'a> {
    /// The new generation. Calls name it from now on.
    pub generation: u64,
    /// The generation before.
    pub replaces: u64,
    /// The reason for the reload: `files`, `hangup`, `asked`, `approved`.
    pub trigger: &'a str,
    /// The differences in words.
    pub summary: Clipped<'a>,
    /// New tools.
    pub tools_added: u64,
    /// Removed tools.
    pub tools_removed: u64,
    /// Tools with a changed definition.
    pub tools_changed: u64,
}

/// A component differs from the lock: its old version keeps serving, or nothing if it is new.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentQuarantined<'a> {
    /// The generation that serves.
    pub generation: u64,
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of the quarantined bytes.
    pub digest: &'a str,
    /// The differences from the lock in words.
    pub differences: Clipped<'a>,
}

/// An operator approved a quarantined component, which is in the lock now.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentApproved<'a> {
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes.
    pub digest: &'a str,
}

/// A new catalog was refused, and the old one keeps serving unchanged.
#[derive(Debug, Clone, Serialize)]
pub struct CatalogRefused<'a> {
    /// The generation that keeps serving.
    pub generation: u64,
    /// The reason for the reload.
    pub trigger: &'a str,
    /// Why.
    pub cause: Clipped<'a>,
}
