//! Calls that a person must confirm before they run: the keys `approval` and `remember`.

use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::limits::{Spec, spec};
use crate::read::{Entry, Problems, Section, limits};
use crate::words::{Word as _, words};

words! {
    /// The calls of a tool that a person confirms through the client, from the fewest to all.
    /// `approval` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum ApprovalPolicy {
        /// The default: none.
        #[default]
        Never "never",
        /// Each, unless the tool says of itself that it only reads (`readOnlyHint`) or does not
        /// destroy (`destructiveHint` is false). As in MCP, a tool that says nothing may destroy.
        Destructive "destructive",
        /// Each.
        Always "always",
    }
}

/// The places where calls are confirmed. `approve_in` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApproveIn {
    pub(crate) client: bool,
    pub(crate) console: bool,
}

/// The words for `approve_in`.
pub(crate) const CLIENT: &str = "client";
pub(crate) const CONSOLE: &str = "console";

/// The calls that are confirmed, and the time for which one confirmation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Approval {
    pub(crate) policy: ApprovalPolicy,
    pub(crate) remember_ms: Option<u64>,
}

pub(crate) const REMEMBER: Spec = spec! {
    "remember" Millis { min: 1_000, default: 0, max: 43_200_000 },
    "Holds for any arguments of the tool. The most is a working day: yesterday's confirmations are forgotten."
};

impl ApprovalPolicy {
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

impl Default for ApproveIn {
    /// The client alone.
    fn default() -> Self {
        Self { client: true, console: false }
    }
}

impl ApproveIn {
    /// True if the person at the client is asked.
    #[must_use]
    pub const fn client(self) -> bool {
        self.client
    }

    /// True if an operator is asked in the console.
    #[must_use]
    pub const fn console(self) -> bool {
        self.console
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

    /// The same calls, each of which is confirmed: for callers who cannot be told apart.
    #[must_use]
    pub const fn unremembered(self) -> Self {
        Self { remember_ms: None, ..self }
    }
}

/// The key `approve_in`.
pub(crate) fn read_places(entry: &Entry<'_>, problems: &mut Problems) -> Option<ApproveIn> {
    let mut places = ApproveIn { client: false, console: false };
    let names = entry.strings(2, problems)?;
    let is_empty = names.is_empty();
    for (name, span) in names {
        match name {
            CLIENT => places.client = true,
            CONSOLE => places.console = true,
            other => {
                let message = format!("calls cannot be approved in {other:?}");
                let hint = format!("write \"{CLIENT}\" or \"{CONSOLE}\"");
                problems.add(Diagnostic::error("server::approve_in", message).at(span).hint(hint));
            }
        }
    }
    if !is_empty {
        return Some(places).filter(|places| places.client || places.console);
    }
    let problem = entry.error("server::approve_in", "nobody could approve a call");
    problems.refuse(problem.hint(format!("write [\"{CLIENT}\"], or both \"{CLIENT}\" and \"{CONSOLE}\"")))
}

/// The approval that holds here; what the table leaves out is `inherited`.
pub(crate) fn read(section: &Section<'_>, inherited: Approval, problems: &mut Problems) -> Approval {
    let mut approval = inherited;
    // Whether `remember` applies is not known where the other key is wrong.
    let mut known = true;
    if let Some(entry) = section.get("approval")
        && let Some(name) = entry.string(problems)
    {
        match ApprovalPolicy::of(name) {
            Some(policy) => approval.policy = policy,
            None => {
                known = false;
                problems.add(
                    entry
                        .error("tools::approval", format!("unknown kind of approval {name:?}"))
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
