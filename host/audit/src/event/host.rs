//! Records of the process, its components and the audit itself.

use serde::Serialize;

use super::Clipped;
use super::call::is_zero;

/// The process began to serve.
#[derive(Debug, Clone, Serialize)]
pub struct HostStarted<'a> {
    /// The program's version.
    pub version: &'a str,
    /// The process id.
    pub pid: u32,
    /// The manifest, as it was named.
    pub manifest: Clipped<'a>,
    /// `sha256:…` of the manifest's text.
    pub manifest_digest: &'a str,
}

/// A component was loaded and will be served.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentLoaded<'a> {
    /// Counts the catalogs of this process, from 1.
    pub generation: u64,
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes.
    pub digest: &'a str,
    /// Its bytes.
    pub size_bytes: u64,
    /// `sha256:…` of its policy's canonical form.
    pub policy_digest: &'a str,
    /// The names of its tools, as clients see them.
    pub tools: &'a [&'a str],
    /// Where it comes from: its file, or its place in a registry with the digest of its manifest.
    /// Records of earlier versions have none.
    pub source: Clipped<'a>,
    /// Those who signed it, a line each, where the manifest asks for them; left out where not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<Clipped<'a>>,
}

/// A component was not loaded.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentRefused<'a> {
    /// The catalog that it would have been part of.
    pub generation: u64,
    /// The component's name in the manifest.
    pub name: &'a str,
    /// `sha256:…` of its bytes, where they could be read.
    pub digest: Option<&'a str>,
    /// Why.
    pub cause: Clipped<'a>,
}

/// The process ends.
#[derive(Debug, Clone, Serialize)]
pub struct HostStopped<'a> {
    /// Why: the end of input, a signal.
    pub reason: Clipped<'a>,
    /// The number of calls, refused ones included.
    pub calls: u64,
}

/// The audit continues in a new file; the old one gets the next number. The first record of every
/// file except the first.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AuditRotated {
    /// The bytes of the file before.
    pub previous_bytes: u64,
    /// The number of records in the oldest files, which were removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_records: u64,
}

/// A torn record at the end of the file was found and cut off.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AuditRepaired {
    /// The number of bytes that were cut off.
    pub dropped_bytes: u64,
}

/// Records before this one could not be written.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AuditMissed {
    /// The number of records missing here.
    pub records: u64,
}
