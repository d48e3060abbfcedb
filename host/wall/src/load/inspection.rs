//! A component's own description: digest, size, exports, imports.
use super::facts::SourceFacts;
use super::offers::offered;
use crate::digest::ComponentDigest;

/// The tool contract's interface, up to its version.
pub const TOOLS: &str = "toolcell:mcp/tools@";
/// The same for prompts.
pub const PROMPTS: &str = "toolcell:mcp/prompts@";
/// The same for completion.
pub const COMPLETION: &str = "toolcell:mcp/completion@";
/// The same for resources.
pub const RESOURCES: &str = "toolcell:mcp/resources@";
/// The contract's interface for asking, up to its version.
const ASKING: &str = "toolcell:mcp/asking@";

/// A component's identity, exports and imports.
#[derive(Clone, Debug)]
pub struct Inspection {
    source: SourceFacts,
    exports: Vec<String>,
    imports: Vec<String>,
    not_offered: Vec<String>,
}

impl Inspection {
    /// An inspection of a component with these bytes, exports and imports.
    #[must_use]
    pub fn new(source: SourceFacts, exports: Vec<String>, imports: Vec<String>) -> Self {
        let not_offered = imports.iter().filter(|name| !offered(name)).cloned().collect();
        Self { source, exports, imports, not_offered }
    }

    /// The digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> ComponentDigest {
        self.source.digest
    }

    /// Its size.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.source.size_bytes
    }

    /// True if it is a program for WASI preview 1, which the official adapter turned into a
    /// component. Its exports and imports are then the component's.
    #[must_use]
    pub fn is_adapted(&self) -> bool {
        self.source.adapted
    }

    /// The names of its exports.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// The names of its imports: the capabilities it asks for.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The imports that this host does not offer.
    #[must_use]
    pub fn not_offered(&self) -> &[String] {
        &self.not_offered
    }

    /// True if it needs WASI 0.3, which a manifest allows for each component by itself.
    #[must_use]
    pub fn is_later_wasi(&self) -> bool {
        self.imports.iter().chain(&self.exports).any(|name| toolcell_policy::is_later_wasi(name))
    }

    /// True if it may ask the person behind its caller: it imports the interface for asking.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.imports.iter().any(|name| name.starts_with(ASKING))
    }

    /// True if it offers values for arguments: it exports the interface for completion.
    #[must_use]
    pub fn completes(&self) -> bool {
        self.exports.iter().any(|name| name.starts_with(COMPLETION))
    }

    /// True if it has resources of its own: it exports the interface for them.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.exports.iter().any(|name| name.starts_with(RESOURCES))
    }

    /// The version of the tool contract that it exports, if any.
    #[must_use]
    pub fn contract_version(&self) -> Option<&str> {
        self.exports.iter().find_map(|name| name.strip_prefix(TOOLS))
    }
}
