//! The section `[skills]`: the folder whose skills are served.

use crate::diagnostic::Span;
use crate::limits::{Spec, spec};
use crate::quantity::MIB;
use crate::read::{Problems, Section, paths};
use crate::settings::accessors;
use crate::table::table;

/// Bytes of the files of all skills.
const SIZE: Spec = spec! {
    "size" Bytes { min: 1, default: 16 * MIB, max: 256 * MIB },
    "The host keeps the whole of them in memory. One skill has 16 MiB at most, as the extension says."
};

accessors! {
    /// `[skills]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SkillsPolicy {
        /// The folder of the skills, relative to the manifest.
        pub(crate) folder: String => &str,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
        /// Most bytes of the files of all skills; 16 MiB by default.
        pub(crate) bytes_max: u64 => u64,
    }
}

table! {
    /// Skills: folders with instructions for an agent, each with a `SKILL.md`. Their files are
    /// resources under `skill://`.
    pub(crate) SKILLS "Skills" {
        /// The folder, relative to the manifest. Each folder in it with a `SKILL.md`, at any depth,
        /// is a skill.
        "folder" required: Text, {"minLength": 1, "examples": ["skills"]};
        /// Bytes of the files of all skills.
        "size": Limit(&SIZE), {"examples": ["4MiB"]};
    }
    other names { "path" => "folder", "directory" => "folder", "dir" => "folder" }
}

/// The skills; `None` where the manifest has none.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Option<SkillsPolicy> {
    let entry = root.get("skills")?;
    let section = entry.table(&SKILLS, problems)?;
    let bytes_max = section.number(&SIZE, problems).unwrap_or(SIZE.default);
    let Some(folder) = section.get("folder") else {
        let problem = entry.key_error("manifest::missing", "[skills] names no folder");
        return problems.refuse(problem.hint("add folder = \"skills\""));
    };
    let span = folder.span.clone();
    Some(SkillsPolicy { folder: paths::host_path(&folder, problems)?, span, bytes_max })
}
