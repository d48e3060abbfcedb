//! Records of reloads. The components of a new catalog are recorded one by one before it, as they
//! are at the start.

use serde::Serialize;

use super::Clipped;

/// Another catalog serves from now on.
#[derive(Debug, Clone, Serialize)]
pub struct CatalogReplaced<'a> {
    /// The new one. Calls name it from now on.
    pub generation: u64,
    /// The one before.
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

/// A component is not as the lock has it: it serves as it was, or not at all where it is new.
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

/// Somebody approved what was quarantined: it is in the lock now.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentApproved<'a> {
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes.
    pub digest: &'a str,
}

/// Another catalog was to serve, and could not: the one before serves on, whole.
#[derive(Debug, Clone, Serialize)]
pub struct CatalogRefused<'a> {
    /// The one that serves on.
    pub generation: u64,
    /// The reason for the reload.
    pub trigger: &'a str,
    /// Why.
    pub cause: Clipped<'a>,
}
