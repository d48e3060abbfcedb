//! A mount that the host hands to a process: its place, in addition to the descriptors.
use serde::{Deserialize, Serialize};
use toolcell_policy::Access;

/// The variable in which a component that `toolcell dev` serves finds the project's files: JSON, an
/// object of texts by path. The content of a file that is not UTF-8 is an array of its Base64.
pub const DEV_SOURCE: &str = "TOOLCELL_DEV_SOURCE";

/// A mount that is handed over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MountFacts {
    /// Its path for the guest.
    pub guest: String,
    /// True if the guest writes to it.
    pub writes: bool,
    /// What kind of source it has.
    pub kind: HandedKind,
    /// Paths in it that the guest does not see.
    pub hidden: Vec<Vec<String>>,
}

/// The kind of a mount's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandedKind {
    /// A folder.
    Folder,
    /// A file.
    File,
    /// A file that was removed. Its descriptor has no meaning.
    NoFile,
}

impl MountFacts {
    /// The folder that may be opened, with its content. A single file is already open.
    #[must_use]
    pub fn folder_rights(&self) -> Option<Access> {
        let access = if self.writes { Access::Write } else { Access::Read };
        (self.kind == HandedKind::Folder).then_some(access)
    }
}
