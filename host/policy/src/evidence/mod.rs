//! Evidence: what calls used of their grants. It says which rules nobody needed, and how narrow the
//! others may become ([`narrow`]). Next to it, requests around each rule show how wide it is
//! ([`fuzz`]). Must not hold: decisions, which `grants` makes; reading audits or recordings.
//!
//! Every source of evidence becomes calls and their uses. The audit shows what a call asked of the
//! host: requests, sockets, state and other tools. A recording shows everything.
//!
//! ```
//! use toolcell_policy::{Evidence, GrantUse, Seen};
//! let mut evidence = Evidence::default();
//! evidence.call("weather", Seen::Everything);
//! for used in ["GET https://api.example.com/v1/now", "read /data/cities.txt", "env UNITS", "keyvalue"] {
//!     evidence.add(GrantUse::parse("weather", "weather_now", used)?);
//! }
//! assert_eq!(evidence.calls("weather"), 1);
//! # Ok::<(), toolcell_policy::AskTextError>(())
//! ```

mod fuzz;
mod narrow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::explain::{Ask, AskTextError};
use crate::grants::{Capability, Grants};
use crate::manifest::ComponentPolicy;
use crate::parse::COMPONENTS_MAX;
use crate::rights::ALL_NAMES;

pub use fuzz::{Fuzzed, NEIGHBOURS_MAX, WideRequest, WideRule, fuzz};
pub use narrow::{Finding, Narrowed, narrow};

/// Different uses of all components that are kept: each costs some 200 bytes and a decision. A
/// component with more has rules as wide as it needs.
const USES_MAX: usize = 100_000;

/// Bytes of one use: several times what an audit has of one.
const USE_BYTES_MAX: usize = 4 << 10;

/// Tools that are remembered for one use: as many as a component may have.
const TOOLS_MAX: usize = 1_000;

/// One use of a grant by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantUse {
    component: String,
    tool: String,
    ask: Ask,
}

/// What a source of evidence shows about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// That it took place.
    Nothing,
    /// What it asked of the host: see [`Capability::is_seen_by_host`]. An audit with `uses`.
    HostSide,
    /// All uses of all grants. A recording.
    Everything,
}

/// Calls and what they used, by component.
#[derive(Debug, Default)]
pub struct Evidence {
    /// At most as many as a manifest has.
    components: BTreeMap<String, ComponentUse>,
    /// Different uses that are kept.
    kept: usize,
}

/// What the calls of one component used.
#[derive(Debug, Default)]
pub(crate) struct ComponentUse {
    /// Calls that an audit names.
    audited: u64,
    /// Those of them whose requests to the host are known.
    host_side: u64,
    /// Calls that were recorded whole.
    recorded: u64,
    /// Uses that were not kept, or cannot be read.
    left_out: u64,
    /// Each use once, by its text.
    uses: BTreeMap<String, KnownUse>,
}

/// One use, and the tools that it is known of.
#[derive(Debug)]
pub(crate) struct KnownUse {
    pub(crate) ask: Ask,
    pub(crate) tools: BTreeSet<String>,
}

impl GrantUse {
    /// A use from its text: the forms of [`Ask`], such as `GET https://api.example.com/v1/now`,
    /// `write /data/x`, `tcp db.example.com:5432`, `lookup db.example.com`, `env UNITS`, `config
    /// theme`, `keyvalue`, `call notes_read`. `env *` and `config *` read all names. The tool is
    /// named as clients see it.
    ///
    /// # Errors
    /// [`AskTextError`] where the text has none of these forms.
    pub fn parse(component: &str, tool: &str, used: &str) -> Result<Self, AskTextError> {
        Ok(Self::new(component, tool, Ask::parse(used)?))
    }

    /// A use that has been read. Paths of files must be absolute and resolved.
    #[must_use]
    pub fn new(component: &str, tool: &str, ask: Ask) -> Self {
        Self { component: component.to_owned(), tool: tool.to_owned(), ask }
    }
}

impl Capability {
    /// True if guests use it through the host, which can note each use. Files and the environment
    /// are used in the sandbox process alone.
    #[must_use]
    pub const fn is_seen_by_host(self) -> bool {
        matches!(self, Self::Http | Self::Tcp | Self::Udp | Self::Lookup | Self::KeyValue | Self::Call | Self::Private)
    }
}

impl Evidence {
    /// Notes that a call took place, and what its source shows of it. Call it once for each call
    /// and source.
    pub fn call(&mut self, component: &str, seen: Seen) {
        let Some(known) = self.known(component) else { return };
        known.audited += u64::from(seen != Seen::Everything);
        known.host_side += u64::from(seen == Seen::HostSide);
        known.recorded += u64::from(seen == Seen::Everything);
    }

    /// Adds a use. Beyond a bound it is only counted, and the component's rules stay as they are.
    pub fn add(&mut self, used: GrantUse) {
        let kept = self.kept;
        let text = used.ask.to_string();
        let Some(known) = self.known(&used.component) else { return };
        let is_new = !known.uses.contains_key(&text);
        if is_new && (kept >= USES_MAX || text.len() > USE_BYTES_MAX) {
            known.left_out += 1;
            return;
        }
        let ask = used.ask;
        let entry = known.uses.entry(text).or_insert_with(|| KnownUse { ask, tools: BTreeSet::new() });
        if entry.tools.len() < TOOLS_MAX {
            entry.tools.insert(used.tool);
        }
        self.kept += usize::from(is_new);
    }

    /// Notes that a call used more than its source tells.
    pub fn left_out(&mut self, component: &str, uses: u64) {
        let Some(known) = self.known(component) else { return };
        known.left_out = known.left_out.saturating_add(uses);
    }

    /// True if some call called another tool.
    #[must_use]
    pub fn has_calls_of_tools(&self) -> bool {
        self.components.values().flat_map(ComponentUse::uses).any(|used| used.ask.name(Capability::Call).is_some())
    }

    /// Leaves out calls of tools that there are not: a guest may try any name that a star takes.
    pub fn retain_calls_of_tools(&mut self, is_tool: impl Fn(&str) -> bool) {
        for known in self.components.values_mut() {
            known.uses.retain(|_, used| used.ask.name(Capability::Call).is_none_or(&is_tool));
        }
    }

    /// What is known of a component; `None` past the components that a manifest may have.
    fn known(&mut self, component: &str) -> Option<&mut ComponentUse> {
        let is_known = self.components.contains_key(component);
        let may_have = is_known || self.components.len() < COMPONENTS_MAX;
        may_have.then(|| self.components.entry(component.to_owned()).or_default())
    }

    /// The calls of a component that are known.
    #[must_use]
    pub fn calls(&self, component: &str) -> u64 {
        self.components.get(component).map_or(0, ComponentUse::calls)
    }

    /// The calls of all components.
    #[must_use]
    pub fn all_calls(&self) -> u64 {
        self.components.values().map(ComponentUse::calls).sum()
    }

    pub(crate) fn of(&self, component: &str) -> Option<&ComponentUse> {
        self.components.get(component)
    }
}

impl ComponentUse {
    pub(crate) fn calls(&self) -> u64 {
        self.audited.max(self.recorded)
    }

    /// Why nothing can be said about a capability; `None` if every use of it is known.
    pub(crate) fn unknown(&self, capability: Capability) -> Option<String> {
        if self.left_out > 0 {
            return Some(format!("{} uses were not recorded one by one", self.left_out));
        }
        let calls = self.calls();
        let seen = if capability.is_seen_by_host() { self.host_side.max(self.recorded) } else { self.recorded };
        if calls > 0 && seen >= calls {
            return None;
        }
        Some(match calls {
            0 => "it was not called".to_owned(),
            calls => format!("what {} of {calls} calls used is not recorded", calls.saturating_sub(seen)),
        })
    }

    /// All uses, with the tools that they are known of.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &KnownUse> {
        self.uses.values()
    }

    /// True if this text is among the uses.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.uses.contains_key(text)
    }
}

impl KnownUse {
    /// True if this tool used it.
    pub(crate) fn is_of(&self, exposed: &str) -> bool {
        self.tools.contains(exposed)
    }

    /// The grants under which its tools use it: those of each tool with a table, and the
    /// component's for the others.
    pub(crate) fn grants(&self, policy: &ComponentPolicy) -> Vec<Arc<Grants>> {
        let of_tool = |exposed: &String| match own_table(policy, exposed) {
            Some(tool) => Arc::clone(tool),
            None => Arc::clone(policy.grants()),
        };
        self.tools.iter().map(of_tool).collect()
    }

    /// True if each of its tools may use it.
    pub(crate) fn is_allowed(&self, policy: &ComponentPolicy) -> bool {
        self.grants(policy).iter().all(|grants| allows(grants, &self.ask))
    }
}

/// True if these grants allow a use.
pub(crate) fn allows(grants: &Grants, ask: &Ask) -> bool {
    // All names are allowed by whichever there are.
    matches!(ask, Ask::Named(_, name) if name == ALL_NAMES) || grants.explain(ask).is_allowed()
}

/// The grants of the tool that clients see by this name, if the manifest has a table for it.
fn own_table<'p>(policy: &'p ComponentPolicy, exposed: &str) -> Option<&'p Arc<Grants>> {
    let named = |own: &str| policy.exposed_name(own).is_ok_and(|name| name == exposed);
    policy.tools().iter().find(|tool| named(tool.name())).map(|tool| tool.grants())
}

#[cfg(test)]
mod tests;
