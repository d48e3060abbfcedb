//! Rights as the command line names them, such as `GET https://api.example.com/*`.
use toolcell_policy::edit::ManifestEntry;
use toolcell_policy::rights::forms;

use crate::exit::Failure;

/// The manifest entry for a right. A right of one tool, or one to revoke, has no value.
pub fn read(right: &str) -> Result<ManifestEntry, Failure> {
    ManifestEntry::of_right(right).ok_or_else(|| Failure::usage(format!("unknown right {right:?}"), forms()))
}
