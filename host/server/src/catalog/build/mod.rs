//! Building a catalog: reads each component file once, compiles it and lists its tools. Collects
//! every problem of every component with its place in the manifest.
mod ahead;
mod basis;
mod compiler;
mod typed;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use toolcell_audit::Sink;
use toolcell_mcp::{CALL_TOOL, DefinitionProblem, FIND_TOOLS, Tool, ToolList, sanitize};
use toolcell_policy::{
    Approval, Callers, ComponentPolicy, Diagnostic, Discovery, Limits, LoadLimit, Manifest, Program, Severity,
    SourceRef, ToolPolicy, names,
};
use toolcell_sandbox::{
    COMPONENT_BYTES_MAX, CallReport, Capabilities, Digest, HeldComponent, ListedBeside, Listing, NotLoaded,
    SchemaLimits, ShapeName, check_definitions, contract, export,
};
use toolcell_schema::{SchemaBudget, SchemaFindings};
use toolcell_shared::{Embedded, SharedState};

use super::apps::Apps;
use super::caller_queue::CallerQueues;
use super::consents::Consents;
use super::definition::{End, SchemaChecks, ToolSchemaCheck};
use super::host_files::HostFiles;
use super::instances::{Instances, InstancesByCaller, PrewarmContext};
use super::narrowing::Narrowing;
use super::permissions::{GrantContext, ToolCapabilities};
use super::queue::Admission;
use super::resources::{self, DeclaredResources};
use super::searching::Searching;
use super::skills::{self, Skills};
use super::texts::{TEXTS, TextPrompts};
use super::visibility::Visibility;
use super::{
    CallTarget, Catalog, CatalogError, HostReads, LoadedComponent, Parts, Tally, WallSetup, WalledComponents,
    definition, guest_resources, meters, program, side_files,
};
use crate::file::{self, Unreadable};
use crate::file_stamp::Stamps;
use crate::folders::{FileReads, FolderPlaces};
use crate::kept_entries::EntryReads;
use crate::machine::Machine;
use crate::shared::SharedKept;
use crate::updates::NewsDesk;
use crate::workers::GuestExecutor;
use ahead::Ahead;
pub use basis::{Basis, Withheld};
pub use compiler::Compiling;
use compiler::{Compilation, Compiler, NotCompiled, OpenLister};

// No manifest lets a file in that the sandbox would refuse under another name.
const _: () = assert!(LoadLimit::ComponentSize.spec().max <= COMPONENT_BYTES_MAX);

/// Most problems reported for one component: further ones most likely repeat the same mistake.
const PROBLEMS_PER_COMPONENT_MAX: usize = 20;

/// Characters shown of an invalid name: enough to find it in the tool's source.
const NAME_CHARS_SHOWN: usize = 80;

/// Builds catalogs; one for the life of the process.
pub struct Builder {
    compiler: Compiler,
    runtime: Handle,
    executor: GuestExecutor,
    sink: Arc<Sink>,
    calls: Arc<AtomicU64>,
    tally: Arc<Tally>,
    consents: Arc<Consents>,
    state: Arc<dyn SharedState>,
    kept: SharedKept,
    caller_queues: Arc<CallerQueues>,
    prewarm: OnceLock<PrewarmContext>,
    host_files: HostFiles,
    reads: Arc<HostReads>,
    news: Arc<NewsDesk>,
    observing: bool,
    walls: Option<WallSetup>,
}

/// Result of a build.
pub struct Built {
    /// The catalog, if there was no error.
    pub catalog: Option<Catalog>,
    /// All errors and warnings.
    pub problems: Vec<Diagnostic>,
    /// Components that were not parsed because they differ from the lock. The catalog has them as
    /// they serve now, if they do.
    pub withheld: Vec<Withheld>,
}

/// One component of a build.
enum BuiltComponent<'a> {
    /// Reused from this earlier catalog, with bytes and policy.
    Unchanged(&'a Catalog, &'a Arc<LoadedComponent>),
    /// To be built anew.
    Changed(ListedComponent),
    /// Not parsed.
    Withheld(Withheld),
    /// Not compiled, as the build fails whatever comes of it.
    LeftOut,
}

/// Progress of a build.
#[derive(Clone, Copy, Debug)]
pub enum LoadStep<'a> {
    /// So many components are loaded.
    Loaded(usize),
    /// One of them takes long to compile.
    Compiling(Compiling<'a>),
}

/// Called at each step of a build.
pub type Steps<'a> = dyn Fn(LoadStep<'_>) + Sync + 'a;

/// A loaded component with its tools as it lists them.
struct ListedComponent {
    component: Arc<HeldComponent>,
    policy_digest: String,
    side_files: Stamps,
    tools: Vec<contract::Tool>,
    beside: ListedBeside,
    /// Where the schemas of its tools are compiled and applied.
    schemas: SchemaChecks,
}

/// Input of loading components.
struct Loading<'a, 'b> {
    folder: &'a Path,
    basis: &'a Basis<'b>,
    /// `None`: components are compiled whatever else is wrong.
    ahead: Option<&'a Ahead<'a>>,
    steps: &'a Steps<'a>,
}

impl Builder {
    /// The machine's runtime runs guests that list their tools; its workers make instances ahead.
    pub fn new(machine: &Machine, sink: Arc<Sink>) -> Self {
        let compiler = Compiler::new(machine.lazy_sandbox(), machine.loader.clone());
        let (runtime, executor) = (machine.runtime.handle().clone(), machine.workers.executor());
        let (calls, tally, consents, prewarm) = (Arc::default(), Arc::default(), Arc::default(), OnceLock::new());
        let state = Arc::new(Embedded::default());
        let (kept, caller_queues) = (SharedKept::new(None, Path::new(".")), Arc::default());
        let host_files = HostFiles::default();
        let reads = HostReads { files: FileReads::new(runtime.clone()), entries: EntryReads::new(runtime.clone()) };
        let (reads, news) = (Arc::new(reads), Arc::default());
        let (observing, walls) = (false, machine.walls.clone());
        Self {
            compiler,
            runtime,
            executor,
            sink,
            calls,
            tally,
            consents,
            state,
            kept,
            caller_queues,
            prewarm,
            host_files,
            reads,
            news,
            observing,
            walls,
        }
    }

    /// Observes attempts of guests, where `observing`.
    pub fn observing(self, observing: bool) -> Self {
        Self { observing, ..self }
    }

    /// Has all generations share state with all who use this.
    pub fn sharing(self, state: Arc<dyn SharedState>) -> Self {
        Self { state, ..self }
    }

    /// Has the state of tools kept there.
    pub fn keeping_state(self, kept: SharedKept) -> Self {
        Self { kept, ..self }
    }

    /// Keeps these files of the process out of all mounts.
    pub fn keeping_out(mut self, host_files: HostFiles) -> Self {
        self.host_files = host_files;
        self
    }

    /// Builds a generation from a checked manifest, reusing what the basis has. Relative paths
    /// start from `folder`.
    pub fn build(&self, manifest: &Manifest, folder: &Path, basis: &Basis<'_>, steps: &Steps<'_>) -> Built {
        // State files opened for verification close on the runtime, since another host may wait for
        // them.
        let _io = self.runtime.enter();
        let budget = manifest.server().prewarm_memory_bytes();
        let prewarm = self.prewarm.get_or_init(|| PrewarmContext::new(budget, self.executor.clone()));
        let ahead = Ahead::new(manifest, (folder, &self.kept), basis, !self.compiler.has_loader());
        let built = self.load_all(manifest.components(), &Loading { folder, basis, ahead: Some(&ahead), steps });
        let left_out = built.iter().any(|built| matches!(built, Ok(BuiltComponent::LeftOut)));
        let (mut problems, mut withheld) = (ahead.into_errors(), Vec::new());
        let callers = Arc::new(manifest.callers().clone());
        let serving = basis.earlier.first().map(|catalog| &catalog.texts);
        let texts = TextPrompts::build(manifest, folder, serving, &mut problems);
        let skills = Arc::new(Skills::build(manifest, folder, &mut problems));
        let apps = Arc::new(Apps::build(manifest, folder, &mut problems));
        let (parts, origins) = (Parts::default(), Vec::new());
        let mut draft = CatalogDraft { parts, origins, basis, prewarm, callers, texts, skills, apps };
        let (server, observing) = (manifest.server(), self.observing);
        let context = GrantContext { folder, server, kept: &self.kept, observing };
        for (policy, component) in manifest.components().iter().zip(built) {
            match component {
                Ok(BuiltComponent::Unchanged(catalog, loaded)) => {
                    draft.take_over(policy, catalog, loaded, &mut problems)
                }
                Ok(BuiltComponent::Changed(listed)) => draft.add(policy, &context, listed, &mut problems),
                Ok(BuiltComponent::Withheld(held)) => {
                    draft.hold(policy);
                    withheld.push(held);
                }
                Ok(BuiltComponent::LeftOut) => problems.push(not_compiled(policy)),
                Err(problem) => problems.push(problem),
            }
        }
        draft.add_texts(manifest);
        draft.check_collisions(&mut problems);
        draft.check_own_names(manifest, &mut problems);
        problems.extend(self.host_files.check(manifest, folder, &draft.parts.targets));
        let complete = withheld.is_empty() && problems.iter().all(|problem| problem.severity() != Severity::Error);
        problems.extend(draft.check_callers(complete));
        if complete {
            let policies: Vec<&ComponentPolicy> = manifest.components().iter().collect();
            let guests = draft.parts.components.iter().flat_map(|component| &component.resources);
            let guests: Vec<_> = guests.map(|guest| &guest.address).collect();
            problems.extend(draft.apps.check(&draft.parts.tools, &policies, &guests));
        }
        if left_out || problems.iter().any(|problem| problem.severity() == Severity::Error) {
            return Built { catalog: None, problems: once(problems), withheld };
        }
        let catalog = self.catalog(draft, manifest, folder).map_err(|collisions| {
            problems.push(Diagnostic::error("tools::collision", collisions.to_string()));
        });
        Built { catalog: catalog.ok(), problems, withheld }
    }

    /// Starts sandbox processes of a catalog, so that its first calls find them. A group that goes
    /// on has its own already.
    ///
    /// # Errors
    /// One sentence, where a process does not start.
    pub fn raise_walls(&self, catalog: &Catalog) -> Result<(), String> {
        self.runtime.block_on(catalog.walled.start()).map(drop)
    }

    /// The generation of a draft. State that belongs to all generations is passed on.
    fn catalog(&self, draft: CatalogDraft<'_>, manifest: &Manifest, folder: &Path) -> Result<Catalog, CatalogError> {
        let CatalogDraft { mut parts, basis, callers, texts, skills, apps, .. } = draft;
        for entry in texts.all.iter().map(|text| &text.entry).chain(skills.entries()) {
            parts.tools.push(Arc::clone(entry));
            parts.rules.push(Arc::clone(&callers));
        }
        let before = basis.earlier.first();
        let earlier = before.map(|catalog| &catalog.walled);
        let walled = WalledComponents::new(self.walls.as_ref(), manifest, &parts, earlier, self.observing);
        let Parts { tools, targets, rules, components } = parts;
        let searching = Searching::of(manifest);
        let tools = ToolList::new(basis.generation, tools)?;
        let places = FolderPlaces { base: folder.to_owned(), state: manifest.server().state().into() };
        let tools = Searching::apply(searching.as_ref(), tools, &targets)?;
        Ok(Catalog {
            resources: Arc::new(DeclaredResources::of(&targets, &tools, &places).holding(&skills, &apps, &tools)),
            reads: Arc::clone(&self.reads),
            news: Arc::clone(&self.news),
            tools,
            targets,
            texts,
            skills,
            apps,
            components,
            sink: Arc::clone(&self.sink),
            calls: Arc::clone(&self.calls),
            tally: Arc::clone(&self.tally),
            observation: before.and_then(|catalog| catalog.observation.clone()),
            traces: before.and_then(|catalog| catalog.traces.clone()),
            consents: Arc::clone(&self.consents),
            state: Arc::clone(&self.state),
            visibility: Visibility::new(callers, rules),
            searching,
            caller_queues: Arc::clone(&self.caller_queues),
            walled,
        })
    }

    /// The tools that the components list: the component's name, the tool's own name, and its name
    /// for clients. A component that cannot be loaded gives a problem instead.
    pub fn names(&self, manifest: &Manifest, folder: &Path) -> (Vec<[String; 3]>, Vec<Diagnostic>) {
        let (mut names, mut problems) = (Vec::new(), Vec::new());
        let basis = Basis::none();
        let loading = Loading { folder, basis: &basis, ahead: None, steps: &|_| {} };
        let listed = self.load_all(manifest.components(), &loading);
        for (policy, listed) in manifest.components().iter().zip(listed) {
            match listed {
                // The basis is empty, so nothing is reused and nothing is pinned.
                Ok(BuiltComponent::Unchanged(..) | BuiltComponent::Withheld(_) | BuiltComponent::LeftOut) => {}
                Ok(BuiltComponent::Changed(listed)) => names.extend(listed.tools.into_iter().filter_map(|tool| {
                    let exposed = policy.exposed_name(&tool.name).ok()?;
                    Some([policy.name().to_owned(), tool.name, exposed])
                })),
                Err(problem) => problems.push(problem),
            }
        }
        (names, problems)
    }

    /// Loads the components on as many threads as there are cores; results are in the manifest's
    /// order.
    fn load_all<'b>(
        &self,
        policies: &[ComponentPolicy],
        loading: &Loading<'_, 'b>,
    ) -> Vec<Result<BuiltComponent<'b>, Diagnostic>> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let load_next = || {
            let mut loaded = Vec::new();
            while let Some((index, policy)) = take(&next, policies) {
                loaded.push((index, self.load(policy, loading)));
                (loading.steps)(LoadStep::Loaded(done.fetch_add(1, Ordering::AcqRel) + 1));
            }
            loaded
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(policies.len());
        let mut loaded: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(load_next)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        loaded.sort_by_key(|(index, _)| *index);
        loaded.into_iter().map(|(_, loaded)| loaded).collect()
    }

    /// True if the build fails whatever a component turns out to be.
    fn fails_anyway(&self, loading: &Loading<'_, '_>) -> bool {
        // As in `build`: what is opened to look at it may close on the runtime.
        let _io = self.runtime.enter();
        loading.ahead.is_some_and(Ahead::fails)
    }

    /// Decides where the schemas of a component's tools are compiled and applied: where its calls
    /// run.
    fn schemas(&self, found: impl FnOnce() -> SchemaFindings, time: Duration) -> SchemaChecks {
        match self.compiler.has_loader() {
            true => SchemaChecks::Elsewhere(found()),
            false => SchemaChecks::Here(SchemaBudget::within(time)),
        }
    }

    fn load<'b>(&self, policy: &ComponentPolicy, loading: &Loading<'_, 'b>) -> Result<BuiltComponent<'b>, Diagnostic> {
        let Loading { folder, basis, .. } = *loading;
        let SourceRef::File(written) = policy.source() else {
            return Err(Diagnostic::error("components::source", "this kind of source is not supported")
                .at(policy.source_span()));
        };
        // Taken before they are read, so that no change is missed in between.
        let side_files = side_files::looks(policy, folder);
        let bytes: Arc<[u8]> = match basis.approved(policy) {
            Some(approved) => Arc::clone(&approved.bytes),
            None => file::read(&folder.join(written), policy.load().component_bytes())
                .map_err(|error| unreadable(policy, written, &error))?
                .into(),
        };
        let digest = Digest::of(&bytes).to_string();
        // Checked before anything is parsed: bytes that nobody approved reach no parser.
        if basis.withholds(policy, &digest) {
            return Ok(BuiltComponent::Withheld(Withheld { name: policy.name().to_owned(), digest, bytes }));
        }
        let policy_digest = Digest::of(policy.canonical().as_bytes()).to_string();
        if let Some((catalog, loaded)) = basis.unchanged(policy, &digest, &policy_digest, &side_files) {
            return Ok(BuiltComponent::Unchanged(catalog, loaded));
        }
        let began = Instant::now();
        let (component, lister) = match basis.compiled(policy, &digest) {
            Some(component) => (component, None),
            None if self.compiler.takes_long(&bytes) && self.fails_anyway(loading) => {
                return Ok(BuiltComponent::LeftOut);
            }
            None => {
                let source = side_files::absolute(&folder.join(written)).display().to_string();
                let compilation = Compilation {
                    component: policy.name(),
                    source: &source,
                    time: policy.load().compile_time(),
                    memory_bytes: (policy.load().compile_memory_bytes(), policy.limits().memory_bytes()),
                    serves_meanwhile: basis.serves_meanwhile(),
                    tell: &|compiling| (loading.steps)(LoadStep::Compiling(compiling)),
                };
                let compiled = self.compiler.compile(&bytes, &compilation);
                let (component, lister) = compiled.map_err(|error| refused(policy, &error))?;
                (Arc::new(component), lister)
            }
        };
        let time = policy.load().compile_time().saturating_sub(began.elapsed());
        typed::check_supported(policy, &component)?;
        // Checked before they are described, since that takes longer the more there are.
        if let Some(functions) = component.functions() {
            check_count(policy, functions, "tools")?;
        }
        if component.shape() == ShapeName::Program {
            let tools = program::tools(policy);
            // The manifest's own.
            let schemas = self.schemas(|| check_definitions(&tools, &SchemaLimits::of(policy.load(), time)), time);
            return Ok(BuiltComponent::Changed(ListedComponent {
                component,
                policy_digest,
                side_files,
                tools,
                beside: ListedBeside::default(),
                schemas,
            }));
        }
        let (report, beside, found) = self.list(policy, folder, (&component, lister), (&bytes, time))?;
        for line in report.captured.text.lines() {
            tracing::info!(component = policy.name(), "printed while it listed its tools: {}", sanitize::line(line));
        }
        match report.outcome {
            Ok(tools) => {
                let schemas = self.schemas(|| found, time);
                Ok(BuiltComponent::Changed(ListedComponent {
                    component,
                    policy_digest,
                    side_files,
                    tools,
                    beside,
                    schemas,
                }))
            }
            Err(failure) => {
                let message = format!("component \"{}\" could not list its tools: {failure}", policy.name());
                Err(Diagnostic::error("components::list", message).at(policy.source_span()))
            }
        }
    }
}

/// The tools that a component lists, its other entries, and what was found in the tools' schemas.
type Listed = (CallReport<Vec<contract::Tool>>, ListedBeside, SchemaFindings);

impl Builder {
    /// Has a component list its tools: here, or in a process.
    fn list(
        &self,
        policy: &ComponentPolicy,
        folder: &Path,
        (component, lister): (&HeldComponent, Option<OpenLister>),
        (bytes, time): (&[u8], Duration),
    ) -> Result<Listed, Diagnostic> {
        if let Some(linked) = component.linked() {
            let descriptions = typed::descriptions(policy, folder)?;
            let mut report = self.runtime.block_on(linked.list_tools(policy.limits(), &descriptions));
            let beside = self.runtime.block_on(linked.list_beside_tools(policy.limits()));
            let beside = beside.unwrap_or_else(|failure| {
                report.outcome = Err(failure);
                ListedBeside::default()
            });
            // They are compiled when their definitions are made.
            return Ok((report, beside, SchemaFindings::default()));
        }
        let written = typed::written(policy, folder)?;
        let limits = (policy.limits(), policy.load().compile_memory_bytes());
        match self.compiler.list((component, lister), bytes, limits, (&written, SchemaLimits::of(policy.load(), time)))
        {
            Ok(Listing::Report(report, beside, found)) => Ok((*report, beside, found)),
            Ok(Listing::NotWit(problem)) => Err(typed::no_wit(policy, &sanitize::line(&problem))),
            Err(error) => Err(refused(policy, &error)),
        }
    }
}

/// The next component that no thread has taken.
fn take<'a>(next: &AtomicUsize, policies: &'a [ComponentPolicy]) -> Option<(usize, &'a ComponentPolicy)> {
    let index = next.fetch_add(1, Ordering::AcqRel);
    policies.get(index).map(|policy| (index, policy))
}

/// Each problem once: those found ahead are found again by what was compiled all the same.
fn once(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told = Vec::with_capacity(problems.len());
    for problem in problems {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    told
}

fn not_compiled(policy: &ComponentPolicy) -> Diagnostic {
    let message = format!("component \"{}\" was not compiled: that takes long, and there are errors", policy.name());
    Diagnostic::warning("components::not_compiled", message)
        .at(policy.source_span())
        .hint("it is checked once they are mended")
}

fn unreadable(policy: &ComponentPolicy, written: &str, error: &Unreadable) -> Diagnostic {
    let message = format!("component \"{}\": {written} {error}", policy.name());
    match error {
        Unreadable::TooLarge { .. } => {
            past(policy, "components::too_large", message, LoadLimit::ComponentSize, "build a smaller component")
        }
        Unreadable::Otherwise(_) => Diagnostic::error("components::source", message)
            .at(policy.source_span())
            .hint("paths are relative to the manifest's folder; has the component been built?"),
    }
}

fn refused(policy: &ComponentPolicy, error: &NotCompiled) -> Diagnostic {
    let refused = |text: String| {
        let message = format!("component \"{}\": {text}", policy.name());
        Diagnostic::error("components::load", message).at(policy.source_span())
    };
    match error {
        NotCompiled::Refused(error) => refused(error.to_string()).hint(error.hint()),
        NotCompiled::NotLoaded(NotLoaded::Refused { message, hint, .. }) => {
            refused(sanitize::line(message).into_owned()).hint(sanitize::line(hint))
        }
        NotCompiled::NotLoaded(NotLoaded::TooMuchMemory) => {
            let memory = policy.load().show(LoadLimit::CompileMemory);
            let message = format!("component \"{}\": compiling it takes more memory than {memory}", policy.name());
            past(policy, "components::too_large", message, LoadLimit::CompileMemory, "build a smaller component")
        }
        NotCompiled::NotLoaded(NotLoaded::Ended { .. }) => refused(sanitize::line(&error.to_string()).into_owned())
            .hint("load it again; if that ends alike, it met a fault of the engine, or was made to harm"),
        NotCompiled::LeftBehind { .. }
        | NotCompiled::NoThread(_)
        | NotCompiled::NoEngine(_)
        | NotCompiled::NotLoaded(_) => refused(error.to_string()),
        NotCompiled::TooLate => {
            let time = policy.load().show(LoadLimit::CompileTime);
            let message = format!("component \"{}\": compiling it takes longer than {time}", policy.name());
            past(policy, "components::too_slow", message, LoadLimit::CompileTime, "build a smaller component")
        }
    }
}

/// Error: no time is left for the schemas of its tools.
fn schemas_too_slow(policy: &ComponentPolicy) -> Diagnostic {
    let time = policy.load().show(LoadLimit::CompileTime);
    let message =
        format!("component \"{}\": compiling it and its tools' schemas takes longer than {time}", policy.name());
    past(policy, "components::too_slow", message, LoadLimit::CompileTime, "use fewer and simpler patterns")
}

fn check_count(policy: &ComponentPolicy, listed: usize, what: &str) -> Result<(), Diagnostic> {
    let tools_max = policy.load().tools();
    if listed <= tools_max {
        return Ok(());
    }
    let message = format!("component \"{}\" lists {listed} {what}; a component may list {tools_max}", policy.name());
    Err(past(policy, "tools::too_many", message, LoadLimit::Tools, "offer fewer tools"))
}

fn not_pooled(policy: &ComponentPolicy) -> Diagnostic {
    let message = format!("component \"{}\" does not fit the pool: each call maps its memory anew", policy.name());
    Diagnostic::warning("components::not_pooled", message)
        .at(policy.source_span())
        .hint("its calls work and cost more; a table of at most 32,768 elements would fit")
}

/// Error: a component exceeds this limit of loading. `otherwise` is the advice besides raising it.
fn past(
    policy: &ComponentPolicy,
    code: &'static str,
    message: String,
    limit: LoadLimit,
    otherwise: &str,
) -> Diagnostic {
    let (key, name) = (limit.spec().key, policy.name());
    Diagnostic::error(code, format!("{message} (limit \"{key}\")"))
        .at(policy.source_span())
        .hint(format!("{otherwise}, or raise {key} in [components.{name}.load]"))
}

/// A component whose tools are being added.
struct ComponentDraft<'a> {
    loaded: Arc<LoadedComponent>,
    capabilities: ToolCapabilities<'a>,
    /// The instances that calls share, one set for each set of grants: an instance may hold data
    /// that other tools must not see.
    shared: Vec<(Arc<Capabilities>, Arc<InstancesByCaller>)>,
    prewarm: &'a PrewarmContext,
}

impl ComponentDraft<'_> {
    /// Source of a tool's instances.
    fn instances(&mut self, policy: &ComponentPolicy, limits: &Limits, capabilities: &Arc<Capabilities>) -> Instances {
        match self.shared_instances(policy, capabilities) {
            Some(shared) => Instances::PerCaller(shared),
            None => self.prewarm.instances(policy.prewarm(), &self.loaded.component, limits, capabilities),
        }
    }

    fn shared_instances(
        &mut self,
        policy: &ComponentPolicy,
        capabilities: &Arc<Capabilities>,
    ) -> Option<Arc<InstancesByCaller>> {
        if let Some((_, shared)) =
            self.shared.iter().find(|(other, _)| other.grants().reaches_like(capabilities.grants()))
        {
            return Some(Arc::clone(shared));
        }
        let shared = InstancesByCaller::of(policy)?;
        self.shared.push((Arc::clone(capabilities), Arc::clone(&shared)));
        Some(shared)
    }
}

/// An entry that is added: its definition, its path in the component, and its rules.
struct NewEntry {
    entry: Tool,
    name: String,
    program: Option<Arc<Program>>,
    approval: Option<Approval>,
}

/// The catalog while it grows.
struct CatalogDraft<'a> {
    parts: Parts,
    /// Of each tool: its name for clients, the component's name, and the position of that in the
    /// manifest.
    origins: Vec<(String, String, toolcell_policy::Span)>,
    basis: &'a Basis<'a>,
    prewarm: &'a PrewarmContext,
    /// Rules for callers.
    callers: Arc<Callers>,
    /// The prompts of the manifest itself.
    texts: TextPrompts,
    skills: Arc<Skills>,
    apps: Arc<Apps>,
}

impl CatalogDraft<'_> {
    /// Adds a component of an earlier catalog, and repeats its warnings.
    fn take_over(
        &mut self,
        policy: &ComponentPolicy,
        catalog: &Catalog,
        loaded: &Arc<LoadedComponent>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let own = catalog.offers().filter(|offer| Arc::ptr_eq(offer.component(), loaded));
        let names: Vec<&str> = own.map(|offer| offer.own_name()).collect();
        problems.extend(policy.check_exports(&names));
        problems.extend(policy.check_imports(loaded.inspection().imports()));
        problems.extend(typed::check(policy, &loaded.component));
        if !loaded.component.is_pooled() {
            problems.push(not_pooled(policy));
        }
        for exposed in catalog.tools_of(loaded) {
            self.origins.push((exposed.to_owned(), policy.name().to_owned(), policy.name_span()));
        }
        self.parts.take_over(catalog, loaded, Some(&self.callers));
    }

    /// Names the prompts of the manifest among those of components.
    fn add_texts(&mut self, manifest: &Manifest) {
        for (text, rule) in self.texts.all.iter().zip(manifest.prompts()) {
            self.origins.push((text.entry.definition().name.clone(), TEXTS.to_owned(), rule.span()));
        }
    }

    /// Keeps a component as it serves now, if it does.
    fn hold(&mut self, policy: &ComponentPolicy) {
        let Some((catalog, loaded)) = self.basis.serving(policy.name()) else { return };
        for exposed in catalog.tools_of(loaded) {
            self.origins.push((exposed.to_owned(), policy.name().to_owned(), policy.name_span()));
        }
        self.parts.take_over(catalog, loaded, None);
    }

    fn add(
        &mut self,
        policy: &ComponentPolicy,
        context: &GrantContext<'_>,
        listed: ListedComponent,
        problems: &mut Vec<Diagnostic>,
    ) {
        let before = problems.len();
        let ListedComponent { component, policy_digest, side_files, tools, beside, schemas } = listed;
        let ListedBeside { prompts, resources } = beside;
        problems.extend(typed::check(policy, &component));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        problems.extend(policy.check_exports(&names));
        problems.extend(program::check(policy, component.shape()));
        problems.extend(resources::check(policy, &tools));
        let what = if prompts.is_empty() && resources.is_empty() { "tools" } else { "tools, prompts and resources" };
        let count = tools.len() + prompts.len() + resources.len();
        let Ok(()) = check_count(policy, count, what).map_err(|problem| problems.push(problem)) else {
            return;
        };
        let resources = guest_resources::of_component(resources, policy.load()).unwrap_or_else(|found| {
            let found = found.iter().take(PROBLEMS_PER_COMPONENT_MAX);
            problems.extend(found.map(|(uri, problem)| broken_resource(policy, uri, problem)));
            Vec::new()
        });
        let loaded = Arc::new(LoadedComponent {
            policy: policy.clone(),
            digest: component.digest().to_string(),
            policy_digest,
            resources,
            side_files,
            component,
            denied: meters::continued(self.basis.loaded(policy.name()).map(|loaded| &loaded.denied)),
        });
        if !loaded.component.is_pooled() {
            problems.push(not_pooled(policy));
        }
        problems.extend(policy.check_imports(loaded.inspection().imports()));
        let mut draft = ComponentDraft {
            loaded: Arc::clone(&loaded),
            capabilities: ToolCapabilities::new(policy, context),
            shared: Vec::new(),
            prewarm: self.prewarm,
        };
        let mut schemas = schemas;
        for (place, tool) in tools.into_iter().enumerate() {
            let many = problems.len() - before >= PROBLEMS_PER_COMPONENT_MAX;
            let check = match schemas.of_tool(place) {
                Err(End::TooLate) => {
                    problems.push(schemas_too_slow(policy));
                    break;
                }
                Ok(check) if !many => check,
                Ok(_) | Err(End::Problems) => {
                    let message = format!("component \"{}\" has more problems; these come first", policy.name());
                    problems.push(Diagnostic::error("tools::more", message).at(policy.source_span()));
                    break;
                }
            };
            self.add_tool(policy, &mut draft, (tool, check), problems);
        }
        for prompt in prompts {
            if problems.len() - before >= PROBLEMS_PER_COMPONENT_MAX {
                break;
            }
            self.add_prompt(policy, &mut draft, (prompt, schemas.of_prompt()), problems);
        }
        if loaded.component.inspection().completes() {
            let entry = definition::completion(policy.name(), policy.load(), schemas.of_prompt());
            self.add_unlisted(policy, &mut draft, (export::COMPLETION, entry), problems);
        }
        if loaded.component.inspection().has_resources() {
            let entry = definition::reading(policy.name(), policy.load(), schemas.of_prompt());
            self.add_unlisted(policy, &mut draft, (export::RESOURCES, entry), problems);
        }
        self.parts.components.push(loaded);
    }

    fn add_tool(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        (mut tool, check): (contract::Tool, ToolSchemaCheck<'_>),
        problems: &mut Vec<Diagnostic>,
    ) {
        let name = tool.name.clone();
        if let Some(said) = policy.tool(&name) {
            definition::overrule(&mut tool, said);
        }
        let program = program::of_tool(policy, &name, draft.loaded.component.shape());
        let exposed = match policy.exposed_name(&name) {
            Ok(exposed) => exposed,
            // A valid name that only the prefix makes too long is reported with the prefix.
            Err(_) if names::check_tool(&name).is_ok() => return,
            Err(error) => return problems.push(misnamed(policy, &name, &error)),
        };
        match definition::compile(exposed.clone(), tool, policy.load(), check) {
            Ok(tool) => {
                // The guest refuses arguments that do not convert, with their path; the schema
                // accepts exactly those that do.
                let is_typed = draft.loaded.component.shape() == ShapeName::Typed;
                let tool = if is_typed { tool.checking_its_own_arguments() } else { tool };
                let tool = tool.in_tasks(definition::task_plan(policy.tool_task(&name)));
                let hints = &tool.definition().hints;
                let asks = |approval: &Approval| approval.policy().asks(hints.read_only, hints.destructive);
                let approval = Some(policy.tool_approval(&name)).filter(asks);
                self.add_entry(policy, draft, NewEntry { entry: tool, name, program, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, &name, problem))),
        }
    }

    fn add_prompt(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        (prompt, check): (contract::Prompt, ToolSchemaCheck<'_>),
        problems: &mut Vec<Diagnostic>,
    ) {
        let path = export::prompt(&prompt.name);
        let exposed = match policy.exposed_name(&prompt.name) {
            Ok(exposed) => exposed,
            Err(_) if names::check_tool(&prompt.name).is_ok() => return,
            Err(error) => return problems.push(misnamed(policy, &path, &error)),
        };
        match definition::prompt(exposed, prompt, policy.load(), check) {
            Ok(entry) => {
                let approval = Some(policy.tool_approval(&path));
                let approval = approval.filter(|approval| approval.policy().asks(None, None));
                self.add_entry(policy, draft, NewEntry { entry, name: path, program: None, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, &path, problem))),
        }
    }

    /// Adds an entry that no client lists. Values are looked for at each keystroke, so nobody
    /// confirms that.
    fn add_unlisted(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        (path, entry): (&str, Result<Tool, Vec<DefinitionProblem>>),
        problems: &mut Vec<Diagnostic>,
    ) {
        match entry {
            Ok(entry) => {
                let approval = Some(policy.tool_approval(path)).filter(|_| path != export::COMPLETION);
                let approval = approval.filter(|approval| approval.policy().asks(None, None));
                let name = path.to_owned();
                self.add_entry(policy, draft, NewEntry { entry, name, program: None, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, path, problem))),
        }
    }

    /// Adds an entry with all that its calls need.
    fn add_entry(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        new: NewEntry,
        problems: &mut Vec<Diagnostic>,
    ) {
        let NewEntry { entry, name, program, approval } = new;
        let limits = *policy.tool_limits(&name);
        let meters = meters::continued(self.basis.meters(policy.name(), &name));
        let admission = self.basis.admission(policy, &name, &limits);
        let admission =
            admission.unwrap_or_else(|| Arc::new(Admission::new(&limits, policy.name(), &name).counting(&meters)));
        let component = Arc::clone(&draft.loaded);
        let capabilities = draft.capabilities.of_tool(&name, problems);
        let instances = draft.instances(policy, &limits, &capabilities);
        self.origins.push((entry.definition().name.clone(), policy.name().to_owned(), policy.name_span()));
        self.parts.tools.push(Arc::new(entry));
        let narrowed = (!capabilities.grants().is_sealed()).then(Narrowing::new);
        let target = CallTarget {
            component,
            name,
            program,
            limits,
            capabilities,
            admission,
            instances,
            approval,
            narrowed,
            meters,
        };
        self.parts.targets.push(Arc::new(target));
        self.parts.rules.push(Arc::clone(&self.callers));
    }

    /// Rules for callers that match no tool. If tools are missing for another reason, this cannot
    /// be known.
    fn check_callers(&self, complete: bool) -> Vec<Diagnostic> {
        if !complete {
            return Vec::new();
        }
        let named = self.parts.targets.iter().zip(&self.parts.tools);
        let named = named.filter(|(_, entry)| entry.is_tool() || entry.prompt().is_some());
        let mut names: Vec<_> = named.map(|(target, entry)| target.called(entry)).collect();
        names.extend(self.texts.all.iter().map(|text| text.called()));
        names.extend(self.skills.entries().iter().map(|entry| skills::called(entry)));
        self.callers.check_tools(&names)
    }

    /// Refuses tools with names of the host's own, where it has them.
    fn check_own_names(&self, manifest: &Manifest, problems: &mut Vec<Diagnostic>) {
        if manifest.server().discovery() != Discovery::Search {
            return;
        }
        let taken = self.origins.iter().filter(|(exposed, ..)| [FIND_TOOLS, CALL_TOOL].contains(&exposed.as_str()));
        for (exposed, component, span) in taken {
            let message = format!(
                "component \"{component}\" has a tool \"{exposed}\", and with discovery = \"search\" the host has one"
            );
            problems.push(
                Diagnostic::error("tools::collision", message).at(span.clone()).hint("give the component a `prefix`"),
            );
        }
    }

    /// Names that several tools would have, with the components they come from.
    fn check_collisions(&self, problems: &mut Vec<Diagnostic>) {
        let mut first: std::collections::HashMap<&str, &str> = std::collections::HashMap::new();
        for (exposed, component, span) in &self.origins {
            let Some(earlier) = first.insert(exposed, component) else { continue };
            let (message, hint) = if earlier == component {
                (
                    format!("component \"{component}\" lists the tool \"{exposed}\" twice"),
                    "a component names each of its tools once",
                )
            } else {
                let message = format!("components \"{earlier}\" and \"{component}\" both have a tool \"{exposed}\"");
                (message, "give one of them a `prefix`")
            };
            problems.push(Diagnostic::error("tools::collision", message).at(span.clone()).hint(hint));
        }
    }
}

fn misnamed(policy: &ComponentPolicy, name: &str, error: &names::NameError) -> Diagnostic {
    let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
    let message = format!("component \"{}\" lists a tool whose name {shown:?} {error}", policy.name());
    Diagnostic::error("tools::name", message).at(policy.source_span())
}

fn broken(policy: &ComponentPolicy, tool: &str, problem: &DefinitionProblem) -> Diagnostic {
    // A process that looked at its schemas may say anything.
    let (field, said) = (sanitize::line(&problem.field), sanitize::line(&problem.message));
    let message = format!("component \"{}\", tool \"{tool}\": {field} {said}", policy.name());
    let own = policy.tool(tool).filter(|tool| tool.program().is_some()).map(ToolPolicy::name_span);
    let diagnostic = Diagnostic::error("tools::definition", message).at(own.unwrap_or_else(|| policy.source_span()));
    match &problem.hint {
        Some(hint) => diagnostic.hint(sanitize::line(hint)),
        None => diagnostic,
    }
}

fn broken_resource(policy: &ComponentPolicy, uri: &str, problem: &DefinitionProblem) -> Diagnostic {
    let shown: String = sanitize::line(uri).chars().take(NAME_CHARS_SHOWN).collect();
    let (field, said) = (sanitize::line(&problem.field), sanitize::line(&problem.message));
    let message = format!("component \"{}\", resource {shown:?}: {field} {said}", policy.name());
    Diagnostic::error("resources::definition", message).at(policy.source_span())
}

/// Folder that a manifest's relative paths start from.
pub fn folder_of(manifest: &Path) -> PathBuf {
    // A bare file name has an empty parent, which system calls do not take for a folder.
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}
