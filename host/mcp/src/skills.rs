//! Skills as the protocol has them: entries of their list, and what their folders hold.

/// One skill that the host serves (ext-skills, "Skill Entries").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name of its entry in [`tools`](crate::ServedCatalog::tools): who sees that, sees the
    /// skill.
    pub entry: String,
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// Its entry, as JSON: `uri`, `frontmatter` and `resources`.
    pub json: String,
}

/// Something directly in a folder.
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
