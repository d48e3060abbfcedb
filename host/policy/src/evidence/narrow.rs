//! From evidence to a narrower manifest: grants that nobody used go, and the others lose what
//! nobody used. Each step is taken only if the manifest still loads and every use stays allowed.

use std::sync::Arc;

use super::{ComponentUse, Evidence};
use crate::diagnostic::Source;
use crate::edit::{Change, ManifestEdit};
use crate::explain::Ask;
use crate::grants::{Capability, Grants, HttpRule, Mount, MountKind, Network, RuleRef, SocketRule};
use crate::manifest::{CODE, ComponentPolicy, Manifest};
use crate::parse;
use crate::rights::{ALL, Narrower, Right, UsedGrants};

/// One grant that evidence says can be narrower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The component.
    pub component: String,
    /// The tool whose table has the grant; `None`: the component's own.
    pub tool: Option<String>,
    /// The section that has it: `network`.
    pub section: &'static str,
    /// The grant as the manifest writes it, and where.
    pub rule: RuleRef,
    /// What takes its place; empty if nobody used it.
    pub instead: Vec<String>,
}

/// A narrower manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    /// Its text.
    pub text: String,
    /// The grants that differ.
    pub findings: Vec<Finding>,
    /// Why other grants stay, one sentence without a full stop for each.
    pub notes: Vec<String>,
}

/// A change of one table.
struct Step {
    tool: Option<String>,
    section: &'static str,
    narrower: Narrower,
}

/// Rights that depend on each other change together.
const TOGETHER: [&[&str]; 6] =
    [&["network", "secrets"], &["filesystem"], &["env"], &["config"], &["keyvalue"], &["calls"]];

/// The narrowest manifest in which every known use is still allowed. `is_folder` says whether a
/// path of the host, relative to the manifest, is a folder that no link leads to.
///
/// # Errors
/// The text is not TOML: one sentence.
pub fn narrow(
    source: &Source<'_>,
    manifest: &Manifest,
    evidence: &Evidence,
    is_folder: &dyn Fn(&str) -> bool,
) -> Result<Narrowed, String> {
    let mut narrowed = Narrowed { text: source.text.to_owned(), findings: Vec::new(), notes: Vec::new() };
    ManifestEdit::of(source.text)?;
    // Scripts are written anew for each run: what past ones called says little about the next.
    for policy in manifest.components().iter().filter(|policy| policy.name() != CODE) {
        let Some(known) = evidence.of(policy.name()).filter(|known| known.calls() > 0) else {
            if !policy.grants().is_sealed() {
                let name = policy.name();
                let note = format!("{name}: it was not called, so nothing is known of what its tools need");
                narrowed.notes.push(note);
            }
            continue;
        };
        let component = UsedComponent { policy, known, is_folder };
        for sections in TOGETHER {
            component.narrow(source.name, sections, &mut narrowed);
        }
    }
    Ok(narrowed)
}

/// A component and its evidence.
struct UsedComponent<'a> {
    policy: &'a ComponentPolicy,
    known: &'a ComponentUse,
    is_folder: &'a dyn Fn(&str) -> bool,
}

impl UsedComponent<'_> {
    /// Narrows the rights of these sections, or notes why they stay.
    fn narrow(&self, name: &str, sections: &[&str], narrowed: &mut Narrowed) {
        let policy = self.policy;
        let mut steps = self.steps(None, policy.grants(), sections, narrowed);
        for tool in policy.tools().iter().filter(|tool| tool.grants().wider.is_some()) {
            steps.extend(self.steps(Some(tool.name()), tool.grants(), sections, narrowed));
        }
        if steps.is_empty() {
            return;
        }
        match self.taken(name, &narrowed.text, &steps) {
            Ok(text) => {
                narrowed.text = text;
                narrowed.findings.extend(steps.into_iter().map(|step| Finding {
                    component: policy.name().to_owned(),
                    tool: step.tool,
                    section: step.section,
                    rule: step.narrower.rule,
                    instead: step.narrower.instead,
                }));
            }
            Err(problem) => {
                let sections = sections.join(" and ");
                narrowed.notes.push(format!("{}: {sections} stays as it is: {problem}", policy.name()));
            }
        }
    }

    /// What these grants lose of these sections.
    fn steps(&self, tool: Option<&str>, grants: &Arc<Grants>, sections: &[&str], narrowed: &mut Narrowed) -> Vec<Step> {
        let exposed = tool.and_then(|tool| self.policy.exposed_name(tool).ok());
        let is_mine = |used: &&super::KnownUse| exposed.as_deref().is_none_or(|exposed| used.is_of(exposed));
        let uses: Vec<&Ask> =
            self.known.uses().filter(is_mine).map(|used| &used.ask).filter(|ask| super::allows(grants, ask)).collect();
        let tools_name_mounts =
            self.policy.tools().iter().any(|tool| !same_mounts(tool.grants(), self.policy.grants()));
        let used = UsedGrants { grants, uses: &uses, tools_name_mounts, is_folder: self.is_folder };
        let mut steps = Vec::new();
        for right in ALL.iter().filter(|right| sections.contains(&right.section)) {
            // A tool's table that does not mention a section inherits it.
            let own = tool.is_none() || (right.own_table)(right, grants);
            let found = if own { (right.narrower)(right, &used) } else { Vec::new() };
            if found.is_empty() {
                continue;
            }
            if let Some(problem) = right.evidence.and_then(|capability| self.known.unknown(capability)) {
                let note = format!("{}: {} stays as it is: {problem}", self.policy.name(), right.what_narrows());
                if !narrowed.notes.contains(&note) {
                    narrowed.notes.push(note);
                }
                continue;
            }
            let step = |narrower| Step { tool: tool.map(str::to_owned), section: right.section, narrower };
            steps.extend(found.into_iter().map(step));
        }
        if sections.contains(&"network") {
            let more = consequences(grants, &steps, tool);
            steps.extend(more);
        }
        steps
    }

    /// The text with these steps.
    fn taken(&self, name: &str, text: &str, steps: &[Step]) -> Result<String, String> {
        let mut edit = ManifestEdit::of(text)?;
        let component = self.policy.name();
        for step in steps {
            let change = &step.narrower.change;
            let done = edit.change(component, step.tool.as_deref(), change);
            let is_common = matches!(change, Change::Name { .. } | Change::ReadOnly { .. });
            // The component's step may have done a tool's.
            let may_be_done = is_common && step.tool.is_some();
            if !done && !may_be_done {
                return Err(format!("{} is written in a way that cannot be edited", step.narrower.rule));
            }
            // What the component loses, no tool may name.
            if step.tool.is_none() && is_common {
                for tool in self.policy.tools() {
                    edit.change(component, Some(tool.name()), change);
                }
            }
        }
        let text = edit.text();
        self.check(name, &text)?;
        Ok(text)
    }

    /// Checks that a text loads, that every use that is allowed today stays allowed, and that
    /// nothing else is.
    fn check(&self, name: &str, text: &str) -> Result<(), String> {
        let parsed = parse(&Source { name, text }).map_err(|problems| {
            let first = problems.first().map(|problem| problem.message().to_owned());
            format!("the result would not load: {}", first.unwrap_or_default())
        })?;
        let after = parsed.manifest.component(self.policy.name()).ok_or("the result lacks the component")?;
        let lost = self.known.uses().find(|used| used.is_allowed(self.policy) && !used.is_allowed(after));
        if let Some(lost) = lost {
            return Err(format!("{} would no longer be allowed", lost.ask));
        }
        if !lies_within(after.grants(), self.policy.grants()) {
            return Err("the result would allow more".to_owned());
        }
        Ok(())
    }
}

/// True if a tool has the same mounts as its component.
fn same_mounts(tool: &Grants, component: &Grants) -> bool {
    let spans = |grants: &Grants| grants.files().iter().map(|mount| mount.span()).collect::<Vec<_>>();
    spans(tool) == spans(component)
}

/// True if each rule of the network lies within one of the other grants.
pub(crate) fn lies_within(narrow: &Grants, wide: &Grants) -> bool {
    let network = narrow.network();
    let wider = wide.network();
    let within = |rules: &[SocketRule], wider: &[SocketRule]| {
        rules.iter().all(|rule| wider.iter().any(|wider| rule.lies_within(wider)))
    };
    network.http_rules().iter().all(|rule| wider.allows_all_of(rule))
        && within(network.tcp_rules(), wider.tcp_rules())
        && within(network.udp_rules(), wider.udp_rules())
        && narrow.calls().iter().all(|rule| wide.calls().iter().any(|wider| rule.lies_within(wider)))
        && narrow.files().iter().all(|mount| wide.files().iter().any(|wider| is_part_of(mount, wider)))
        && narrow.env().len() <= wide.env().len()
        && narrow.config().len() <= wide.config().len()
        && (narrow.keyvalue().is_none() || wide.keyvalue().is_some())
}

/// True if a mount is another one, or a folder of it, and allows no more.
fn is_part_of(mount: &Mount, wide: &Mount) -> bool {
    let place = match (mount.kind(), wide.kind()) {
        (MountKind::Host { path, .. }, MountKind::Host { path: wide, .. }) => {
            path.strip_prefix(wide.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        (MountKind::Scratch { .. }, MountKind::Scratch { .. }) => true,
        _ => false,
    };
    place && wide.rest_of(mount.guest()).is_some() && mount.access() <= wide.access()
}

/// What goes because the rules that it needs have gone: entries of `private` that nothing leads to,
/// secrets that no request carries, and all that is left of a network without rules.
fn consequences(grants: &Grants, steps: &[Step], tool: Option<&str>) -> Vec<Step> {
    if steps.is_empty() {
        return Vec::new();
    }
    let network = after(grants.network(), steps);
    let step = |section: &'static str, rule: RuleRef, change: Change| Step {
        tool: tool.map(str::to_owned),
        section,
        narrower: Narrower { rule, instead: Vec::new(), change },
    };
    let mut more = Vec::new();
    let own_private = tool.is_none() || grants.network().private_section.contains(".tools.");
    for entry in network.private().iter().filter(|entry| own_private && !network.leads_to(entry)) {
        let old = entry.rule().text().to_owned();
        let change = Change::Rules { section: "network", key: "private", old, new: Vec::new() };
        more.push(step("network", entry.rule().clone(), change));
    }
    for secret in grants.secrets().iter().filter(|_| tool.is_none()) {
        let Some(target) = secret.delivery().target() else { continue };
        if !network.http_rules().iter().any(|rule| rule.overlaps(target)) {
            let rule = RuleRef::new(secret.name(), secret.span());
            more.push(step("secrets", rule, Change::Name { section: "secrets", name: secret.name().to_owned() }));
        }
    }
    if tool.is_none() && network.is_empty() && (network.proxy().is_some() || !network.ca().is_empty()) {
        let span = grants.place("network").unwrap_or_default();
        more.push(step("network", RuleRef::new("ca and proxy", span), Change::Section { section: "network" }));
    }
    more
}

/// The network with these changes of its rules.
fn after(network: &Network, steps: &[Step]) -> Network {
    let mut network = network.clone();
    for step in steps {
        let Change::Rules { key, old, new, .. } = &step.narrower.change else { continue };
        let sockets = || new.iter().filter_map(|text| SocketRule::parse(text, 0..0).ok());
        match *key {
            "http" => {
                network.http.retain(|rule| rule.rule().text() != old);
                network.http.extend(new.iter().filter_map(|text| HttpRule::parse(text, 0..0).ok()));
            }
            "tcp" => {
                network.tcp.retain(|rule| rule.rule().text() != old);
                network.tcp.extend(sockets());
            }
            "udp" => {
                network.udp.retain(|rule| rule.rule().text() != old);
                network.udp.extend(sockets());
            }
            _ => {}
        }
    }
    network
}

impl Right {
    /// Its name in sentences.
    fn what_narrows(&self) -> &'static str {
        self.evidence.map_or(self.section, Capability::name)
    }
}
