//! A mount that the host hands to a process: its place, beside the descriptors.
use serde::{Deserialize, Serialize};
use toolcell_policy::Access;

/// The variable in which a component that `toolcell dev` serves finds the project's files: JSON, an
/// object of texts by path. The content of a file that is not UTF-8 is an array of its Base64.
pub const DEV_SOURCE: &str = "TOOLCELL_DEV_SOURCE";

/// A mount that is handed over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MountFacts {
    /// Its place for the guest.
    pub guest: String,
    /// True if the guest writes to it.
    pub writes: bool,
    /// The form of its source.
    pub kind: HandedKind,
    /// Paths in it that the guest does not see.
    pub hidden: Vec<Vec<String>>,
}

/// The form of a mount's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandedKind {
    /// A folder.
    Folder,
    /// A file.
    File,
    /// A file that is gone. Its descriptor is of nothing in particular.
    NoFile,
}

impl MountFacts {
    /// The folder that may be opened, with what is in it. A single file is open already.
    #[must_use]
    pub fn folder_rights(&self) -> Option<Access> {
        let access = if self.writes { Access::Write } else { Access::Read };
        (self.kind == HandedKind::Folder).then_some(access)
    }
}
