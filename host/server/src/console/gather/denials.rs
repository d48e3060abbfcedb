//! The view of denials, and the rules that would allow what was denied.
use toolcell_console::model::{AllowingRule, DenialGroup, Denials};
use toolcell_policy::suggest;

use super::{Sources, link};
use crate::activity;

/// Kinds whose rule a person has to fill in, or to think about: the server never writes them.
const BY_HAND: [&str; 2] = ["config", "secret"];

impl Sources {
    /// The view "Denials".
    pub fn denials(&self) -> Denials {
        let groups = self.activity.denials.list();
        let (muted, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.is_muted());
        Denials {
            groups: groups.iter().map(|group| self.group(group)).collect(),
            muted: muted.iter().map(|group| self.group(group)).collect(),
            ungrouped: self.activity.denials.ungrouped(),
        }
    }

    /// The tables that would allow what a group asked for, if the server may write them.
    pub fn tables(&self, group: &activity::DenialGroup) -> Option<String> {
        let tables = suggest(&[group.attempt()]);
        let has_rule = tables.lines().any(|line| !line.starts_with('#') && line.contains('='));
        (self.may_apply(group) && has_rule).then_some(tables)
    }

    fn may_apply(&self, group: &activity::DenialGroup) -> bool {
        self.decide && self.is_written && !BY_HAND.contains(&group.capability)
    }

    /// A group of denials, and the rule that would allow it.
    pub fn group(&self, group: &activity::DenialGroup) -> DenialGroup {
        DenialGroup {
            key: group.number.to_string(),
            component: group.component.clone(),
            tools: group.tools(),
            capability: group.capability.to_owned(),
            asked: group.asked.clone(),
            reason: group.reason.clone(),
            count: group.count(),
            first: group.first.into(),
            last: group.last().into(),
            last_call: Some(link(group.last_call())),
            rule: rule(&suggest(&[group.attempt()]), self.may_apply(group)),
        }
    }
}

/// The rule of these tables: its section, and the lines there.
fn rule(tables: &str, can_apply: bool) -> Option<AllowingRule> {
    let mut lines = tables.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let section = lines.next()?.strip_prefix('[')?.strip_suffix(']')?.to_owned();
    let line = lines.collect::<Vec<_>>().join("\n");
    (!line.is_empty()).then_some(AllowingRule { section, line, can_apply })
}

#[cfg(test)]
mod tests {
    use toolcell_policy::Attempt;

    use super::*;

    #[test]
    fn a_rule_is_the_suggestion_without_its_comments() {
        let of = |asked: &str| rule(&suggest(&[Attempt::new("a", asked, None)]), true);
        let expected = AllowingRule {
            section: "components.a.network".to_owned(),
            line: "http = [\"GET https://x.example/y\"]".to_owned(),
            can_apply: true,
        };
        assert_eq!(of("GET https://x.example/y"), Some(expected));
        assert_eq!(of("the environment"), None);
        assert_eq!(of("\u{202e}<b>"), None);
    }
}
