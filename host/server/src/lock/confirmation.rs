//! Pinned rule for the calls of a tool that a person confirms.
use toolcell_policy::quantity::show_millis;
use toolcell_policy::{Approval, ApprovalPolicy};

/// The pinned approval policy, and the milliseconds that one confirmation holds: 0 for one call
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfirmationRule {
    pub policy: ApprovalPolicy,
    pub remember_ms: u64,
}

impl ConfirmationRule {
    /// True if a call that needed a confirmation before may now run without.
    pub fn is_weaker_than(self, before: Self) -> bool {
        self.policy < before.policy || (before.policy != ApprovalPolicy::Never && self.remember_ms > before.remember_ms)
    }

    /// The difference from before, in words, if any.
    pub fn since(self, before: Self) -> Option<String> {
        let less = if self.is_weaker_than(before) { "less" } else { "more" };
        (self != before).then(|| format!("needs {less} approval: was {}, is {}", before.shown(), self.shown()))
    }

    fn shown(self) -> String {
        let name = self.policy.name();
        if self.remember_ms == 0 {
            return format!("{name:?}");
        }
        format!("{name:?}, remembered for {}", show_millis(self.remember_ms))
    }
}

impl From<Approval> for ConfirmationRule {
    fn from(approval: Approval) -> Self {
        let remember = approval.remember().unwrap_or_default();
        // The longest allowed time is half a day.
        Self { policy: approval.policy(), remember_ms: u64::try_from(remember.as_millis()).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::ApprovalPolicy::{Always, Destructive, Never};

    use super::*;

    #[test]
    fn whatever_lets_a_call_run_unseen_is_weaker() {
        for (before, now, weaker) in [
            ((Always, 0), (Never, 0), true),
            ((Always, 0), (Destructive, 0), true),
            ((Destructive, 0), (Never, 0), true),
            ((Always, 0), (Always, 60_000), true),
            ((Always, 60_000), (Always, 0), false),
            ((Destructive, 0), (Always, 60_000), true),
            ((Destructive, 60_000), (Always, 60_000), false),
            ((Never, 0), (Always, 60_000), false),
            ((Always, 0), (Always, 0), false),
        ] {
            let confirmed = |(policy, remember_ms)| ConfirmationRule { policy, remember_ms };
            assert_eq!(confirmed(now).is_weaker_than(confirmed(before)), weaker, "{before:?} to {now:?}");
        }
        let now = ConfirmationRule { policy: Always, remember_ms: 600_000 };
        let said = now.since(ConfirmationRule { policy: Always, remember_ms: 0 });
        assert_eq!(said.unwrap(), "needs less approval: was \"always\", is \"always\", remembered for 10m");
        assert_eq!(now.since(now), None);
    }
}
