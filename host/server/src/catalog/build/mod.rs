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
use toolcell_mcp::{Cancellation, DefinitionProblem, NameCollisions, ToolList, sanitize};
use toolcell_policy::{
    Approval, Callers, ComponentPolicy, Diagnostic, Limits, LoadLimit, Manifest, Severity, SourceRef, ToolPolicy, names,
};
use toolcell_sandbox::{COMPONENT_BYTES_MAX, Capabilities, Digest, ShapeName, ToolComponent, contract};

use super::approvals::Approvals;
use super::caller_queue::CallerQueues;
use super::host_files::HostFiles;
use super::instances::{Instances, InstancesByCaller, PrewarmContext};
use super::permissions::{GrantContext, ToolCapabilities};
use super::queue::Admission;
use super::resources::{self, DeclaredResources};
use super::visibility::Visibility;
use super::{
    CallTarget, Catalog, LoadedComponent, Parts, Tally, WallSetup, WalledComponents, definition, meters, program,
    side_files,
};
use crate::file::{self, Unreadable};
use crate::file_stamp::Stamps;
use crate::machine::Machine;
use crate::workers::GuestExecutor;
use ahead::Ahead;
pub use basis::{Basis, Withheld};
pub use compiler::Compiling;
use compiler::{Compilation, Compiler, NotCompiled};

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
    approvals: Arc<Approvals>,
    caller_queues: Arc<CallerQueues>,
    prewarm: OnceLock<PrewarmContext>,
    host_files: HostFiles,
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
    component: Arc<ToolComponent>,
    policy_digest: String,
    side_files: Stamps,
    tools: Vec<contract::Tool>,
    /// Time left from compiling its code, for compiling the schemas of its tools.
    time: Duration,
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
        let compiler = Compiler::new(machine.sandbox.clone());
        let (runtime, executor) = (machine.runtime.handle().clone(), machine.workers.executor());
        let (calls, tally, approvals, prewarm) = (Arc::default(), Arc::default(), Arc::default(), OnceLock::new());
        let caller_queues = Arc::default();
        let host_files = HostFiles::default();
        let (observing, walls) = (false, machine.walls.clone());
        Self {
            compiler,
            runtime,
            executor,
            sink,
            calls,
            tally,
            approvals,
            caller_queues,
            prewarm,
            host_files,
            observing,
            walls,
        }
    }

    /// Observes attempts of guests, where `observing`.
    pub fn observing(self, observing: bool) -> Self {
        Self { observing, ..self }
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
        let ahead = Ahead::new(manifest, folder, basis);
        let built = self.load_all(manifest.components(), &Loading { folder, basis, ahead: Some(&ahead), steps });
        let left_out = built.iter().any(|built| matches!(built, Ok(BuiltComponent::LeftOut)));
        let (mut problems, mut withheld) = (ahead.into_errors(), Vec::new());
        let callers = Arc::new(manifest.callers().clone());
        let mut draft = CatalogDraft { parts: Parts::default(), origins: Vec::new(), basis, prewarm, callers };
        let context = GrantContext { folder, server: manifest.server(), observing: self.observing };
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
        draft.check_collisions(&mut problems);
        problems.extend(self.host_files.check(manifest, folder, &draft.parts.targets));
        let complete = withheld.is_empty() && problems.iter().all(|problem| problem.severity() != Severity::Error);
        problems.extend(draft.check_callers(complete));
        if left_out || problems.iter().any(|problem| problem.severity() == Severity::Error) {
            return Built { catalog: None, problems: once(problems), withheld };
        }
        let catalog = self.catalog(draft, manifest).map_err(|collisions| {
            problems.push(Diagnostic::error("tools::collision", collisions.to_string()));
        });
        Built { catalog: catalog.ok(), problems, withheld }
    }

    /// Starts the sandbox processes of a catalog, so that its first calls find them. A group that
    /// goes on has its own already.
    ///
    /// # Errors
    /// One sentence, where a process does not start.
    pub fn raise_walls(&self, catalog: &Catalog) -> Result<(), String> {
        self.runtime.block_on(catalog.walled.start()).map(drop)
    }

    /// The generation of a draft. State that belongs to all generations is passed on.
    fn catalog(&self, draft: CatalogDraft<'_>, manifest: &Manifest) -> Result<Catalog, NameCollisions> {
        let CatalogDraft { parts, basis, callers, .. } = draft;
        let Parts { tools, targets, rules, components } = parts;
        let tools = ToolList::new(basis.generation, tools)?;
        let before = basis.earlier.first();
        let earlier = before.map(|catalog| &catalog.walled);
        let walled = WalledComponents::new(self.walls.as_ref(), manifest, &components, earlier, self.observing);
        Ok(Catalog {
            resources: DeclaredResources::of(&targets, &tools),
            tools,
            targets,
            components,
            sink: Arc::clone(&self.sink),
            calls: Arc::clone(&self.calls),
            tally: Arc::clone(&self.tally),
            observation: before.and_then(|catalog| catalog.observation.clone()),
            traces: before.and_then(|catalog| catalog.traces.clone()),
            approvals: Arc::clone(&self.approvals),
            visibility: Visibility::new(callers, rules),
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

    fn load<'b>(&self, policy: &ComponentPolicy, loading: &Loading<'_, 'b>) -> Result<BuiltComponent<'b>, Diagnostic> {
        let Loading { folder, basis, .. } = *loading;
        let SourceRef::File(written) = policy.source() else {
            return Err(Diagnostic::error("components::source", "this kind of source is not supported")
                .at(policy.source_span()));
        };
        // Taken before they are read, so that no change is missed in between.
        let side_files = side_files::looks(policy, folder);
        let bytes = match basis.approved(policy) {
            Some(approved) => approved.bytes.to_vec(),
            None => file::read(&folder.join(written), policy.load().component_bytes())
                .map_err(|error| unreadable(policy, written, &error))?,
        };
        let digest = Digest::of(&bytes).to_string();
        // Checked before anything is parsed: bytes that nobody approved reach no parser.
        if basis.withholds(policy, &digest) {
            return Ok(BuiltComponent::Withheld(Withheld {
                name: policy.name().to_owned(),
                digest,
                bytes: bytes.into(),
            }));
        }
        let policy_digest = Digest::of(policy.canonical().as_bytes()).to_string();
        if let Some((catalog, loaded)) = basis.unchanged(policy, &digest, &policy_digest, &side_files) {
            return Ok(BuiltComponent::Unchanged(catalog, loaded));
        }
        let began = Instant::now();
        let component = match basis.compiled(policy, &digest) {
            Some(component) => component,
            None if self.compiler.takes_long(&bytes) && self.fails_anyway(loading) => {
                return Ok(BuiltComponent::LeftOut);
            }
            None => {
                let compilation = Compilation {
                    component: policy.name(),
                    time: policy.load().compile_time(),
                    serves_meanwhile: basis.serves_meanwhile(),
                    tell: &|compiling| (loading.steps)(LoadStep::Compiling(compiling)),
                };
                let compiled = self.compiler.compile(bytes, &compilation);
                Arc::new(compiled.map_err(|error| refused(policy, &error))?)
            }
        };
        let time = policy.load().compile_time().saturating_sub(began.elapsed());
        typed::check_supported(policy, &component)?;
        // Checked before they are described, since that takes longer the more there are.
        if let Some(functions) = component.functions() {
            check_count(policy, functions)?;
        }
        if component.shape() == ShapeName::Program {
            let tools = program::tools(policy);
            return Ok(BuiltComponent::Changed(ListedComponent { component, policy_digest, side_files, tools, time }));
        }
        let descriptions = typed::descriptions(policy, folder)?;
        let report = self.runtime.block_on(component.list_tools(policy.limits(), &descriptions));
        for line in report.captured.text.lines() {
            tracing::info!(component = policy.name(), "printed while it listed its tools: {}", sanitize::line(line));
        }
        match report.outcome {
            Ok(tools) => {
                Ok(BuiltComponent::Changed(ListedComponent { component, policy_digest, side_files, tools, time }))
            }
            Err(failure) => {
                let message = format!("component \"{}\" could not list its tools: {failure}", policy.name());
                Err(Diagnostic::error("components::list", message).at(policy.source_span()))
            }
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
        NotCompiled::LeftBehind { .. } | NotCompiled::NoThread(_) => refused(error.to_string()),
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

fn check_count(policy: &ComponentPolicy, listed: usize) -> Result<(), Diagnostic> {
    let tools_max = policy.load().tools();
    if listed <= tools_max {
        return Ok(());
    }
    let message = format!("component \"{}\" lists {listed} tools; a component may list {tools_max}", policy.name());
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
    /// Time and memory left for the schemas of its tools.
    budget: definition::DefinitionBudget,
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
        let ListedComponent { component, policy_digest, side_files, tools, time } = listed;
        problems.extend(typed::check(policy, &component));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        problems.extend(policy.check_exports(&names));
        problems.extend(program::check(policy, component.shape()));
        problems.extend(resources::check(policy, &tools));
        let Ok(()) = check_count(policy, tools.len()).map_err(|problem| problems.push(problem)) else { return };
        let loaded = Arc::new(LoadedComponent {
            policy: policy.clone(),
            digest: component.digest().to_string(),
            policy_digest,
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
            budget: definition::DefinitionBudget::within(time),
        };
        for tool in tools {
            if draft.budget.is_used_up() {
                problems.push(schemas_too_slow(policy));
                break;
            }
            if problems.len() - before >= PROBLEMS_PER_COMPONENT_MAX {
                let message = format!("component \"{}\" has more problems; these come first", policy.name());
                problems.push(Diagnostic::error("tools::more", message).at(policy.source_span()));
                break;
            }
            self.add_tool(policy, &mut draft, tool, problems);
        }
        self.parts.components.push(loaded);
    }

    fn add_tool(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        mut tool: contract::Tool,
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
        match definition::compile(exposed.clone(), tool, policy.load(), &mut draft.budget) {
            Ok(tool) => {
                // The guest refuses arguments that do not convert, with their path; the schema
                // accepts exactly those that do.
                let is_typed = draft.loaded.component.shape() == ShapeName::Typed;
                let tool = if is_typed { tool.checking_its_own_arguments() } else { tool };
                let limits = *policy.tool_limits(&name);
                let meters = meters::continued(self.basis.meters(policy.name(), &name));
                let admission = self.basis.admission(policy, &name, &limits);
                let admission = admission.unwrap_or_else(|| Arc::new(Admission::new(&limits).counting(&meters)));
                let component = Arc::clone(&draft.loaded);
                let capabilities = draft.capabilities.of_tool(&name, problems);
                let instances = draft.instances(policy, &limits, &capabilities);
                let hints = &tool.definition().hints;
                let asks = |approval: &Approval| approval.policy().asks(hints.read_only, hints.destructive);
                let approval = Some(policy.tool_approval(&name)).filter(asks);
                self.parts.tools.push(Arc::new(tool));
                let narrowed = (!capabilities.grants().is_sealed()).then(Cancellation::new);
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
                self.origins.push((exposed, policy.name().to_owned(), policy.name_span()));
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, &name, problem))),
        }
    }

    /// Rules for callers that match no tool. If tools are missing for another reason, this cannot
    /// be known.
    fn check_callers(&self, complete: bool) -> Vec<Diagnostic> {
        if !complete {
            return Vec::new();
        }
        let named = self.parts.targets.iter().zip(&self.parts.tools);
        let names: Vec<_> = named.map(|(target, tool)| target.called(&tool.definition().name)).collect();
        self.callers.check_tools(&names)
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
    let message = format!("component \"{}\", tool \"{tool}\": {} {}", policy.name(), problem.field, problem.message);
    let own = policy.tool(tool).filter(|tool| tool.program().is_some()).map(ToolPolicy::name_span);
    let diagnostic = Diagnostic::error("tools::definition", message).at(own.unwrap_or_else(|| policy.source_span()));
    match &problem.hint {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    }
}

/// Folder that a manifest's relative paths start from.
pub fn folder_of(manifest: &Path) -> PathBuf {
    // A bare file name has an empty parent, which system calls do not take for a folder.
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}
