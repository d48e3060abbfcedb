//! One generation of tools: its components, their tools, and everything needed to run each. Must
//! not hold: the steps of a call (see `call`).
pub(crate) mod apps;
mod building;
mod caller_queue;
mod consents;
mod console_rights;
pub(crate) mod content;
mod definition;
mod dev_folder;
mod guest_resources;
mod held;
mod host_files;
mod instances;
mod left_out;
mod loaded;
pub(crate) mod meters;
mod narrowing;
mod offer;
mod permissions;
mod program;
mod queue;
mod resources;
mod searching;
mod service_paths;
pub mod side_files;
pub(crate) mod skills;
pub(crate) mod texts;
pub(crate) mod usage;
mod visibility;
mod walls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_audit::Sink;
use toolcell_mcp::{McpTool, NameCollisions, SearchError, ToolList};
use toolcell_policy::{Approval, Callable, Callers, ComponentPolicy, Grants, Limits, Output, Program, ToolName};
use toolcell_sandbox::{CodeOrigin, GrantedCapabilities, HeldComponent, Inspection, ShapeName, export};
use toolcell_shared::SharedState;

use crate::fetching::trust::Signed;
use crate::files::file_stamp::Stamps;
use crate::observing::activity::Activity;
use crate::observing::alerts::Alerts;
use crate::observing::observation::Observation;
use crate::observing::traces::Traces;
use crate::replicas::boards::Boards;
use crate::replicas::updates::NewsDesk;
use crate::resources::folders::{FileReads, Folder};
use crate::resources::kept_entries::EntryReads;
pub use apps::App;
pub(crate) use apps::{APPS, Apps};
pub(crate) use building::NOT_LOADED;
pub use building::{Basis, Builder, Built, Compiling, LoadStep, Pin, Withheld, folder_of};
pub(crate) use caller_queue::{CallerQueues, LARGE_BYTES};
pub(crate) use consents::Consents;
pub use consents::{Choice, Person};
pub use console_rights::ConsoleRights;
pub use dev_folder::{DEV_FOLDER, DEV_VARIABLE, DevFolder};
pub(crate) use guest_resources::GuestResource;
pub use host_files::HostFiles;
pub(crate) use instances::InstancesByCaller;
pub use left_out::{LeftOutComponent, Tolerance};
pub(crate) use loaded::record_components;
pub use meters::Tally;
pub(crate) use meters::{DenialCounts, Meters};
pub(crate) use narrowing::Narrowing;
pub use offer::Offer;
pub use permissions::VALUE_MISSING;
pub(crate) use queue::{Admission, CallPermit, QueueRefusal, in_whole_seconds, pace};
pub(crate) use resources::{DeclaredResources, HostSource};
pub(crate) use searching::Searching;
pub(crate) use skills::{SKILLS, Skills};
pub(crate) use texts::{TEXTS, TextPrompt, TextPrompts};
pub(crate) use visibility::Visibility;
pub use visibility::{CALLED_BY, NOBODY};
pub use walls::WalledComponents;

/// An immutable generation. Calls hold it by `Arc` until they end, whichever generation serves by
/// then.
pub struct Catalog {
    /// The entries of the targets, behind them those of the texts, and then those of the skills.
    pub(crate) tools: ToolList,
    pub(crate) resources: Arc<DeclaredResources>,
    /// Reads resources that no call reads.
    pub(crate) reads: Arc<HostReads>,
    /// Takes news of resources that calls change.
    pub(crate) news: Arc<NewsDesk>,
    pub(crate) targets: Vec<Arc<CallTarget>>,
    /// The prompts of the manifest itself.
    pub(crate) texts: TextPrompts,
    pub(crate) skills: Arc<Skills>,
    pub(crate) apps: Arc<Apps>,
    pub(crate) components: Vec<Arc<LoadedComponent>>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) calls: Arc<AtomicU64>,
    pub(crate) observation: Option<Arc<Observation>>,
    pub(crate) traces: Option<Arc<Traces>>,
    /// Present if the manifest has alerts raised.
    pub(crate) alerts: Option<Arc<Alerts>>,
    /// Calls as the console shows them, if there is one.
    pub(crate) activity: Option<Arc<Activity>>,
    pub(crate) tally: Arc<Tally>,
    /// Consents of persons to requests that no rule allows.
    pub(crate) consents: Arc<Consents>,
    /// State that is one for all replicas, or for this process alone.
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) visibility: Visibility,
    /// Present if clients search for tools.
    pub(crate) searching: Option<Arc<Searching>>,
    pub(crate) caller_queues: Arc<CallerQueues>,
    pub(crate) walled: WalledComponents,
    pub(crate) console: ConsoleRights,
    /// True if results say what their calls used.
    pub(crate) tells_usage: bool,
    /// Components of the manifest that are broken, and not served.
    pub(crate) left_out: Arc<[LeftOutComponent]>,
}

/// Reads resources that no call reads.
pub(crate) struct HostReads {
    pub(crate) files: FileReads,
    pub(crate) entries: EntryReads,
}

/// The tools of a generation cannot be served together.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Two tools have one name.
    #[error(transparent)]
    Names(#[from] NameCollisions),
    /// Clients cannot search them.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// A loaded component with its policy.
pub struct LoadedComponent {
    pub(crate) policy: ComponentPolicy,
    pub(crate) component: Arc<HeldComponent>,
    pub(crate) digest: String,
    pub(crate) policy_digest: String,
    /// Those who signed it, where the manifest asks for them.
    pub(crate) signed: Signed,
    /// The resources that it declares.
    pub(crate) resources: Vec<GuestResource>,
    /// Stamps of its side files when they were read.
    pub(crate) side_files: Stamps,
    /// The project's files that it reads, where `toolcell dev` built it.
    pub(crate) dev_source: Option<Arc<str>>,
    /// Denials of its calls, counted over all generations that have it.
    pub(crate) denied: Arc<DenialCounts>,
}

/// The target of calls: one tool or another export, with everything needed to run it but its
/// definition.
pub(crate) struct CallTarget {
    pub(crate) component: Arc<LoadedComponent>,
    /// The tool's own name, without the manifest's prefix. Of any other export the path that a
    /// sandbox knows it by.
    pub(crate) name: String,
    /// Command line and input of its program, if its component is a program.
    pub(crate) program: Option<Arc<Program>>,
    pub(crate) limits: Limits,
    pub(crate) capabilities: Arc<GrantedCapabilities>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) instances: Option<Arc<InstancesByCaller>>,
    /// Rule for calls that a person confirms, if any.
    pub(crate) approval: Option<Approval>,
    /// Digest of all that a person confirms besides the call: what the tool may reach, and the
    /// rule. Empty where no call is confirmed.
    pub(crate) approved_as: String,
    /// Ends its calls once the manifest narrows what they may reach; `None` if they reach nothing.
    pub(crate) narrowed: Option<Narrowing>,
    /// Counters of its calls, over all generations that have it.
    pub(crate) meters: Arc<Meters>,
}

impl CallTarget {
    /// The answer to a call that its tool's narrowing ended, if that has begun.
    pub(crate) fn narrowed_text(&self) -> Option<String> {
        let narrowed = self.narrowed.as_ref().filter(|narrowed| narrowed.cancellation().is_cancelled());
        narrowed.map(|narrowed| narrowed.text(self.component.name()))
    }
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

    /// Those who signed it, where the manifest asks for them.
    pub const fn signed(&self) -> &Signed {
        &self.signed
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

    /// All resources that it declares, as clients see them; `None` without any.
    pub(crate) fn pinned_resources(&self) -> Option<serde_json::Value> {
        (!self.resources.is_empty()).then(|| guest_resources::pinned(&self.resources))
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
        self.consents.may_write(path);
    }

    /// Asks this person about what no rule allows, and no client.
    pub fn ask_on(&self, person: Arc<dyn Person>) {
        self.consents.ask_on(person);
    }

    /// Sends spans of its calls there.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..self }
    }

    /// Has failures and denials of its calls counted there.
    #[must_use]
    pub(crate) fn alerting(self, alerts: Option<Arc<Alerts>>) -> Self {
        Self { alerts, ..self }
    }

    /// Shows its calls there.
    #[must_use]
    pub(crate) fn watched(self, activity: Option<Arc<Activity>>) -> Self {
        Self { activity, ..self }
    }

    /// Shares state with all who use this.
    #[must_use]
    pub fn sharing(self, state: &Arc<dyn SharedState>) -> Self {
        Self { state: Arc::clone(state), ..self }
    }

    /// From now on all replicas know what persons allow.
    pub(crate) fn knowing(&self, boards: &Arc<Boards>) {
        self.consents.share(boards);
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

    /// Names of one component's tools, as clients see them, and the paths of its prompts.
    pub fn tools_of(&self, component: &Arc<LoadedComponent>) -> Vec<&str> {
        let own = self.targets.iter().map(|target| Arc::ptr_eq(&target.component, component));
        let listed = |tool: &McpTool| tool.is_tool() || tool.prompt().is_some();
        let named = self.tools.tools().iter().zip(own).filter(|(tool, own)| *own && listed(tool));
        named.map(|(tool, _)| tool.definition().name.as_str()).collect()
    }

    /// This catalog with the held components as they are in an earlier one. Components that the
    /// earlier one lacks are left out.
    ///
    /// # Errors
    /// Two tools would have one name, or one of the host's own.
    pub fn holding(&self, held: &BTreeSet<String>, earlier: &Self) -> Result<Self, CatalogError> {
        self.replacing(held, Some(earlier))
    }

    /// This catalog without these components.
    ///
    /// # Errors
    /// Clients cannot search what is left.
    pub fn without(&self, components: &BTreeSet<String>) -> Result<Self, CatalogError> {
        self.replacing(components, None)
    }

    /// This catalog with the held components as they are in an earlier one, or without them.
    fn replacing(&self, held: &BTreeSet<String>, earlier: Option<&Self>) -> Result<Self, CatalogError> {
        let mut parts = Parts::default();
        for component in &self.components {
            if !held.contains(component.name()) {
                parts.take_over(self, component, None);
            } else if let Some((earlier, old)) = earlier.and_then(|at| Some((at, at.component(component.name())?))) {
                parts.take_over(earlier, old, None);
            }
        }
        let earlier = earlier.unwrap_or(self);
        let texts = if held.contains(TEXTS) { earlier } else { self };
        parts.take_texts(texts);
        let texts = TextPrompts { all: texts.texts.all.clone() };
        let skills = if held.contains(SKILLS) { earlier } else { self };
        parts.take_skills(skills);
        let skills = Arc::clone(&skills.skills);
        let apps = Arc::clone(if held.contains(APPS) { &earlier.apps } else { &self.apps });
        let Parts { tools, targets, rules, components } = parts;
        let searching = self.searching.clone();
        let tools = ToolList::new(self.tools.generation(), tools)?;
        let tools = Searching::apply(searching.as_ref(), tools, &targets)?;
        let visibility = Visibility::new(Arc::clone(self.visibility.callers()), rules);
        let caller_queues = Arc::clone(&self.caller_queues);
        let sink = Arc::clone(&self.sink);
        let calls = Arc::clone(&self.calls);
        let tally = Arc::clone(&self.tally);
        let observation = self.observation.clone();
        let traces = self.traces.clone();
        let activity = self.activity.clone();
        let consents = Arc::clone(&self.consents);
        let state = Arc::clone(&self.state);
        let resources =
            DeclaredResources::of(&targets, &tools, self.resources.places()).holding(&skills, &apps, &tools);
        let resources = Arc::new(resources);
        let reads = Arc::clone(&self.reads);
        let news = Arc::clone(&self.news);
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
            alerts: self.alerts.clone(),
            activity,
            consents,
            state,
            visibility,
            searching,
            caller_queues,
            resources,
            texts,
            skills,
            apps,
            reads,
            news,
            walled,
            console: self.console.clone(),
            tells_usage: self.tells_usage,
            left_out: Arc::clone(&self.left_out),
        })
    }

    /// This catalog for callers who may see and call a tool by these rules too. Nobody gains
    /// anything by it.
    ///
    /// # Errors
    /// None that this catalog does not have itself.
    pub fn also_under(&self, rules: &Arc<Callers>) -> Result<Self, CatalogError> {
        let same = self.holding(&BTreeSet::new(), self)?;
        Ok(Self { visibility: same.visibility.also_under(rules), ..same })
    }

    /// True if callers see less than its own rules let them see, until the next generation serves.
    pub const fn is_narrowed(&self) -> bool {
        self.visibility.is_narrowed()
    }

    /// From now on news of resources that calls change go there.
    pub(crate) fn tell_by(&self, updates: &Arc<crate::replicas::updates::Updates>) {
        self.news.open(updates);
    }

    /// The folders whose files are resources.
    pub(crate) fn folders(&self) -> Vec<Arc<Folder>> {
        self.resources.folders()
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
        tools.map(|(place, (target, tool))| Offer { target, tool, visibility: &self.visibility, place })
    }

    /// The prompts of the manifest itself, with the rules for their callers in words; `None`:
    /// everybody.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&Arc<TextPrompt>, Option<Vec<String>>)> {
        let places = self.targets.len()..;
        self.texts.all.iter().zip(places).map(|(text, place)| (text, self.visibility.words(place, &text.called())))
    }

    /// The skills' entries, with the rules for their callers in words; `None`: everybody.
    pub(crate) fn skills(&self) -> impl Iterator<Item = (&Arc<McpTool>, Option<Vec<String>>)> {
        let places = self.targets.len() + self.texts.all.len()..;
        let entries = self.skills.entries().iter().zip(places);
        entries.map(|(entry, place)| (entry, self.visibility.words(place, &skills::called(entry))))
    }

    /// The manifest's rules for callers.
    pub fn callers(&self) -> &Callers {
        self.visibility.callers()
    }

    /// The views of tools' results that the manifest names, in its order.
    pub fn views(&self) -> &[App] {
        self.apps.all()
    }

    /// Components of the manifest that are broken, and not served.
    pub fn left_out(&self) -> &[LeftOutComponent] {
        &self.left_out
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
    tools: Vec<Arc<McpTool>>,
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

    /// Takes a component away, with its tools.
    fn take_away(&mut self, name: &str) {
        let keeps: Vec<bool> = self.targets.iter().map(|target| target.component.name() != name).collect();
        let mut kept = keeps.iter();
        self.tools.retain(|_| kept.next().is_none_or(|keeps| *keeps));
        let mut kept = keeps.iter();
        self.rules.retain(|_| kept.next().is_none_or(|keeps| *keeps));
        self.targets.retain(|target| target.component.name() != name);
        self.components.retain(|component| component.name() != name);
    }

    /// Adds the skills as they are in another catalog. Nothing comes after them.
    fn take_skills(&mut self, catalog: &Catalog) {
        let places = catalog.targets.len() + catalog.texts.all.len()..;
        for (entry, place) in catalog.skills.entries().iter().zip(places) {
            self.tools.push(Arc::clone(entry));
            self.rules.push(catalog.visibility.rules_of(place).map(Arc::clone).unwrap_or_default());
        }
    }

    /// Adds the manifest's own prompts as they are in another catalog. Only skills come after them.
    fn take_texts(&mut self, catalog: &Catalog) {
        for (text, place) in catalog.texts.all.iter().zip(catalog.targets.len()..) {
            self.tools.push(Arc::clone(&text.entry));
            self.rules.push(catalog.visibility.rules_of(place).map(Arc::clone).unwrap_or_default());
        }
    }
}

impl CallTarget {
    /// Its names, as rules for callers match them. `entry` is its definition.
    pub(crate) fn called<'n>(&'n self, entry: &'n McpTool) -> ToolName<'n> {
        let component = self.component.name();
        match entry.prompt() {
            Some(prompt) => {
                let own = export::prompt_of(&self.name).unwrap_or_default();
                ToolName { kind: Callable::Prompt, component, own, exposed: prompt.name() }
            }
            None => ToolName { kind: Callable::Tool, component, own: &self.name, exposed: &entry.definition().name },
        }
    }

    /// True if its results may embed resources. Typed functions never do, programs if the manifest
    /// says so.
    pub(crate) fn may_embed(&self) -> bool {
        match self.program.as_ref().map(|program| program.output()) {
            Some(Output::Media { mime_type, .. }) => {
                !["image/", "audio/"].iter().any(|kind| mime_type.starts_with(kind))
            }
            Some(Output::Text { .. } | Output::Json) => false,
            None => self.component.component.shape() == ShapeName::Contract,
        }
    }
}
