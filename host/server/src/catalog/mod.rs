//! One generation of tools: its components, their tools, and everything needed to run each. Must
//! not hold: the steps of a call (see `call`).
pub(crate) mod apps;
pub mod arguments;
mod building;
pub(crate) mod caller_figures;
mod caller_queue;
mod calling_places;
mod consents;
mod console_rights;
pub(crate) mod content;
mod definition;
mod dev_folder;
mod entry;
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
mod recordable;
mod resources;
mod searching;
mod service_paths;
mod services;
pub mod side_files;
pub(crate) mod skills;
pub(crate) mod texts;
pub(crate) mod usage;
mod visibility;
mod walls;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::{McpTool, NameCollisions, SearchError, ToolList};
use toolcell_policy::{
    Approval, Callable, Callers, ComponentPolicy, Diagnostic, Grants, Limits, LoginPolicy, LoginUse, Manifest, Output,
    Program, RecordRule, ToolName,
};
use toolcell_sandbox::{CodeOrigin, GrantedCapabilities, HeldComponent, Inspection, ShapeName, export};

use crate::fetching::trust::Signed;
pub use crate::files::file::folder_of;
use crate::files::file_stamp::Stamps;
use crate::recordings::RecordingsPlace;
use crate::resources::folders::{Folder, FolderPlaces};
pub use apps::App;
pub(crate) use apps::{APPS, Apps};
pub use arguments::{ArgumentChecks, CallerRules};
pub(crate) use building::NOT_LOADED;
pub use building::{
    Basis, BuilderOptions, Built, CatalogBuilder, Compiling, ComponentNames, ListedNames, LoadStep, Pin, ToolNames,
    Withheld,
};
pub(crate) use caller_queue::LARGE_BYTES;
pub use consents::{Choice, Consents, Person};
pub use console_rights::ConsoleRights;
pub use dev_folder::{DEV_FOLDER, DEV_VARIABLE, DevFolder};
pub(crate) use entry::{CatalogEntry, EntryKind, targets};
pub(crate) use guest_resources::GuestResource;
pub use host_files::HostFiles;
pub(crate) use instances::InstancesByCaller;
pub use left_out::{LeftOutComponent, Tolerance};
pub(crate) use loaded::record_components;
pub(crate) use meters::{DenialCounts, Meters};
pub(crate) use narrowing::ToolNarrowing;
pub use offer::ToolOffer;
pub use permissions::VALUE_MISSING;
pub(crate) use queue::{Admission, CallPermit, QueueRefusal, in_whole_seconds, pace, take_of_caller, take_rates};
pub(crate) use recordable::NotRecordable;
pub(crate) use resources::{DeclaredResources, HostSource};
pub(crate) use searching::Searching;
pub(crate) use services::Services;
pub(crate) use skills::{SKILLS, Skills};
pub(crate) use texts::{TEXTS, TextPrompt};
pub(crate) use visibility::Visibility;
pub use visibility::{CALLED_BY, NOBODY};
use walls::WallSetup;
pub use walls::WalledComponents;

/// An immutable generation. Calls hold it by `Arc` until they end, whichever generation serves by
/// then.
pub struct Catalog {
    pub(crate) services: Arc<Services>,
    pub(crate) settings: Arc<CatalogSettings>,
    /// First those of components, then the prompts of the manifest, then the skills.
    pub(crate) entries: Vec<CatalogEntry>,
    pub(crate) components: Vec<Arc<LoadedComponent>>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) apps: Arc<Apps>,
    /// The definitions of the entries, in their order.
    pub(crate) tools: ToolList,
    pub(crate) resources: Arc<DeclaredResources>,
    pub(crate) visibility: Visibility,
    /// The components that run in sandbox processes.
    pub(crate) walled: WalledComponents,
    /// Components of the manifest that are broken, and not served.
    pub(crate) left_out: Arc<[LeftOutComponent]>,
}

/// Settings of the manifest for all entries together.
pub(crate) struct CatalogSettings {
    /// Rules for callers.
    pub(crate) callers: Arc<CallerRules>,
    /// Present if clients search for tools.
    pub(crate) searching: Option<Searching>,
    pub(crate) console: ConsoleRights,
    /// True if results report their usage.
    pub(crate) tells_usage: bool,
    /// Folders of resources that are files.
    pub(crate) places: FolderPlaces,
    /// The folder of recordings, if calls may be recorded.
    pub(crate) recordings: Option<Arc<RecordingsPlace>>,
    /// Which callers may use which logins.
    login_use: Arc<LoginUse>,
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
    /// `sha256:…` of its policy.
    pub(crate) policy_digest: String,
    /// Who signed it, if the manifest requires signatures.
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

/// The target of calls: one tool or another export, with everything needed to run it.
pub(crate) struct CallTarget {
    pub(crate) tool: Arc<McpTool>,
    pub(crate) component: Arc<LoadedComponent>,
    /// The tool's own name, without the manifest's prefix; for any other export, its path.
    pub(crate) name: String,
    /// Command line and input of its program, if its component is a program.
    pub(crate) program: Option<Arc<Program>>,
    pub(crate) limits: Limits,
    pub(crate) capabilities: Arc<GrantedCapabilities>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) instances: Option<Arc<InstancesByCaller>>,
    /// When a person has to confirm calls, if ever.
    pub(crate) approval: Option<Approval>,
    /// The calls that are recorded.
    pub(crate) record: RecordRule,
    /// Digest of what an approval covers besides the call: the tool's grants, and the rule. Empty
    /// if no call needs approval.
    pub(crate) approved_as: String,
    /// Ends its calls when the manifest narrows its grants; `None` if it has none.
    pub(crate) narrowed: Option<ToolNarrowing>,
    /// Counters of its calls, over all generations that have it.
    pub(crate) meters: Arc<Meters>,
    /// Conditions on its arguments, for all callers.
    pub(crate) arguments: Option<Arc<ArgumentChecks>>,
}

impl CallTarget {
    /// The answer to a call that ended because its tool was narrowed.
    pub(crate) fn narrowed_text(&self) -> Option<String> {
        let narrowed = self.narrowed.as_ref().filter(|narrowed| narrowed.cancellation.is_cancelled());
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

    /// Who signed it, if the manifest requires signatures.
    pub const fn signed(&self) -> &Signed {
        &self.signed
    }

    /// Source of its machine code.
    pub fn code_origin(&self) -> CodeOrigin {
        self.component.code_origin()
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
    /// Puts a generation together.
    fn new(
        generation: u64,
        services: &Arc<Services>,
        settings: Arc<CatalogSettings>,
        parts: CatalogParts,
        walled: WalledComponents,
        left_out: Arc<[LeftOutComponent]>,
    ) -> Result<Self, CatalogError> {
        let definitions = parts.entries.iter().map(|entry| Arc::clone(entry.tool()));
        let mut tools = ToolList::new(generation, definitions.collect())?;
        if let Some(searching) = &settings.searching {
            tools = searching.apply(tools, &parts.entries)?;
        }
        let resources = Arc::new(DeclaredResources::of(&parts, &tools, &settings.places));
        let visibility = Visibility::new(&settings.callers, &parts.entries);
        let CatalogParts { entries, components, skills, apps } = parts;
        let services = Arc::clone(services);
        Ok(Self {
            services,
            settings,
            entries,
            components,
            skills,
            apps,
            tools,
            resources,
            visibility,
            walled,
            left_out,
        })
    }

    /// Consents of persons to requests that no rule allows.
    pub fn consents(&self) -> &Consents {
        &self.services.consents
    }

    /// The components, in the manifest's order.
    pub fn components(&self) -> &[Arc<LoadedComponent>] {
        &self.components
    }

    /// Grants of tool number `index`.
    pub fn tool_grants(&self, index: usize) -> Option<&Grants> {
        self.target(index).map(|target| target.capabilities.grants().as_ref())
    }

    /// The component and the limits of tool number `index`.
    pub fn tool_source(&self, index: usize) -> Option<(&LoadedComponent, &Limits)> {
        self.target(index).map(|target| (target.component.as_ref(), &target.limits))
    }

    /// Names of one component's tools, as clients see them, and the paths of its prompts.
    pub fn tools_of(&self, component: &Arc<LoadedComponent>) -> Vec<&str> {
        let own = self.offers().filter(|offer| Arc::ptr_eq(offer.component(), component) && offer.target.is_named());
        own.map(|offer| offer.tool().definition().name.as_str()).collect()
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
        let mut parts = CatalogParts::default();
        for component in &self.components {
            if !held.contains(component.name()) {
                parts.take_over(self, component, None);
            } else if let Some((earlier, old)) = earlier.and_then(|at| Some((at, at.component(component.name())?))) {
                parts.take_over(earlier, old, None);
            }
        }
        let earlier = earlier.unwrap_or(self);
        let holder = |name: &str| if held.contains(name) { earlier } else { self };
        let texts = holder(TEXTS).entries.iter().filter(|entry| entry.text().is_some());
        let skills = holder(SKILLS).entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Skill(_)));
        parts.entries.extend(texts.chain(skills).cloned());
        parts.skills = Arc::clone(&holder(SKILLS).skills);
        parts.apps = Arc::clone(&holder(APPS).apps);
        let walled = self.walled.holding(&earlier.walled, &parts.components);
        let generation = self.tools.generation();
        let left_out = Arc::clone(&self.left_out);
        Self::new(generation, &self.services, Arc::clone(&self.settings), parts, walled, left_out)
    }

    /// This catalog, restricted to what callers may also see and call under these rules.
    ///
    /// # Errors
    ///
    /// None that this catalog does not have itself.
    pub fn also_under(&self, rules: &Arc<CallerRules>) -> Result<Self, CatalogError> {
        let same = self.replacing(&BTreeSet::new(), None)?;
        Ok(Self { visibility: same.visibility.also_under(rules), ..same })
    }

    /// True while callers see less than the catalog's own rules allow, until the next generation is
    /// served.
    pub const fn is_narrowed(&self) -> bool {
        self.visibility.is_narrowed()
    }

    /// The folders whose files are resources.
    pub(crate) fn folders(&self) -> Vec<Arc<Folder>> {
        self.resources.folders()
    }

    /// The component of this name in the manifest.
    pub fn component(&self, name: &str) -> Option<&Arc<LoadedComponent>> {
        self.components.iter().find(|component| component.name() == name)
    }

    /// The tools with their state, in the order of the list.
    pub fn offers(&self) -> impl Iterator<Item = ToolOffer<'_>> {
        self.entries.iter().filter_map(|entry| Some(ToolOffer { entry, target: entry.target()? }))
    }

    /// The prompt of the manifest at this index, if there is one.
    pub(crate) fn text_of(&self, place: usize) -> Option<&Arc<TextPrompt>> {
        self.entries.get(place)?.text()
    }

    /// The target of entry number `index`.
    pub(crate) fn target(&self, index: usize) -> Option<&Arc<CallTarget>> {
        self.entries.get(index)?.target()
    }

    /// The prompts of the manifest itself.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Arc<TextPrompt>> {
        self.entries.iter().filter_map(CatalogEntry::text)
    }

    /// The manifest's rules for callers.
    pub fn callers(&self) -> &Callers {
        &self.settings.callers
    }

    /// Which callers may use which logins, by the manifest.
    pub(crate) fn login_use(&self) -> &Arc<LoginUse> {
        &self.settings.login_use
    }

    /// The logins of callers that components use, by name.
    pub(crate) fn caller_logins(&self) -> Vec<Arc<LoginPolicy>> {
        let mut found: Vec<Arc<LoginPolicy>> = Vec::new();
        for login in self.components.iter().flat_map(|component| component.policy().grants().caller_logins()) {
            if found.iter().all(|known| known.name() != login.name()) {
                found.push(Arc::clone(login));
            }
        }
        found
    }

    /// The views of tools' results that the manifest names, in its order.
    pub fn views(&self) -> &[App] {
        self.apps.all()
    }

    /// Components of the manifest that are broken, and not served.
    pub fn left_out(&self) -> &[LeftOutComponent] {
        &self.left_out
    }
}

impl CatalogSettings {
    /// The settings of a manifest in this folder. Reports conditions that do not compile.
    fn of(manifest: &Manifest, folder: &Path, problems: &mut Vec<Diagnostic>) -> Self {
        let server = manifest.server();
        let (callers, found) = CallerRules::compile(manifest.callers());
        problems.extend(found);
        Self {
            callers: Arc::new(callers),
            searching: Searching::of(manifest),
            console: ConsoleRights::of(manifest),
            tells_usage: server.usage(),
            places: FolderPlaces { base: folder.to_owned(), state: server.state().into() },
            recordings: RecordingsPlace::of(manifest, folder),
            login_use: Arc::new(manifest.login_use()),
        }
    }
}

/// The parts of a catalog.
#[derive(Default)]
struct CatalogParts {
    entries: Vec<CatalogEntry>,
    components: Vec<Arc<LoadedComponent>>,
    skills: Arc<Skills>,
    apps: Arc<Apps>,
}

impl CatalogParts {
    /// Adds a component of another catalog with its tools, under these rules, or else under the
    /// rules there.
    fn take_over(&mut self, catalog: &Catalog, component: &Arc<LoadedComponent>, rules: Option<&Arc<CallerRules>>) {
        for entry in catalog.entries.iter().filter(|entry| entry.is_of(component)) {
            let rules = Arc::clone(rules.unwrap_or(&entry.rules));
            self.entries.push(CatalogEntry { kind: entry.kind.clone(), rules });
        }
        self.components.push(Arc::clone(component));
    }

    /// Removes a component with its tools.
    fn take_away(&mut self, name: &str) {
        self.entries.retain(|entry| entry.target().is_none_or(|target| target.component.name() != name));
        self.components.retain(|component| component.name() != name);
    }
}

impl CallTarget {
    /// Its names, for rules about callers.
    pub(crate) fn called(&self) -> ToolName<'_> {
        let component = self.component.name();
        match self.tool.prompt() {
            Some(prompt) => {
                let own = export::prompt_of(&self.name).unwrap_or_default();
                ToolName { kind: Callable::Prompt, component, own, exposed: prompt.name() }
            }
            None => {
                let exposed = &self.tool.definition().name;
                ToolName { kind: Callable::Tool, component, own: &self.name, exposed }
            }
        }
    }

    /// True if it is a tool or a prompt: clients know it by its name.
    pub(crate) fn is_named(&self) -> bool {
        self.tool.is_tool() || self.tool.prompt().is_some()
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
