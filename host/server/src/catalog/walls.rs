//! The sandbox processes of a catalog's components: the groups that share them, and the components
//! that run in the host's own process. Must not hold: starting a process, or its walls.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolcell_policy::{
    ComponentPolicy, Delivery, EnvSource, Excerpts, Grants, InstancePolicy, Limits, Manifest, Ungranted, Walls,
};
use toolcell_sandbox::{ComponentNotice, GroupMember, GroupOptions, SandboxGroup};
use toolcell_walls::process::{Command, Starter};

use super::{CallTarget, LoadedComponent};

/// The means of starting sandbox processes.
#[derive(Clone)]
pub struct WallSetup {
    starter: Arc<Starter>,
    options: GroupOptions,
    walls: Walls,
}

impl WallSetup {
    /// Processes of this program.
    ///
    /// # Errors
    /// The machine gives no thread to start them.
    pub fn new(program: Command, server: &toolcell_policy::Server) -> std::io::Result<Self> {
        let processes = std::thread::available_parallelism().map_or(1, usize::from);
        let options = GroupOptions {
            program,
            processes,
            stack_bytes: server.stack_bytes(),
            calls_max: server.calls(),
            // All processes together keep no more ready than the host's own would.
            prewarm_bytes: server.prewarm_memory_bytes() / u64::try_from(processes).unwrap_or(1),
            memory_bytes_max: machine_bytes() / 4 * 3,
            observing: false,
        };
        Ok(Self { starter: Arc::new(Starter::new()?), options, walls: server.walls() })
    }

    /// The manifest's word.
    pub fn walls(&self) -> Walls {
        self.walls
    }
}

/// The components of one catalog that run in sandbox processes.
#[derive(Clone, Default)]
pub struct WalledComponents(HashMap<String, Walled>);

/// One of them.
#[derive(Clone)]
struct Walled {
    component: Arc<LoadedComponent>,
    member: GroupMember,
    group: Arc<SandboxGroup>,
    place: usize,
}

impl WalledComponents {
    /// Puts the components that are granted nothing into one group, each other one into its own. A
    /// group of an earlier catalog with these very components goes on.
    pub(super) fn new(
        setup: Option<&WallSetup>,
        manifest: &Manifest,
        components: &[Arc<LoadedComponent>],
        earlier: Option<&Self>,
        observing: bool,
    ) -> Self {
        let Some(setup) = setup.filter(|_| manifest.server().walls() != Walls::None) else { return Self::default() };
        let mut excerpts = None;
        let mut member = |component: &Arc<LoadedComponent>| {
            if let Some(walled) = earlier.and_then(|earlier| earlier.of(component)) {
                return Some(walled.member.clone());
            }
            let excerpts = excerpts.get_or_insert_with(|| Excerpts::of(manifest.text()));
            Some(GroupMember {
                component: Arc::clone(&component.component),
                manifest: excerpts.as_ref()?.component(component.name()),
                limits: limits(component.policy()),
                tell: tell(component.name()),
                variables: variables(component.policy()),
            })
        };
        let mut groups: BTreeMap<Option<&str>, Vec<(&Arc<LoadedComponent>, GroupMember)>> = BTreeMap::new();
        for component in components.iter().filter(|component| fits(component.policy())) {
            let Some(member) = member(component) else { continue };
            // A component that is granted something shares its processes with nobody.
            let own = (!is_sealed(component.policy())).then(|| component.name());
            groups.entry(own).or_default().push((component, member));
        }
        let mut walled = HashMap::new();
        for members in groups.into_values() {
            let group = earlier.and_then(|earlier| earlier.group_of(&members)).unwrap_or_else(|| {
                let options = GroupOptions { observing, ..setup.options.clone() };
                let members = members.iter().map(|(_, member)| member.clone()).collect();
                SandboxGroup::new(members, options, Arc::clone(&setup.starter))
            });
            for (place, (component, member)) in members.into_iter().enumerate() {
                let (component, group) = (Arc::clone(component), Arc::clone(&group));
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
                        && own.variables == member.variables
                })
        };
        self.0.values().map(|walled| &walled.group).find(same).cloned()
    }

    fn of(&self, component: &Arc<LoadedComponent>) -> Option<&Walled> {
        self.0.get(component.name()).filter(|walled| Arc::ptr_eq(&walled.component, component))
    }

    /// The group that runs this tool's calls, and the place of its component in it; `None` where
    /// they run in the host's own process.
    pub(crate) fn of_target(&self, target: &CallTarget) -> Option<(&Arc<SandboxGroup>, usize)> {
        self.of(&target.component).map(|walled| (&walled.group, walled.place))
    }

    /// These components, those of another catalog, and nothing of what neither has any more.
    pub(super) fn holding(&self, earlier: &Self, components: &[Arc<LoadedComponent>]) -> Self {
        let walled = |component: &Arc<LoadedComponent>| {
            let walled = self.of(component).or_else(|| earlier.of(component))?;
            Some((component.name().to_owned(), walled.clone()))
        };
        Self(components.iter().filter_map(walled).collect())
    }

    /// Starts a process of each group. Returns the walls that do not stand, by name, with the
    /// reasons.
    ///
    /// # Errors
    /// One sentence, where no process starts.
    pub async fn start(&self) -> Result<Vec<(String, String)>, String> {
        let mut missing = Vec::new();
        let mut started: Vec<&Arc<SandboxGroup>> = Vec::new();
        for walled in self.0.values() {
            if started.iter().any(|group| Arc::ptr_eq(group, &walled.group)) {
                continue;
            }
            started.push(&walled.group);
            for wall in walled.group.start().await? {
                if !missing.contains(&wall) {
                    missing.push(wall);
                }
            }
        }
        Ok(missing)
    }

    /// True if this component runs in sandbox processes.
    pub fn has(&self, component: &str) -> bool {
        self.0.contains_key(component)
    }
}

/// Memory of a machine that does not say how much it has.
const MEMORY_BYTES_UNKNOWN: u64 = 4 << 30;

/// Memory of this machine, in bytes.
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    total.and_then(|kilobytes| kilobytes.parse::<u64>().ok()?.checked_mul(1024)).unwrap_or(MEMORY_BYTES_UNKNOWN)
}

/// True if the component can run in a sandbox process: not yet, where it has files, keeps instances
/// for its callers, or holds the values of secrets.
fn fits(policy: &ComponentPolicy) -> bool {
    let apart = |grants: Arc<Grants>| {
        let exposed = grants.secrets().iter().any(|secret| *secret.delivery() == Delivery::Expose);
        grants.files().is_empty() && !exposed
    };
    policy.instance() == InstancePolicy::PerCall && all_grants(policy).all(apart)
}

/// True if neither the component nor any of its tools is granted anything.
fn is_sealed(policy: &ComponentPolicy) -> bool {
    all_grants(policy).all(|grants| grants.is_sealed() && grants.ungranted() != Ungranted::Ask)
}

fn all_grants(policy: &ComponentPolicy) -> impl Iterator<Item = Arc<Grants>> {
    let tools = policy.tools().iter().map(|tool| policy.tool_grants(tool.name()));
    tools.chain([Arc::clone(policy.grants())])
}

/// Logs that nothing is made ahead of a component's calls.
fn tell(component: &str) -> ComponentNotice {
    let component = component.to_owned();
    Arc::new(move |call| super::instances::tell(&component, call))
}

/// The limits of the component and of its tools.
fn limits(policy: &ComponentPolicy) -> Vec<Limits> {
    let tools = policy.tools().iter().map(|tool| *policy.tool_limits(tool.name()));
    tools.chain([*policy.limits()]).collect()
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
