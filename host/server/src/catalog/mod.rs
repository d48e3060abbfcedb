//! One generation of tools: its components, their tools, and everything needed to run each. Must
//! not hold: the steps of a call (see `call`).
mod approvals;
mod build;
mod caller_queue;
mod consents;
pub(crate) mod content;
mod definition;
mod host_files;
mod instances;
pub(crate) mod meters;
mod offer;
mod permissions;
mod program;
mod queue;
mod rate;
mod resources;
pub mod side_files;
mod visibility;
mod walls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_audit::Sink;
use toolcell_mcp::{Cancellation, NameCollisions, Tool, ToolList};
use toolcell_policy::{Approval, Callers, ComponentPolicy, Grants, Limits, Output, Program, ToolName};
use toolcell_sandbox::{Capabilities, CodeOrigin, Inspection, ShapeName, ToolComponent};

use crate::file_stamp::Stamps;
use crate::observation::Observation;
use crate::traces::Traces;
pub(crate) use approvals::Approvals;
pub use build::{Basis, Builder, Built, Compiling, LoadStep, Withheld, folder_of};
pub(crate) use caller_queue::CallerQueues;
pub use consents::{Choice, Person};
pub use host_files::HostFiles;
pub(crate) use instances::Instances;
pub use meters::Tally;
pub(crate) use meters::{DenialCounts, Meters};
pub use offer::Offer;
pub(crate) use queue::{Admission, NARROWED, QueueRefusal};
pub(crate) use rate::Allowance;
pub(crate) use resources::DeclaredResources;
pub use visibility::NOBODY;
pub(crate) use visibility::Visibility;
pub use walls::{WallSetup, WalledComponents};

/// An immutable generation. Calls hold it by `Arc` until they end, whichever generation serves by
/// then.
pub struct Catalog {
    pub(crate) tools: ToolList,
    pub(crate) resources: DeclaredResources,
    pub(crate) targets: Vec<Arc<CallTarget>>,
    pub(crate) components: Vec<Arc<LoadedComponent>>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) calls: Arc<AtomicU64>,
    pub(crate) observation: Option<Arc<Observation>>,
    pub(crate) traces: Option<Arc<Traces>>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) visibility: Visibility,
    pub(crate) caller_queues: Arc<CallerQueues>,
    pub(crate) walled: WalledComponents,
}

/// A loaded component with its policy.
pub struct LoadedComponent {
    pub(crate) policy: ComponentPolicy,
    pub(crate) component: Arc<ToolComponent>,
    pub(crate) digest: String,
    pub(crate) policy_digest: String,
    /// Stamps of its side files when they were read.
    pub(crate) side_files: Stamps,
    /// Denials of its calls, counted over all generations that have it.
    pub(crate) denied: Arc<DenialCounts>,
}

/// The target of calls: one tool, with everything needed to run it but its definition.
pub(crate) struct CallTarget {
    pub(crate) component: Arc<LoadedComponent>,
    /// The tool's own name, without the manifest's prefix.
    pub(crate) name: String,
    /// Command line and input of its program, if its component is a program.
    pub(crate) program: Option<Arc<Program>>,
    pub(crate) limits: Limits,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) instances: Instances,
    /// Rule for calls that a person confirms; `None` if there are none.
    pub(crate) approval: Option<Approval>,
    /// Cancelled once the manifest narrows what its calls may reach; `None` if they reach nothing.
    pub(crate) narrowed: Option<Cancellation>,
    /// Counters of its calls, over all generations that have it.
    pub(crate) meters: Arc<Meters>,
}

impl LoadedComponent {
    /// The component's name in the manifest.
    pub fn name(&self) -> &str {
        self.policy.name()
    }

    /// Its policy from the manifest.
    pub fn policy(&self) -> &ComponentPolicy {
        &self.policy
    }

    /// `sha256:…` of its bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// `sha256:…` of its policy.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Source of its machine code.
    pub fn code_origin(&self) -> CodeOrigin {
        self.component.code_origin()
    }

    /// Denials of its calls.
    pub fn denied(&self) -> &DenialCounts {
        &self.denied
    }

    /// Shape of the component, which decides how its exports become tools.
    pub fn shape(&self) -> ShapeName {
        self.component.shape()
    }

    /// Its exports and imports.
    pub fn inspection(&self) -> &Inspection {
        self.component.inspection()
    }
}

impl Catalog {
    /// Records the denials of its calls there.
    #[must_use]
    pub fn observed(self, observation: Option<Arc<Observation>>) -> Self {
        Self { observation, ..self }
    }

    /// Lets persons who are asked about what no rule allows have this manifest written.
    pub fn may_write_manifest(&self, path: &std::path::Path) {
        self.approvals.consents.may_write(path);
    }

    /// Asks this person about what no rule allows, and no client.
    pub fn ask_on(&self, person: Arc<dyn Person>) {
        self.approvals.consents.ask_on(person);
    }

    /// Sends spans of its calls there.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..self }
    }

    /// The components, in the manifest's order.
    pub fn components(&self) -> &[Arc<LoadedComponent>] {
        &self.components
    }

    /// Grants of tool number `index`.
    pub fn tool_grants(&self, index: usize) -> Option<&Grants> {
        self.targets.get(index).map(|target| target.capabilities.grants().as_ref())
    }

    /// The component and the limits of tool number `index`.
    pub fn tool_source(&self, index: usize) -> Option<(&LoadedComponent, &Limits)> {
        self.targets.get(index).map(|target| (target.component.as_ref(), &target.limits))
    }

    /// Names of one component's tools, as clients see them.
    pub fn tools_of(&self, component: &Arc<LoadedComponent>) -> Vec<&str> {
        let own = self.targets.iter().map(|target| Arc::ptr_eq(&target.component, component));
        let named = self.tools.tools().iter().zip(own).filter(|(_, own)| *own);
        named.map(|(tool, _)| tool.definition().name.as_str()).collect()
    }

    /// This catalog with the held components as they are in an earlier one. Components that the
    /// earlier one lacks are left out.
    ///
    /// # Errors
    /// Two tools would have one name.
    pub fn holding(&self, held: &BTreeSet<String>, earlier: &Self) -> Result<Self, NameCollisions> {
        let mut parts = Parts::default();
        for component in &self.components {
            if !held.contains(component.name()) {
                parts.take_over(self, component, None);
            } else if let Some(old) = earlier.component(component.name()) {
                parts.take_over(earlier, old, None);
            }
        }
        let Parts { tools, targets, rules, components } = parts;
        let tools = ToolList::new(self.tools.generation(), tools)?;
        let (visibility, caller_queues) =
            (Visibility::new(Arc::clone(self.visibility.callers()), rules), Arc::clone(&self.caller_queues));
        let (sink, calls, tally) = (Arc::clone(&self.sink), Arc::clone(&self.calls), Arc::clone(&self.tally));
        let (observation, traces, approvals) =
            (self.observation.clone(), self.traces.clone(), Arc::clone(&self.approvals));
        let resources = DeclaredResources::of(&targets, &tools);
        let walled = self.walled.holding(&earlier.walled, &components);
        Ok(Self {
            tools,
            targets,
            components,
            sink,
            calls,
            tally,
            observation,
            traces,
            approvals,
            visibility,
            caller_queues,
            resources,
            walled,
        })
    }

    /// The components that run in sandbox processes.
    pub fn walled(&self) -> &WalledComponents {
        &self.walled
    }

    /// The component of this name in the manifest.
    pub fn component(&self, name: &str) -> Option<&Arc<LoadedComponent>> {
        self.components.iter().find(|component| component.name() == name)
    }

    /// The tools with their state, in the order of the list.
    pub fn offers(&self) -> impl Iterator<Item = Offer<'_>> {
        let tools = self.targets.iter().zip(self.tools.tools()).enumerate();
        tools.map(|(place, (target, tool))| Offer {
            target,
            tool,
            called_by: self.visibility.words(place, &target.called(&tool.definition().name)),
        })
    }

    /// The manifest's rules for callers.
    pub fn callers(&self) -> &Callers {
        self.visibility.callers()
    }

    /// Counts of outcomes, over all generations.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Number of calls started, over all generations.
    pub fn calls_started(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// The tools of a catalog and their targets, while they are put together.
#[derive(Default)]
struct Parts {
    tools: Vec<Arc<Tool>>,
    targets: Vec<Arc<CallTarget>>,
    /// Rules for the callers of each tool.
    rules: Vec<Arc<Callers>>,
    components: Vec<Arc<LoadedComponent>>,
}

impl Parts {
    /// Adds a component of another catalog with its tools, under these rules or else under its
    /// rules there.
    fn take_over(&mut self, catalog: &Catalog, component: &Arc<LoadedComponent>, rules: Option<&Arc<Callers>>) {
        for (place, (target, tool)) in catalog.targets.iter().zip(catalog.tools.tools()).enumerate() {
            if Arc::ptr_eq(&target.component, component) {
                self.tools.push(Arc::clone(tool));
                self.targets.push(Arc::clone(target));
                let rules = rules.or_else(|| catalog.visibility.rules_of(place));
                self.rules.push(rules.map(Arc::clone).unwrap_or_default());
            }
        }
        self.components.push(Arc::clone(component));
    }
}

impl CallTarget {
    /// Its names, as rules for callers match them.
    pub(crate) fn called<'n>(&'n self, exposed: &'n str) -> ToolName<'n> {
        ToolName { component: self.component.name(), own: &self.name, exposed }
    }

    /// True if its results may embed resources. Typed functions never do, programs if the manifest
    /// says so.
    pub(crate) fn may_embed(&self) -> bool {
        match self.component.component.shape() {
            ShapeName::Typed => false,
            ShapeName::Program => self.program.as_ref().is_some_and(|program| match program.output() {
                Output::Media { mime_type, .. } => !["image/", "audio/"].iter().any(|kind| mime_type.starts_with(kind)),
                Output::Text { .. } | Output::Json => false,
            }),
            _ => true,
        }
    }
}
