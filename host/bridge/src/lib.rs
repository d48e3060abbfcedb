//! From an OpenAPI document (3.0 to 3.2) to tools: one for each operation, with what it reaches.
//! And from the list of another MCP server. The result is embedded into a component, so the host
//! has no second kind of tool.
//!
//! Deliberately absent: files, network, and the meaning of components' code. The same document or
//! list and the same options always give the same bytes.
#![forbid(unsafe_code)]

mod body;
mod definitions;
mod document;
mod embed;
mod grants;
mod http_tool;
mod leb;
mod limits;
mod media;
mod merge;
mod names;
mod operations;
mod parameters;
mod read;
mod remote;
mod responses;
mod schema;
mod security;
mod selection;
mod served;
mod server;
mod target;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use definitions::{Definitions, ToolDefinition};
pub use embed::{EmbedError, MAGIC, embedded, extracted};
pub use grants::{BridgeGrants, LoginGrant, SecretGrant, SecretPlace, ToolSecrets};
pub use http_tool::HttpToolRequest;
pub use limits::{DOCUMENT_BYTES_MAX, OPERATIONS_DEFAULT, OPERATIONS_MAX};
pub use read::read;
pub use remote::{RemoteList, RemoteOptions, endpoint, remote_server};
pub use server::Origin;
pub use toolcell_bridge_lines as lines;

/// What a person asks for, next to the document.
#[derive(Clone, Debug, Default)]
pub struct BridgeOptions {
    /// The address that the document came from, if it is not a file.
    pub address: Option<String>,
    /// The server to ask instead of the document's.
    pub server: Option<String>,
    /// Tags, operation ids or names of tools. Empty: all.
    pub only: Vec<String>,
    /// True if deprecated operations become tools too.
    pub deprecated: bool,
    /// True if more than [`OPERATIONS_DEFAULT`] operations may become tools.
    pub all: bool,
    /// What stands before each tool's name. It counts towards the longest name.
    pub prefix: String,
    /// The beginning of the names of secrets and of the login.
    pub name: String,
    /// The client's identifier for a login. Without it, the manifest gets no login.
    pub client_id: Option<String>,
}

/// Tools of a document or another server, and what they reach.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// The title and version of the document or the server, for people.
    pub title: String,
    /// The server of all requests.
    pub origin: Origin,
    /// What the guest reads.
    pub definitions: Definitions,
    /// What the manifest gets.
    pub grants: BridgeGrants,
    /// Operations without a tool, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Parts of the document that are cut or not used, one sentence each.
    pub notes: Vec<String>,
}

/// An operation, or a tool of another server, that does not become a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its method and path, or its name.
    pub operation: String,
    /// The reason, as the end of a sentence.
    pub reason: String,
}

/// Why a document or a list gives no tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct BridgeError {
    /// One sentence.
    pub problem: String,
    /// Advice; may be empty.
    pub hint: String,
}

impl BridgeError {
    pub(crate) fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }
}

impl Bridge {
    /// The tools of a document. `check` says why the host cannot serve one, as the end of a
    /// sentence: then its patterns and the schema of its answers are left out, or all of it.
    ///
    /// # Errors
    /// The document is not OpenAPI, is larger than a bound, or has no operation that can be a tool.
    pub fn of(
        document: &Value,
        options: &BridgeOptions,
        check: impl Fn(&ToolDefinition) -> Result<(), String>,
    ) -> Result<Self, BridgeError> {
        let document = document::Document::of(document)?;
        let origin = server::of_document(&document, options)?;
        let selected = selection::select(&document, options)?;
        operations::bridge(&document, origin, selected, options, &check)
    }
}
