//! Reads `approval` and `remember`. Must not hold: what an approval is.

use super::{Problems, Section, limits};
use crate::diagnostic::Diagnostic;
use crate::manifest::approval::{Approval, ApprovalPolicy, REMEMBER};

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
                    Diagnostic::error("tools::approval", format!("{name:?} is no kind of approval"))
                        .at(entry.span)
                        .hint("write \"always\", \"destructive\" or \"never\""),
                );
            }
        }
    }
    if let Some(entry) = section.get(REMEMBER.key) {
        approval.remember_ms = limits::value(&entry, &REMEMBER, problems);
        if known && approval.policy == ApprovalPolicy::Never {
            problems.add(
                Diagnostic::error("tools::approval", "remember without approval can never apply")
                    .at(entry.key_span)
                    .hint("remove it, or set approval = \"always\" or \"destructive\""),
            );
        }
    } else if approval.policy == ApprovalPolicy::Never {
        approval.remember_ms = None;
    }
    approval
}
