//! Addresses that are not public, where another rule leads there.

use super::network::{SECTION, list_entry, outside};
use super::{Narrowing, Right};
use crate::capabilities::ReachRow;
use crate::grants::{Capability, PrivateRule, RuleRef};

/// Addresses that are not public.
pub(crate) static PRIVATE: Right = Right {
    section: SECTION,
    narrowing: Some(Narrowing::RulesKept("private")),
    requested: |_, requested| requested.network.private().iter().map(|rule| format!("private {rule}")).collect(),
    beyond: |_, requested, grants| {
        let rules = grants.network().private();
        let beyond = outside(rules, requested.network.private(), PrivateRule::lies_within, PrivateRule::rule);
        beyond.into_iter().map(RuleRef::span).collect()
    },
    reach: |_, grants| {
        let network = grants.network();
        let row = |entry: &PrivateRule| {
            let text = format!("{entry}, where a rule leads there");
            ReachRow::new(Capability::Private, text, Some(entry.rule().span()))
        };
        network.private().iter().filter(|entry| network.leads_to(entry)).map(row).collect()
    },
    lock_lines: |_, grants| grants.network().private().iter().map(|rule| format!("private address {rule}")).collect(),
    forms: &["private address:port"],
    help: "  private ADDRESS:PORT        an address that is not public\n",
    entry: |_, verb, rest| (verb == "private" && !rest.is_empty()).then(|| list_entry(verb, rest)),
    ..Right::NONE
};
