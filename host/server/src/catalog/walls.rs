//! The sandbox processes of a catalog's components, and the groups that share them.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use toolcell_mcp::ToolDefinition;
use toolcell_policy::{ComponentPolicy, EnvSource, Excerpts, Grants, InstancePolicy, Manifest, Ungranted, Wall};
use toolcell_sandbox::{
    ComponentNotice, GrantedFiles, GroupMember, GroupOptions, HeldComponent, SandboxGroup, SecretValue, Standing,
    ToolSchemas,
};
use toolcell_schema::SchemaTexts;

use super::building::{RelayKey, Relays};
use super::entry::targets;
use super::instances::CALLERS_MAX;
use super::recordable::RecordedComponents;
use super::{CallTarget, CatalogParts, LoadedComponent};
use crate::machine::SandboxSetup;

/// Groups whose processes start before a catalog serves. Each start delays its first answer; the
/// others start when they are first called.
const STARTED_AHEAD_MAX: usize = 4;

/// Components of a group that a problem names: a group may have hundreds.
const NAMES_SHOWN_MAX: usize = 3;

/// The components of one catalog that run in sandbox processes.
#[derive(Clone, Default)]
pub struct WalledComponents(HashMap<String, Walled>);

/// What sandbox processes are made with.
pub(super) struct WallSetup<'s> {
    pub(super) sandboxes: Option<&'s SandboxSetup>,
    /// The relays, if calls may be recorded.
    pub(super) relays: Relays,
    /// The components whose calls may be recorded.
    pub(super) recorded: RecordedComponents,
    /// True if attempts of guests are observed.
    pub(super) observing: bool,
}

impl WallSetup<'_> {
    /// The relay for this component, if its calls may be recorded, and it can do so.
    fn relay_of(&self, component: &LoadedComponent) -> Option<Arc<HeldComponent>> {
        let relay = self.relays.get(&RelayKey::of(&component.component));
        relay.filter(|_| self.recorded.has(component)).cloned()
    }
}

/// One of them.
#[derive(Clone)]
struct Walled {
    component: Arc<LoadedComponent>,
    member: GroupMember,
    group: Arc<SandboxGroup>,
    place: usize,
}

impl WalledComponents {
    /// Puts the components that are granted nothing into one group, each other one into its own,
    /// unless the manifest says otherwise. A process has one engine, so components that share are
    /// in one group for each. A group of an earlier catalog with these very components goes on.
    pub(super) fn new(
        walls: &WallSetup<'_>,
        manifest: &Manifest,
        parts: &CatalogParts,
        earlier: Option<&Self>,
    ) -> Self {
        // As the process started: another word in the manifest waits for the next start.
        let Some(setup) = walls.sandboxes else { return Self::default() };
        let observing = walls.observing;
        let mut excerpts = None;
        let mut member = |component: &Arc<LoadedComponent>| {
            if let Some(walled) = earlier.and_then(|earlier| earlier.of(component)) {
                return Some(GroupMember { relay: walls.relay_of(component), ..walled.member.clone() });
            }
            let excerpts = excerpts.get_or_insert_with(|| Excerpts::of(manifest.text()));
            let tools: Vec<&CallTarget> = targets(&parts.entries)
                .filter(|tool| Arc::ptr_eq(&tool.component, component))
                .map(AsRef::as_ref)
                .collect();
            Some(GroupMember {
                component: Arc::clone(&component.component),
                known_as: [component.name(), component.digest(), &component.policy_digest].join("\n"),
                manifest: excerpts.as_ref()?.component(component.name()),
                limits: tools.iter().map(|tool| component.policy().returning(&tool.limits)).collect(),
                schemas: schemas(&tools),
                kept_max: kept_max(&tools),
                tell: tell(component.name()),
                variables: variables(component.policy()),
                dev_source: component.dev_source.clone(),
                secrets: secrets(&tools),
                files: GrantedFiles::of(tools.iter().map(|tool| tool.capabilities.as_ref())),
                relay: walls.relay_of(component),
            })
        };
        let mut groups: BTreeMap<_, Vec<(&Arc<LoadedComponent>, GroupMember)>> = BTreeMap::new();
        for component in &parts.components {
            let Some(member) = member(component) else { continue };
            groups
                .entry((Sharing::of(component.policy()), component.component.engine()))
                .or_default()
                .push((component, member));
        }
        let mut walled = HashMap::new();
        for members in groups.into_values() {
            let group = earlier.and_then(|earlier| earlier.group_of(&members)).unwrap_or_else(|| {
                let options = GroupOptions { observing, ..setup.options.clone() };
                let members = members.iter().map(|(_, member)| member.clone()).collect();
                SandboxGroup::new(members, options, Arc::clone(&setup.pool))
            });
            for (place, (component, member)) in members.into_iter().enumerate() {
                let component = Arc::clone(component);
                let group = Arc::clone(&group);
                walled.insert(component.name().to_owned(), Walled { component, member, group, place });
            }
        }
        Self(walled)
    }

    /// The group of exactly these members.
    fn group_of(&self, members: &[(&Arc<LoadedComponent>, GroupMember)]) -> Option<Arc<SandboxGroup>> {
        let same = |group: &&Arc<SandboxGroup>| {
            let own = group.members();
            own.len() == members.len()
                && own.iter().zip(members).all(|(own, (_, member))| {
                    Arc::ptr_eq(&own.component, &member.component)
                        && own.manifest == member.manifest
                        && own.schemas == member.schemas
                        && own.variables == member.variables
                        && own.dev_source == member.dev_source
                        && own.files == member.files
                        && own.secrets == member.secrets
                        && own.relay.is_some() == member.relay.is_some()
                })
        };
        self.0.values().map(|walled| &walled.group).find(same).cloned()
    }

    fn of(&self, component: &Arc<LoadedComponent>) -> Option<&Walled> {
        self.0.get(component.name()).filter(|walled| Arc::ptr_eq(&walled.component, component))
    }

    /// The group that runs this tool's calls, and the place of its component in it; `None` where
    /// they run nowhere.
    pub(crate) fn of_target(&self, target: &CallTarget) -> Option<(&Arc<SandboxGroup>, usize)> {
        self.of(&target.component).map(|walled| (&walled.group, walled.place))
    }

    /// The component's part of the manifest, if its calls can be recorded.
    pub(crate) fn recorded_manifest(&self, target: &CallTarget) -> Option<&str> {
        let walled = self.of(&target.component)?;
        walled.member.relay.is_some().then_some(walled.member.manifest.as_str())
    }

    /// These components, those of another catalog, and nothing of what neither has any more.
    pub(super) fn holding(&self, earlier: &Self, components: &[Arc<LoadedComponent>]) -> Self {
        let walled = |component: &Arc<LoadedComponent>| {
            let walled = self.of(component).or_else(|| earlier.of(component))?;
            Some((component.name().to_owned(), walled.clone()))
        };
        Self(components.iter().filter_map(walled).collect())
    }

    /// The standing of a component; `None` where it runs nowhere.
    pub(crate) fn standing(&self, component: &Arc<LoadedComponent>) -> Option<Standing> {
        self.of(component).map(|walled| walled.group.standing(walled.place))
    }

    /// Starts a process of each of the first groups that have none, those of most components first.
    ///
    /// # Errors
    /// One sentence, where no process of a group starts that is not tolerated.
    pub(crate) async fn start(&self, tolerates: impl Fn(&Arc<SandboxGroup>) -> bool) -> Result<StartedAhead, String> {
        let mut waiting: Vec<(&str, &Arc<SandboxGroup>)> = Vec::new();
        for (name, walled) in &self.0 {
            let known = waiting.iter().any(|(_, group)| Arc::ptr_eq(group, &walled.group));
            if !known && !walled.group.has_started() {
                waiting.push((name, &walled.group));
            }
        }
        waiting.sort_by_key(|(name, group)| (std::cmp::Reverse(group.members().len()), *name));
        let groups = waiting.into_iter().map(|(_, group)| group);
        let start = async |group: &Arc<SandboxGroup>| {
            group.start().await.map_err(|reason| format!("{}: {reason}", self.shown(group)))
        };
        start_ahead(groups, start, tolerates).await
    }

    /// True if this very group runs one of them.
    pub(super) fn has(&self, group: &Arc<SandboxGroup>) -> bool {
        self.0.values().any(|walled| Arc::ptr_eq(&walled.group, group))
    }

    /// The components of a group, as the beginning of a sentence.
    fn shown(&self, group: &Arc<SandboxGroup>) -> String {
        let own = self.0.iter().filter(|(_, walled)| Arc::ptr_eq(&walled.group, group));
        let names: BTreeSet<&str> = own.map(|(name, _)| name.as_str()).collect();
        let shown: Vec<String> = names.iter().take(NAMES_SHOWN_MAX).map(|name| format!("{name:?}")).collect();
        let more = names.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let component = if names.len() == 1 { "component" } else { "components" };
        format!("no process starts for {component} {}{more}", shown.join(", "))
    }
}

/// What came of starting processes ahead.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StartedAhead {
    /// Groups that have a process now.
    pub(crate) started: usize,
    /// A sentence for each group that has none. Each of its calls tries again.
    pub(crate) problems: Vec<String>,
}

/// Starts the first few of these groups. Where none of them starts, goes on until one does.
async fn start_ahead<'g, G: 'g>(
    groups: impl Iterator<Item = &'g G>,
    start: impl AsyncFn(&G) -> Result<(), String>,
    tolerates: impl Fn(&G) -> bool,
) -> Result<StartedAhead, String> {
    let mut ahead = StartedAhead::default();
    for group in groups {
        if ahead.started > 0 && ahead.started + ahead.problems.len() >= STARTED_AHEAD_MAX {
            break;
        }
        match start(group).await {
            Ok(()) => ahead.started += 1,
            Err(problem) if tolerates(group) => ahead.problems.push(problem),
            Err(problem) => return Err(problem),
        }
    }
    Ok(ahead)
}

/// The components that share processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sharing<'p> {
    /// All that are granted nothing and keep nothing.
    Sealed,
    /// Those with this wall in the manifest.
    Named(&'p str),
    /// This component alone.
    Own(&'p str),
}

impl<'p> Sharing<'p> {
    fn of(policy: &'p ComponentPolicy) -> Self {
        match policy.wall() {
            Wall::Named(name) => Self::Named(name),
            Wall::Usual if is_sealed(policy) && policy.instance() == InstancePolicy::PerCall => Self::Sealed,
            // What is kept for callers outlives a change of another component.
            Wall::Own | Wall::Usual => Self::Own(policy.name()),
        }
    }
}

/// True if neither the component nor any of its tools is granted anything.
fn is_sealed(policy: &ComponentPolicy) -> bool {
    all_grants(policy).all(|grants| grants.is_sealed() && grants.ungranted() != Ungranted::Ask)
}

fn all_grants(policy: &ComponentPolicy) -> impl Iterator<Item = Arc<Grants>> {
    let tools = policy.tools().iter().map(|tool| policy.tool_grants(tool.name()));
    tools.chain([Arc::clone(policy.grants())])
}

/// Logs that a component's instances cannot be prewarmed.
fn tell(component: &str) -> ComponentNotice {
    let component = component.to_owned();
    Arc::new(move |call| super::instances::report_unwarmed(&component, call))
}

/// Instances that the tools of a component may keep for callers at once.
fn kept_max(tools: &[&CallTarget]) -> usize {
    let kept = tools.iter().filter_map(|tool| tool.instances.as_ref().map(Arc::as_ptr));
    kept.collect::<BTreeSet<_>>().len().saturating_mul(CALLERS_MAX)
}

/// The values of the secrets that guests of these tools hold, by their sources.
fn secrets(tools: &[&CallTarget]) -> Vec<(String, SecretValue)> {
    let exposed = tools.iter().flat_map(|tool| tool.capabilities.exposed());
    let values: BTreeMap<String, SecretValue> =
        exposed.map(|(source, value)| (source.to_string(), value.clone())).collect();
    values.into_iter().collect()
}

/// The schemas of a component's tools.
fn schemas(tools: &[&CallTarget]) -> Arc<[ToolSchemas]> {
    let schemas = tools.iter().map(|target| {
        let ToolDefinition { input_schema, output_schema, .. } = target.tool.definition();
        let output = output_schema.as_ref().map(ToString::to_string);
        ToolSchemas { tool: target.name.clone(), texts: SchemaTexts { input: input_schema.to_string(), output } }
    });
    schemas.collect()
}

/// The values of the host's variables that the component's manifest names.
fn variables(policy: &ComponentPolicy) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for grants in all_grants(policy) {
        for variable in grants.env() {
            let EnvSource::Host(name) = variable.source() else { continue };
            if values.iter().all(|(known, _)| known != name)
                && let Ok(value) = std::env::var(name)
            {
                values.push((name.clone(), value));
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_policy::{Source, parse};

    use super::*;

    #[tokio::test]
    async fn a_group_that_does_not_start_is_named_and_keeps_no_other_from_starting() {
        let ahead = async |groups: &[bool], tolerated: bool| {
            let groups: Vec<(usize, bool)> = groups.iter().copied().enumerate().collect();
            let start = async |group: &(usize, bool)| if group.1 { Ok(()) } else { Err(group.0.to_string()) };
            start_ahead(groups.iter(), start, |_| tolerated).await
        };
        let rows: [(&[bool], usize, &[&str]); 5] = [
            (&[], 0, &[]),
            (&[true; 9], STARTED_AHEAD_MAX, &[]),
            (&[true, false, true, true, true], 3, &["1"]),
            (&[false, false, false, false, false, true, true], 1, &["0", "1", "2", "3", "4"]),
            (&[false; 6], 0, &["0", "1", "2", "3", "4", "5"]),
        ];
        for (groups, started, problems) in rows {
            let problems: Vec<String> = problems.iter().map(|problem| (*problem).to_owned()).collect();
            assert_eq!(ahead(groups, true).await, Ok(StartedAhead { started, problems }), "{groups:?}");
        }
        assert_eq!(ahead(&[true, false, true], false).await, Err("1".to_owned()));
    }

    #[test]
    fn the_manifest_has_a_name_for_each_wall() {
        let walls = toolcell_walls::kernel::Wall::ALL.map(toolcell_walls::kernel::Wall::name);
        assert_eq!(toolcell_policy::WALL_NAMES, walls);
    }

    #[test]
    fn who_is_granted_something_or_keeps_something_shares_with_nobody_unless_the_manifest_says_so() {
        let table = [
            ("", Sharing::Sealed),
            ("prewarm = 0", Sharing::Sealed),
            ("wall = 'own'", Sharing::Own("a")),
            ("wall = 'some'", Sharing::Named("some")),
            ("env.A = 'b'", Sharing::Own("a")),
            ("env.A = 'b'\nwall = 'some'", Sharing::Named("some")),
            ("ungranted = 'ask'", Sharing::Own("a")),
            ("instance = 'per-caller'", Sharing::Own("a")),
            ("instance = 'per-caller'\nwall = 'some'", Sharing::Named("some")),
            ("secrets.KEY = { from = 'env:KEY', expose = true }", Sharing::Own("a")),
        ];
        for (lines, shares) in table {
            let text = format!("version = 1\n[components.a]\nsource = 'a.wasm'\n{lines}\n");
            let parsed = parse(&Source { name: "toolcell.toml", text: &text }).unwrap();
            assert_eq!(Sharing::of(parsed.manifest.component("a").unwrap()), shares, "{lines}");
        }
    }
}
