//! What rights become by the uses that are known of them, and requests around their rules. Must not
//! hold: where uses are known from, or which changes are taken (see `evidence`).

mod neighbours;
mod paths;
mod rules;

use crate::edit::Change;
use crate::explain::Ask;
use crate::grants::{Grants, RuleRef};

pub(crate) use neighbours::RuleNeighbours;
pub(super) use neighbours::{around_call, around_http, around_mount, around_named, around_socket};
pub(super) use rules::{ListedSocket, NeededRules, needed_names, rules_for};

/// The name that stands for all names of a capability: a guest read its whole environment.
pub(crate) const ALL_NAMES: &str = "*";

/// What one grant of some grants may become.
pub(crate) struct Narrower {
    pub(crate) rule: RuleRef,
    pub(crate) instead: Vec<String>,
    pub(crate) change: Change,
}

/// What a right knows when it looks for narrower grants.
pub(crate) struct UsedGrants<'a> {
    pub(crate) grants: &'a Grants,
    /// The uses that they allow.
    pub(crate) uses: &'a [&'a Ask],
    /// True if some tool's table names the component's mounts.
    pub(crate) tools_name_mounts: bool,
    /// True if a path of the host, relative to the manifest, is a folder that no link leads to.
    pub(crate) is_folder: &'a dyn Fn(&str) -> bool,
}
