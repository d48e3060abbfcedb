//! Resources that the operator or a component declares, those that the host reads itself, and
//! skills with their folders.

use crate::caller::Caller;
use crate::content::{ContentAnnotations, ContentIcon, Map, ResourceBody};
use crate::revision::Revision;
use crate::tool::ToolList;

/// Resources that the operator or a component declares.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredResource {
    /// The address, or a template of addresses (RFC 6570).
    pub uri: String,
    /// True for a template.
    pub is_template: bool,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// How it is read.
    pub reader: ResourceReader,
    /// The variables of a template, each with the values that are offered as completions.
    pub variables: Vec<(String, Vec<String>)>,
    /// Members that only components provide.
    pub more: ResourceMore,
}

/// Further members of a definition. Each is optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceMore {
    /// The size of its content, in bytes, before any encoding.
    pub size_bytes: Option<u64>,
    /// Hints about it.
    pub annotations: Option<ContentAnnotations>,
    /// Pictures for user interfaces.
    pub icons: Vec<ContentIcon>,
    /// Its `_meta`; empty: none.
    pub meta: Map,
}

/// How a declared resource is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResourceReader {
    /// By a call of a tool.
    Tool {
        /// The tool, as it is listed.
        tool: String,
        /// The argument of the tool that gets the address.
        argument: String,
    },
    /// By the host, for callers who may call all of these tools.
    Host {
        /// The tools, as they are listed.
        tools: Vec<String>,
    },
    /// By the host, from its kept files, for callers who see any of these entries.
    Held {
        /// The entries, by their names in [`tools`](crate::ServedCatalog::tools).
        entries: Vec<String>,
        /// A text that changes with the listed content: clients are notified then.
        version: String,
    },
}

/// One resource below a template that the host reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEntry {
    /// Its address.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The size of its content, in bytes.
    pub size_bytes: u64,
}

/// A resource that the host should read.
#[derive(Clone, Debug)]
pub struct HostReading {
    /// Its address.
    pub uri: String,
    /// Who reads it.
    pub caller: Caller,
    /// The caller's revision.
    pub revision: Revision,
    /// The request's id, for logs.
    pub request_id: String,
}

/// The content of a resource that the host has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostContents {
    /// Its media type.
    pub mime_type: Option<String>,
    /// The content.
    pub body: ResourceBody,
    /// Its `_meta`; empty: none.
    pub meta: Map,
    /// True if other callers may read something else at this address: then no shared cache may keep
    /// it.
    pub is_private: bool,
}

/// Why the host has not read a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// It does not exist, or the caller may not see it.
    Unknown,
    /// It exists, but a limit keeps it from being read: a sentence for the client.
    Refused(String),
    /// It cannot be read now: a sentence for the client.
    Failed(String),
}

impl DeclaredResource {
    /// True if a caller with these tools sees it.
    #[must_use]
    pub fn is_seen_with(&self, tools: &ToolList) -> bool {
        match &self.reader {
            ResourceReader::Tool { tool, .. } => tools.find(tool).is_some(),
            ResourceReader::Host { tools: needed } => needed.iter().all(|tool| tools.find(tool).is_some()),
            ResourceReader::Held { entries, .. } => entries.iter().any(|entry| tools.find(entry).is_some()),
        }
    }

    /// True if the host lists the resources below it.
    pub(crate) const fn is_folder(&self) -> bool {
        self.is_template && matches!(self.reader, ResourceReader::Host { .. })
    }
}

/// One skill that the host serves (ext-skills, "Skill Entries").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name of its entry in [`tools`](crate::ServedCatalog::tools): whoever sees that, sees the
    /// skill.
    pub entry: String,
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// Its entry, as JSON: `uri`, `frontmatter` and `resources`.
    pub json: String,
}

/// A direct entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderChild {
    /// Its address.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// A description.
    pub description: Option<String>,
    /// Its media type; that of folders is [`FolderChild::FOLDER`].
    pub mime_type: String,
    /// The size of its content, in bytes; `None` for a folder.
    pub size_bytes: Option<u64>,
}

impl FolderChild {
    /// The media type of folders.
    pub const FOLDER: &'static str = "inode/directory";
}
