//! Records of resources that the host reads by itself.

use serde::Serialize;

use super::Clipped;

/// A client had a file read as a resource.
#[derive(Debug, Clone, Serialize)]
pub struct ResourceRead<'a> {
    /// The catalog it was read on.
    pub generation: u64,
    /// The protocol's revision, such as `2025-11-25`.
    pub revision: &'a str,
    /// Who read it; `local` where the transport has one caller.
    pub caller: Clipped<'a>,
    /// The request's id, as the client wrote it.
    pub request: Clipped<'a>,
    /// The component whose mount the file is in.
    pub component: &'a str,
    /// The file's URI.
    pub uri: Clipped<'a>,
    /// `read`; `unknown` if the file does not exist, `refused` if it is too large or the caller
    /// reads too often, `failed` if it could not be read in time.
    pub outcome: &'a str,
    /// The bytes that were read.
    pub bytes: u64,
}
