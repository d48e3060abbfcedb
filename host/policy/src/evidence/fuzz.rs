//! How wide rules are: requests around each rule, decided on by the grants themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ComponentUse, Evidence};
use crate::explain::Ask;
use crate::grants::{Grants, RuleRef};
use crate::manifest::{ComponentPolicy, Manifest};
use crate::rights::{ALL, RuleNeighbours};

/// Requests that one run decides on. Each is compared with up to a thousand rules, so this takes
/// seconds at the most.
pub const NEIGHBOURS_MAX: u64 = 100_000;

/// Allowed requests that are listed for one rule. The number says how many there are.
const LISTED_MAX: usize = 200;

/// A rule, and what it allows although no known call needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WideRule {
    /// The component.
    pub component: String,
    /// The tool whose table has the rule; `None`: the component's own.
    pub tool: Option<String>,
    /// Its kind: `http`, `filesystem`.
    pub right: &'static str,
    /// The rule as the manifest writes it, and where.
    pub rule: RuleRef,
    /// True if some known call used it.
    pub is_used: bool,
    /// How many requests around it are allowed.
    pub allowed: u64,
    /// The first of them: how each differs, and the request in its normal form.
    pub requests: Vec<WideRequest>,
}

/// An allowed request that no known call needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WideRequest {
    /// How it differs from what the rule is for: `method`, `host`, `path`; `unused` for an example
    /// of a rule that no call used.
    pub kind: &'static str,
    /// The request.
    pub asked: String,
}

/// What came of all requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fuzzed {
    /// The rules that allow more than is known to be needed, the widest first.
    pub rules: Vec<WideRule>,
    /// Rules that were looked at.
    pub looked_at: u64,
    /// Requests that were decided on.
    pub tried: u64,
    /// True if there were more than [`NEIGHBOURS_MAX`].
    pub is_cut: bool,
}

/// The subject of one decision after the other.
struct Fuzzing<'a> {
    known: Option<&'a ComponentUse>,
    fuzzed: &'a mut Fuzzed,
}

/// What is found at one rule of some grants.
#[derive(Default)]
struct FoundWidth {
    rule: Option<RuleRef>,
    right: &'static str,
    is_used: bool,
    requests: BTreeSet<WideRequest>,
    /// Requests by their text alone, as one may be found in several ways.
    texts: BTreeSet<String>,
}

/// Tries requests around the rules of all components, or of one, or of one tool by its own name.
#[must_use]
pub fn fuzz(manifest: &Manifest, evidence: &Evidence, only: Option<(&str, Option<&str>)>) -> Fuzzed {
    let mut fuzzed = Fuzzed::default();
    for policy in manifest.components() {
        let mut fuzzing = Fuzzing { known: evidence.of(policy.name()), fuzzed: &mut fuzzed };
        match only {
            Some((component, _)) if component != policy.name() => {}
            Some((_, Some(tool))) => fuzzing.grants(policy, Some(tool), &policy.tool_grants(tool)),
            _ => {
                fuzzing.grants(policy, None, policy.grants());
                for tool in policy.tools().iter().filter(|tool| tool.grants().wider.is_some()) {
                    fuzzing.grants(policy, Some(tool.name()), tool.grants());
                }
            }
        }
    }
    let place = |rule: &WideRule| rule.rule.span().start;
    fuzzed.rules.sort_by(|one, other| other.allowed.cmp(&one.allowed).then_with(|| place(one).cmp(&place(other))));
    fuzzed
}

impl Fuzzing<'_> {
    fn grants(&mut self, policy: &ComponentPolicy, tool: Option<&str>, grants: &Arc<Grants>) {
        let exposed = tool.and_then(|tool| policy.exposed_name(tool).ok());
        let is_mine = |used: &&super::KnownUse| exposed.as_deref().is_none_or(|exposed| used.is_of(exposed));
        let uses = self.known.into_iter().flat_map(ComponentUse::uses).filter(is_mine);
        let uses: Vec<&Ask> = uses.map(|used| &used.ask).filter(|ask| super::allows(grants, ask)).collect();
        let mut found: BTreeMap<usize, FoundWidth> = BTreeMap::new();
        for right in ALL {
            for around in (right.neighbours)(right, grants, &uses) {
                self.fuzzed.looked_at += 1;
                self.decide(grants, right.evidence.map_or(right.section, crate::Capability::name), around, &mut found);
            }
        }
        for width in found.into_values().filter(|width| !width.texts.is_empty()) {
            let Some(rule) = width.rule else { continue };
            self.fuzzed.rules.push(WideRule {
                component: policy.name().to_owned(),
                tool: tool.map(str::to_owned),
                right: width.right,
                rule,
                is_used: width.is_used,
                allowed: width.texts.len() as u64,
                requests: width.requests.into_iter().take(LISTED_MAX).collect(),
            });
        }
    }

    /// Decides on the requests around one rule. Each belongs to the rule that allows it.
    fn decide(
        &mut self,
        grants: &Grants,
        right: &'static str,
        around: RuleNeighbours,
        found: &mut BTreeMap<usize, FoundWidth>,
    ) {
        let bases: BTreeSet<String> = around.bases.iter().map(ToString::to_string).collect();
        let is_used = bases.iter().any(|base| self.known.is_some_and(|known| known.has(base)));
        let width = found.entry(around.rule.span().start).or_default();
        width.rule.get_or_insert_with(|| around.rule.clone());
        width.right = right;
        width.is_used |= is_used;
        self.fuzzed.tried += around.malformed;
        let unused = around.bases.iter().filter(|_| !is_used).map(|base| ("unused", base));
        for (kind, ask) in unused.chain(around.around.iter().map(|next| (next.kind, &next.ask))) {
            if self.fuzzed.tried >= NEIGHBOURS_MAX {
                self.fuzzed.is_cut = true;
                return;
            }
            self.fuzzed.tried += 1;
            let explained = grants.explain(ask);
            let asked = explained.asked().to_owned();
            let is_needed =
                self.known.is_some_and(|known| known.has(&asked)) || (kind != "unused" && bases.contains(&asked));
            let Some(rule) = explained.rule().filter(|_| !is_needed) else { continue };
            let width = found.entry(rule.span().start).or_default();
            width.rule.get_or_insert_with(|| rule.clone());
            if width.right.is_empty() {
                width.right = right;
            }
            if width.texts.insert(asked.clone()) {
                width.requests.insert(WideRequest { kind, asked });
            }
        }
    }
}
