//! The view of denials, and the rules that would allow them.
use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use toolcell_console::model::{AllowingRule, DenialGroup, Denials};
use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::{Ask, Askable, Grants, suggest};

use super::{Sources, link};
use crate::catalog::Catalog;
use crate::observing::activity;

/// The rules that the server may write to allow denied requests, given the current grants.
///
/// A guest chooses what it asks for. So the server only writes a rule for exactly that request, and
/// only if a person could also be asked about it: see [`Grants::offer_to_operator`]. All other
/// rules are written by hand.
pub struct Offers<'a> {
    catalog: &'a Catalog,
    tools: HashMap<&'a str, &'a Grants>,
    can_write: bool,
}

impl Sources {
    /// The view "Denials".
    pub fn denials(&self) -> Denials {
        let catalog = self.catalog();
        let offers = self.offers(&catalog);
        let (muted, groups) = self.activity.denials.list().into_iter().partition(|group| group.is_muted());
        let (allowed, groups) = self.by_allowance(groups);
        let shown = |groups: &[Arc<_>]| groups.iter().map(|group| offers.group(group)).collect();
        Denials {
            groups: shown(&groups),
            muted: shown(&muted),
            allowed: shown(&allowed),
            ungrouped: self.activity.denials.ungrouped(),
        }
    }

    /// Groups of denials that are neither muted nor allowed by now.
    pub fn open_denials(&self) -> Vec<Arc<activity::DenialGroup>> {
        let groups = self.activity.denials.list().into_iter().filter(|group| !group.is_muted());
        self.by_allowance(groups.collect()).1
    }

    /// Splits groups into those that the current grants of all their tools allow, and the others. A
    /// group that was denied under these grants is not allowed, whatever they say: its host may
    /// have a private address.
    fn by_allowance(
        &self,
        groups: Vec<Arc<activity::DenialGroup>>,
    ) -> (Vec<Arc<activity::DenialGroup>>, Vec<Arc<activity::DenialGroup>>) {
        let Some(since) = self.current.journal.replaced_at() else { return (Vec::new(), groups) };
        // A newer catalog is checked again.
        let generation = self.current.generation();
        let catalog = self.catalog();
        let offers = LazyCell::new(|| self.offers(&catalog));
        groups
            .into_iter()
            .partition(|group| group.last() < since && group.is_allowed_in(generation, || offers.allows(group)))
    }

    /// The tables that would allow a group's request, if the server may write them.
    pub fn tables(&self, group: &activity::DenialGroup) -> Option<String> {
        self.offers(&self.catalog()).tables(group)
    }

    /// The rules that the server may write while this catalog is served.
    pub fn offers<'a>(&self, catalog: &'a Catalog) -> Offers<'a> {
        let tools = catalog.tools().tools().iter().enumerate();
        let tools = tools.filter_map(|(at, tool)| Some((tool.definition().name.as_str(), catalog.tool_grants(at)?)));
        Offers { catalog, tools: tools.collect(), can_write: self.decides() && self.is_written }
    }
}

impl Offers<'_> {
    fn allows(&self, group: &activity::DenialGroup) -> bool {
        let Some(ask) = Ask::parse(&group.asked).ok().filter(|ask| ask.to_string() == group.asked) else {
            return false;
        };
        let tools = group.tools();
        let allows = |tool: &String| self.tools.get(tool.as_str()).is_some_and(|own| own.explain(&ask).is_allowed());
        !tools.is_empty() && tools.iter().all(allows)
    }

    /// The tables to write.
    fn tables(&self, group: &activity::DenialGroup) -> Option<String> {
        self.offer(group).filter(|offer| shown(offer).can_apply).map(|offer| offer.table())
    }

    /// A group of denials, and the rule that would allow it.
    pub fn group(&self, group: &activity::DenialGroup) -> DenialGroup {
        DenialGroup {
            key: group.number.to_string(),
            component: group.component.clone(),
            tools: group.tools(),
            callers: group.callers(),
            capability: group.capability.to_owned(),
            asked: group.asked.clone(),
            reason: group.reason.clone(),
            count: group.count(),
            first: group.first.into(),
            last: group.last().into(),
            last_call: Some(link(group.last_call())),
            rule: self.offer(group).as_ref().map(shown).or_else(|| by_hand(&suggest(&[group.attempt()]))),
        }
    }

    /// The rule belongs to the component: it must help each tool that asked.
    fn offer(&self, group: &activity::DenialGroup) -> Option<Askable> {
        let component = self.can_write.then(|| self.catalog.component(&group.component))??;
        let tools = group.tools();
        let mut grants = tools.iter().map(|tool| self.tools.get(tool.as_str()));
        let gain = |grants: Option<&&Grants>| grants.is_some_and(|own| own.offer_to_operator(&group.asked).is_some());
        if tools.is_empty() || !grants.all(gain) {
            return None;
        }
        let offer = component.policy().grants().offer_to_operator(&group.asked);
        offer.filter(|offer| offer.capability().name() == group.capability)
    }
}

fn shown(offer: &Askable) -> AllowingRule {
    let rule = AllowingRule { section: offer.section().to_owned(), line: offer.lines(), can_apply: false };
    AllowingRule { can_apply: rule.is_shown_whole(), ..rule }
}

/// The rule of these tables: its section, and its lines, with those of `private` first.
fn by_hand(tables: &str) -> Option<AllowingRule> {
    let mut lines = tables.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let section = lines.next()?.strip_prefix('[')?.strip_suffix(']')?.to_owned();
    let (private, others): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("private = "));
    let line = [private, others].concat().join("\n");
    (!line.is_empty()).then_some(AllowingRule { section, line, can_apply: false })
}

#[cfg(test)]
mod tests {
    use toolcell_policy::Attempt;

    use super::*;

    #[test]
    fn a_rule_is_the_suggestion_without_its_comments() {
        let of = |asked: &str, line: Option<&str>| by_hand(&suggest(&[Attempt::new("a", asked, line)]));
        let rule = |line: &str| {
            Some(AllowingRule { section: "components.a.network".to_owned(), line: line.to_owned(), can_apply: false })
        };
        assert_eq!(of("GET https://x.example/y", None), rule("http = [\"GET https://x.example/y\"]"));
        let private = "private = [\"10.0.0.1:443\"]";
        let both = format!("{private}\nhttp = [\"GET https://x.example/y\"]");
        assert_eq!(of("GET https://x.example/y", Some(private)), rule(&both));
        assert_eq!(of("the environment", None), None);
        assert_eq!(of("\u{202e}<b>", None), None);
    }
}
