//! Calls that a person must confirm before they run: the keys `approval` and `remember`. Must not
//! hold: how a person is asked.

use std::time::Duration;

use crate::limits::{Spec, Unit};
use crate::read::{Problems, Section, limits};

/// The calls of a tool that a person confirms through the client, from the fewest to all.
/// `approval` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ApprovalPolicy {
    /// `"never"`, the default: none.
    #[default]
    Never,
    /// `"destructive"`: each, unless the tool says of itself that it only reads (`readOnlyHint`) or
    /// does not destroy (`destructiveHint` is false). As in MCP, a tool that says nothing may
    /// destroy.
    Destructive,
    /// `"always"`: each.
    Always,
}

/// The calls that are confirmed, and the time for which one confirmation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Approval {
    pub(crate) policy: ApprovalPolicy,
    pub(crate) remember_ms: Option<u64>,
}

pub(crate) const REMEMBER: Spec = Spec {
    key: "remember",
    unit: Unit::Millis,
    default: 0,
    min: 1_000,
    // A working day, as what somebody confirmed yesterday is forgotten.
    max: 43_200_000,
    reason: "How long a confirmation holds for further calls of the same tool by the same caller, whatever their arguments. \
             Not at all where the key is missing.",
};

impl ApprovalPolicy {
    /// All of them, by their names in the manifest.
    pub const ALL: [Self; 3] = [Self::Never, Self::Destructive, Self::Always];

    /// The name in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Destructive => "destructive",
            Self::Always => "always",
        }
    }

    /// True if calls of a tool with these hints are confirmed.
    ///
    /// ```
    /// use toolcell_policy::ApprovalPolicy::{Always, Destructive, Never};
    ///
    /// for (policy, read_only, destructive, asks) in [
    ///     (Never, None, Some(true), false),
    ///     (Destructive, None, None, true),
    ///     (Destructive, Some(false), None, true),
    ///     (Destructive, Some(true), Some(true), false),
    ///     (Destructive, None, Some(false), false),
    ///     (Always, Some(true), Some(false), true),
    /// ] {
    ///     assert_eq!(policy.asks(read_only, destructive), asks);
    /// }
    /// ```
    #[must_use]
    pub fn asks(self, read_only: Option<bool>, destructive: Option<bool>) -> bool {
        match self {
            Self::Never => false,
            Self::Destructive => read_only != Some(true) && destructive != Some(false),
            Self::Always => true,
        }
    }
}

impl Approval {
    /// The calls that are confirmed.
    #[must_use]
    pub const fn policy(&self) -> ApprovalPolicy {
        self.policy
    }

    /// The time for which a confirmation holds for further calls; `None`: for one call only.
    #[must_use]
    pub fn remember(&self) -> Option<Duration> {
        self.remember_ms.map(Duration::from_millis)
    }
}

/// The approval that holds here; what the table leaves out is `inherited`.
pub(crate) fn read(section: &Section<'_>, inherited: Approval, problems: &mut Problems) -> Approval {
    let mut approval = inherited;
    // Whether `remember` applies is not known where the other key is wrong.
    let mut known = true;
    if let Some(entry) = section.get("approval")
        && let Some(name) = entry.string(problems)
    {
        match ApprovalPolicy::ALL.into_iter().find(|policy| policy.name() == name) {
            Some(policy) => approval.policy = policy,
            None => {
                known = false;
                problems.add(
                    entry
                        .error("tools::approval", format!("{name:?} is no kind of approval"))
                        .hint("write \"always\", \"destructive\" or \"never\""),
                );
            }
        }
    }
    if let Some(entry) = section.get(REMEMBER.key) {
        approval.remember_ms = limits::value(&entry, &REMEMBER, problems);
        if known && approval.policy == ApprovalPolicy::Never {
            problems.add(
                entry
                    .key_error("tools::approval", "remember without approval can never apply")
                    .hint("remove it, or set approval = \"always\" or \"destructive\""),
            );
        }
    } else if approval.policy == ApprovalPolicy::Never {
        approval.remember_ms = None;
    }
    approval
}
